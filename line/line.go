// Package line defines the terms that all writers of log lines share: what a writer
// of whole lines does, and how it accounts for them.
package line

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
)

// Writer takes whole lines, each ended by a newline. Package rollwaytest checks
// the contract. All methods are safe for concurrent use.
//
//   - Write copies what it needs of its argument before it returns.
//   - A line travels whole or not at all.
//   - Lines of one goroutine keep their order.
//   - Each accepted line is written, dropped with a reason, or pending; see
//     Ledger.
//   - After Close, Write returns os.ErrClosed. Close may be called again.
type Writer interface {
	io.WriteCloser

	// Flush waits until the lines accepted before the call have reached the
	// destination.
	Flush(ctx context.Context) error

	// Sync waits until they are stable there. It returns within a bound that the
	// implementation documents.
	Sync() error

	// Shutdown is Close with the deadline of ctx in place of the default one.
	Shutdown(ctx context.Context) error
}

// LevelWriter is a writer that may treat lines by their level, as one that
// drops unimportant lines first. It bounds its own waits and is safe for
// concurrent use.
type LevelWriter interface {
	io.Writer
	WriteLevel(level slog.Level, p []byte) (n int, err error)
}

// Ledger says what became of the lines that were given to a writer:
//
//	Accepted = Written + Dropped.Total() + Pending
type Ledger struct {
	Accepted uint64 // lines taken, including those dropped later
	Written  uint64 // lines that the destination has taken
	Dropped  Drops
	Pending  uint64 // lines neither written nor dropped yet
	Rejected uint64 // lines given after Close; they were never accepted
}

// Count returns the number of lines in p; an unterminated last one counts.
func Count(p []byte) uint64 {
	n := bytes.Count(p, newline)
	if len(p) > 0 && p[len(p)-1] != '\n' {
		n++
	}
	return uint64(n)
}

var newline = []byte{'\n'}

// Err returns nil if the ledger is balanced, and else an error that says by how
// much it is not.
func (l Ledger) Err() error {
	if sum := l.Written + l.Dropped.Total() + l.Pending; sum != l.Accepted {
		return fmt.Errorf("%d lines accepted, but %d written + %d dropped + %d pending = %d",
			l.Accepted, l.Written, l.Dropped.Total(), l.Pending, sum)
	}
	return nil
}

// Drops counts dropped lines by reason.
type Drops struct {
	Full     uint64 // no buffer was free in time
	TooLarge uint64 // longer than the writer takes; Write said so
	GaveUp   uint64 // the destination failed for too long
	Refused  uint64 // the destination refused the line for good
	Expired  uint64 // removed from a queue on disk that was full or too old
	Damaged  uint64 // could not be read back from a queue on disk
	Shutdown uint64 // not written when the deadline of Close or Shutdown came
}

// Total returns the sum over all reasons.
func (d Drops) Total() uint64 {
	return d.Full + d.TooLarge + d.GaveUp + d.Refused + d.Expired + d.Damaged + d.Shutdown
}

var (
	// ErrTooLarge is wrapped by the error for a line that is longer than the
	// writer takes.
	ErrTooLarge = errors.New("line too large")

	// ErrLost is wrapped by the errors of Flush, Sync, Shutdown and Close that
	// report dropped lines.
	ErrLost = errors.New("lines lost")

	// ErrPending is wrapped by the errors of Flush, Sync, Shutdown and Close that
	// report lines whose outcome is not known yet.
	ErrPending = errors.New("lines pending")
)

// TryWriter is a LevelWriter that can be asked to take a line without waiting.
// Who serves several writers tries all of them first and waits afterwards, so
// that a full one holds up no other. It is safe for concurrent use.
//
//   - TryWriteLevel takes p, which is one whole line with its newline, or it
//     takes nothing. It never waits for a destination, for room or for another
//     call that does.
//   - It returns nil if it took the line, which is then accounted for as after
//     WriteLevel.
//   - It returns ErrWouldWait, not wrapped, if WriteLevel would wait now: for
//     room, behind calls that wait for room, or until the line is written
//     through.
//   - It returns ErrFull, not wrapped, if there is no room and WriteLevel would
//     drop the line at once.
//   - In both cases the line is not counted, not even as dropped. The caller
//     calls WriteLevel for it next, which waits, or drops and counts it.
//   - Any other error is the one that WriteLevel would return, with the same
//     effect on the ledger. WriteLevel is not to be called for the line then.
//   - A line with a level that may use reserved room may use it here too.
//   - Lines of one goroutine keep their order, whichever methods it calls.
type TryWriter interface {
	LevelWriter
	TryWriteLevel(level slog.Level, p []byte) error
}

var (
	// ErrWouldWait is what TryWriteLevel returns where WriteLevel would wait.
	ErrWouldWait = errors.New("the writer is full: a call would wait")

	// ErrFull is what TryWriteLevel returns where WriteLevel would drop the line.
	ErrFull = errors.New("the writer is full: the line would be dropped")
)
