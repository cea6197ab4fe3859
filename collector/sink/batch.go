package sink

import (
	"bytes"

	"github.com/rollway/rollway/collector/journal"
)

// A Batch is a run of consecutive lines. It is valid during Deliver.
type Batch struct {
	First uint64 // offset of the first line; the others follow it

	buf     []byte // all lines, each ended by '\n'
	ends    []int  // ends[i] is the offset after the '\n' of line i
	settled []bool
	refused int
	refusal error // the first
}

// Len returns the number of lines.
func (b *Batch) Len() int { return len(b.ends) }

// Line returns line i without its '\n'; it must not be changed or kept.
func (b *Batch) Line(i int) []byte {
	start := 0
	if i > 0 {
		start = b.ends[i-1]
	}
	return b.buf[start : b.ends[i]-1 : b.ends[i]-1]
}

// Settled reports whether line i was delivered or refused by an earlier try.
func (b *Batch) Settled(i int) bool { return b.settled[i] }

// Settle marks line i as delivered: if the batch comes again, it need not be
// sent.
func (b *Batch) Settle(i int) { b.settled[i] = true }

// Refuse marks line i as one that the destination will never take, because of
// err.
func (b *Batch) Refuse(i int, err error) {
	if b.settled[i] {
		return
	}
	b.settled[i] = true
	if b.refused++; b.refusal == nil {
		b.refusal = err
	}
}

func (b *Batch) reset() {
	*b = Batch{buf: b.buf[:0], ends: b.ends[:0], settled: b.settled[:0]}
}

// add takes lines from the beginning of f as long as they fit, and at least one
// if b is empty; false: there was one that does not.
func (b *Batch) add(f *journal.Frame, maxEvents, maxBytes int) bool {
	if b.Len() == 0 {
		b.First = f.First
	}
	for f.Records > 0 && b.Len() < maxEvents {
		n := bytes.IndexByte(f.Lines, '\n') + 1
		if b.Len() > 0 && len(b.buf)+n > maxBytes {
			return false
		}
		b.buf = append(b.buf, f.Lines[:n]...)
		b.ends = append(b.ends, len(b.buf))
		b.settled = append(b.settled, false)
		f.Lines = f.Lines[n:]
		f.First++
		f.Records--
	}
	return true
}
