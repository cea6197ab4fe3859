package jsonwalk

import (
	"bytes"
	"strconv"
)

// A Decimal is a JSON number as it is written, for exact comparison at any size:
//
//	±d.ddd × 10^Lead
type Decimal struct {
	Negative bool
	Zero     bool
	Lead     int64 // the power of ten of the first significant digit

	digits []byte // from the first significant digit to the end of the mantissa; may have a point in it
}

// maxExponent is where exponents saturate. No line is long enough to bring two
// different numbers together by its digits there.
const maxExponent = 1 << 48

// ParseDecimal reads b, which must be a JSON number as a whole. The result refers to b.
func ParseDecimal(b []byte) (Decimal, bool) {
	if len(b) == 0 || CheckNumber(b, 0) != len(b) {
		return Decimal{}, false
	}
	d := Decimal{Negative: b[0] == '-', Zero: true}
	if d.Negative {
		b = b[1:]
	}
	whole, end := len(b), len(b) // of the digits before the point, of the mantissa
	for i, c := range b {
		if c == '.' {
			whole = i
		} else if c|0x20 == 'e' {
			end = i
			d.Lead = exponent(b[i+1:])
			break
		}
	}
	d.Lead += int64(min(whole, end)) - 1
	for k, c := range b[:end] {
		if c == '.' {
			continue
		}
		if c != '0' {
			d.Zero = false
			d.digits = b[k:end]
			break
		}
		d.Lead--
	}
	return d, true
}

// exponent reads digits, which may have a sign.
func exponent(b []byte) (n int64) {
	for _, c := range b {
		if IsDigit(c) {
			n = min(n*10+int64(c-'0'), maxExponent)
		}
	}
	if b[0] == '-' {
		return -n
	}
	return n
}

// Compare returns -1, 0 or 1 as d is below, at or above e.
func (d Decimal) Compare(e Decimal) int {
	switch {
	case d.Zero && e.Zero:
		return 0
	case d.Zero:
		return sign(e.Negative, 1)
	case e.Zero:
		return sign(!d.Negative, 1)
	case d.Negative != e.Negative:
		return sign(e.Negative, 1)
	case d.Lead != e.Lead:
		return sign((d.Lead > e.Lead) != d.Negative, 1)
	}
	for len(d.digits) > 0 || len(e.digits) > 0 {
		if x, y := d.Digit(), e.Digit(); x != y {
			return sign((x > y) != d.Negative, 1)
		}
	}
	return 0
}

// sign returns v if ok, otherwise -v.
func sign(ok bool, v int) int {
	if ok {
		return v
	}
	return -v
}

// Digit takes the first significant digit off d and returns it, from 0 to 9. After
// the last one all are 0.
func (d *Decimal) Digit() int {
	if len(d.digits) > 0 && d.digits[0] == '.' {
		d.digits = d.digits[1:]
	}
	if len(d.digits) == 0 {
		return 0
	}
	c := d.digits[0]
	d.digits = d.digits[1:]
	return int(c - '0')
}

// Done reports whether the digits that Digit has not taken are all 0.
func (d Decimal) Done() bool { return len(bytes.Trim(d.digits, "0.")) == 0 }

// AppendTo appends d in the one form that all ways to write a number have in common:
// without an exponent from 1e-6 to below 1e21, as JavaScript does.
func (d Decimal) AppendTo(dst []byte) []byte {
	if d.Zero {
		return append(dst, '0')
	}
	if d.Negative {
		dst = append(dst, '-')
	}
	digits := bytes.TrimRight(d.digits, "0.") // a point stays only between digits
	n := len(digits) - bytes.Count(digits, []byte("."))
	whole, exponent := d.Lead+1, int64(0) // digits before the point
	switch {
	case whole > 21 || whole <= -6:
		whole, exponent = 1, d.Lead
	case whole <= 0:
		dst = append(dst, "0."...)
		for range -whole {
			dst = append(dst, '0')
		}
		whole = -1 // there is a point
	}
	for i := int64(0); i < max(int64(n), whole); i++ {
		if i == whole {
			dst = append(dst, '.')
		}
		dst = append(dst, '0'+byte(d.Digit()))
	}
	if exponent != 0 {
		dst = append(dst, 'e')
		if exponent > 0 {
			dst = append(dst, '+')
		}
		dst = strconv.AppendInt(dst, exponent, 10)
	}
	return dst
}
