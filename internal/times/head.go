package times

import (
	"bytes"
	"strings"
	"time"

	"github.com/rollway/rollway/internal/jsonline"
)

// A Head is a time at the beginning of a line of text.
type Head struct {
	Len  int  // of the time; 0: there is none
	Form Form // of the time
	Sure bool // Sec and Nsec are known; otherwise the text leaves the day or the zone open
	Sec  int64
	Nsec int
}

// A Form says what kind of time it is, as far as that tells what may follow.
type Form uint8

// The forms of heads.
const (
	Plain   Form = iota
	Stamp        // of syslog: the short name of the month comes first
	Named        // as 28-May-2026
	Access       // of access logs
	Java         // of java.util.logging
	Short        // two digits for the year, or a month and a day: a time only before a level
	Slashed      // two digits for each of year, month and day, as Spark and Hadoop have it: likewise
	Dotted       // a month and a day with a point between them
	Doubt        // the time of day alone, or a date that means several days
)

// heads are the layouts of times at the beginning of a line, besides ISO 8601's with '-',
// '/' or '.' in the day: those in digits, then with the name of a day, then of a month. A
// letter is a digit of
//
//	Y M D h m s  year, month, day, hour, minute, second
//	y            a year of two digits, from 1969
//	x            a date that means several days
//
// or
//
//	b w          the short name of a month, of a day of the week
//	d H N S      one or two digits of day, hour, minute, second, or a blank and a digit
//	T            T
//	,            a comma or nothing
//	f F          a fraction or nothing; a colon and milliseconds
//	p P          AM or PM or nothing; never nothing
//	X            one or two digits of a date that means several days
//	z Z          a zone or nothing; Z only before a colon
var heads = [...]headLayout{
	{layout: "YYYYMMDD hh:mm:ssfz", form: Plain},
	{layout: "YYYYMMDDThhmmssfz", form: Plain},
	{layout: "YYYYMMDD-H:N:SF", form: Plain},
	{layout: "YYYYMMDD-hhmmss", form: Plain},
	{layout: "YYYYMMDD:hhmmssf", form: Plain},
	{layout: "YYYY-MM-DD H:mm:ssfpz", form: Plain},
	{layout: "YYYY-MM-DD, hh:mm:ssfz", form: Plain},
	{layout: "YYYY-MM-DD][hh:mm:ssf", form: Plain},
	{layout: "YYYY/MM/DD - hh:mm:ssf", form: Plain},
	{layout: "MM-DD hh:mm:ssf", form: Short},
	{layout: "MM-DD|hh:mm:ssf", form: Short},
	{layout: "MMDD hh:mm:ssf", form: Short},
	{layout: "yyMMDD hhmmss", form: Short},
	{layout: "yyMMDD H:N:Sf", form: Short},
	{layout: "yy/MM/DD hh:mm:ss", form: Slashed},
	{layout: "xx/xx/xx hh:mm:ss", form: Doubt},
	{layout: "MM.DD hh:mm:ss", form: Dotted},
	{layout: "DD/b/YYYY:hh:mm:ssfz", form: Access},
	{layout: "DD/b/YYYY hh:mm:ssfz", form: Access},
	{layout: "DD-b-YYYY hh:mm:ssfz", form: Named},
	{layout: "DD-b-YYYY::hh:mm:ssf", form: Plain},
	{layout: "d b YYYY hh:mm:ssfz", form: Plain},
	{layout: "d b hh:mm:ssf", form: Short},
	{layout: "DDbYYYY hh:mm:ssf", form: Plain},
	{layout: "hh:mm:ssfp", form: Doubt},
	{layout: "H:mmP", form: Doubt},
	{layout: "X/X/YYYY, H:mm:ssfpz", form: Doubt},
	{layout: "X/X/yy H:mm:ssfpz", form: Doubt},
	{layout: "xx.xx.YYYY, H:mm:ssfz", form: Doubt},
	{layout: "xx-xx-YYYY H:mm:ssfpz", form: Doubt},
	{layout: "w b d hh:mm:ssfz YYYY", form: Plain},
	{layout: "w, d b YYYY hh:mm:ssz", form: Plain},
	{layout: "b d H:N:SfZ", form: Stamp},
	{layout: "b d YYYY H:N:SfZ", form: Stamp},
	{layout: "b d, YYYY, H:mm:ssfpz", form: Java},
}

