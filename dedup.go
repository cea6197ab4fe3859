package rollway

import "log/slog"

// dedup returns the attributes of a context, a Logger and a call as one list in
// which no key stands twice: the nearest to the call wins, groups of one name are joined.
// A key keeps the place in which it stood first. What lies beyond maxNodes
// attributes is left out.
func dedup(ctx []rawLevel, extracted []slog.Attr, logger []rawLevel, call []slog.Attr) []slog.Attr {
	var fromCtx []slog.Attr
	for _, level := range ctx {
		fromCtx = append(fromCtx, level.attrs...)
	}
	fromCtx = append(fromCtx, extracted...)
	nodes := maxNodes
	return dedupAttrs(appendRaw(nil, fromCtx, logger, call), 0, &nodes)
}

// deduped returns what append is to be called with where Options.Dedup is set:
// all attributes as those of the call.
func deduped(st, ctx *state, extracted, call []slog.Attr) (*state, *state, []slog.Attr) {
	var fromCtx []rawLevel
	if ctx != nil {
		fromCtx = ctx.raw
	}
	bare := &state{slots: st.slots, head: st.head}
	return bare, nil, dedup(fromCtx, extracted, st.raw, call)
}

func dedupAttrs(attrs []slog.Attr, depth int, nodes *int) []slog.Attr {
	out := make([]slog.Attr, 0, len(attrs))
	at := make(map[string]int, len(attrs))
	var add func(a slog.Attr)
	add = func(a slog.Attr) {
		if *nodes--; *nodes < 0 {
			return
		}
		if a.Value.Kind() == slog.KindLogValuer {
			a.Value = resolve(a.Value)
		}
		group := a.Value.Kind() == slog.KindGroup
		if group && a.Key == "" {
			for _, g := range a.Value.Group() {
				add(g)
			}
			return
		}
		i, known := at[a.Key]
		if !known {
			at[a.Key] = len(out)
			out = append(out, a)
			return
		}
		if group && out[i].Value.Kind() == slog.KindGroup {
			first, second := out[i].Value.Group(), a.Value.Group()
			a.Value = slog.GroupValue(append(first[:len(first):len(first)], second...)...)
		}
		out[i] = a
	}
	for _, a := range attrs {
		add(a)
	}
	if depth < maxDepth {
		for i, a := range out {
			if a.Value.Kind() == slog.KindGroup {
				out[i].Value = slog.GroupValue(dedupAttrs(a.Value.Group(), depth+1, nodes)...)
			}
		}
	}
	return out
}
