package encode

import (
	"log/slog"
	"math/bits"
	"slices"
)

// No key appears twice in a line. Of several attributes with one key in one group the
// last wins: those of the call over those of the context, and these over the
// Logger's. A group is merged with earlier groups of its name, back to a value of
// that name. Almost no line has such keys, so the encoders only detect them, by a bit
// for each key; appendUnique writes the lines in which one may repeat.

// keySet has a bit for each key. Different keys may share a bit.
type keySet uint64

func keyBit(key string) keySet {
	n := len(key)
	if n == 0 {
		return 1
	}
	return 1 << ((uint(key[0]) + uint(key[n-1])*27 + uint(n)*25) & 63)
}

// HasKey reports whether one of attrs has that key.
func HasKey(attrs []slog.Attr, key string) bool {
	for i := range attrs {
		if attrs[i].Key == key {
			return true
		}
	}
	return false
}

func keysOf(attrs []slog.Attr) (set keySet) {
	for i := range attrs {
		set |= keyBit(attrs[i].Key)
	}
	return set
}

// filling says which slots the attributes of a call fill.
type filling struct {
	slots uint   // a bit for each
	at    uint64 // a bit for each attribute that fills one, by its index modulo 64
}

// scan returns which slots attrs fill, and whether a key may appear twice in the JSON
// line for r.
func (f *Format) scan(logger, ctx *Scope, r *Record, attrs []slog.Attr) (filled filling, repeats bool) {
	grouped, beside := logger.inGroup(), ctx
	seen, hit, named := logger.inner, keySet(0), uint64(0)
	if grouped {
		beside = nil
	} else if ctx != nil {
		seen |= ctx.outer
	}
	for i := range attrs {
		key := attrs[i].Key
		if key == "" {
			hit = 1
			continue
		}
		bit := keyBit(key)
		hit |= seen & bit
		seen |= bit
		if bit&f.slotBits != 0 {
			named |= 1 << (i & 63)
		}
	}
	if named != 0 && !grouped {
		filled, repeats = f.slotsAt(attrs, named)
	}
	switch {
	case r.unique:
		return filled, false
	case repeats || logger.clash || len(r.Outer) > 0 || ctx != nil && ctx.outer&logger.outer != 0 && ctx.sharesKey(logger):
		return filled, true
	case hit != 0 || f.nameLengths != 0:
		return filled, f.repeated(attrs, logger, beside, !grouped)
	}
	return filled, false
}

// slotsIn returns a bit for each slot that attrs fill, and whether that is not
// certain yet.
func (f *Format) slotsIn(attrs []slog.Attr) (set uint, unclear bool) {
	filled, unclear := f.slotsAt(attrs, ^uint64(0))
	return filled.slots, unclear
}

// slotsAt is slotsIn for the attributes with a bit in named, by their index modulo
// 64.
func (f *Format) slotsAt(attrs []slog.Attr, named uint64) (filled filling, unclear bool) {
	for i := bits.TrailingZeros64(named); i < len(attrs); i++ {
		if named>>(i&63)&1 == 0 {
			continue
		}
		slot := slotOf(&attrs[i])
		if slot == noSlot {
			unclear = unclear || attrs[i].Value.Kind() == slog.KindLogValuer && slotNamed(attrs[i].Key) != noSlot
		} else if f.slots&(1<<slot) != 0 {
			filled.slots |= 1 << slot
			filled.at |= 1 << (i & 63)
		}
	}
	return filled, unclear
}

// repeated reports whether a key may appear twice among the members of a group, or
// among the attributes of a call and those of the Logger and the context beside them.
// At the top it also considers the fields.
func (f *Format) repeated(group []slog.Attr, logger, ctx *Scope, top bool) (repeats bool) {
	seen, inline := keySet(0), false
	if logger != nil {
		seen = logger.inner
	}
	if ctx != nil {
		seen |= ctx.outer
	}
	for i := range group {
		a := &group[i]
		bit := keyBit(a.Key)
		switch {
		case isInline(a):
			inline = true
			if seen, repeats = f.watch(a, seen, repeats, top); repeats {
				return true
			}
			continue
		case seen&bit != 0 && (inline || HasKey(group[:i], a.Key) || logger != nil && logger.hasKey(a.Key) || ctx != nil && ctx.hasKey(a.Key)):
			return true
		case top && f.isField(a.Key) && !f.fills(a):
			return true
		}
		seen |= bit
	}
	return false
}

