package pipe

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
	same := s.known.sameNumbers(&o.known)
	for from := 0; from < o.keys.Len(); from += often {
		if err := s.env.Check(); err != nil {
			return err
		}
		grown := s.groupsOf(o, from, min(from+often, o.keys.Len()), same)
		if err := s.take(grown + s.mergeStates(s.into, o.states, from)); err != nil {
			return err
		}
	}
	return nil
}

// groupsOf makes s.into those of some groups of o, whose numbers may be the same as those of s. It returns
// what those take that are new.
func (s *statsStep) groupsOf(o *statsStep, from, to int, same bool) (grown int) {
	s.into = s.into[:0]
	if n := s.keys.Len(); s.known.numbered == 0 && o.known.numbered == 0 {
		for s.into = s.keys.AddAll(s.into, &o.keys, from, to); n < s.keys.Len(); n++ {
			grown += s.newGroup(s.keys.At(n))
		}
		return grown
	}
	for more := 0; from < to; grown += more {
		if !same || len(o.keys.At(from)) > 0 {
			group := 0
			group, more = s.group(o.keyOfGroup(from))
			s.into = append(s.into, int32(group))
			from++
			continue
		}
		for s.numbers = s.numbers[:0]; from < to && len(o.keys.At(from)) == 0; from++ {
			s.numbers = append(s.numbers, int64(o.keys.Word(from)))
		}
		s.into, more = s.addNumbers(s.into, s.numbers...)
	}
	return grown
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
