package jsonwalk

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

// ParseDecimal reads b, all of which must be a JSON number. The result refers to b.
func ParseDecimal(b []byte) (Decimal, bool) {
	var d Decimal
	i := 0
	if i < len(b) && b[i] == '-' {
		d.Negative = true
		i++
	}
	start := i
	for i < len(b) && IsDigit(b[i]) {
		i++
	}
	whole := i - start
	if whole == 0 || whole > 1 && b[start] == '0' {
		return d, false
	}
	if i < len(b) && b[i] == '.' {
		fraction := i + 1
		for i = fraction; i < len(b) && IsDigit(b[i]); {
			i++
		}
		if i == fraction {
			return d, false
		}
	}
	mantissa := b[start:i]
	var exponent int64
	if i < len(b) {
		var ok bool
		if exponent, ok = parseExponent(b[i:]); !ok {
			return d, false
		}
	}
	d.Zero = true
	d.Lead = int64(whole) - 1 + exponent
	for k, c := range mantissa {
		if c == '.' {
			continue
		}
		if c != '0' {
			d.Zero = false
			d.digits = mantissa[k:]
			break
		}
		d.Lead--
	}
	return d, true
}

// parseExponent reads e, E, a sign and digits to the end of b.
func parseExponent(b []byte) (int64, bool) {
	if b[0] != 'e' && b[0] != 'E' {
		return 0, false
	}
	b = b[1:]
	negative := false
	if len(b) > 0 && (b[0] == '+' || b[0] == '-') {
		negative = b[0] == '-'
		b = b[1:]
	}
	if len(b) == 0 {
		return 0, false
	}
	var n int64
	for _, c := range b {
		if !IsDigit(c) {
			return 0, false
		}
		n = min(n*10+int64(c-'0'), maxExponent)
	}
	if negative {
		n = -n
	}
	return n, true
}

// Compare returns -1, 0 or 1 as d is below, at or above e.
func (d Decimal) Compare(e Decimal) int {
	switch {
	case d.Zero && e.Zero:
		return 0
	case d.Zero:
		return sign(!e.Negative, -1)
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
