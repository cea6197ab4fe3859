package query

// decimal is a JSON number as it is written, for exact comparison at any size:
//
//	±d.ddd × 10^lead
type decimal struct {
	negative bool
	zero     bool
	lead     int64  // the power of ten of the first significant digit
	digits   []byte // from the first significant digit to the end of the mantissa; may hold a point
}

// maxExponent is where exponents saturate. A line is far too short to bring two
// different numbers together by its digits there.
const maxExponent = 1 << 48

// parseDecimal reads b, all of which must be a number by JSON's grammar. It
// keeps b.
func parseDecimal(b []byte) (decimal, bool) {
	var d decimal
	i := 0
	if i < len(b) && b[i] == '-' {
		d.negative = true
		i++
	}
	start := i
	for i < len(b) && isDigit(b[i]) {
		i++
	}
	whole := i - start
	if whole == 0 || whole > 1 && b[start] == '0' {
		return d, false
	}
	if i < len(b) && b[i] == '.' {
		fraction := i + 1
		for i = fraction; i < len(b) && isDigit(b[i]); {
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
	d.zero = true
	d.lead = int64(whole) - 1 + exponent
	for k, c := range mantissa {
		if c == '.' {
			continue
		}
		if c != '0' {
			d.zero = false
			d.digits = mantissa[k:]
			break
		}
		d.lead--
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
		if !isDigit(c) {
			return 0, false
		}
		n = min(n*10+int64(c-'0'), maxExponent)
	}
	if negative {
		n = -n
	}
	return n, true
}

// compare returns -1, 0 or 1 as d is below, at or above e.
func (d decimal) compare(e decimal) int {
	switch {
	case d.zero && e.zero:
		return 0
	case d.zero:
		return sign(!e.negative, -1)
	case e.zero:
		return sign(!d.negative, 1)
	case d.negative != e.negative:
		return sign(e.negative, 1)
	case d.lead != e.lead:
		return sign((d.lead > e.lead) != d.negative, 1)
	}
	a, b := d.digits, e.digits
	for len(a) > 0 || len(b) > 0 {
		var x, y byte
		x, a = nextDigit(a)
		y, b = nextDigit(b)
		if x != y {
			return sign((x > y) != d.negative, 1)
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

// nextDigit takes the first digit off b and skips a point; behind the end all
// digits are 0.
func nextDigit(b []byte) (byte, []byte) {
	if len(b) > 0 && b[0] == '.' {
		b = b[1:]
	}
	if len(b) == 0 {
		return '0', nil
	}
	return b[0], b[1:]
}

func isDigit(c byte) bool { return c-'0' <= 9 }
