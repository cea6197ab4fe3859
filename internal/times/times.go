// Package times reads times as the clients of a collector write them.
package times

import (
	"bytes"

	"github.com/rollway/rollway/internal/jsonline"
	"github.com/rollway/rollway/internal/jsonwalk"
)

// Parse reads the text of a time: RFC 3339 and its relatives, a number
// of seconds, milliseconds, microseconds or nanoseconds since 1970, or one of the
// forms of parseDate.
func Parse(text []byte) (sec int64, nsec int, ok bool) {
	text = bytes.TrimSpace(text)
	if len(text) > 10 && text[4] == '-' {
		sec, nsec, ok = parseCalendar(text)
	} else {
		sec, nsec, ok = Unix(text)
	}
	if !ok {
		sec, nsec, ok = parseDate(text)
	}
	if sec < jsonline.FirstSecond || sec > jsonline.LastSecond {
		return 0, 0, false
	}
	return sec, nsec, ok
}

// parseCalendar reads 2006-01-02T15:04:05 with 'T', 't' or a space in the
// middle, then optionally a fraction after '.' or ',', whose first nine digits
// count, then optionally a zone: Z, z, UTC, GMT, ±hh:mm, ±hhmm or ±hh, with or
// without a space before it. Without a zone it is UTC. After an offset the zone's
// name is ignored, [Europe/Berlin] or, as Go prints it, CEST, and so is Go's
// m=+0.1. Second 60 is the next minute's first.
func parseCalendar(text []byte) (sec int64, nsec int, ok bool) {
	if len(text) < secondLen {
		return 0, 0, false
	}
	if sec, ok = parseSecond((*[secondLen]byte)(text)); !ok {
		return 0, 0, false
	}
	nsec, offset, ok := parseRest(text[secondLen:])
	return sec - offset, nsec, ok
}

const secondLen = len("2006-01-02T15:04:05")

// parseSecond reads what parseCalendar does before a fraction and a zone.
func parseSecond(text *[secondLen]byte) (sec int64, ok bool) {
	if text[4] != '-' || text[7] != '-' || text[13] != ':' || text[16] != ':' ||
		text[10] != 'T' && text[10] != 't' && text[10] != ' ' {
		return 0, false
	}
	c := civil{
		digits(text[0:2])*100 + digits(text[2:4]), digits(text[5:7]), digits(text[8:10]),
		digits(text[11:13]), digits(text[14:16]), digits(text[17:19]),
	}
	return c.unix()
}

// civil is a day and a time of day, in UTC.
type civil struct{ year, month, day, hour, minute, second int }

// unix returns the seconds since 1970. A part that is out of range is an error.
func (c *civil) unix() (sec int64, ok bool) {
	if c.year < 0 || c.month < 1 || c.month > 12 || c.day < 1 || c.day > daysIn(c.month, c.year) ||
		uint(c.hour) > 23 || uint(c.minute) > 59 || uint(c.second) > 60 {
		return 0, false
	}
	return daysSince1970(c.year, c.month, c.day)*86400 + int64(c.hour*3600+c.minute*60+c.second), true
}

// parseRest reads a fraction and a zone, offset seconds east of UTC.
func parseRest(text []byte) (nsec int, offset int64, ok bool) {
	if len(text) == 1 && text[0] == 'Z' {
		return 0, 0, true
	}
	nsec, text, ok = parseFraction(text)
	if !ok {
		return 0, 0, false
	}
	east, ok := parseZone(text)
	return nsec, int64(east), ok
}

// A Cache remembers the second that it has read last: the times of one request are
// mostly in a few seconds. Its zero value is ready. It is for one goroutine at a time.
type Cache struct {
	text [secondLen]byte // zero: none, as it is no time
	sec  int64
}

// Parse is the function of that name.
func (l *Cache) Parse(text []byte) (sec int64, nsec int, ok bool) {
	if len(text) <= secondLen || text[0] <= ' ' || text[4] != '-' {
		return Parse(text)
	}
	if head := (*[secondLen]byte)(text); l.text != *head {
		sec, ok := parseSecond(head)
		if !ok {
			return Parse(text)
		}
		l.text, l.sec = *head, sec
	}
	nsec, offset, ok := parseRest(text[secondLen:])
	if sec = l.sec - offset; !ok || sec < jsonline.FirstSecond || sec > jsonline.LastSecond {
		return Parse(text) // there may be white space
	}
	return sec, nsec, true
}

// digits reads two digits; anything else is far below zero, also after a century was
// multiplied.
func digits(b []byte) int {
	hi, lo := b[0]-'0', b[1]-'0'
	if hi > 9 || lo > 9 {
		return -1 << 20
	}
	return int(hi)*10 + int(lo)
}

func parseFraction(text []byte) (nsec int, rest []byte, ok bool) {
	if len(text) == 0 || text[0] != '.' && text[0] != ',' {
		return 0, text, true
	}
	i, scale := 1, 100_000_000
	for ; i < len(text) && text[i]-'0' <= 9; i++ {
		nsec += int(text[i]-'0') * scale
		scale /= 10
	}
	return nsec, text[i:], i > 1
}

