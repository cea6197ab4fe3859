package rollway

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"sync"
	"time"

	"github.com/rollway/rollway/internal/jsonline"
)

// Slot is a Writer for an [Output] whose destination is not known when the
// Logger is made. Lines written before Attach are kept, up to a bound in bytes;
// Attach delivers them first, in order, each in a Write of its own. What did
// not fit is counted, and announced by a line in their place. A Slot is safe
// for concurrent use; the zero value keeps 1 MiB.
type Slot struct {
	mu        sync.Mutex // never held while a destination is called
	limit     int
	early     []earlyLine // guarded by mu; in the order they came
	size      int         // guarded by mu; bytes in early
	lost      uint64      // guarded by mu; lines that found no room
	attaching bool        // guarded by mu; an Attach is delivering
	shut      bool        // guarded by mu; closed
	dst       io.Writer   // guarded by mu; set when the early lines are out
	level     levelWriter // dst, if it is one
	format    *format     // guarded by mu; of the lines, nil where no Logger writes them

	plain stallLock // held in the methods of a dst that is no levelWriter
}

type earlyLine struct {
	level slog.Level
	line  []byte
}

const defaultSlotLimit = 1 << 20

// NewSlot returns a Slot that keeps up to limit bytes of early lines; 0 is
// 1 MiB.
func NewSlot(limit int) *Slot { return &Slot{limit: limit} }

// Attach delivers what was kept to w and then sends it every later line; lines
// that come meanwhile are kept behind the others. It returns an error if w is
// nil, if the Slot has a destination already or is closed, or if w refused some
// of the early lines, which are lost then; w is attached all the same.
func (s *Slot) Attach(w io.Writer) error {
	if isNil(w) {
		return errors.New("rollway: attach to slot: the writer is nil")
	}
	s.mu.Lock()
	switch {
	case s.shut:
		s.mu.Unlock()
		return fmt.Errorf("rollway: attach to slot: %w", os.ErrClosed)
	case s.dst != nil || s.attaching:
		s.mu.Unlock()
		return errors.New("rollway: attach to slot: it has a destination already")
	}
	s.attaching = true
	s.mu.Unlock()
	level, _ := w.(levelWriter)

	refused, total := 0, 0
	var first error
	for lines := s.next(w, level); lines != nil; lines = s.next(w, level) {
		for _, l := range lines {
			total++
			if err := s.deliver(w, level, l); err != nil {
				if refused++; first == nil {
					first = err
				}
			}
		}
	}
	if refused > 0 {
		return fmt.Errorf("rollway: attach to slot: %d of %d early lines were refused: %w", refused, total, first)
	}
	return nil
}

// next takes the early lines that have come by now, with a notice of those that
// found no room. When there are none it opens the way to w and returns nil.
func (s *Slot) next(w io.Writer, level levelWriter) []earlyLine {
	lines, lost, f := s.take(w, level)
	if lost > 0 {
		lines = append(lines, earlyLine{slog.LevelWarn, f.lossNotice(lost, "slot full")})
	}
	return lines
}

func (s *Slot) take(w io.Writer, level levelWriter) (lines []earlyLine, lost uint64, f *format) {
	s.mu.Lock()
	defer s.mu.Unlock()
	lines, lost, f = s.early, s.lost, s.format
	s.early, s.size, s.lost = nil, 0, 0
	if lines == nil && lost == 0 {
		s.dst, s.level, s.attaching = w, level, false
	}
	return lines, lost, f
}

// writesIn tells a Slot the format of its lines, for those that it adds.
func (s *Slot) writesIn(f *format) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.format = f
}

