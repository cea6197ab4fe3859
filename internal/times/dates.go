package times

import "strings"

// maxDate is longer than any text that parseDate takes. The longest are JavaScript's, with
// the name of a zone in words.
const maxDate = 100

// layouts are the ways of writing a time in digits beside parseCalendar's. A letter is a
// digit of year, month, day, week, day of the week from Monday, day of the year, hour,
// minute or second; _ is T, t or a space. A fraction and a zone may follow.
var layouts = [...]string{
	"YYYY/MM/DD_hh:mm:ss", "YYYYMMDD_hhmmss", "YYYYMMDD_hh:mm:ss",
	"YYYY-MM-DD_hh:mm", "YYYY-Www-d_hh:mm:ss", "YYYY-ooo_hh:mm:ss",
}

const layoutParts = "YMDhmswdo"

// parseDate reads the ways of writing a time, other than parseCalendar's, that leave no
// doubt which day they mean: layouts, and those that name the month, see parseWords. One
// in brackets is what is in them. A day without its year or its hour, and one whose month
// is a number next to the day, are not taken.
func parseDate(text []byte) (sec int64, nsec int, ok bool) {
	if len(text) > 2 && text[0] == '[' && text[len(text)-1] == ']' {
		text = text[1 : len(text)-1]
	}
	if len(text) < len("20060102T150405") || len(text) > maxDate {
		return 0, 0, false
	}
	for _, layout := range layouts {
		if sec, nsec, ok = parseLayout(text, layout); ok {
			return sec, nsec, true
		}
	}
	return parseWords(text)
}

func parseLayout(text []byte, layout string) (sec int64, nsec int, ok bool) {
	if len(text) < len(layout) {
		return 0, 0, false
	}
	var parts [len(layoutParts)]int
	for i := range len(layout) {
		c := text[i]
		switch at := strings.IndexByte(layoutParts, layout[i]); {
		case at >= 0 && isDigits(text[i:i+1]):
			parts[at] = parts[at]*10 + int(c-'0')
		case at >= 0 || layout[i] == '_' && c != 'T' && c != 't' && c != ' ' || layout[i] != '_' && c != layout[i]:
			return 0, 0, false
		}
	}
	date := civil{parts[0], parts[1], parts[2], parts[3], parts[4], parts[5]}
	days, ok := int64(0), true // from the first of January
	switch year := date.year; {
	case strings.Contains(layout, "w"):
		days, ok = daysOfWeek(year, parts[6], parts[7])
		date.month, date.day = 1, 1
	case strings.Contains(layout, "o"):
		days = int64(parts[8]) - 1
		ok = days >= 0 && daysSince1970(year, 1, 1)+days < daysSince1970(year+1, 1, 1)
		date.month, date.day = 1, 1
	}
	sec, valid := date.unix()
	nsec, offset, rest := parseRest(text[len(layout):])
	return sec + days*86400 - offset, nsec, ok && valid && rest
}

// daysOfWeek returns how many days after the first of January a day of a week by ISO 8601
// is. The first week has 4 January in it, and a week is of the year of its Thursday.
func daysOfWeek(year, week, day int) (days int64, ok bool) {
	fourth := daysSince1970(year, 1, 4)
	weekday := ((fourth+3)%7 + 7) % 7 // 0 on Monday
	monday := fourth - weekday + 7*int64(week-1)
	return monday + int64(day-1) - (fourth - 3), week >= 1 && day >= 1 && day <= 7 && monday+3 < daysSince1970(year+1, 1, 1)
}

func isDigits(b []byte) bool {
	for _, c := range b {
		if c-'0' > 9 {
			return false
		}
	}
	return true
}

// scanner reads the parts of a time one after the other.
type scanner struct{ rest []byte }

func (s *scanner) skip(c byte) bool {
	if len(s.rest) == 0 || s.rest[0] != c {
		return false
	}
	s.rest = s.rest[1:]
	return true
}

// number reads up to limit digits, and returns how many there are.
func (s *scanner) number(limit int) (v, n int) {
	for n < len(s.rest) && n < limit && s.rest[n]-'0' <= 9 {
		v = v*10 + int(s.rest[n]-'0')
		n++
	}
	s.rest = s.rest[n:]
	return v, n
}

// fraction reads one of a second, if there is one, as nanoseconds.
func (s *scanner) fraction() (nsec int, ok bool) {
	nsec, s.rest, ok = parseFraction(s.rest)
	return nsec, ok
}

// words reads a time that names its month, part by part.
type words struct {
	scanner
	civil                // year -1, month 0, day 0, hour -1: not yet
	nsec, offset    int  // offset: seconds east of UTC
	zone, shifted   bool // there was a name of UTC, an offset
	half, afternoon bool // there was AM or PM; it was PM
}

