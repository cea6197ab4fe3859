package slab

import (
	"bytes"
	"context"
	"log/slog"
)

// class is what the account knows of a line's level.
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

// levelOr returns the level of l, or def if l is nil.
func levelOr(l slog.Leveler, def slog.Level) slog.Level {
	if l == nil {
		return def
	}
	return l.Level()
}

// mark says that the lines of a slab from byte at on, up to the next mark, are
// of one class. Before the first mark they are unknown.
type mark struct {
	at    int32
	class class
}

// turnLocked makes c the class of the lines that come next in the open slab.
func (w *Writer) turnLocked(c class) {
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

// writeThrough is WriteLevel for lines at Levels.WriteThrough and above.
func (w *Writer) writeThrough(level slog.Level, p []byte) (int, error) {
	n, placed, err := w.writeLevel(level, p)
	if !placed || w.opts.Levels.WriteThrough == nil {
		return n, err
	}
	w.mu.Lock()
	wait := !w.flight.mute
	w.mu.Unlock()
	if !wait {
		return n, err
	}
	ctx, cancel := context.WithTimeout(context.Background(), w.opts.Levels.WriteThroughTimeout)
	defer cancel()
	_ = w.Flush(ctx) // what became of the lines is in the account
	if ctx.Err() != nil {
		w.mu.Lock()
		w.flight.mute = true
		w.mu.Unlock()
	}
	return n, err
}
