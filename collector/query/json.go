package query

import "github.com/rollway/rollway/internal/jsonwalk"

// values walks the scalars of one value, in order and without recursion.
type values struct {
	line    []byte // up to the end of the value
	at      int    // where to go on
	objects bool   // look into objects; otherwise only lists are looked into
}

// next returns the next scalar: the inside of a string, or a number, true,
// false or null. Keys are left out.
func (v *values) next() (raw []byte, isString, escaped, ok bool) {
	line := v.line
	for v.at < len(line) {
		start := v.at
		switch line[start] {
		case '"':
			end, escaped := jsonwalk.SkipString(line, start)
			if end < 0 {
				return nil, false, false, false
			}
			v.at = end
			if end < len(line) && line[end] == ':' {
				v.at++
				continue
			}
			return line[start+1 : end-1], true, escaped, true
		case '{':
			if !v.objects {
				if v.at = jsonwalk.SkipValue(line, start); v.at < 0 {
					return nil, false, false, false
				}
				continue
			}
			v.at++
		case '[', ']', '}', ',', ':', ' ', '\n', '\r', '\t':
			v.at++
		default:
			v.at = jsonwalk.SkipScalar(line, start)
			return line[start:v.at], false, false, true
		}
	}
	return nil, false, false, false
}