// parseWords reads a time that names its month, in any order of its parts, each of
// which is there once: a day of one or two digits, a year of four, or of two after day
// and month (1969 to 2068), hours and minutes with or without seconds and their fraction,
// AM or PM. Then it may have a zone, UTC, GMT, UT, Z or ±hhmm and ±hh:mm; without one it
// is UTC, and a text with any other name is no time. The day of the week, commas, and
// what is in parentheses at the end are ignored. So it takes
//
//	RFC 822, 850, 1123, 5322          Thu, 28 May 2026 12:40:00 GMT
//	ctime, ANSI C, Unix, Ruby         Thu May 28 12:40:00 2026
//	JavaScript                        Thu May 28 2026 14:40:00 GMT+0200 (CEST)
//	access logs                       28/May/2026:12:40:00 +0000
//	java.util.logging                 May 28, 2026 12:40:00 PM
func parseWords(text []byte) (sec int64, nsec int, ok bool) {
	w := words{scanner: scanner{text}, civil: civil{year: -1, hour: -1}}
	for len(w.rest) > 0 {
		ok := true
		switch c := w.rest[0]; {
		case c|0x20 >= 'a' && c|0x20 <= 'z':
			ok = w.word()
		case c-'0' <= 9:
			ok = w.numeral()
		case (c == '+' || c == '-') && w.hour >= 0:
			ok = w.shift()
		case c == '(' && w.rest[len(w.rest)-1] == ')' && w.hour >= 0:
			w.rest = nil
		case c == ' ', c == ',',
			(c == '-' || c == '/') && (w.day > 0 || w.month > 0), // between the parts of a day
			c == ':' && w.hour < 0 && w.year >= 0:                // after it
			w.rest = w.rest[1:]
		default:
			return 0, 0, false
		}
		if !ok {
			return 0, 0, false
		}
	}
	return w.time()
}

var (
	monthNames = [...]string{"january", "february", "march", "april", "may", "june", "july", "august", "september", "october", "november", "december"}
	dayNames   = [...]string{"monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday"}
)

// indexName returns which of names name is, or the first three letters of, or -1.
func indexName(names []string, name []byte) int {
	for i, long := range names {
		if string(name) == long || string(name) == long[:3] {
			return i
		}
	}
	return -1
}

// word reads letters.
func (w *words) word() bool {
	n := 0
	var lower [10]byte // longer names are none of these
	for n < len(w.rest) && n < len(lower) && w.rest[n]|0x20 >= 'a' && w.rest[n]|0x20 <= 'z' {
		lower[n] = w.rest[n] | 0x20
		n++
	}
	name := lower[:n]
	w.rest = w.rest[n:]
	switch string(name) {
	case "utc", "gmt", "ut", "z":
		first := !w.zone && w.hour >= 0
		w.zone = true
		return first
	case "am", "pm":
		first := !w.half && w.hour >= 0
		w.half, w.afternoon = true, name[0] == 'p'
		return first
	}
	if string(name) == "sept" {
		name = name[:3]
	}
	if i := indexName(monthNames[:], name); i >= 0 && w.month == 0 {
		w.month = i + 1
		return true
	}
	return indexName(dayNames[:], name) >= 0
}

// numeral reads a time of day, a year or a day.
func (w *words) numeral() bool {
	v, n := w.number(len("20060"))
	switch {
	case n <= 2 && w.hour < 0 && len(w.rest) > 0 && w.rest[0] == ':':
		w.hour = v
		return w.clock()
	case n == 4 && w.year < 0:
		w.year = v
		return true
	case n <= 2 && w.day == 0:
		w.day = v
		return v > 0
	case n == 2 && w.month > 0 && w.year < 0 && w.hour < 0:
		if w.year = 2000 + v; v >= 69 {
			w.year = 1900 + v
		}
		return true
	}
	return false
}

// clock reads :04, :04:05 or :04:05.6 after the hour.
func (w *words) clock() (ok bool) {
	n := 0
	w.skip(':')
	w.minute, n = w.number(2)
	if n < 2 || !w.skip(':') {
		return n == 2
	}
	if w.second, n = w.number(2); n < 2 {
		return false
	}
	w.nsec, ok = w.fraction()
	return ok
}

// shift reads ±hhmm or ±hh:mm.
func (w *words) shift() (ok bool) {
	n := 1
	for n < len(w.rest) && (w.rest[n]-'0' <= 9 || w.rest[n] == ':') {
		n++
	}
	if w.shifted || n < len("+hhmm") {
		return false
	}
	w.shifted = true
	w.offset, ok = parseZone(w.rest[:n])
	w.rest = w.rest[n:]
	return ok
}

// time puts the parts together.
func (w *words) time() (sec int64, nsec int, ok bool) {
	if w.half {
		if w.hour < 1 || w.hour > 12 {
			return 0, 0, false
		}
		w.hour %= 12
		if w.afternoon {
			w.hour += 12
		}
	}
	sec, ok = w.unix()
	return sec - int64(w.offset), w.nsec, ok
}
