// Package stdlog turns lines written through a [log.Logger] of the standard library
// into records of a rollway Logger: for http.Server.ErrorLog, for code that calls
// log.Printf, for libraries that take a *log.Logger.
//
// A program that only needs log.Printf at INFO can call
// slog.SetDefault(slog.New(log.Handler())), which redirects that too.
package stdlog

import (
	"context"
	"io"
	"log"
	"log/slog"
	"runtime"
	"strings"
	"time"

	"github.com/rollway/rollway"
	"github.com/rollway/rollway/internal/levels"
)

// Options configures the records. With the zero value every line is a record at INFO.
type Options struct {
	// Level is the level of a line that does not name its own. Default: INFO.
	Level slog.Level

	// Prefixes takes the level from the start of a line and removes it there: the
	// name of a level in brackets or before a colon, in any case, such as [WARN] or
	// error:. The names are those of package rollway, with an optional distance, and
	// WARNING and ERR.
	Prefixes bool
}

// New returns a standard Logger without prefix and flags. Each of its lines becomes
// one record of l, with any line breaks inside it, and with its call as the source.
//
// A line of a Fatal method is written at FATAL, one of a Panic method at PANIC, and
// every output is synced before the process exits or the goroutine panics.
func New(l *rollway.Logger, o Options) *log.Logger {
	return log.New(NewWriter(l, o), "", 0)
}

// Redirect makes the standard library's default Logger, that of log.Printf, write to
// l like New. restore resets its writer, prefix and flags.
func Redirect(l *rollway.Logger, o Options) (restore func()) {
	w, prefix, flags := log.Writer(), log.Prefix(), log.Flags()
	log.SetFlags(0)
	log.SetPrefix("")
	log.SetOutput(NewWriter(l, o))
	return func() {
		log.SetFlags(flags)
		log.SetPrefix(prefix)
		log.SetOutput(w)
	}
}

// NewWriter returns a writer that makes one record of each Write, for an existing
// *log.Logger; set its flags to 0, or the message begins with a second time. Its
// Write never fails and is safe for concurrent use.
func NewWriter(l *rollway.Logger, o Options) io.Writer {
	return &writer{Options: o, log: l}
}

// writer is immutable.
type writer struct {
	Options
	log *rollway.Logger
}

func (w *writer) Write(p []byte) (int, error) {
	level, msg := w.Level, strings.TrimSuffix(string(p), "\n")
	if w.Prefixes {
		level, msg = cutLevel(level, msg)
	}
	pc, ends := caller()
	if ends != 0 {
		level = ends
	}
	write := w.log.LogAt
	if ends != 0 {
		write = w.log.LogSync
	}
	write(context.Background(), time.Time{}, pc, level, msg)
	return len(p), nil
}

// caller returns the program counter of the call of a log.Logger's method that led to
// the Write which calls it. If that method ends the process or panics, ends is the
// level of its line, else 0. Both are 0 if Write was called otherwise.
func caller() (pc uintptr, ends slog.Level) {
	var pcs [3]uintptr // Logger.output, Logger.Printf or its like, and the caller
	if runtime.Callers(3, pcs[:]) < len(pcs) {
		return 0, 0
	}
	frames := runtime.CallersFrames(pcs[:])
	if output, _ := frames.Next(); output.Function != "log.(*Logger).output" {
		return 0, 0
	}
	print, _ := frames.Next()
	name := print.Function[strings.LastIndexByte(print.Function, '.')+1:]
	switch {
	case strings.HasPrefix(name, "Fatal"):
		return pcs[2], rollway.LevelFatal
	case strings.HasPrefix(name, "Panic"):
		return pcs[2], rollway.LevelPanic
	}
	return pcs[2], 0
}

// cutLevel returns the level at the start of msg and the text after it, or both
// arguments unchanged.
func cutLevel(level slog.Level, msg string) (slog.Level, string) {
	name, rest, closed := "", "", false
	if strings.HasPrefix(msg, "[") {
		name, rest, closed = strings.Cut(msg[1:], "]")
	} else {
		name, rest, closed = strings.Cut(msg, ":")
	}
	const longest = len("warning")
	switch {
	case !closed || len(name) > longest:
		return level, msg
	case strings.EqualFold(name, "warning"):
		name = "WARN"
	case strings.EqualFold(name, "err"):
		name = "ERROR"
	}
	found, ok := levels.Parse([]byte(name))
	if !ok {
		return level, msg
	}
	return found, strings.TrimLeft(rest, " \t")
}
