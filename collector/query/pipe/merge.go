package pipe

import (
	"bytes"
	"slices"
)

// merge adds the groups of other, which is of the same Stats.
func (s *statsStep) merge(other step) error {
	const often = 256
	o := other.(*statsStep)
	for i := range s.Groups {
		a, b := &s.cuts[i], &o.cuts[i]
		if s.Groups[i].Most == 0 || !b.reached {
			continue
		}
		if a.reach(b.first, b.last, s.Groups[i].Most) {
			if err := s.take(s.regroup(i)); err != nil {
				return err
			}
		}
		if b.step != a.step {
			b.use(a.step)
			if err := o.take(o.regroup(i)); err != nil {
				return err
			}
		}
	}
	if s.keys.Len() == 0 {
		return s.swap(o)
	}
	shared := s.known.shared(&o.known, o.keys.Len())
	for from := 0; from < o.keys.Len(); from += often {
		if err := s.env.Check(); err != nil {
			return err
		}
		grown := s.addGroups(&o.keys, from, min(from+often, o.keys.Len()), shared)
		if err := s.take(grown + s.mergeStates(s.into, o.states, from)); err != nil {
			return err
		}
	}
	return nil
}

// swap takes the groups of o, which gets memory for others. s has none.
func (s *statsStep) swap(o *statsStep) error {
	s.keys, o.keys = o.keys, s.keys
	for i := range s.states {
		s.states[i].swap(o.states[i])
	}
	s.known, o.known = o.known, s.known
	s.known.table = nil
	held := o.held
	o.reset()
	return s.take(held)
}

// shared returns, of each of n groups of o, the group of k that has the same number in direct, and so the
// same key; unknown: it has none. It is empty if numbers do not tell.
func (k *known) shared(o *known, n int) []int32 {
	if len(k.columns) != 1 || len(o.columns) != 1 || !bytes.Equal(k.spelling(), o.spelling()) || k.spelling() == nil {
		return nil
	}
	groups := slices.Repeat([]int32{unknown}, n)
	for i, group := range o.direct[:min(len(o.direct), len(k.direct))] {
		if group > 0 && k.direct[i] > 0 {
			groups[group-1] = k.direct[i] - 1
		}
	}
	return groups
}

// spelling is how the numbers of the one column are to be read that direct is of; nil: they are of names.
func (k *known) spelling() []byte {
	if how := k.fixed[1]; how > named && len(k.direct) > 0 {
		return k.columns[0].spellings.At(int(how - named - 1))
	}
	return nil
}
