package times

import "bytes"

// maxDate is longer than any text that parseDate takes, of which JavaScript's, with
// the name of a zone in words, are the longest.
const maxDate = 100

// parseDate reads the ways of writing a time, other than parseCalendar's, that say
// which day they mean whoever reads them:
//
//	2006/01/02 15:04:05                  with what may follow in parseCalendar
//	20060102T150405  20060102 15:04:05   likewise
//	2006-01-02T15:04  2006-W01-1T15:04:05  2006-002T15:04:05   likewise
//	Mon, 02 Jan 2006 15:04:05 GMT        and all others that name the month; see parseWords
//
// One in brackets is what is in them. A day without its year or its hour, and one
// whose month is a number behind or before the day, are not taken.
func parseDate(text []byte) (sec int64, nsec int, ok bool) {
	if len(text) > 2 && text[0] == '[' && text[len(text)-1] == ']' {
		text = text[1 : len(text)-1]
	}
	if len(text) < len("20060102T150405") || len(text) > maxDate {
		return 0, 0, false
	}
	var buf [maxDate + 8]byte
	switch {
	case text[4] == '/' && text[7] == '/':
		plain := append(buf[:0], text...)
		plain[4], plain[7] = '-', '-'
		return parseCalendar(plain)
	case text[4] == '-':
		return parseISO(text, buf[:0])
	case isDigits(text[:8]):
		return parseBasic(text, buf[:0])
	}
	return parseWords(text)
}

func isDigits(b []byte) bool {
	for _, c := range b {
		if c-'0' > 9 {
			return false
		}
	}
	return true
}

// parseBasic reads 20060102 and a time of day with colons or without; buf is room.
func parseBasic(text, buf []byte) (sec int64, nsec int, ok bool) {
	plain := append(buf, text[:4]...)
	plain = append(append(append(plain, '-'), text[4:6]...), '-')
	plain = append(append(plain, text[6:8]...), text[8])
	if isDigits(text[9:15]) {
		plain = append(append(plain, text[9:11]...), ':')
		plain = append(append(plain, text[11:13]...), ':')
		text = text[13:]
	} else {
		text = text[9:]
	}
	return parseCalendar(append(plain, text...))
}

// parseISO reads what ISO 8601 has beside RFC 3339: hours and minutes alone, a week
// and its day from Monday, a day of the year. buf is room.
func parseISO(text, buf []byte) (sec int64, nsec int, ok bool) {
	year, days, n := digits(text[0:2])*100+digits(text[2:4]), int64(0), 0
	switch {
	case year < 0:
		return 0, 0, false
	case text[5] == 'W' && text[8] == '-': // 2006-W01-1
		week, day := digits(text[6:8]), int(text[9])-'0'
		// The first week has 4 January in it, and a week is of the year of its Thursday.
		fourth := daysSince1970(year, 1, 4)
		monday := fourth - weekday(fourth) + 7*int64(week-1)
		if week < 1 || day < 1 || day > 7 || monday+3 >= daysSince1970(year+1, 1, 1) {
			return 0, 0, false
		}
		days, n = monday+int64(day-1), len("2006-W01-1")
	case isDigits(text[5:8]) && (text[8] == 'T' || text[8] == 't' || text[8] == ' '): // 2006-002
		day := int64(text[5]-'0')*100 + int64(digits(text[6:8]))
		days, n = daysSince1970(year, 1, 1)+day-1, len("2006-002")
		if day < 1 || days >= daysSince1970(year+1, 1, 1) {
			return 0, 0, false
		}
	case text[13] != ':' || len(text) > 16 && text[16] == ':':
		return 0, 0, false
	default: // 2006-01-02T15:04
		if len(text) < 16 {
			return 0, 0, false
		}
		plain := append(append(buf, text[:16]...), ":00"...)
		return parseCalendar(append(plain, text[16:]...))
	}
	// The time of day is read behind a day that stands for all.
	if sec, nsec, ok = parseCalendar(append(append(buf, "1970-01-01"...), text[n:]...)); !ok {
		return 0, 0, false
	}
	return sec + days*86400, nsec, true
}

// weekday is that of a day since 1970, 0 on Monday.
func weekday(days int64) int64 { return ((days+3)%7 + 7) % 7 }

// words reads a time that names its month, part by part.
type words struct {
	rest                 []byte
	year, month, day     int  // year -1, month 0, day 0: not yet
	hour, minute, second int  // hour -1: not yet
	nsec, offset         int  // offset: seconds east of UTC
	zone, shifted        bool // there was a name of UTC, an offset
	half, afternoon      bool // there was AM or PM; it was PM
}

