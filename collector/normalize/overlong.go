package normalize

import (
	"github.com/go-json-experiment/json/jsontext"

	"github.com/rollway/rollway/internal/jsonwalk"
)

// overlong judges a value, at whatever depth a name or a scalar in it is over
// its limit, and notes how long that is.
func (n *Normalizer) overlong(kind jsontext.Kind, raw []byte) reason {
	if len(raw) <= n.short {
		return ok
	}
	return n.overlongIn(kind, raw)
}

func (n *Normalizer) overlongIn(kind jsontext.Kind, raw []byte) reason {
	if scalar(kind) {
		return n.judgeScalar(kind, len(raw))
	}
	for i := 0; i < len(raw); {
		switch kind := kindOf(raw[i]); kind {
		case jsontext.KindString:
			start := i
			end, _ := jsonwalk.SkipString(raw, i)
			if i = jsonwalk.SkipSpace(raw, end); i == len(raw) || raw[i] != ':' {
				if fault := n.judgeScalar(kind, end-start); fault != ok {
					return fault
				}
			} else if n.ev.got = end - start - len(`""`); n.ev.got > n.limits.MaxKeyBytes {
				return keyTooLong
			}
		case jsontext.KindNumber:
			start := i
			i = jsonwalk.CheckNumber(raw, i)
			if fault := n.judgeScalar(kind, i-start); fault != ok {
				return fault
			}
		default:
			i++
		}
	}
	return ok
}

// judgeScalar judges a string, a number or a word of size bytes of JSON.
func (n *Normalizer) judgeScalar(kind jsontext.Kind, size int) reason {
	if kind == jsontext.KindString {
		size -= len(`""`)
	}
	if size <= n.limits.MaxValueBytes {
		return ok
	}
	n.ev.got = size
	return valueTooLong
}
