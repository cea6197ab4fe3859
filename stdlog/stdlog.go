// Package stdlog turns what is written through a [log.Logger] of the standard
// library into records of a rollway Logger: for http.Server.ErrorLog, for code
// that calls log.Printf, for libraries that take a *log.Logger.
//
// A program that needs no more than log.Printf at INFO can do with
// slog.SetDefault(slog.New(log.Handler())), which redirects that as well.
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

// Options configures what becomes of a line. Its zero value makes every line a
// record at INFO.
type Options struct {
	// Level is that of a line which does not say its own. Default: INFO.
	Level slog.Level

	// Prefixes takes the level from the begin of a line and the prefix off it:
	// a level's name in brackets or before a colon, in upper or lower case, as
	// [WARN] or error:. The names are those of package rollway, also with a
	// distance, and WARNING and ERR.
	Prefixes bool
}

// New returns a standard Logger without prefix and flags whose every line
// becomes one record of l, line breaks in the middle of it included, with its
// call as the source.
//
// A line of one of its Fatal methods is written at FATAL and one of its Panic
// methods at PANIC, and every output is flushed before they go on to do what
// their name says.
func New(l *rollway.Logger, o Options) *log.Logger {
	return log.New(NewWriter(l, o), "", 0)
}

// Redirect does to the standard library's default Logger, that of log.Printf,
// what New says. restore gives it back its writer, prefix and flags.
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

// NewWriter returns a writer that makes one record of each Write, for a
// *log.Logger that exists already; set its flags to 0, or the message begins
// with a second time. Its Write never fails and is safe for concurrent use.
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

// caller returns the call of a method of log.Logger that led to the Write
// which calls it, and, if that is about to end the process or to panic, the
// level of its line, else 0. It finds nothing where Write was called otherwise.
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

// cutLevel returns the level that msg begins with and what follows it, or both
// as they are.
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