// In heads, the layouts from daysFrom on begin with a day, those from monthsFrom on with a
// month.
const (
	daysFrom   = len(heads) - 5
	monthsFrom = len(heads) - 3
)

// A headLayout is one of heads.
type headLayout struct {
	layout string
	form   Form

	// The third byte of its times and the two after it are these, or up to span more.
	from, span [3]byte

	// What follows the first part, if that has one or two digits: 0: it has not.
	after byte
}

const headParts = "YMDhmsx"

// partOf is the index in headParts of a letter of a layout, or -1.
var partOf [256]int8

func init() {
	for i := range partOf {
		partOf[i] = int8(strings.IndexByte(headParts, byte(i)))
	}
	partOf['y'] = 0
	for i := range heads {
		l := &heads[i]
		if l.layout[0] == 'X' || l.layout[0] == 'H' || l.layout[0] == 'd' {
			l.after = l.layout[1]
		}
		for k := range l.from {
			op := l.layout[2+k]
			switch fixed := strings.Trim(l.layout[:2+k], "yYMDhmsx-/.: ") == ""; {
			case fixed && partOf[op] >= 0:
				l.from[k], l.span[k] = '0', 9
			case fixed && op < 'A':
				l.from[k] = op
			default:
				l.span[k] = 255
			}
		}
	}
}

// ParseHead reads the time that a line of text begins with: ISO 8601 or one of heads,
// before a blank, a bracket, punctuation or the end. Without a zone it is in zone. Without
// a year it is in the one that brings it nearest to received, at most a week after it. A zone that is named by
// letters with several meanings is in doubt, unless zone is so called then.
func ParseHead(b []byte, received time.Time, zone *time.Location) Head {
	if len(b) < len("15:04:05") {
		return Head{}
	}
	list := heads[:daysFrom]
	switch first := b[:3]; {
	case b[0]-'0' <= 9:
		s := headScan{scanner: scanner{b}}
		if h := (Head{Form: Plain}); s.calendar() && s.resolve(&h, len(b), received, zone) {
			return h
		}
	case b[0] < 'A' || b[0] > 'W':
		return Head{}
	case monthOf(first) > 0 && b[3] == ' ' && (b[4]-'0' <= 9 || b[5]-'0' <= 9):
		list = heads[monthsFrom:]
	case isDay(first):
		list = heads[daysFrom:monthsFrom]
	default:
		return Head{}
	}
	for i := range list {
		l := &list[i]
		if b[2]-l.from[0] > l.span[0] || b[3]-l.from[1] > l.span[1] || b[4]-l.from[2] > l.span[2] {
			continue // as most do
		}
		if l.after != 0 && b[1] != l.after && b[2] != l.after {
			continue
		}
		s := headScan{scanner: scanner{b}}
		if h := (Head{Form: l.form}); s.read(l.layout) && s.resolve(&h, len(b), received, zone) {
			return h
		}
	}
	return Head{}
}

// headScan reads a head.
type headScan struct {
	scanner
	parts   [len(headParts)]int
	digits  int // of the year
	nsec    int
	noon    byte // 'A', 'P' or 0
	zone    zoneKind
	offset  int    // seconds east of UTC
	letters []byte // of the zone
}

// calendar reads what ISO 8601 has and its relatives.
func (s *headScan) calendar() bool {
	b := s.rest
	if len(b) < secondLen || b[13] != ':' || b[16] != ':' || b[10] != ' ' && b[10] != 'T' && b[10] != '_' && b[10] != '-' || b[4] != b[7] || b[4] != '-' && b[4] != '/' && b[4] != '.' {
		return false
	}
	s.parts = [...]int{digits(b)*100 + digits(b[2:]), digits(b[5:]), digits(b[8:]), digits(b[11:]), digits(b[14:]), digits(b[17:]), 0}
	s.digits, s.rest = 4, b[secondLen:]
	return s.piece('f') && s.piece('p') && s.piece('z')
}

