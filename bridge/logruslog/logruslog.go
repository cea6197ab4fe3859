// Package logruslog is a hook of github.com/sirupsen/logrus that writes through a rollway
// Logger: logrus' calls stay, and lines get the Logger's formats, outputs and counts.
package logruslog

import (
	"cmp"
	"context"
	"io"
	"log/slog"
	"slices"

	"github.com/rollway/rollway"
	"github.com/sirupsen/logrus"
)

// Redirect makes from write through l alone: it adds the hook of [New] and turns off
// from's output and formatter. Call it before from is in use.
func Redirect(from *logrus.Logger, l *rollway.Logger) {
	from.SetOutput(io.Discard)
	from.SetFormatter(nothing{})
	from.AddHook(New(l))
}

// New returns a hook that writes every entry through l. What logrus writes itself stays.
//
//   - logrus' level decides first, then the outputs of l.
//   - A line above ERROR is synced before logrus goes on, within rollway.Options.CloseTimeout.
//   - Time and context are the entry's. The source is logrus', if it has ReportCaller, from
//     the level of rollway.Options.Caller on.
//   - Fields are attributes, in the order of their keys. What WithError adds is error,
//     whatever logrus.ErrorKey is.
//   - What outputs fail with is in Stats and goes to rollway.Options.OnError, not to logrus.
func New(l *rollway.Logger) logrus.Hook {
	return hook{l.WithCallerSkip(4)} // stacks begin after Fire, fireHooks, log and logArgs
}

type hook struct{ log *rollway.Logger }

func (hook) Levels() []logrus.Level { return logrus.AllLevels }

func (h hook) Fire(e *logrus.Entry) error {
	ctx, level := e.Context, levels[min(e.Level, logrus.TraceLevel)]
	if ctx == nil {
		ctx = context.Background()
	}
	if !h.log.Enabled(ctx, level) {
		return nil
	}
	var buf [16]slog.Attr
	attrs := buf[:0]
	for key, value := range e.Data {
		if key == logrus.ErrorKey {
			key = "error"
		}
		attrs = append(attrs, slog.Any(key, value))
	}
	slices.SortFunc(attrs, func(a, b slog.Attr) int { return cmp.Compare(a.Key, b.Key) })
	var pc uintptr
	if e.Caller != nil && e.Caller.PC != 0 {
		pc = e.Caller.PC + 1 // logrus has the address of the call; rollway wants that of the return
	}
	if e.Level <= logrus.FatalLevel {
		h.log.LogSync(ctx, e.Time, pc, level, e.Message, slices.Clone(attrs)...) // so that buf need not be on the heap
	} else {
		h.log.LogAt(ctx, e.Time, pc, level, e.Message, attrs...)
	}
	return nil
}

var levels = [...]slog.Level{
	logrus.PanicLevel: rollway.LevelPanic,
	logrus.FatalLevel: rollway.LevelFatal,
	logrus.ErrorLevel: slog.LevelError,
	logrus.WarnLevel:  slog.LevelWarn,
	logrus.InfoLevel:  slog.LevelInfo,
	logrus.DebugLevel: slog.LevelDebug,
	logrus.TraceLevel: rollway.LevelTrace,
}

// nothing is a formatter for an output that discards.
type nothing struct{}

func (nothing) Format(*logrus.Entry) ([]byte, error) { return nil, nil }
