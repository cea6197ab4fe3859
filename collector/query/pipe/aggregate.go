package pipe

import (
	"bytes"
	"cmp"
	"math/big"
	"math/bits"
	"slices"
	"strconv"

	"github.com/rollway/rollway/internal/jsonline"
	"github.com/rollway/rollway/internal/jsonwalk"
)

// A state is what one function of stats has seen of one group. It does not depend on the
// order in which values were added and states merged, except for the rounding of sums of
// numbers that are beyond fixed.
type state interface {
	add(v Value) (grown int)                         // returns how many bytes more it holds; v is not Absent
	addInt(n int64, digits int) (grown int, ok bool) // adds n divided by 10 to the power of digits; false: add has to
	merge(other state) (grown int)
	value(buf []byte) Value // appends its text to buf
	estimate() string       // how good value is; "": exact
	spare() (grown int)     // has it hold less
}

// noInts is embedded in states that take numbers by their texts.
type noInts struct{}

func (noInts) addInt(int64, int) (int, bool) { return 0, false }

// exact is embedded in states that never estimate.
type exact struct{}

func (exact) estimate() string { return "" }
func (exact) spare() int       { return 0 }

// Functions are the functions of stats that take one field, by name.
var Functions = map[string]func(f *Field) states{
	"sum":  func(*Field) states { return newList[sum](func(s *sum) { *s = sum{} }) },
	"avg":  func(*Field) states { return newList[sum](func(s *sum) { *s = sum{average: true} }) },
	"min":  func(f *Field) states { return newList[extreme](func(e *extreme) { *e = extreme{field: f, sign: 1} }) },
	"max":  func(f *Field) states { return newList[extreme](func(e *extreme) { *e = extreme{field: f, sign: -1} }) },
	"uniq": func(*Field) states { return newList[uniq](func(u *uniq) { *u = uniq{} }) },

	"first":  func(*Field) states { return newList[edge](func(e *edge) { *e = edge{sign: 1} }) },
	"last":   func(*Field) states { return newList[edge](func(e *edge) { *e = edge{sign: -1} }) },
	"values": func(*Field) states { return newList[few](func(f *few) { *f = few{} }) },
}

// extreme is the least or greatest value. Of numbers that are equal it takes the first in
// the order of their texts.
type extreme struct {
	exact
	field *Field
	sign  int // 1: the least
	best  Value

	// best as a number, if short: n divided by 10 to the power of digits
	short  bool
	n      int64
	digits int
}

// addInt takes what is not better than best.
func (e *extreme) addInt(n int64, digits int) (grown int, ok bool) {
	return 0, e.short && e.digits == digits && (n == e.n || n > e.n == (e.sign > 0))
}

func (e *extreme) add(v Value) int {
	if e.best.Kind != Absent {
		c := e.sign * e.field.compare(v, e.best)
		if c = cmp.Or(c, bytes.Compare(v.Text, e.best.Text), cmp.Compare(v.Kind, e.best.Kind)); c >= 0 {
			return 0
		}
	}
	grown := len(v.Text) - len(e.best.Text)
	e.best = Value{v.Kind, slices.Clone(v.Text)}
	if e.short = v.Kind == Number && !e.field.Level; e.short {
		e.n, e.digits, e.short = intOf(v.Text)
	}
	return grown
}

// intOf returns a number without an exponent and with at most 18 digits as n divided by 10 to the
// power of digits.
func intOf(text []byte) (n int64, digits int, ok bool) {
	if len(text) > 18 {
		return 0, 0, false
	}
	negative := text[0] == '-'
	if negative {
		text = text[1:]
	}
	for i, c := range text {
		switch {
		case jsonwalk.IsDigit(c):
			n = 10*n + int64(c-'0')
		case c == '.':
			digits = len(text) - i - 1
		default:
			return 0, 0, false
		}
	}
	if negative {
		n = -n
	}
	return n, digits, true
}

func (e *extreme) merge(other state) int {
	if o := other.(*extreme); o.best.Kind != Absent {
		return e.add(o.best)
	}
	return 0
}

func (e *extreme) value([]byte) Value { return e.best }

// sum adds numbers. Those with at most 18 digits before the point and 9 after it are added
// exactly, others in double precision.
type sum struct {
	exact
	average bool
	n       int64
	fixed   fixed
	floats  int64 // how many numbers are in float
	float   float64
	lost    float64 // what float has lost to rounding (Neumaier, 1974)
}

func (s *sum) add(v Value) int {
	d, ok := v.decimal()
	if !ok {
		return 0
	}
	s.n++
	if x, ok := fixedOf(d); ok {
		s.fixed = s.fixed.plus(x)
	} else {
		s.floats++
		s.addFloat(floatOf(v.Text))
	}
	return 0
}

func (s *sum) addInt(n int64, digits int) (grown int, ok bool) {
	if digits > fixedDigits {
		return 0, false
	}
	s.n++
	s.fixed = s.fixed.plus(fixedOfInt(n, digits))
	return 0, true
}

