package shard

import (
	"bytes"
	"errors"
	"os"
	"time"

	"github.com/rollway/rollway/internal/framed"
	"github.com/rollway/rollway/internal/linecount"
	"github.com/rollway/rollway/internal/segment"
)

// size returns how many bytes of a term p takes, as one record or as lines.
func (w *Writer) size(p []byte, newline bool) uint64 {
	switch n := uint64(len(p)); {
	case w.framed:
		return n + framed.RecordHeaderSize
	case newline:
		return n + 1
	default:
		return n
	}
}

// writeRecords is Write for framed records: each line is one, without its end.
func (w *Writer) writeRecords(p []byte) (n int, err error) {
	var until time.Time
	for len(p) > 0 {
		line, rest := p, p[len(p):]
		if i := bytes.IndexByte(p, '\n'); i >= 0 {
			line, rest = p[:i], p[i+1:]
		}
		switch e := w.put(line, false, 1, &until); {
		case e == nil || errors.Is(e, ErrBufferFull):
			n += len(p) - len(rest)
		case errors.Is(e, os.ErrClosed):
			w.shards[0].rejected.Add(linecount.Of(rest))
			return n, e
		default:
			err = e
		}
		p = rest
	}
	return n, err
}

// writeBatches hands terms to the file as batches, as many as Options.Chunk
// allows in one call. n is the length of those that are there whole.
func (w *Writer) writeBatches() (n int64, err error) {
	w.batches = w.batches[:0]
	size := 0
	for i, b := range w.io.bufs {
		if size > 0 && size+len(b) > w.chunk {
			break
		}
		if len(b) > 0 {
			t := w.io.batch[i]
			w.batches = append(w.batches, segment.Batch{Buf: b, Records: int(t.records()), Number: t.number})
			size += len(b)
		}
	}
	whole, err := w.file.WriteBatches(w.batches)
	for _, b := range w.batches[:whole] {
		n += int64(len(b.Buf))
	}
	return inRange(n, int64(size), err)
}
