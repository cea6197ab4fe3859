package pipe

import "container/heap"

// mostFrequent returns the groups with which a Sort by one count and with a limit begins, if that is
// next; else nil: it may begin with any.
func (s *statsStep) mostFrequent(next step) ([]int, error) {
	top, ok := next.(*sortStep)
	if !ok || top.Most == 0 || top.Most >= s.keys.Len() || len(top.Keys) != 1 {
		return nil, nil
	}
	call := top.Keys[0].Index - len(s.Groups)
	if call < 0 || s.Calls[call].Function != "count" {
		return nil, nil
	}
	h := &mostFrequent{s: s, counts: *s.states[call].(*counts), descending: top.Keys[0].Descending}
	const often = 4096
	for group := range s.keys.Len() {
		if group%often == often-1 {
			if err := s.env.Check(); err != nil {
				return nil, err
			}
		}
		switch {
		case len(h.groups) < top.Most:
			heap.Push(h, group)
		case h.before(group, h.groups[0]):
			h.groups[0] = group
			heap.Fix(h, 0)
		}
	}
	return h.groups, nil
}

// mostFrequent is a heap of groups, the last one first.
type mostFrequent struct {
	s          *statsStep
	counts     counts
	descending bool
	groups     []int
}

// before reports whether a comes before b by their counts, and by their keys if these are equal.
func (h *mostFrequent) before(a, b int) bool {
	x, y := h.counts[a], h.counts[b]
	if x != y {
		return x > y == h.descending
	}
	n := len(h.s.Groups)
	return h.s.compare(keysOf(h.s.keyOfGroup(a), n), keysOf(h.s.keyOfGroup(b), n)) < 0
}

// For container/heap.
func (h *mostFrequent) Len() int           { return len(h.groups) }
func (h *mostFrequent) Less(i, j int) bool { return h.before(h.groups[j], h.groups[i]) }
func (h *mostFrequent) Swap(i, j int)      { h.groups[i], h.groups[j] = h.groups[j], h.groups[i] }
func (h *mostFrequent) Push(group any)     { h.groups = append(h.groups, group.(int)) }
func (h *mostFrequent) Pop() any           { panic("not used") }
