package query

import (
	"github.com/rollway/rollway/collector/pool"
	"github.com/rollway/rollway/internal/jsonwalk"
)

// A decoded is the text of a string that has escapes.
type decoded struct{ text []byte }

// Memory is for the pool.
func (d *decoded) Memory() pool.Memory { return pool.Memory{d.text} }

var decodeds = pool.Pool[*decoded]{New: func() *decoded { return new(decoded) }}

// text returns the text between the quotes of a JSON string, valid until the next call.
func (s *scan) text(raw []byte, escaped bool) []byte {
	if !escaped {
		return raw
	}
	if s.decoded == nil {
		s.decoded = decodeds.Get()
	}
	s.decoded.text = jsonwalk.AppendText(s.decoded.text[:0], raw)
	return s.decoded.text
}

// values walks the scalars of one value, in order and without recursion.
type values struct {
	scan    *scan
	end     int  // of the value in the line
	at      int  // where to go on
	objects bool // look into objects; otherwise only lists are looked into
}

// next returns the next scalar: the text of a string, or a number, true, false or null.
// Keys are left out. It is valid until the next call.
func (v *values) next() (text []byte, isString, ok bool) {
	line := v.scan.line[:v.end]
	for v.at < len(line) {
		start := v.at
		switch line[start] {
		case '"':
			end, escaped := jsonwalk.SkipString(line, start)
			if end < 0 {
				return nil, false, false
			}
			v.at = end
			if end < len(line) && line[end] == ':' {
				v.at++
				continue
			}
			return v.scan.text(line[start+1:end-1], escaped), true, true
		case '{':
			if !v.objects {
				if v.at = jsonwalk.SkipValue(line, start); v.at < 0 {
					return nil, false, false
				}
				continue
			}
			v.at++
		case '[', ']', '}', ',', ':', ' ', '\n', '\r', '\t':
			v.at++
		default:
			v.at = jsonwalk.SkipScalar(line, start)
			return line[start:v.at], false, true
		}
	}
	return nil, false, false
}
