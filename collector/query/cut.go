package query

import (
	"slices"
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

// cutLocked returns the next span, or nil. The sieve of its offsets is read: see unreadLocked.
func (s *rangeScan) cutLocked() *span {
	o := s.uncut
	if o.from >= o.to {
		return nil
	}
	s.cut++
	if s.back {
		first, _, skip := s.aroundLocked(o.to - 1)
		if o.from = max(o.from, first); s.each > 0 { // no more than is wanted, unless that was not enough
			o.from = max(o.from, o.to-min(o.to, s.each<<min(s.cut-1, 32)))
		}
		s.uncut.to = o.from
		s.covered += o.to - o.from
		return &span{offsets: o, skip: skip}
	}
	_, end, skip := s.aroundLocked(o.from)
	// The first are short, so that all workers have some, and the last are ready at one time.
	for n := min(s.wide, s.cut/(2*s.api.o.Admission.CPU.Turns())); n > 0 && skip == 0 && end < o.to; n-- {
		if v := s.sieveLocked(end); s.test != nil && (v == nil || !v.read) {
			break
		}
		_, next, skips := s.aroundLocked(end)
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
func (s *rangeScan) aroundLocked(offset uint64) (first, end uint64, skip int) {
	minimum, maximum := s.query.TimeRange()
	first, end = s.api.src.span(offset, minimum, maximum)
	if s.test != nil {
		return s.sieveLocked(offset).cut(offset, first, end)
	}
	return first, end, 0
}

// A sieve knows which frames of one segment cannot match.
type sieve struct {
	offsets
	parts []journal.Excluded
	read  bool // else a worker reads its filters
}

// sieveLocked returns the sieve of an offset, or nil.
func (s *rangeScan) sieveLocked(at uint64) *sieve {
	for _, v := range s.sieves {
		if v.from <= at && at < v.to {
			return v
		}
	}
	return nil
}

// unreadLocked returns a sieve to read before the next span is cut, which nobody reads, and whether that
// span can be cut. While a worker reads the next sieve, each of the others may read one after it, unless
// few lines are wanted: that one may do.
func (s *rangeScan) unreadLocked() (v *sieve, ready bool) {
	if s.test == nil {
		return nil, true
	}
	minimum, maximum := s.query.TimeRange()
	o := s.uncut
	s.sieves = slices.DeleteFunc(s.sieves, func(v *sieve) bool { return v.read && (v.to <= o.from || v.from >= o.to) })
	ahead := s.api.o.Admission.CPU.Turns()
	if s.each > 0 {
		ahead = 1
	}
	for n := 0; n < ahead && o.from < o.to; n++ {
		at := o.from
		if s.back {
			at = o.to - 1
		}
		switch v = s.sieveLocked(at); {
		case v == nil:
			first, end, _, _ := s.api.src.exclude(at, minimum, maximum, nil, nil, nil) // the range alone
			v = &sieve{offsets: offsets{first, end}}
			s.sieves = append(s.sieves, v)
			return v, false
		case n == 0 && v.read:
			return nil, true
		case s.back:
			o.to = v.from
		default:
			o.from = v.to
		}
	}
	return nil, o == s.uncut
}

// readLocked reads v. Meanwhile s.mu is not locked.
func (s *rangeScan) readLocked(v *sieve, turn journal.Turn) {
	minimum, maximum := s.query.TimeRange()
	at := max(v.from, s.uncut.from)
	if s.back {
		at = min(v.to, s.uncut.to) - 1
	}
	from, to, parts, err := s.excludeUnlocked(at, minimum, maximum, turn)
	if v.offsets, v.read = (offsets{from, to}), true; err == nil { // what is damaged excludes nothing
		v.parts = parts
	} else if s.stopped { // it may not have been read, and the scan may go on later
		s.sieves = slices.DeleteFunc(s.sieves, func(other *sieve) bool { return other == v })
	}
	s.room.Broadcast()
}

func (s *rangeScan) excludeUnlocked(at uint64, minimum, maximum int64, turn journal.Turn) (from, to uint64, parts []journal.Excluded, err error) {
	s.mu.Unlock()
	defer s.mu.Lock()
	return s.api.src.exclude(at, minimum, maximum, s.test, turn, func() bool {
		s.mu.Lock()
		defer s.mu.Unlock()
		return s.stopped
	})
}

// cut returns the part of a span around an offset that has only frames which cannot match, and how
// many these are; or a part that has others alone, and 0.
func (v *sieve) cut(at, first, end uint64) (from, to uint64, skip int) {
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
