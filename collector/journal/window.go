package journal

import (
	"fmt"
	"slices"

	"github.com/rollway/rollway/internal/recordlog"
)

const (
	// packBytes is how many bytes of lines a packed frame has, unless a frame had more. A
	// reader has the lines of one such frame in memory.
	packBytes = 1 << 20
	// mostPacked is how many it may have: of a batch that is a little longer than a frame, the rest does not
	// become a packed frame of its own.
	mostPacked = packBytes + packBytes/8
	// pieceBytes is how many bytes of them are put in order at a time.
	pieceBytes = 64 << 10

	// byRetention is why a block is missing that retention has deleted.
	byRetention = "deleted by the retention of their tenant"
)

// A window returns the records of a frame with blocks in the order of their offsets.
type window struct {
	open   bool
	h      recordlog.Frame
	blocks []blockLines
	runs   recordlog.Runs // after the current one
	block  int            // of the current run
	left   int            // records of the current run
	next   uint64         // offset of the next record
	plain  lineBuffer     // the lines of all blocks
	out    []byte         // those of several runs
}

type blockLines struct {
	passed  bool   // its records are not wanted
	others  bool   // they are of another tenant
	lost    string // why there are no lines
	lines   []byte // not yet returned
	records int    // of them
}

// enter opens w for the records from offset from on of the frame h, whose body begins at
// byte pos of the file at path. With tenant, it passes over the records of others. read returns
// the checked bytes of a block; its error is returned unless they are damaged.
func (w *window) enter(h *recordlog.Frame, head []byte, from uint64, tenant *string, path string, pos int64, read func(*recordlog.Block) ([]byte, error)) error {
	blocks, runs, err := recordlog.ParseBlocks(h, head)
	if err != nil {
		return err
	}
	w.plain.reset()
	w.h, w.next, w.left = *h, h.First, 0
	w.runs = append(w.runs[:0], runs...)
	w.blocks = slices.Grow(w.blocks[:0], len(blocks))
	for _, b := range blocks {
		l := blockLines{records: b.Records}
		switch {
		case tenant != nil && *tenant != b.Tenant:
			l.passed, l.others = true, true
		case b.Len == 0:
			l.lost = byRetention
		default:
			data, err := read(&b)
			if err == nil {
				l.lines, err = w.plain.unpack(h, data, b.Unpacked, b.Records)
				l.passed = err == nil && len(l.lines) == 0
			}
			if recordlog.IsDamage(err) {
				l.lost = fmt.Sprintf("%v at byte %d of %s is damaged", b, pos+int64(b.Pos), path)
			} else if err != nil {
				return err
			}
		}
		w.blocks = append(w.blocks, l)
	}
	w.open = true
	for w.next < from && w.more() {
		w.take(int(min(uint64(w.left), from-w.next)))
	}
	return nil
}

// more goes to the next run if the current one has ended. False means that it was the last.
func (w *window) more() bool {
	if w.left == 0 {
		w.block, w.left = w.runs.Next()
	}
	return w.left > 0
}

// take moves past n records of the current run and returns their lines.
func (w *window) take(n int) []byte {
	b := &w.blocks[w.block]
	w.left -= n
	w.next += uint64(n)
	if b.passed || b.lost != "" {
		return nil
	}
	size := len(b.lines)
	if n < b.records {
		size = recordlog.SkipLines(b.lines, uint64(n))
	}
	b.records -= n
	lines := b.lines[:size:size]
	b.lines = b.lines[size:]
	return lines
}

// step returns the next records, or, if lost says why, those that are missing, without
// lines; false: there are no more.
func (w *window) step() (f Frame, lost string, ok bool) {
	w.out = w.out[:0]
	f = Frame{First: w.next, MinTime: w.h.MinTime, MaxTime: w.h.MaxTime}
	for w.more() {
		b := &w.blocks[w.block]
		switch {
		case f.Records > 0 && (b.passed || b.lost != lost || len(w.out) >= pieceBytes):
			f.Lines = w.out
			return f, lost, true
		case b.passed:
			w.take(w.left)
			f.First = w.next
			continue
		}
		lost = b.lost
		n := w.left
		lines := w.take(n)
		if f.Records == 0 && len(lines) >= pieceBytes {
			f.Records, f.Lines = n, lines
			return f, "", true
		}
		f.Records += n
		w.out = append(w.out, lines...)
	}
	w.open = f.Records > 0
	f.Lines = w.out
	return f, lost, f.Records > 0
}
