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

// byReason are numbers of lines by reason.
type byReason [reasons]uint64

func (c byReason) drops() Drops {
	return Drops{c[bufferFull], c[timeout], c[tooLarge], c[gaveUp], c[shutdown]}
}

// counts are numbers of dropped lines by level and reason.
type counts [classes]byReason

func (c *counts) add(o counts) {
	for class := range o {
		for r, n := range o[class] {
			c[class][r] += n
		}
	}
}

// lose books lines that were lost for one reason and returns their number.
func (c *counts) lose(r reason, n [classes]uint64) (sum uint64) {
	for class, n := range n {
		c[class][r] += n
		sum += n
	}
	return sum
}

// of returns the lines that were lost for one reason.
func (c *counts) of(r reason) (sum uint64) {
	for class := range c {
		sum += c[class][r]
	}
	return sum
}

func (c *counts) total() (sum byReason) {
	for r := range sum {
		sum[r] = c.of(reason(r))
	}
	return sum
}

func (c *counts) byLevel() LevelDrops {
	return LevelDrops{
		Debug:   c[debug].drops(),
		Info:    c[info].drops(),
		Warn:    c[warn].drops(),
		Error:   c[failure].drops(),
		Unknown: c[unknown].drops(),
	}
}

// appendNotices appends a line that announces c for each reason in it. There
// is no stream left to announce a shutdown in.
func (c *counts) appendNotices(dst []byte, now time.Time) []byte {
	for r, text := range [...]string{
		bufferFull: "buffer full",
		timeout:    "buffer full for too long",
		tooLarge:   "line too large",
		gaveUp:     "destination failed",
	} {
		if n := c.of(reason(r)); n > 0 {
			dst = jsonline.AppendLevelNotice(dst, now, n, text, jsonline.LevelCounts{
				Debug: c[debug][r], Info: c[info][r], Warn: c[warn][r], Error: c[failure][r],
			})
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
