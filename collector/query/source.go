package query

import (
	"context"
	"fmt"
)

// Source is what the endpoints read: a journal. Its methods are safe for
// concurrent use.
type Source interface {
	First() uint64 // offset of the oldest record kept
	Next() uint64  // offset that the next record will get
	NewReader(from uint64) Reader
}

// Reader walks the records of a Source in order of offsets, without overlap. It
// is for one goroutine at a time.
type Reader interface {
	// SetTimeRange lets the reader leave out frames without a record between
	// minimum and maximum, in nanoseconds since 1970 and both included.
	SetTimeRange(minimum, maximum int64)

	// Next returns the next frame. At the end it waits for one, until ctx ends
	// or the source closes, which is io.EOF. An error of type *Gap tells of
	// missing records; the reader has moved behind them.
	Next(ctx context.Context) (Frame, error)

	// TryNext is Next, but returns false at the end instead of waiting.
	TryNext() (Frame, bool, error)

	// Offset is that of the record behind the last one returned, left out or
	// reported missing.
	Offset() uint64

	Close() error
}

// Frame is a run of consecutive records.
type Frame struct {
	First   uint64 // offset of the first record
	Records int
	Lines   []byte // canonical lines, each ended by '\n'; valid until the reader's next call
}

// Gap says that the records from offset From up to To are missing. With To below
// From, the reader began behind the source's end and has moved back to it.
type Gap struct {
	From, To uint64
	Reason   string
}

func (g *Gap) Error() string {
	if g.To < g.From {
		return fmt.Sprintf("offset %d is behind the end, %d: %s", g.From, g.To, g.Reason)
	}
	return fmt.Sprintf("%d records missing from offset %d on: %s", g.Missed(), g.From, g.Reason)
}

// Missed is the number of missing records.
func (g *Gap) Missed() uint64 {
	if g.To < g.From {
		return 0
	}
	return g.To - g.From
}
