package query

import (
	"context"

	"github.com/rollway/rollway/collector/journal"
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

type (
	// Frame is a run of consecutive records.
	Frame = journal.Frame
	// Gap is the error that tells of missing records.
	Gap = journal.Gap
)
