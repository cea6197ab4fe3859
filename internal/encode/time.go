package encode

import (
	"cmp"
	"math"
	"slices"
	"strconv"
	"time"
	"unicode/utf8"

	"github.com/rollway/rollway/internal/jsonline"
)

// secondCache keeps the last second that was formatted.
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

// appendUnixNano appends the time ns nanoseconds after 1970.
func appendUnixNano(dst []byte, ns int64) []byte {
	sec, nsec := ns/1e9, ns%1e9
	if nsec < 0 {
		sec, nsec = sec-1, nsec+1e9
	}
	return jsonline.AppendUnix(dst, sec, int(nsec))
}

// appendTimeValue appends a time as a JSON value.
func (f *Format) appendTimeValue(dst []byte, t time.Time) []byte {
	switch f.Time {
	case UnixSeconds:
		return strconv.AppendInt(dst, t.Unix(), 10)
	case UnixMilli:
		return strconv.AppendInt(dst, t.UnixMilli(), 10)
	case UnixNano:
		return strconv.AppendInt(dst, unixNano(t), 10)
	case UnixFloat:
		return jsonline.AppendFloat(dst, float64(unixNano(t))/1e9)
	case RFC3339Nano:
		if f.Location == nil {
			dst = append(dst, '"')
			dst = jsonline.AppendTime(dst, t)
			return append(dst, '"')
		}
	}
	dst = append(dst, '"')
	mark := len(dst)
	dst = f.appendLayoutTime(dst, t)
	for _, c := range dst[mark:] {
		if c < ' ' || c == '"' || c == '\\' || c >= utf8.RuneSelf { // of a layout of the user's
			return jsonline.AppendString(dst[:mark-1], string(dst[mark:]))
		}
	}
	return append(dst, '"')
}

// appendLayoutTime appends a time in a layout of package time.
func (f *Format) appendLayoutTime(dst []byte, t time.Time) []byte {
	if f.Time == RFC3339Milli && f.Location == nil {
		return jsonline.AppendMilli(dst, t)
	}
	return f.inYears(t).AppendFormat(dst, f.timeLayout())
}

func (f *Format) zone() *time.Location { return cmp.Or(f.Location, time.UTC) }

func (f *Format) timeLayout() string {
	switch f.Time {
	case RFC3339Nano:
		return "2006-01-02T15:04:05.000000000Z07:00"
	case RFC3339Milli:
		return "2006-01-02T15:04:05.000Z07:00"
	}
	return f.Time
}

// inYears returns t in the format's zone. For RFC 3339, which has no years before 0
// and after 9999, it is the nearest instant in that range.
func (f *Format) inYears(t time.Time) time.Time {
	in := t.In(f.zone())
	if year := in.Year(); year >= 0 && year <= 9999 || f.Time != RFC3339Nano && f.Time != RFC3339Milli {
		return in
	} else if year < 0 {
		return time.Date(0, 1, 1, 0, 0, 0, 0, f.zone())
	}
	return time.Date(9999, 12, 31, 23, 59, 59, 999_999_999, f.zone())
}

// The instants that an int64 of nanoseconds since 1970 can represent.
var (
	firstInstant = time.Unix(0, math.MinInt64)
	lastInstant  = time.Unix(0, math.MaxInt64)
)

// unixNano returns t in nanoseconds since 1970. Times before 1677 or after 2262
// become the nearest instant that fits.
func unixNano(t time.Time) int64 {
	switch {
	case t.Before(firstInstant):
		return math.MinInt64
	case t.After(lastInstant):
		return math.MaxInt64
	}
	return t.UnixNano()
}