// lossNotice returns the line that announces a gap, of the canonical form where
// the format is not known.
func (f *format) lossNotice(lost uint64, reason string) []byte {
	if f == nil {
		return jsonline.AppendLossNotice(nil, time.Now(), lost, reason)
	}
	noun := " lines dropped"
	if lost == 1 {
		noun = " line dropped"
	}
	r := record{level: slog.LevelWarn, msg: "rollway: " + slog.Uint64Value(lost).String() + noun}
	r.setUnix(time.Now().UnixNano())
	s := scratchPool.Get().(*scratch)
	defer s.free()
	return f.append(nil, s, new(state), nil, &r, []slog.Attr{slog.String("reason", reason), slog.Uint64("dropped", lost)})
}

func (s *Slot) deliver(w io.Writer, level levelWriter, l earlyLine) (err error) {
	defer recoverTo(&err, "write", w)
	var n int
	if level != nil {
		n, err = level.WriteLevel(l.level, l.line)
	} else {
		n, err = w.Write(l.line)
	}
	return checkWrite(n, err, l.line)
}

// Write is WriteLevel at INFO.
func (s *Slot) Write(p []byte) (int, error) { return s.WriteLevel(slog.LevelInfo, p) }

// errSlotFull is what a line gets that finds no room before Attach.
var errSlotFull = errors.New("slot full: nothing is attached yet")

// WriteLevel passes p on or keeps a copy of it. It does not wait longer for a
// plain writer that hangs than a Logger with zero Options does.
func (s *Slot) WriteLevel(lvl slog.Level, p []byte) (int, error) {
	s.mu.Lock()
	if dst, level := s.dst, s.level; dst != nil && !s.shut {
		s.mu.Unlock()
		if level != nil { // decides itself how to take several lines at once
			return level.WriteLevel(lvl, p)
		}
		if !s.plain.lock(defaultStallBound, lvl >= LevelPanic) {
			return 0, errStuck
		}
		defer s.plain.unlock()
		return dst.Write(p)
	}
	defer s.mu.Unlock()
	if s.shut {
		return 0, os.ErrClosed
	}
	limit := s.limit
	if limit <= 0 {
		limit = defaultSlotLimit
	}
	if s.size+len(p) > limit {
		s.lost += uint64(bytes.Count(p, []byte{'\n'}))
		return 0, errSlotFull
	}
	s.size += len(p)
	s.early = append(s.early, earlyLine{lvl, bytes.Clone(p)})
	return len(p), nil
}

// attached returns what is attached as the output of a Logger, or nil, and how
// many bytes are kept.
func (s *Slot) attached() (*output, int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.dst == nil {
		return nil, s.size
	}
	return &output{w: s.dst, buffer: s.level, lock: &s.plain}, 0
}

// Flush flushes what is attached. Before Attach it returns an error if lines
// are kept, since they have gone nowhere.
func (s *Slot) Flush(ctx context.Context) error {
	o, kept := s.attached()
	if o != nil {
		return o.flush(ctx)
	}
	if kept > 0 {
		return fmt.Errorf("rollway: flush slot: %d bytes wait for Attach", kept)
	}
	return nil
}

// SyncContext makes what is attached stable, if it has a Sync.
func (s *Slot) SyncContext(ctx context.Context) error {
	if o, _ := s.attached(); o != nil {
		return o.syncStable(ctx)
	}
	return nil
}

// Shutdown closes what is attached, if that can be closed. Where nothing is, the
// lines kept are lost, and the error says how many bytes.
func (s *Slot) Shutdown(ctx context.Context) error {
	o, kept := s.attached()
	s.mu.Lock()
	was := s.shut
	s.shut = true
	s.early, s.size = nil, 0
	s.mu.Unlock()
	switch {
	case was:
		return nil
	case o == nil && kept > 0:
		return fmt.Errorf("rollway: close slot: nothing was attached, %d bytes are lost", kept)
	case o == nil:
		return nil
	}
	if _, ok := o.w.(io.Closer); !ok {
		return o.flush(ctx)
	}
	return o.close(ctx)
}

// Close is Shutdown bounded by 5 s.
func (s *Slot) Close() error {
	ctx, cancel := context.WithTimeout(context.Background(), defaultExitTimeout)
	defer cancel()
	return s.Shutdown(ctx)
}
