package line

import (
	"errors"
	"log/slog"
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
