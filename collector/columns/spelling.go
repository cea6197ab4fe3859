package columns

import (
	"bytes"
	"encoding/binary"
	"slices"
	"strconv"
)

// spell gives to what varies in texts and their spelling; false: they do not have one template with a few
// short numbers.
//
//	"10.0.0.7"   "\x00.\x00.\x00.\x00"   10<<48 | 0<<32 | 0<<16 | 7
func (t *texts) spell(to *Cells) bool {
	const most = 4
	n := t.n
	template, _ := t.place(n - 1)
	variables := t.variables[template]
	if template == 0 || t.counts[template] != n || len(variables) > most {
		return false
	}
	to.spelled = slices.Grow(to.spelled[:0], n)[:n]
	clear(to.spelled)
	to.Spelling = to.Spelling[:0]
	for i := range variables {
		to.Spelling = append(append(to.Spelling, t.pieces[template][i]...), hole)
		if v := t.variable(template, i); v == nil || !v.spell(to, 64/len(variables)) {
			return false
		}
	}
	to.Spelling = append(to.Spelling, t.pieces[template][len(variables)]...)
	return true
}

// spell adds numbers to what varies, with so many bits, or to the spelling if all are one.
func (v *values) spell(to *Cells, bits int) bool {
	to.Spelling = append(to.Spelling, v.form, byte(v.digits))
	switch v.form {
	case formConstant:
		to.Spelling = appendBytes(to.Spelling, v.text)
		return true
	case formDecimal, formDigits:
		for i, n := range v.ints {
			if uint64(n)>>bits != 0 {
				return false
			}
			to.spelled[i] = to.spelled[i]<<bits | n
		}
		return true
	}
	return false
}

// A Spelling writes and reads values whose Cells are Spelled, or Numbers without a fraction, by their Ints.
type Spelling struct {
	holes []spelledHole // nil: numbers
	end   []byte        // what follows them
	bits  int           // of an integer for each hole, the last lowest
}

// spelledHole is a hole of texts and what comes before it.
type spelledHole struct {
	before []byte
	form   byte
	digits int
}

// NewSpelling returns how c spells its values; false: a value may be spelled in another way, too.
func NewSpelling(c *Cells) (s Spelling, ok bool) {
	if c.Kind != Spelled {
		return s, c.Kind == Numbers && c.Digits == 0
	}
	rest, holes := slices.Clone(c.Spelling), 0
	if len(rest) == 0 || rest[0] != '"' || bytes.IndexByte(rest, '\\') >= 0 {
		return s, false
	}
	for {
		n := bytes.IndexByte(rest, hole)
		if n < 0 {
			s.end, s.bits = append(s.end, rest...), 64/max(holes, 1)
			return s, len(s.holes) > 0 && bytes.HasSuffix(s.end, []byte{'"'})
		}
		h := spelledHole{append(s.end, rest[:n]...), rest[n+1], int(rest[n+2])}
		holes++
		if h.form == formDecimal && h.digits > 0 {
			return s, false
		}
		if rest, s.end = rest[n+3:], nil; h.form == formConstant {
			size, n := binary.Uvarint(rest)
			s.end, rest = append(h.before, rest[n:n+int(size)]...), rest[n+int(size):]
			continue
		}
		s.holes = append(s.holes, h)
	}
}

// Size is at least how many bytes a value has.
func (s *Spelling) Size() int {
	const number = 20
	n := number + len(s.end)
	for _, h := range s.holes {
		n += number + len(h.before)
	}
	return n
}

// Append appends the value, as it is in a line, that has the number n.
func (s *Spelling) Append(dst []byte, n int64) []byte {
	if s.holes == nil {
		return appendDecimal(dst, n, 0)
	}
	for i, h := range s.holes {
		v := int64(uint64(n) >> (s.bits * (len(s.holes) - 1 - i)) & (1<<s.bits - 1))
		if dst = append(dst, h.before...); h.form == formDigits {
			dst = appendDigits(dst, v, h.digits)
		} else {
			dst = appendDecimal(dst, v, h.digits)
		}
	}
	return append(dst, s.end...)
}

// Number returns the number for which Append appends value; false: there is none.
func (s *Spelling) Number(value []byte) (n int64, ok bool) {
	rest, err := value, error(nil)
	if s.holes == nil {
		n, err = strconv.ParseInt(string(value), 10, 64)
	}
	for _, h := range s.holes {
		if rest, ok = bytes.CutPrefix(rest, h.before); !ok {
			return 0, false
		}
		digits := len(rest) - len(bytes.TrimLeft(rest, "0123456789"))
		v, ok := parseDigits(rest[:digits])
		if !ok || uint64(v)>>s.bits != 0 {
			return 0, false
		}
		n, rest = n<<s.bits|v, rest[digits:]
	}
	var buf [128]byte
	return n, err == nil && bytes.Equal(s.Append(buf[:0], n), value)
}
