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

// A sieve knows which frames of one segment cannot match. Its zero value knows none.
type sieve struct {
	offsets
	parts []journal.Excluded
}

// cut returns the part of a span around an offset that has only frames which cannot match, and how many
// these are; or a part that has others alone, and 0.
func (v *sieve) cut(s *rangeScan, at, first, end uint64) (from, to uint64, skip int) {
	if at < v.from || at >= v.to {
		minimum, maximum := s.query.TimeRange()
		var err error
		if v.from, v.to, v.parts, err = s.api.src.exclude(at, minimum, maximum, s.test); err != nil {
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
