package jsonline

import (
	"math"
	"math/bits"
	"slices"
	"strconv"
)

// AppendInt appends n in decimal.
func AppendInt(dst []byte, n int64) []byte {
	if n < 0 {
		return AppendUint(append(dst, '-'), -uint64(n))
	}
	return AppendUint(dst, uint64(n))
}

// AppendUint appends n in decimal. It writes the digits where they stay, while
// strconv copies them there.
func AppendUint(dst []byte, n uint64) []byte {
	if n < 10 {
		return append(dst, byte('0'+n))
	}
	// The digits of n are those of its length in bits × log10(2), or one more.
	digits := (bits.Len64(n)*1233)>>12 + 1
	if n < powersOf10[digits-1] {
		digits--
	}
	end := len(dst) + digits
	if n < 1e8 && len(dst)+8 <= cap(dst) { // all digits at once, without the leading zeros
		store64(dst[len(dst):len(dst)+8], digits8(uint32(n))>>(8*(8-digits)&63))
		return dst[:end]
	}
	if end > cap(dst) {
		dst = slices.Grow(dst, digits)
	}
	dst = dst[:end]
	for n >= 100 {
		rest := n % 100
		n /= 100
		end -= 2
		put2(dst[end:], uint32(rest))
	}
	if n >= 10 {
		put2(dst[end-2:], uint32(n))
	} else {
		dst[end-1] = byte('0' + n)
	}
	return dst
}

var powersOf10 = func() (t [20]uint64) {
	t[0] = 1
	for i := 1; i < len(t); i++ {
		t[i] = t[i-1] * 10
	}
	return t
}()

// AppendFloat appends f as encoding/json writes it; NaN and the infinities,
// which JSON cannot hold, become the strings "NaN", "+Inf" and "-Inf".
func AppendFloat(dst []byte, f float64) []byte {
	if out, ok := appendShort(dst, f); ok {
		return out
	}
	if math.IsNaN(f) || math.IsInf(f, 0) {
		return append(strconv.AppendFloat(append(dst, '"'), f, 'f', -1, 64), '"')
	}
	abs := math.Abs(f)
	if abs != 0 && (abs < 1e-6 || abs >= 1e21) {
		start := len(dst)
		dst = strconv.AppendFloat(dst, f, 'e', -1, 64)
		// e-09 becomes e-9, as ECMAScript writes it.
		if n := len(dst); n-start >= 4 && dst[n-4] == 'e' && dst[n-3] == '-' && dst[n-2] == '0' {
			dst[n-2] = dst[n-1]
			dst = dst[:n-1]
		}
		return dst
	}
	return strconv.AppendFloat(dst, f, 'f', -1, 64)
}

// appendShort appends f if it is a decimal with at most six places and fifteen
// digits, as most floats that are logged are. Two different decimals of at most
// fifteen digits are never the same float64, so if n/10^6, which the division
// rounds correctly, is f, then n/10^6 without trailing zeros is how f is
// written.
func appendShort(dst []byte, f float64) ([]byte, bool) {
	const scale = 1e6 // six places
	abs := math.Abs(f)
	if !(abs >= 1/scale && abs < 1e9) { // zero has a sign, NaN compares with nothing
		return dst, false
	}
	n := math.RoundToEven(abs * scale)
	if n/scale != abs {
		return dst, false
	}
	if f < 0 {
		dst = append(dst, '-')
	}
	micros := uint64(n)
	dst = AppendUint(dst, micros/scale)
	fraction := uint32(micros % scale)
	if fraction == 0 {
		return dst, true
	}
	digits := digits8(fraction * 100)
	zeros := bits.LeadingZeros64(digits^0x30303030_30303030) / 8 // the last digits come first there
	end := len(dst)
	dst = slices.Grow(dst, 1+8)[:end+1+8]
	dst[end] = '.'
	store64(dst[end+1:], digits)
	return dst[:end+1+8-zeros], true
}