// parseZone returns seconds east of UTC.
func parseZone(text []byte) (offset int, ok bool) {
	if len(text) > 1 && text[0] == ' ' {
		text = text[1:]
	}
	if len(text) == 0 || len(text) == 1 && (text[0] == 'Z' || text[0] == 'z') {
		return 0, true
	}
	sign := text[0]
	if sign != '+' && sign != '-' {
		rest, is := bytes.CutPrefix(text, []byte("UTC"))
		if !is {
			rest, is = bytes.CutPrefix(text, []byte("GMT"))
		}
		if !is && sign|0x20 == 'z' {
			rest, is = text[1:], true
		}
		return 0, is && isZoneName(rest)
	}
	if len(text) > len("+hh:mm") {
		if i := bytes.IndexAny(text, " ["); i > 0 && isZoneName(text[i:]) {
			text = text[:i]
		}
	}
	var hours, minutes int
	switch {
	case len(text) == len("+hh:mm") && text[3] == ':':
		hours, minutes = digits(text[1:3]), digits(text[4:6])
	case len(text) == len("+hhmm"):
		hours, minutes = digits(text[1:3]), digits(text[3:5])
	case len(text) == len("+hh"):
		hours = digits(text[1:3])
	default:
		return 0, false
	}
	if hours < 0 || hours > 23 || minutes < 0 || minutes > 59 {
		return 0, false
	}
	offset = hours*3600 + minutes*60
	if sign == '-' {
		offset = -offset
	}
	return offset, true
}

// isZoneName reports whether text is what may follow an offset: nothing, a name in
// brackets, or a space and letters; then perhaps a monotonic reading.
func isZoneName(text []byte) bool {
	if i := bytes.Index(text, []byte(" m=")); i >= 0 {
		whole, part, _ := bytes.Cut(text[i+3:], []byte("."))
		if len(whole) < 2 || whole[0] != '+' && whole[0] != '-' || !isDigits(whole[1:]) || !isDigits(part) {
			return false
		}
		text = text[:i]
	}
	if n := len(text); n > 2 && text[0] == '[' && text[n-1] == ']' {
		return bytes.IndexByte(text[1:n-1], ']') < 0
	}
	if len(text) < 2 || text[0] != ' ' {
		return len(text) == 0
	}
	for _, c := range text[1:] {
		if c < 'A' || c > 'Z' {
			return false
		}
	}
	return len(text) <= len(" ABCDE")
}

func daysIn(month, year int) int {
	if month == 2 && year%4 == 0 && (year%100 != 0 || year%400 == 0) {
		return 29
	}
	return [...]int{31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31}[month-1]
}

// daysSince1970 counts days of the proleptic Gregorian calendar. Source of the
// arithmetic: Howard Hinnant, "chrono-Compatible Low-Level Date Algorithms",
// days_from_civil, for years from 0.
func daysSince1970(year, month, day int) int64 {
	if month <= 2 {
		year--
	}
	era := year / 400
	if year < 0 { // January and February of year 0
		era = -1
	}
	yoe := year - era*400
	doy := (153*((month+9)%12)+2)/5 + day - 1
	doe := yoe*365 + yoe/4 - yoe/100 + doy
	return int64(era)*146097 + int64(doe) - 719468
}

// Unix reads a JSON number, which may have zeros in front, as a time since 1970. Its unit
// follows from the digits before its decimal point:
//
//	up to 11   seconds        below 1e11, year 5138
//	up to 14   milliseconds   from 1e11 ms, March 1973
//	up to 17   microseconds   from 1e14 µs, March 1973
//	more       nanoseconds    from 1e17 ns, March 1973
//
// The arithmetic is decimal, so no digit is lost to rounding; what is below a
// nanosecond is cut off.
func Unix(text []byte) (sec int64, nsec int, ok bool) {
	negative := len(text) > 0 && text[0] == '-'
	if negative {
		text = text[1:]
	}
	for len(text) > 1 && text[0] == '0' && jsonwalk.IsDigit(text[1]) {
		text = text[1:]
	}
	d, ok := jsonwalk.ParseDecimal(text)
	if ok = ok && !(negative && d.Negative); !ok || d.Zero {
		return 0, 0, ok
	}
	point := d.Lead + 1 // digits before the decimal point
	switch {
	case point <= 11:
	case point <= 14:
		point -= 3
	case point <= 17:
		point -= 6
	case point <= 21:
		point -= 9
	default:
		return 0, 0, false
	}
	for range point {
		sec = sec*10 + int64(d.Digit())
	}
	for i := max(point, -9); i < point+9; i++ {
		nsec *= 10
		if i >= 0 {
			nsec += d.Digit()
		}
	}
	if negative {
		sec = -sec
		if nsec > 0 {
			sec, nsec = sec-1, 1_000_000_000-nsec
		}
	}
	return sec, nsec, true
}
