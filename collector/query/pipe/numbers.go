package pipe

import (
	"bytes"
	"slices"

	"github.com/rollway/rollway/collector/columns"
)

// While the numbers of one spelling tell groups by one column apart, the groups have those numbers instead
// of keys: no key is written, hashed or compared, and runs are merged by numbers. A key of a line or of
// another table that has a number in that spelling belongs to the number's group. The others are keys.
//
//	cus_000123 in tables                         number 123
//	cus_000123 in a line, or of a dictionary     number 123: see known.numberOf
//	anonymous, or no value                       a key

// useNumbers begins with numbers, if the table has such and there are few groups.
func (k *known) useNumbers(s *statsStep) (grown int) {
	const few = 1 << 10
	c := &k.columns[0]
	if k.numbered == 0 && c.how > named && s.keys.Len() <= few {
		if spelling, ok := columns.NewSpelling(c.Cells); ok {
			k.numbered, k.spelling = c.how, spelling
			k.fix()
			for group := range s.keys.Len() {
				if n, ok := k.numberOf(s.keys.At(group)); ok {
					k.how, c.numbers, c.mask = append(k.how[:0], c.how), append(c.numbers[:0], n), 0
					grown += k.note(0, int32(group))
				}
			}
		}
	}
	if k.numbered != 0 && c.how != k.numbered {
		k.single = -1 // direct is of numbered
	}
	return grown
}

// numberOf returns the number that a group has instead of a key; false: there is none.
func (k *known) numberOf(key []byte) (n int64, ok bool) {
	if k.numbered == 0 {
		return 0, false
	}
	v := keysOf(key, 1)[0]
	if v.Kind == String {
		return k.spelling.Number(append(append([]byte{'"'}, v.Text...), '"'))
	}
	return k.spelling.Number(v.Text)
}

// newNumber makes a group for a number. It returns what that takes.
func (s *statsStep) newNumber(n int64) (group, grown int) {
	s.keys.Skip(uint64(n))
	return s.keys.Len() - 1, s.newGroup(nil)
}

// addNumbers appends the groups of different numbers to dst. It returns what those take that are new.
func (s *statsStep) addNumbers(dst []int32, numbers ...int64) (_ []int32, grown int) {
	k, c := &s.known, &s.known.columns[0]
	how, of, mask, single, useless := k.how, c.numbers, c.mask, k.single, k.useless
	k.how, c.numbers, c.mask, k.single, k.useless = slices.Repeat([]uint32{k.numbered}, len(numbers)), numbers, -1, 0, false
	n := len(dst)
	dst = slices.Grow(dst, len(numbers))[:n+len(numbers)]
	grown = k.lookUp(dst[n:])
	for i, group := range dst[n:] {
		if group == unknown {
			group, more := s.newNumber(numbers[i])
			dst[n+i] = int32(group)
			grown += more + k.note(i, int32(group))
		}
	}
	k.how, c.numbers, c.mask, k.single, k.useless = how, of, mask, single, useless
	return dst, grown
}

// keyOfGroup returns the key of a group.
func (s *statsStep) keyOfGroup(group int) []byte {
	key := s.keys.At(group)
	if len(key) > 0 || s.known.numbered == 0 {
		return key
	}
	var value [64]byte
	return appendKey(nil, valueOf(s.known.spelling.Append(value[:0], int64(s.keys.Word(group))), nil))
}

// sameNumbers reports whether each number of o that groups have instead of keys is one of k.
func (k *known) sameNumbers(o *known) bool {
	return o.numbered == 0 || k.numbered != 0 && bytes.Equal(k.columns[0].spellings.At(int(k.numbered-named-1)), o.columns[0].spellings.At(int(o.numbered-named-1)))
}