// isInline reports whether a is, or may be, a group without a name.
func isInline(a *slog.Attr) bool {
	return a.Key == "" && (a.Value.Kind() == slog.KindGroup || a.Value.Kind() == slog.KindLogValuer)
}

// watch adds the keys of an inline group to seen. Repeats includes what is not
// certain, and at the top what belongs to a field.
func (f *Format) watch(inline *slog.Attr, seen keySet, repeats, top bool) (keySet, bool) {
	if inline.Value.Kind() == slog.KindLogValuer {
		return seen, true
	}
	group := inline.Value.Group()
	for i := range group {
		a := &group[i]
		if isInline(a) {
			seen, repeats = f.watch(a, seen, repeats, top)
			continue
		}
		bit := keyBit(a.Key)
		repeats = repeats || seen&bit != 0 || top && (f.fills(a) || f.isField(a.Key))
		seen |= bit
	}
	return seen, repeats
}

// fills reports whether a, outside groups, fills a slot.
func (f *Format) fills(a *slog.Attr) bool {
	slot := slotOf(a)
	return slot != noSlot && f.slots&(1<<slot) != 0
}

// appendUnique appends the line for r with each key once.
func (f *Format) appendUnique(dst []byte, s *Scratch, logger, ctx *Scope, r *Record, attrs []slog.Attr) []byte {
	bare, bareCtx, list := f.gather(s, logger, ctx, r, attrs)
	once := *r
	once.unique, once.Outer = true, nil
	return f.append(dst, s, bare, bareCtx, &once, list)
}

// gather returns all attributes of a line as those of a call, each key once, and what
// remains of the Logger's and the context's Scopes. All belong to s.
func (f *Format) gather(s *Scratch, logger, ctx *Scope, r *Record, call []slog.Attr) (bare, bareCtx *Scope, list []slog.Attr) {
	nodes := maxNodes
	s.list, s.groups = s.list[:0], s.groups[:0]
	if ctx != nil {
		s.bare[1] = Scope{slots: ctx.slots, set: ctx.set, slotBelow: ctx.slotBelow, errorKeys: ctx.errorKeys}
		bareCtx = &s.bare[1]
		s.list = append(s.list, ctx.outermost()...)
	}
	s.list = f.settle(s.list, "", r.Outer, 0, &nodes)
	nctx := len(s.list)
	s.list = append(s.list, logger.outermost()...)
	own := len(s.list) - nctx
	for i := len(logger.levels) - 1; i > 0; i-- {
		start := len(s.groups)
		s.groups = append(append(s.groups, logger.levels[i].attrs...), call...)
		// Groups made earlier stay valid if s.groups has moved.
		inner := s.groups[start:len(s.groups):len(s.groups)]
		if call = nil; len(inner) > 0 {
			s.groups = append(s.groups, slog.Attr{Key: logger.levels[i].group, Value: slog.GroupValue(inner...)})
			call = s.groups[len(s.groups)-1:]
		}
	}
	s.list = f.settle(s.list, logger.prefix, call, 0, &nodes)
	s.list = unique(s.list, nctx, own)
	s.bare[0] = Scope{slots: logger.slots, set: logger.set, head: logger.head, slotBelow: logger.slotBelow, errorKeys: logger.errorKeys}
	return &s.bare[0], bareCtx, s.list
}