// parseWords reads a time that names its month, in any order of its parts, each of
// which is there once: a day of one or two digits, a year of four, or of two
// behind day and month (1969 to 2068), hours and minutes with or without seconds
// and their fraction, AM or PM. Then it may have a zone, UTC, GMT, UT, Z or ±hhmm
// and ±hh:mm; without one it is UTC, with any other name it is none. The day of the
// week, commas, and what is in parentheses at the end say nothing. So it takes
//
//	RFC 822, 850, 1123, 5322          Thu, 28 May 2026 12:40:00 GMT
//	ctime, ANSI C, Unix, Ruby         Thu May 28 12:40:00 2026
//	JavaScript                        Thu May 28 2026 14:40:00 GMT+0200 (CEST)
//	access logs                       28/May/2026:12:40:00 +0000
//	java.util.logging                 May 28, 2026 12:40:00 PM
func parseWords(text []byte) (sec int64, nsec int, ok bool) {
	w := words{rest: text, year: -1, hour: -1}
	for len(w.rest) > 0 {
		ok := true
		switch c := w.rest[0]; {
		case c|0x20 >= 'a' && c|0x20 <= 'z':
			ok = w.word()
		case c-'0' <= 9:
			ok = w.number()
		case (c == '+' || c == '-') && w.hour >= 0:
			ok = w.shift()
		case c == '(' && w.rest[len(w.rest)-1] == ')' && w.hour >= 0:
			w.rest = nil
		case c == ' ', c == ',',
			(c == '-' || c == '/') && (w.day > 0 || w.month > 0), // between the parts of a day
			c == ':' && w.hour < 0 && w.year >= 0:                // behind it
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

const (
	monthNames = "janfebmaraprmayjunjulaugsepoctnovdec"
	dayNames   = "montuewedthufrisatsun"
)

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
	if len(name) < 3 {
		return false
	}
	if i := bytes.Index([]byte(monthNames), name[:3]); i >= 0 && i%3 == 0 && w.month == 0 && isName(name, longMonths[i/3]) {
		w.month = i/3 + 1
		return true
	}
	i := bytes.Index([]byte(dayNames), name[:3])
	return i >= 0 && i%3 == 0 && isName(name, longDays[i/3])
}

var (
	longMonths = [12]string{"january", "february", "march", "april", "may", "june", "july", "august", "september", "october", "november", "december"}
	longDays   = [7]string{"monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday"}
)

// isName reports whether name, of three letters or more, is long or its first three
// letters; also Sept.
func isName(name []byte, long string) bool {
	return len(name) == 3 || string(name) == long || string(name) == "sept"
}

// number reads a time of day, a year or a day.
func (w *words) number() bool {
	n := 0
	for n < len(w.rest) && w.rest[n]-'0' <= 9 {
		n++
	}
	if n > 4 {
		return false
	}
	v := 0
	for _, c := range w.rest[:n] {
		v = v*10 + int(c-'0')
	}
	timeOfDay := n <= 2 && n < len(w.rest) && w.rest[n] == ':' && w.hour < 0
	w.rest = w.rest[n:]
	switch {
	case timeOfDay:
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

// clock reads :04, :04:05 or :04:05.6 behind the hour.
func (w *words) clock() (ok bool) {
	two := func() (int, bool) {
		if len(w.rest) < 3 || w.rest[0] != ':' {
			return 0, false
		}
		v := digits(w.rest[1:3])
		w.rest = w.rest[3:]
		return v, v >= 0
	}
	if w.minute, ok = two(); !ok {
		return false
	}
	if len(w.rest) == 0 || w.rest[0] != ':' {
		return true
	}
	if w.second, ok = two(); !ok {
		return false
	}
	w.nsec, w.rest, ok = parseFraction(w.rest)
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
	if w.year < 0 || w.month == 0 || w.day < 1 || w.day > daysIn(w.month, w.year) || w.hour < 0 || w.minute > 59 || w.second > 60 {
		return 0, 0, false
	}
	if w.half {
		if w.hour < 1 || w.hour > 12 {
			return 0, 0, false
		}
		w.hour %= 12
		if w.afternoon {
			w.hour += 12
		}
	}
	if w.hour > 23 {
		return 0, 0, false
	}
	days := daysSince1970(w.year, w.month, w.day)
	return days*86400 + int64(w.hour*3600+w.minute*60+w.second-w.offset), w.nsec, true
}
