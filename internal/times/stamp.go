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
	if len(b) > 0 && (b[0] == '*' || b[0] == '.') {
		n = 1
	}
	h := ParseHead(b[n:], received, zone)
	if n += h.Len; h.Form != Stamp || n < len(b) && b[n] != ' ' && b[n] != ':' {
		return 0, 0, 0, false
	}
	return n, h.Sec, h.Nsec, true
}

// monthOf returns the month of a short name, from 1, or 0.
func monthOf(name []byte) int {
	switch string(name) {
	case "Jan":
		return 1
	case "Feb":
		return 2
	case "Mar":
		return 3
	case "Apr":
		return 4
	case "May":
		return 5
	case "Jun":
		return 6
	case "Jul":
		return 7
	case "Aug":
		return 8
	case "Sep":
		return 9
	case "Oct":
		return 10
	case "Nov":
		return 11
	case "Dec":
		return 12
	}
	return 0
}
