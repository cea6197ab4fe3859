package encode

import (
	"encoding/json"
	"log/slog"
	"slices"
)

// A Replacer is Options.ReplaceAttr of package rollway, which works as that of package
// slog: it gets each attribute, resolved, with the groups around it, and the fields time,
// level, msg and source. Of a group it gets only the members.
type Replacer func(groups []string, a slog.Attr) slog.Attr

// Attrs returns what it makes of attrs, which are in groups.
func (rp Replacer) Attrs(groups []string, attrs []slog.Attr) []slog.Attr {
	nodes := maxNodes
	return rp.walk(append([]string{}, groups...), attrs, 0, &nodes)
}

// walk is Attrs. groups is nil for fields, and then also for members of what becomes of
// them.
func (rp Replacer) walk(groups []string, attrs []slog.Attr, depth int, nodes *int) []slog.Attr {
	out := make([]slog.Attr, 0, min(len(attrs), *nodes))
	for _, a := range attrs {
		if *nodes--; *nodes < 0 {
			break
		}
		if a.Value = resolved(a.Value); a.Value.Kind() != slog.KindGroup {
			a = rp.call(groups, a)
		}
		if a.Value.Kind() == slog.KindAny {
			if s, ok := a.Value.Any().(*slog.Source); ok && s != nil {
				a.Value = sourceValue(*s)
			}
		}
		if a.Value.Kind() == slog.KindGroup && depth < maxDepth {
			within := groups
			if a.Key != "" && groups != nil {
				within = append(groups[:len(groups):len(groups)], a.Key)
			}
			a.Value = slog.GroupValue(rp.walk(within, a.Value.Group(), depth+1, nodes)...)
		}
		out = append(out, a) // the encoders leave out empty ones
	}
	return out
}

// sourceValue returns s as package slog writes it.
func sourceValue(s slog.Source) slog.Value {
	all := []slog.Attr{slog.String("function", s.Function), slog.String("file", s.File), slog.Int("line", s.Line)}
	return slog.GroupValue(slices.DeleteFunc(all, func(a slog.Attr) bool { return a.Value.Equal(slog.StringValue("")) || a.Value.Equal(slog.IntValue(0)) })...)
}

// call calls the function. An attribute for which it panics, or logs without end, has a
// text that says so.
func (rp Replacer) call(groups []string, a slog.Attr) (out slog.Attr) {
	defer func() {
		if p := recover(); p != nil {
			out = slog.String(a.Key, panicText(nil, p))
		}
	}()
	n := enterValue()
	if n == nil {
		return slog.String(a.Key, logsItself)
	}
	defer leaveValue(n)
	out = rp(groups, a)
	out.Value = resolved(out.Value)
	return out
}

// Replaced is what a Replacer made of a record's fields, by field; nil: nothing.
type Replaced [numFields]*slog.Attr

// Fields passes the fields of r to the function.
func (rp Replacer) Fields(r *Record) {
	what, list := make([]int, 0, 4), make([]slog.Attr, 0, 4)
	what, list = append(what, fieldLevel, fieldMsg), append(list, slog.Any("level", r.Level), slog.String("msg", r.Message))
	if r.HasTime {
		what, list = append(what, fieldTime), append(list, slog.Time("time", r.time()))
	}
	if r.Source != nil {
		source := r.Source.Source
		what, list = append(what, slotSource), append(list, slog.Any("source", &source))
	}
	nodes := maxNodes
	got := rp.walk(nil, list, 0, &nodes)
	for i, a := range list {
		if what[i] == slotSource {
			a.Value = sourceValue(r.Source.Source)
		}
		if !a.Equal(got[i]) {
			if r.Replaced == nil {
				r.Replaced = new(Replaced)
			}
			r.Replaced[what[i]] = &got[i]
		}
	}
}

// Redact hides what rd hides.
func (rs *Replaced) Redact(rd *Redactor) {
	for _, a := range rs {
		if a != nil {
			a.Value = rd.Value(nil, *a)
		}
	}
}

// bounded returns rs with long texts cut, and without other long values, which c names.
func (rs Replaced) bounded(c *cutter) *Replaced {
	for i, a := range rs {
		if most := c.f.MaxLine / 16; a != nil && c.f.sizeOf(*a) > most {
			text, isText := textOf(a.Value)
			if rs[i] = new(slog.Attr); isText {
				*rs[i] = slog.String(a.Key, c.f.cutText(text, most, false))
			} else {
				c.leave(a.Key)
			}
		}
	}
	return &rs
}

// replaced returns what is to be written in place of a field, or nil.
func (f *Format) replaced(r *Record, field *layoutField) []slog.Attr {
	if r.Replaced == nil || r.Replaced[field.what] == nil {
		return nil
	}
	a := *r.Replaced[field.what]
	if what, ok := fieldNames[a.Key]; ok && what == field.what {
		a.Key = field.name
	}
	if l, ok := a.Value.Any().(slog.Level); ok {
		form := levelForms[f.Level]
		text := string(form.append(nil, l))
		if a.Value = slog.StringValue(text); form.number {
			a.Value = slog.AnyValue(json.RawMessage(text))
		}
	}
	return []slog.Attr{a}
}
