package rollway

import "github.com/rollway/rollway/internal/jsonline"

// secondCache holds the last second that was formatted.
type secondCache struct {
	unix int64
	text [len("2006-01-02T15:04:05")]byte
}

// append appends the time with nine fraction digits.
func (c *secondCache) append(dst []byte, sec int64, nsec int32) []byte {
	if sec != c.unix || c.text[0] == 0 {
		if sec < jsonline.FirstSecond || sec > jsonline.LastSecond {
			return jsonline.AppendUnix(dst, sec, int(nsec))
		}
		c.unix = sec
		jsonline.AppendSecond(c.text[:0], sec)
	}
	dst = append(dst, c.text[:]...)
	return jsonline.AppendNanosZ(dst, int(nsec))
}
