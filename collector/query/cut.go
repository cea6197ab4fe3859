package query

import (
	"sort"

	"github.com/rollway/rollway/collector/filters"
	"github.com/rollway/rollway/collector/journal"
)

// filter returns the test that a frame with a line passes for which n holds.
func (n *node) filter() *filters.Test {
	var kids []*filters.Test
	for _, kid := range n.kids {
		kids = append(kids, kid.filter())
	}
	switch n.kind {
	case nodeTerm:
		return n.term.filter()
	case nodeAnd:
		return filters.All(kids...)
	case nodeOr:
		return filters.Any(kids...)
	}
	return nil // a negation
}

func (t *term) filter() *filters.Test {
	if t.op == opIn {
		var members []*filters.Test
		for _, m := range t.members {
			members = append(members, m.filter())
		}
		return filters.Any(members...)
	}
	if t.op == opEqual && !t.isTime && !t.isLevel && !t.fold && t.pattern == nil {
		if is := filters.Value(t.text); is != nil {
			return is
		}
	}
	var texts []*filters.Test
	for _, text := range t.literals() {
		texts = append(texts, filters.Text(text))
	}
	if len(texts) == 0 {
		return nil
	}
	return filters.Any(texts...)
}

// cutLocked returns the next span, or nil. It may unlock s.mu for a while.
func (s *rangeScan) cutLocked(turn journal.Turn) *span {
	o := s.uncut
	if o.from >= o.to {
		return nil
	}
	s.cut++
	if s.back {
		first, _, skip := s.aroundLocked(o.to-1, turn)
		if o.from = max(o.from, first); s.each > 0 { // no more than is wanted, unless that was not enough
			o.from = max(o.from, o.to-min(o.to, s.each<<min(s.cut-1, 32)))
		}
		s.uncut.to = o.from
		s.covered += o.to - o.from
		return &span{offsets: o, skip: skip}
	}
	_, end, skip := s.aroundLocked(o.from, turn)
	// The first are short, so that all workers have some, and the last are ready at one time.
	for n := min(s.wide, s.cut/(2*s.api.o.Admission.CPU.Turns())); n > 0 && skip == 0 && end < o.to; n-- {
		_, next, skips := s.aroundLocked(end, turn)
		if skips > 0 {
			break
		}
		end = next
	}
	o.to = min(o.to, end)
	s.uncut.from = o.to
	return &span{offsets: o, skip: skip}
}

// aroundLocked returns the range of offsets around one that is best searched as one piece; skip is how
// many frames that are, if none of them can match.
func (s *rangeScan) aroundLocked(offset uint64, turn journal.Turn) (first, end uint64, skip int) {
	minimum, maximum := s.query.TimeRange()
	first, end = s.api.src.span(offset, minimum, maximum)
	if s.test != nil {
		return s.sieve.cutLocked(s, offset, first, end, turn)
	}
	return first, end, 0
}

// A sieve knows which frames of one segment cannot match. Its zero value knows none.
type sieve struct {
	offsets
	parts []journal.Excluded
}

// cutLocked returns the part of a span around an offset that has only frames which cannot match, and how
// many these are; or a part that has others alone, and 0. While it waits for a turn s.mu is not locked.
func (v *sieve) cutLocked(s *rangeScan, at, first, end uint64, turn journal.Turn) (from, to uint64, skip int) {
	if at < v.from || at >= v.to {
		minimum, maximum := s.query.TimeRange()
		s.mu.Unlock()
		from, to, parts, err := s.api.src.exclude(at, minimum, maximum, s.test, turn)
		s.mu.Lock()
		if *v = (sieve{offsets{from, to}, parts}); err != nil {
			v.parts = nil // what is damaged excludes nothing
		}
	}
	i := sort.Search(len(v.parts), func(i int) bool { return v.parts[i].To > at })
	if i > 0 {
		first = max(first, v.parts[i-1].To)
	}
	if i == len(v.parts) {
		return first, end, 0
	}
	if p := v.parts[i]; p.From <= at {
		return p.From, p.To, p.Frames
	}
	return first, min(end, v.parts[i].From), 0
}
