package slab

import (
	"strconv"
	"time"

	"github.com/rollway/rollway/internal/jsonline"
)

// Drops counts dropped lines by reason.
type Drops struct {
	BufferFull uint64 // no slab was free, under Drop
	Timeout    uint64 // no slab was free within BlockTimeout or Levels.ErrorWait
	TooLarge   uint64 // longer than Options.OversizeLimit; Write said so
	GaveUp     uint64 // the destination failed for longer than Retry.GiveUp
	Shutdown   uint64 // not written when the deadline of Close or Shutdown came
}

// Total returns the sum over all reasons.
func (d Drops) Total() uint64 {
	return d.BufferFull + d.Timeout + d.TooLarge + d.GaveUp + d.Shutdown
}

// LevelDrops is Drops by the level that the lines were written with.
type LevelDrops struct {
	Debug   Drops // below slog.LevelInfo
	Info    Drops // from there to below slog.LevelWarn
	Warn    Drops // from there to below slog.LevelError
	Error   Drops // slog.LevelError and above
	Unknown Drops // written with Write, which is told no level
}

// reason is why a line was dropped; see Drops.
type reason int

const (
	bufferFull reason = iota
	timeout
	tooLarge
	gaveUp
	shutdown
	reasons
)

// counts are numbers of lines by reason.
type counts [reasons]uint64

func (c *counts) add(o counts) {
	for r, n := range o {
		c[r] += n
	}
}

func (c counts) drops() Drops {
	return Drops{c[bufferFull], c[timeout], c[tooLarge], c[gaveUp], c[shutdown]}
}

// losses are numbers of dropped lines by level and reason.
type losses [classes]counts

// add books lines that were lost for one reason and returns their number.
func (l *losses) add(r reason, n [classes]uint64) (sum uint64) {
	for c, n := range n {
		l[c][r] += n
		sum += n
	}
	return sum
}

// of returns the lines that were lost for one reason.
func (l *losses) of(r reason) (sum uint64) {
	for c := range l {
		sum += l[c][r]
	}
	return sum
}

func (l *losses) total() (sum counts) {
	for _, c := range l {
		sum.add(c)
	}
	return sum
}

func (l *losses) byLevel() LevelDrops {
	return LevelDrops{
		Debug:   l[debug].drops(),
		Info:    l[info].drops(),
		Warn:    l[warn].drops(),
		Error:   l[failure].drops(),
		Unknown: l[unknown].drops(),
	}
}

// appendNotices appends a line that announces c for each reason in it. There
// is no stream left to announce a shutdown in.
func (c counts) appendNotices(dst []byte, now time.Time) []byte {
	for r, text := range [...]string{
		bufferFull: "buffer full",
		timeout:    "buffer full for too long",
		tooLarge:   "line too large",
		gaveUp:     "destination failed",
	} {
		if c[r] > 0 {
			dst = jsonline.AppendLossNotice(dst, now, c[r], text)
		}
	}
	return dst
}

// count is n lines in words.
func count(n uint64) string {
	if n == 1 {
		return "1 line"
	}
	return strconv.FormatUint(n, 10) + " lines"
}
