package slab

import (
	"bytes"
	"context"
	"log/slog"

	"github.com/rollway/rollway/line"
)

// class is the level of a line, as the counts distinguish it.
type class uint8

const (
	unknown class = iota // written with Write
	debug
	info
	warn
	failure // slog.LevelError and above
	classes
)

func classOf(l slog.Level) class {
	switch {
	case l >= slog.LevelError:
		return failure
	case l >= slog.LevelWarn:
		return warn
	case l >= slog.LevelInfo:
		return info
	}
	return debug
}

// rank is how many of the reserved slabs a line may use.
type rank uint8

const (
	ordinary rank = iota // below slog.LevelWarn, or of no known level
	urgent               // slog.LevelWarn
	vital                // slog.LevelError and above
	ranks
)

// rankLocked returns the rank of lines of class c. The first call begins to reserve
// slabs: as long as no line comes with a level, all slabs are for all lines.
func (w *Writer) rankLocked(c class) rank {
	w.filling.keep = w.opts.reserve()
	switch {
	case w.filling.keep[ordinary] == 0 || c < warn:
		return ordinary
	case c == warn:
		return urgent
	}
	return vital
}

// rankOf returns the lowest rank that may use a slab when free others are left.
func (f *filling) rankOf(free int) (r rank) {
	for free < f.keep[r] {
		r++
	}
	return r
}

// mark says that the lines of a slab from byte at on, up to the next mark, are
// of one class. Before the first mark they are unknown.
type mark struct {
	at    int32
	class class
}

// setClassLocked makes c the class of the next lines in the open slab.
func (w *Writer) setClassLocked(c class) {
	w.class = c
	s := w.filling.cur
	s.marks = append(s.marks, mark{int32(w.pos), c})
}

// countBy returns the number of lines of s.data[from:] by class.
func (s *slab) countBy(from int) (n [classes]uint64) {
	add := func(c class, from, to int) {
		if from < to {
			n[c] += uint64(bytes.Count(s.data[from:to], newline))
		}
	}
	c := unknown
	for _, m := range s.marks {
		add(c, from, int(m.at))
		c, from = m.class, max(from, int(m.at))
	}
	add(c, from, len(s.data))
	return n
}

// classAt returns the class of the line of s.data that begins at byte at.
func (s *slab) classAt(at int) class {
	c := unknown
	for _, m := range s.marks {
		if int(m.at) > at {
			break
		}
		c = m.class
	}
	return c
}

// writeThrough is WriteLevel for lines at Options.WriteThrough and above.
func (w *Writer) writeThrough(level slog.Level, p []byte) (n int, err error) {
	began, c, appended := w.age(), classOf(level), false
	if len(w.shards) > 0 {
		n, appended, err = w.writeSharded(p, c)
	} else {
		w.mu.Lock()
		n, appended, err = w.writeSlow(p, c, w.rankLocked(c))
	}
	if !appended || w.opts.WriteThrough == nil {
		return n, err
	}
	timeout := w.opts.MaxWait
	if w.opts.Full == Bounded {
		timeout -= w.age() - began
	}
	w.mu.Lock()
	timedOut := w.flight.timedOut
	w.mu.Unlock()
	if timedOut || timeout <= 0 {
		return n, err
	}
	ctx, cancel := context.WithTimeout(context.Background(), timeout)
	defer cancel()
	// The result of the lines is in Stats.
	if flushErr := w.Flush(ctx); flushErr != nil && ctx.Err() != nil {
		w.mu.Lock()
		w.flight.timedOut = true
		w.mu.Unlock()
	}
	return n, err
}

// TryWriteLevel is WriteLevel of one whole line, with its newline, if that needs no
// wait. If WriteLevel would wait it returns line.ErrWouldWait, and if WriteLevel would
// drop the line because no slab is free, line.ErrFull; then the line is neither taken
// nor counted. The same applies to a p of several lines or without a newline that does
// not fit the open slab. See line.TryWriter.
func (w *Writer) TryWriteLevel(level slog.Level, p []byte) error {
	c := classOf(level)
	if len(w.shards) > 0 {
		return w.trySharded(level, p, c)
	}
	w.mu.Lock()
	if w.throughLocked(level) {
		w.mu.Unlock()
		return line.ErrWouldWait
	}
	if n := len(p); n > 0 && n <= w.end-w.pos && p[n-1] == '\n' {
		if w.class != c {
			w.setClassLocked(c)
		}
		w.putUnlock(p)
		return nil
	}
	if w.kept.end > 0 && w.putKept(p, c) {
		return nil
	}
	return w.trySlow(p, c)
}

// throughLocked reports whether WriteLevel waits until lines of that level are written.
func (w *Writer) throughLocked(level slog.Level) bool {
	return level >= w.through && !w.flight.timedOut && !w.closed
}
