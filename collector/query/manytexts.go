package query

// manyTexts finds all of a query's texts in one pass over a string, however many
// there are: the automaton of Aho and Corasick (Communications of the ACM 18(6),
// 1975), with its transitions worked out beforehand. It is immutable.
//
// A state is the longest end of what was read that some text begins with; 0 is
// the empty one.
type manyTexts struct {
	class   [256]uint16 // of a byte; 0: it is in no text
	classes int
	next    []uint16  // next[state*classes+class] is the next state
	found   [][]int32 // by state: indexes of the terms whose text ends here
	shorter []uint16  // by state: the next shorter end of it where a text ends; 0: none
	ends    []bool    // by state: a text ends here, or a shorter one does
}

// fewTexts are so few that to search for them one by one, many bytes at a time,
// takes less.
const fewTexts = 12

// newManyTexts returns the automaton of the texts of checks, which are not
// empty. They have at most MaxLength bytes together, so a state fits 16 bits.
func newManyTexts(checks []check) *manyTexts {
	m := &manyTexts{classes: 1}
	size := 1
	for _, c := range checks {
		size += len(c.term.needle)
		for _, b := range c.term.needle {
			if m.class[b] == 0 {
				m.class[b] = uint16(m.classes)
				m.classes++
			}
		}
	}
	m.next = make([]uint16, m.classes, size*m.classes)
	m.found = make([][]int32, 1, size)
	for _, c := range checks {
		m.add(c.term.needle, c.index)
	}
	m.link()
	return m
}

// add adds the states of a text.
func (m *manyTexts) add(text []byte, index int) {
	state := 0
	for _, c := range text {
		at := state*m.classes + int(m.class[c])
		if m.next[at] == 0 {
			m.next[at] = uint16(len(m.found))
			m.found = append(m.found, nil)
			m.next = append(m.next, make([]uint16, m.classes)...)
		}
		state = int(m.next[at])
	}
	m.found[state] = append(m.found[state], int32(index))
}

// link fills in, from short states to long ones, where a state goes on that no
// text does: where the longest shorter end of it goes.
func (m *manyTexts) link() {
	ends := make([]uint16, len(m.found)) // the longest shorter end of a state that is one
	m.shorter, m.ends = make([]uint16, len(m.found)), make([]bool, len(m.found))
	queue := make([]uint16, 0, len(m.found))
	for _, state := range m.next[:m.classes] {
		if state != 0 {
			queue = append(queue, state)
		}
	}
	for i := 0; i < len(queue); i++ {
		state, end := int(queue[i]), int(ends[queue[i]])
		if m.shorter[state] = uint16(end); len(m.found[end]) == 0 {
			m.shorter[state] = m.shorter[end]
		}
		m.ends[state] = len(m.found[state]) > 0 || m.shorter[state] > 0
		for class := range m.classes {
			at, short := state*m.classes+class, m.next[end*m.classes+class]
			if m.next[at] == 0 {
				m.next[at] = short
				continue
			}
			ends[m.next[at]] = short
			queue = append(queue, m.next[at])
		}
	}
}

// search notes the texts that are in one.
func (m *manyTexts) search(s *scan, text []byte) {
	state := 0
	for _, c := range text {
		state = int(m.next[state*m.classes+int(m.class[c])])
		if m.ends[state] {
			m.hit(s, state)
		}
	}
}

// hit notes the texts that end in state. Where one is found that was before, so
// were all that end in it: a text is passed at most twice in a line.
func (m *manyTexts) hit(s *scan, state int) {
	for ; state != 0; state = int(m.shorter[state]) {
		for _, index := range m.found[state] {
			if s.hits.has(int(index)) {
				return
			}
			s.hits.add(int(index))
			s.pending--
		}
	}
}
