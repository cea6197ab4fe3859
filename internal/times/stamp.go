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
// network devices add: '*' or '.' before it, the year after the day, a fraction of the
// second. n is its length, 0 if there is none. Without a year it is in the one that brings
// it nearest to received.
func ParseStamp(b []byte, received time.Time, zone *time.Location) (n int, sec int64, nsec int, ok bool) {
	s := scanner{b}
	if !s.skip('*') {
		s.skip('.')
	}
	month := s.monthName()
	if month == 0 || !s.skip(' ') {
		return 0, 0, 0, false
	}
	s.skip(' ')
	day, _ := s.number(2)
	if !s.skip(' ') {
		return 0, 0, 0, false
	}
	s.skip(' ')
	year, before := 0, s
	if y, n := s.number(4); n == 4 && s.skip(' ') {
		year = y
	} else {
		s = before
	}
	hour, n1 := s.number(2)
	colon1 := s.skip(':')
	minute, n2 := s.number(2)
	colon2 := s.skip(':')
	second, n3 := s.number(2)
	if min(n1, n2, n3) == 0 || !colon1 || !colon2 || day < 1 || hour > 23 || minute > 59 || second > 60 {
		return 0, 0, 0, false
	}
	if len(s.rest) > 1 && s.rest[0] == '.' && jsonwalk.IsDigit(s.rest[1]) {
		nsec, _ = s.fraction()
	}
	if len(s.rest) > 0 && s.rest[0] != ' ' && s.rest[0] != ':' {
		return 0, 0, 0, false
	}
	first, last := year, year
	if year == 0 {
		first, last = received.In(zone).Year()-1, received.In(zone).Year()+1
	}
	var nearest time.Time
	for y := first; y <= last; y++ {
		t := time.Date(y, time.Month(month), day, hour, minute, second, nsec, zone)
		if day <= daysIn(month, y) && (!ok || t.Sub(received).Abs() < nearest.Sub(received).Abs()) {
			nearest, ok = t, true
		}
	}
	if !ok {
		return 0, 0, 0, false
	}
	return len(b) - len(s.rest), nearest.Unix(), nsec, true
}

// monthName reads the short name of a month, from 1; 0 if there is none.
func (s *scanner) monthName() int {
	if len(s.rest) < 3 || s.rest[0] > 'Z' {
		return 0
	}
	month := indexName(monthNames[:], []byte{s.rest[0] | 0x20, s.rest[1], s.rest[2]}) + 1
	s.rest = s.rest[3:]
	return month
}