// read reads what the layout says.
func (s *headScan) read(layout string) bool {
	for k := range len(layout) {
		op := layout[k]
		part := partOf[op]
		if part < 0 && op|0x20 >= 'a' && op|0x20 <= 'z' {
			if !s.piece(op) {
				return false
			}
			continue
		}
		switch {
		case part < 0 && s.skip(op) || op == ',':
			continue
		case part < 0 || len(s.rest) == 0 || s.rest[0]-'0' > 9:
			return false
		case part == 0:
			s.digits++
		}
		s.parts[part] = s.parts[part]*10 + int(s.rest[0]-'0')
		s.rest = s.rest[1:]
	}
	return true
}

// piece reads what is not of a fixed length, or is a name.
func (s *headScan) piece(op byte) (ok bool) {
	switch op {
	case 'T':
		return s.skip('T')
	case 'b':
		name := [3]byte{}
		for i, c := range s.three() {
			if name[i] = c; i > 0 {
				name[i] |= 0x20 // as Oracle writes MAY
			}
		}
		s.parts[1] = monthOf(name[:])
		return s.parts[1] > 0
	case 'w':
		return isDay(s.three())
	case 'd', 'H', 'N', 'S':
		n := 0
		s.skip(' ')
		s.parts[2+strings.IndexByte("dHNS", op)], n = s.number(2)
		return n > 0
	case 'X':
		part, n := s.number(2)
		s.parts[6] = s.parts[6]*100 + part
		return n > 0
	case 'f':
		if len(s.rest) < 2 || s.rest[1]-'0' > 9 {
			return true
		}
		if s.rest[0] == ':' && len(s.rest) >= len(":123") && s.rest[3]-'0' <= 9 && (len(s.rest) == len(":123") || s.rest[4]-'0' > 9) {
			return s.piece('F')
		}
		s.nsec, ok = s.fraction()
		return ok
	case 'F':
		n := 0
		ok = s.skip(':')
		s.nsec, n = s.number(3)
		s.nsec *= int(time.Millisecond)
		return ok && n > 0
	case 'p':
		s.half()
	case 'P':
		s.half()
		return s.noon != 0
	case 'z', 'Z':
		before := s.rest
		if s.readZone(); op == 'Z' && (len(s.rest) == 0 || s.rest[0] != ':') {
			s.rest, s.zone, s.offset = before, noZone, 0
		}
	}
	return true
}

// three reads three bytes.
func (s *scanner) three() (b []byte) {
	n := min(3, len(s.rest))
	b, s.rest = s.rest[:n], s.rest[n:]
	return b
}

// half reads a blank, which may be a narrow one, and AM or PM.
func (s *headScan) half() {
	if len(s.rest) < 2 || s.rest[1] > 'P' && s.rest[1] < 0x80 {
		return
	}
	rest := bytes.TrimPrefix(bytes.TrimPrefix(s.rest, []byte(" ")), []byte("\u202f"))
	if len(rest) > 1 && (rest[0] == 'A' || rest[0] == 'P') && rest[1] == 'M' && (len(rest) == 2 || bytes.IndexByte(ends, rest[2]) >= 0) {
		s.noon, s.rest = rest[0], rest[2:]
	}
}

// ends has what may follow a time.
var ends = []byte(" \t\r\n\x1b])>}|,:;\"[")

// resolve sets h, and returns false if what was read of a text of size bytes is no time.
func (s *headScan) resolve(h *Head, size int, received time.Time, zone *time.Location) (ok bool) {
	p := &s.parts
	c := civil{p[0], p[1], p[2], p[3], p[4], p[5]}
	switch h24 := c.hour > 12 && s.noon == 'P' || c.hour == 0 && s.noon == 'A'; {
	case h24, s.noon == 0:
	case c.hour < 1 || c.hour > 12:
		return false
	default:
		if c.hour %= 12; s.noon == 'P' {
			c.hour += 12
		}
	}
	if len(s.rest) > 0 && bytes.IndexByte(ends, s.rest[0]) < 0 || c.hour > 23 || c.minute > 59 || c.second > 60 {
		return false
	}
	h.Len = size - len(s.rest)
	if h.Form == Doubt {
		switch c.month, c.day = p[6]/100, p[6]%100; {
		case s.digits != 4:
			return true
		case c.month > 12:
			c.month, c.day = c.day, c.month
		case c.day <= 12 && c.day != c.month:
			return true
		}
		h.Form = Plain // the day is sure, as only one of both can be a month
	}
	if s.zone == zoneOffset {
		zone = time.UTC
	}
	switch s.digits {
	case 0:
		h.Sec, ok = c.nearest(received, zone)
	case 2:
		if c.year += 2000; c.year >= 2069 {
			c.year -= 100
		}
		h.Sec, ok = c.in(zone)
		ok = ok && h.Sec < received.Unix()+86400 // otherwise the digits mean something else
	default:
		h.Sec, ok = c.in(zone)
	}
	h.Sec -= int64(s.offset)
	h.Nsec = s.nsec
	if h.Sure = s.zone != zoneLetters; !h.Sure {
		called, _ := time.Unix(h.Sec, 0).In(zone).Zone()
		h.Sure = string(s.letters) == called
	}
	return ok && h.Sec >= 0 && h.Sec <= jsonline.LastSecond
}

