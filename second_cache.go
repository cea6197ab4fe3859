package rollway

import (
	"slices"

	"github.com/rollway/rollway/internal/jsonline"
)

// secondCache holds the last second that was formatted.
type secondCache struct {
	unix int64
	text [jsonline.SecondLen]byte
}

// append appends the time with nine fraction digits.
func (c *secondCache) append(dst []byte, sec int64, nsec int32) []byte {
	if sec != c.unix || c.text[0] == 0 {
		if sec < jsonline.FirstSecond || sec > jsonline.LastSecond {
			return jsonline.AppendUnix(dst, sec, int(nsec))
		}
		c.unix = sec
		jsonline.PutSecond(&c.text, sec)
	}
	n := len(dst)
	dst = slices.Grow(dst, jsonline.TimeLen)[:n+jsonline.TimeLen]
	*(*[jsonline.SecondLen]byte)(dst[n:]) = c.text
	jsonline.PutNanosZ((*[jsonline.NanosLen]byte)(dst[n+jsonline.SecondLen:]), int(nsec))
	return dst
}
