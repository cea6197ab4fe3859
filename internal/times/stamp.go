package times

import (
	"bytes"
	"time"

	"github.com/rollway/rollway/internal/jsonwalk"
)

// IsCalendar reports whether b begins like a time by RFC 3339, with 'T' or a
// space in the middle. Whether it is one is judged where it is read.
func IsCalendar(b []byte) bool {
	return len(b) >= len("2006-01-02T15:04:05") && jsonwalk.IsDigit(b[0]) && jsonwalk.IsDigit(b[3]) && b[4] == '-' && b[7] == '-' &&
		(b[10] == 'T' || b[10] == ' ') && b[13] == ':' && b[16] == ':'
}

// CalendarEnd returns the length of such a time at the beginning of b, 0 if
// there is none.
func CalendarEnd(b []byte) int {
	if !IsCalendar(b) {
		return 0
	}
	const least = len("2006-01-02T15:04:05")
	if i := bytes.IndexByte(b[least:], ' '); i >= 0 {
		b = b[:least+i]
	}
	if b[len(b)-1] == ':' {
		b = b[:len(b)-1]
	}
	return len(b)
}

// ParseStamp reads "Mmm dd hh:mm:ss" as of RFC 3164, section 4.1.2, and with what
// network devices add: '*' or '.' before it, the year behind the day, a
// fraction of the second. n is its length, 0 if there is none. Without a year
// it is in the one that brings it nearest to received.
func ParseStamp(b []byte, received time.Time, zone *time.Location) (n int, sec int64, nsec int, ok bool) {
	r := reader{b: b}
	if !r.skip('*') {
		r.skip('.')
	}
	month := r.month()
	if month == 0 || !r.skip(' ') {
		return 0, 0, 0, false
	}
	r.skip(' ')
	day := r.number(2)
	if !r.skip(' ') {
		return 0, 0, 0, false
	}
	r.skip(' ')
	year, at := 0, r.at
	if y := r.number(4); r.at == at+4 && r.skip(' ') {
		year = y
	} else {
		r.at = at
	}
	hour, c1 := r.number(2), r.skip(':')
	minute, c2 := r.number(2), r.skip(':')
	second := r.number(2)
	if !c1 || !c2 || r.failed || day < 1 || hour > 23 || minute > 59 || second > 60 {
		return 0, 0, 0, false
	}
	nsec = r.fraction()
	if r.at < len(b) && b[r.at] != ' ' && b[r.at] != ':' {
		return 0, 0, 0, false
	}
	t, ok := nearest(year, func(year int) (time.Time, bool) {
		t := time.Date(year, time.Month(month), day, hour, minute, second, nsec, zone)
		return t, day <= daysIn(month, year)
	}, received.In(zone))
	if !ok {
		return 0, 0, 0, false
	}
	return r.at, t.Unix(), nsec, true
}

// nearest returns the time that at gives for year, or, if that is 0, the one of
// the years around now that is nearest to it.
func nearest(year int, at func(year int) (time.Time, bool), now time.Time) (best time.Time, found bool) {
	if year != 0 {
		return at(year)
	}
	for y := now.Year() - 1; y <= now.Year()+1; y++ {
		if t, ok := at(y); ok && (!found || t.Sub(now).Abs() < best.Sub(now).Abs()) {
			best, found = t, true
		}
	}
	return best, found
}

// reader reads what a stamp consists of.
type reader struct {
	b      []byte
	at     int
	failed bool
}

func (r *reader) skip(c byte) bool {
	if r.at < len(r.b) && r.b[r.at] == c {
		r.at++
		return true
	}
	return false
}

// month reads a name, from 1; 0 if there is none.
func (r *reader) month() int {
	if len(r.b) < r.at+3 {
		return 0
	}
	name := r.b[r.at : r.at+3]
	i := bytes.Index([]byte(monthNames), []byte{name[0] | 0x20, name[1], name[2]})
	if i < 0 || i%3 != 0 || name[0] > 'Z' {
		return 0
	}
	r.at += 3
	return i/3 + 1
}

// number reads up to limit digits.
func (r *reader) number(limit int) (n int) {
	start := r.at
	for r.at < len(r.b) && r.at < start+limit && jsonwalk.IsDigit(r.b[r.at]) {
		n = n*10 + int(r.b[r.at]-'0')
		r.at++
	}
	r.failed = r.failed || r.at == start
	return n
}

// fraction reads one of a second, if there is one, as nanoseconds.
func (r *reader) fraction() int {
	if r.at+1 >= len(r.b) || r.b[r.at] != '.' || !jsonwalk.IsDigit(r.b[r.at+1]) {
		return 0
	}
	nsec, rest, _ := parseFraction(r.b[r.at:])
	r.at = len(r.b) - len(rest)
	return nsec
}