// in returns the seconds since 1970 of a time in a zone.
func (c *civil) in(zone *time.Location) (sec int64, ok bool) {
	if sec, ok = c.unix(); ok && zone != time.UTC {
		sec = time.Date(c.year, time.Month(c.month), c.day, c.hour, c.minute, c.second, 0, zone).Unix()
	}
	return sec, ok
}

// nearest is in for the year that brings the time nearest to received, but at most a week
// after it: clocks may be wrong by days, and what is later is rather of the year before.
func (c *civil) nearest(received time.Time, zone *time.Location) (sec int64, ok bool) {
	const half = 182 * 86400 // of the shortest year
	year, now, best := received.In(zone).Year(), received.Unix(), int64(0)
	for _, c.year = range [...]int{year, year - 1, year + 1} {
		t, valid := c.in(zone)
		if away := max(t-now, now-t); valid && t-now <= 7*86400 && (!ok || away < best) {
			if sec, best, ok = t, away, true; away < half {
				break
			}
		}
	}
	return sec, ok
}

// isDay reports whether name is the short name of a day of the week.
func isDay(name []byte) bool {
	switch string(name) {
	case "Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun":
		return true
	}
	return false
}

type zoneKind uint8

const (
	noZone zoneKind = iota
	zoneOffset
	zoneLetters // that have several meanings
)

// several is instead of an offset where letters have several meanings.
const several = 99

// zoneHours are the zones that are known by their letters.
var zoneHours = map[string]int{
	"UTC": 0, "GMT": 0, "UT": 0, "Z": 0, "WET": 0, "CET": 1, "WEST": 1, "CEST": 2, "EET": 2, "SAST": 2, "EEST": 3, "MSK": 3,
	"JST": 9, "KST": 9, "AEST": 10, "AEDT": 11, "NZST": 12, "EDT": -4, "PDT": -7,
	"AST": several, "BST": several, "CST": several, "CDT": several, "EST": several, "GST": several, "IST": several, "MDT": several,
	"MST": several, "PST": several, "SST": several, "HKT": several, "SGT": several, "NZDT": several, "AWST": several,
	"ACST": several, "ACDT": several, "AKST": several, "AKDT": several, "HST": several, "BRT": several, "ART": several,
}

// readZone reads Z, ±hh:mm or ±hhmm, also after a blank, ±hh without one, or a blank and
// letters.
func (s *headScan) readZone() {
	rest := s.scanner
	blank, n := rest.skip(' '), 0
	for n < len(rest.rest) && n < len("CHADT") && rest.rest[n] >= 'A' && rest.rest[n] <= 'Z' {
		n++
	}
	if n > 0 {
		s.letters = rest.rest[:n]
		if hours, known := zoneHours[string(s.letters)]; known && (blank || n == 1) {
			s.rest, s.zone, s.offset = rest.rest[n:], zoneOffset, hours*3600
			if hours == several {
				s.zone, s.offset = zoneLetters, 0
			}
		}
		return
	}
	for n < len(rest.rest) && n < len("+hh:mm") && (rest.rest[n]-'0' <= 9 || n == 0 && rest.rest[n] != 'z' || n == len("+hh") && rest.rest[n] == ':') {
		n++
	}
	if n == len("+hh:") { // the colon is not its
		n--
	}
	if n < len("+hh") || blank && n < len("+hhmm") {
		return
	}
	offset, ok := parseZone(rest.rest[:n])
	if ok && offset%900 == 0 && max(offset, -offset) <= 14*3600 {
		s.rest, s.zone, s.offset = rest.rest[n:], zoneOffset, offset
	}
}
