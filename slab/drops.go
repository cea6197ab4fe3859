package slab

import (
	"strconv"
	"time"

	"github.com/rollway/rollway/internal/jsonline"
	"github.com/rollway/rollway/line"
)

// reason is why a line was dropped; see line.Drops.
type reason int

const (
	full reason = iota
	tooLarge
	gaveUp
	shutdown
	damaged
	reasons
)

// reasonText names the reasons in notices and errors.
var reasonText = [reasons]string{
	full:     "buffer full",
	tooLarge: "line too large",
	gaveUp:   "destination failed",
	shutdown: "closed",
	damaged:  "slab file damaged",
}

// counts are numbers of lines by reason.
type counts [reasons]uint64

func (c *counts) add(o counts) {
	for r, n := range o {
		c[r] += n
	}
}

// ByLevel counts lines by the level that they were written with.
type ByLevel struct {
	Debug   uint64 // below slog.LevelInfo
	Info    uint64 // from there to below slog.LevelWarn
	Warn    uint64 // from there to below slog.LevelError
	Error   uint64 // slog.LevelError and above
	Unknown uint64 // written with Write, which is told no level
}

// losses are numbers of dropped lines, by reason and by level.
type losses struct {
	by      counts
	byLevel [classes]uint64
}

func (l *losses) drops() line.Drops {
	return line.Drops{Full: l.by[full], TooLarge: l.by[tooLarge], GaveUp: l.by[gaveUp], Damaged: l.by[damaged], Shutdown: l.by[shutdown]}
}

func (l *losses) levels() ByLevel {
	n := &l.byLevel
	return ByLevel{Debug: n[debug], Info: n[info], Warn: n[warn], Error: n[failure], Unknown: n[unknown]}
}

// lostLocked counts n dropped lines and makes sure that OnError is told. Lines lost by
// Shutdown are in the error that it returns.
func (w *Writer) lostLocked(r reason, c class, n uint64) {
	w.tally.dropped.by[r] += n
	w.tally.dropped.byLevel[c] += n
	if n > 0 && r != shutdown && !w.tally.alarmed {
		w.tally.alarmed = true
		go w.tellLosses(false)
	}
}

// lostLinesLocked counts the lines of s from byte n on as dropped, and returns
// their number.
func (w *Writer) lostLinesLocked(r reason, s *slab, from int) (sum uint64) {
	for c, n := range s.countBy(from) {
		w.lostLocked(r, class(c), n)
		sum += n
	}
	return sum
}

// appendNotices appends a line that announces c for each reason in it.
func (c counts) appendNotices(dst []byte, now time.Time) []byte {
	for r, n := range c {
		if n > 0 {
			dst = jsonline.AppendLossNotice(dst, now, n, reasonText[r])
		}
	}
	return dst
}

// count returns "1 line" or "n lines".
func count(n uint64) string {
	if n == 1 {
		return "1 line"
	}
	return strconv.FormatUint(n, 10) + " lines"
}