func (s *sum) addFloat(x float64) {
	t := finite(s.float + x)
	if abs(s.float) >= abs(x) {
		s.lost += s.float - t + x
	} else {
		s.lost += x - t + s.float
	}
	s.float = t
}

func (s *sum) merge(other state) int {
	o := other.(*sum)
	s.n += o.n
	s.fixed = s.fixed.plus(o.fixed)
	s.floats += o.floats
	s.addFloat(o.float)
	s.lost += o.lost
	return 0
}

func (s *sum) value(buf []byte) Value {
	switch {
	case s.n == 0:
		return Value{}
	case s.floats > 0:
		total, _ := s.fixed.rat().Float64()
		total = finite(total + s.float + s.lost)
		if s.average {
			total /= float64(s.n)
		}
		return numberOf(buf, total)
	case s.average:
		return numberOf(buf, s.fixed.mean(s.n))
	}
	return Value{Number, s.fixed.appendTo(buf)}
}

// fixed is a number in units of 1e-9, of 128 bits. More than 1e11 of the numbers that
// fixedOf takes fit.
type fixed struct {
	high int64
	low  uint64
}

const fixedDigits = 9

// fixedOf returns the number d if it has at most 18 digits before the point and 9 after it.
func fixedOf(d jsonwalk.Decimal) (fixed, bool) {
	if d.Zero {
		return fixed{}, true
	}
	if d.Lead > 17 || d.Lead < -fixedDigits {
		return fixed{}, false
	}
	digits := d
	var whole, part uint64
	for at := d.Lead; at >= 0; at-- {
		whole = whole*10 + uint64(digits.Digit())
	}
	for at := int64(-1); at >= -fixedDigits; at-- {
		part *= 10
		if at <= d.Lead {
			part += uint64(digits.Digit())
		}
	}
	if !digits.Done() {
		return fixed{}, false
	}
	high, low := bits.Mul64(whole, 1e9)
	low, carry := bits.Add64(low, part, 0)
	x := fixed{int64(high + carry), low}
	if d.Negative {
		x = x.negative()
	}
	return x, true
}

// fixedOfInt returns n divided by 10 to the power of digits, which is at most fixedDigits.
func fixedOfInt(n int64, digits int) fixed {
	high, low := bits.Mul64(uint64(max(n, -n)), uint64(powers[fixedDigits-digits]))
	x := fixed{int64(high), low}
	if n < 0 {
		x = x.negative()
	}
	return x
}

func (x fixed) negative() fixed {
	low, borrow := bits.Sub64(0, x.low, 0)
	return fixed{-x.high - int64(borrow), low}
}

func (x fixed) plus(y fixed) fixed {
	low, carry := bits.Add64(x.low, y.low, 0)
	return fixed{x.high + y.high + int64(carry), low}
}

// small returns x in units of 1e-9, if 64 bits are enough.
func (x fixed) small() (n int64, ok bool) {
	n = int64(x.low)
	return n, x.high == n>>63
}

// appendTo appends x as jsonwalk.Decimal does.
func (x fixed) appendTo(buf []byte) []byte {
	text := make([]byte, 0, 64)
	if n, ok := x.small(); ok {
		text = append(strconv.AppendInt(text, n, 10), "e-9"...)
	} else {
		text = append(text, x.rat().FloatString(fixedDigits)...)
	}
	d, _ := jsonwalk.ParseDecimal(text)
	return d.AppendTo(buf)
}

// mean returns x divided by n, rounded once.
func (x fixed) mean(n int64) float64 {
	const unit, exact = 1e9, 1 << 53
	if total, ok := x.small(); ok && total%unit == 0 && n < exact { // two numbers that are exact
		return float64(total/unit) / float64(n)
	}
	total := x.rat()
	mean, _ := total.Quo(total, new(big.Rat).SetInt64(n)).Float64()
	return mean
}

func (x fixed) rat() *big.Rat {
	n := new(big.Int).Lsh(big.NewInt(x.high), 64)
	n.Add(n, new(big.Int).SetUint64(x.low))
	return new(big.Rat).SetFrac(n, big.NewInt(1e9))
}

// floatOf returns a JSON number in double precision; what is too large is the largest.
func floatOf(text []byte) float64 {
	f, _ := strconv.ParseFloat(string(text), 64)
	return finite(f)
}

// powers are the powers of 10 that double precision has exactly.
var powers = func() (list [23]float64) {
	list[0] = 1
	for i := 1; i < len(list); i++ {
		list[i] = 10 * list[i-1]
	}
	return list
}()

// floatOfInt returns what floatOf does of n divided by 10 to the power of digits: the quotient of
// two numbers that are exact is rounded once.
func floatOfInt(n int64, digits int) (f float64, ok bool) {
	const exact = 1 << 53
	switch {
	case n < -exact || n > exact || digits >= len(powers):
		return 0, false
	case digits == 0: // most are whole, and a division takes long
		return float64(n), true
	}
	return float64(n) / powers[digits], true
}

func numberOf(buf []byte, f float64) Value {
	return Value{Number, jsonline.AppendFloat(buf, finite(f))}
}