// unique returns list with each key once, in place. The last of a key wins, but the
// first ctx attributes and the own ones after them count as the first.
func unique(list []slog.Attr, ctx, own int) []slog.Attr {
	seen, again := keySet(0), false
	for i := range list {
		bit := keyBit(list[i].Key)
		again = again || seen&bit != 0 && HasKey(list[:i], list[i].Key) || list[i].Key == ""
		seen |= bit
	}
	if !again {
		return list
	}
	place := func(rank int) int { // index of the attribute with that rank
		switch {
		case rank < own:
			return ctx + rank
		case rank < own+ctx:
			return rank - own
		}
		return rank
	}
	var at map[string]int // indexes of kept attributes, in long lists
	if len(list) > 64 {
		at = make(map[string]int, len(list))
	}
	winner := func(rank int) int {
		key := list[place(rank)].Key
		if at != nil {
			if i, ok := at[key]; ok {
				return i
			}
			at[key] = place(rank)
			return -1
		}
		for higher := rank + 1; higher < len(list); higher++ {
			if i := place(higher); list[i].Key == key && !list[i].Equal(slog.Attr{}) {
				return i
			}
		}
		return -1
	}
	var values []string // keys that a value has had; a group is merged no further back
	for rank := len(list) - 1; rank >= 0; rank-- {
		i := winner(rank)
		if i < 0 {
			continue
		}
		loser := &list[place(rank)]
		first, second := loser.Value, list[i].Value
		switch {
		case second.Kind() != slog.KindGroup || slices.Contains(values, loser.Key):
		case first.Kind() != slog.KindGroup:
			values = append(values, loser.Key)
		default:
			list[i].Value = slog.GroupValue(slices.Concat(first.Group(), second.Group())...)
		}
		*loser = slog.Attr{}
	}
	return slices.DeleteFunc(list, func(a slog.Attr) bool { return a.Key == "" && isNothing(a.Value) })
}

// isNothing reports whether an attribute without a key and with that value is the
// empty one, which is left out.
func isNothing(v slog.Value) bool { return v.Kind() == slog.KindAny && v.Any() == nil }

// within is the prefix of keys in JSON groups; only that it is not empty matters.
const within = "."

// settle appends attrs as they will be written: LogValuers resolved, groups without a
// name or members dissolved, keys as in the line. In text formats groups become part
// of the keys, after prefix.
func (f *Format) settle(dst []slog.Attr, prefix string, attrs []slog.Attr, depth int, nodes *int) []slog.Attr {
	for i := range attrs {
		a := attrs[i]
		if *nodes--; *nodes < 0 {
			return dst
		}
		if f.Kind != Custom {
			a.Value = resolved(a.Value)
		}
		fills := prefix == "" && f.fills(&a)
		if a.Value.Kind() == slog.KindGroup && !fills {
			members := a.Value.Group()
			switch {
			case isHollow(members, depth):
				continue
			case depth >= maxDepth:
				a.Value = slog.StringValue(tooDeep)
			case a.Key == "":
				dst = f.settle(dst, prefix, members, depth+1, nodes)
				continue
			case f.isText():
				dst = f.settle(dst, prefix+a.Key+".", members, depth+1, nodes)
				continue
			case f.Kind == Custom && f.repeated(members, nil, nil, false):
				a.Value = slog.GroupValue(unique(f.settle(nil, within, members, depth+1, nodes), 0, 0)...)
			}
		} else if a.Key == "" && isNothing(a.Value) {
			continue
		}
		if a.Value.Kind() == slog.KindAny {
			if err, ok := a.Value.Any().(error); ok && !fills && f.Kind == Logfmt && f.ErrorDetail {
				eachField([]byte(a.Key), err, func(key []byte, text string) {
					dst = append(dst, slog.String(f.printedKey(prefix, string(key)), text))
				})
				continue
			}
		}
		if !fills {
			a.Key = f.printedKey(prefix, a.Key)
		}
		dst = append(dst, a)
	}
	return dst
}

// isHollow reports whether a group with these members writes nothing.
func isHollow(members []slog.Attr, depth int) bool {
	for i := range members {
		v := resolved(members[i].Value)
		if v.Kind() == slog.KindGroup && depth < maxDepth && isHollow(v.Group(), depth+1) || members[i].Key == "" && isNothing(v) {
			continue
		}
		return false
	}
	return true
}

// printedKey returns a key as written in the line.
func (f *Format) printedKey(prefix, key string) string {
	switch {
	case f.isText():
		prefix = f.attrsPrefix + prefix
		if prefix == "" && f.isField(key) {
			prefix = "attrs."
		}
		if prefix == "" && key != "" && isPlain(key) {
			return key
		}
		return string(f.appendKey(nil, prefix, key))
	case f.Kind == JSON && prefix == "" && f.isField(key):
		return f.besideField(key)
	case f.Kind == JSON:
		return validUTF8(key)
	}
	return key
}
