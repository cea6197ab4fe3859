package rollway

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"reflect"
	"time"
)

// Options configures a [Logger]. The zero value writes JSON to os.Stderr at
// INFO and above.
type Options struct {
	// Outputs are the destinations. Default: one, Output{Writer: os.Stderr}.
	Outputs []Output

	// Levels sets the lowest level by the Logger's name; a line is written
	// where both Levels and the Output's level let it through. Default: only
	// the Outputs' levels count.
	Levels *Levels

	// Caller is the level from which on a record carries the file and line of
	// its call. Default: WARN. LevelOff captures none.
	Caller slog.Leveler

	// Stack is the level from which on a record carries the stack of its
	// goroutine, in the attribute stack. Default: LevelOff.
	Stack slog.Leveler

	// Trace returns the W3C trace and span id that a context carries, for the
	// keys trace_id and span_id. With OpenTelemetry:
	//
	//	func(ctx context.Context) ([16]byte, [8]byte, bool) {
	//		sc := trace.SpanContextFromContext(ctx)
	//		return sc.TraceID(), sc.SpanID(), sc.IsValid()
	//	}
	//
	// Where it panics the line has no trace. Default: none.
	Trace func(context.Context) (traceID [16]byte, spanID [8]byte, ok bool)

	// Sampling limits how often the same message is written. Default: none.
	Sampling *Sampling

	// Redact hides values. Default: none. What it costs is paid by every line.
	Redact *Redaction

	// Dedup makes the last one win where a key stands several times among the
	// attributes of a context, a Logger and a call, and joins groups of one
	// name. What With was given is then encoded at each call, which allocates.
	Dedup bool

	// MaxLine is the longest line in bytes, its newline included. What would be
	// longer is written with its message and values cut, and says in the
	// attribute cut_from_bytes how long it was. Default: 1 MiB, which is what
	// slab.Writer and the collector take. At least 512.
	MaxLine int

	// Extractors add attributes from a call's context, for instance a tenant or
	// a request id that other packages keep there. They stand where those of
	// ContextWith do. An extractor that panics adds no more. Default: none.
	Extractors []func(context.Context, *Attrs)

	// StallBound is how long a call waits for an output that another call is
	// stuck in before it leaves that output out and counts the line as
	// Stalled. Outputs that have a WriteLevel method are not concerned: they
	// decide themselves. Default: 100 ms.
	StallBound time.Duration

	// ExitTimeout bounds the flush of all outputs before Fatal exits and
	// Panic panics, and Close. Default: 5 s.
	ExitTimeout time.Duration

	// Exit ends the process after a Fatal line. Default: os.Exit.
	Exit func(code int)

	// OnError is told what went wrong with an output, at most once a second
	// for each; Stats counts every error. It is called by the goroutine that
	// logs and must not log to the same Logger. Default: a line to os.Stderr,
	// at most every ten seconds, unless os.Stderr is the output that failed.
	OnError func(error)
}

// Output is one destination of a [Logger].
type Output struct {
	// Writer takes the lines, each in one Write of one whole line. A writer
	// with a method WriteLevel(slog.Level, []byte) (int, error) is called
	// through that, by several goroutines at once; calls to any other are
	// made one at a time. Required.
	Writer io.Writer

	// Level is the lowest level that is written; it may change while the
	// Logger is in use. A Leveler with a method Admits(slog.Level) bool, as
	// LevelRange and LevelFunc have it, is asked that instead. Default: INFO,
	// or everything that Options.Levels lets through where that is set.
	Level slog.Leveler

	// Encoder is the format. Outputs with equal encoders share one encoding of
	// each record. Default: JSON{}.
	Encoder Encoder

	// Close makes the Logger's Shutdown and Close close Writer as well.
	Close bool
}

const (
	defaultMaxLine     = 1 << 20
	defaultStallBound  = 100 * time.Millisecond
	defaultExitTimeout = 5 * time.Second
)

func (o Options) withDefaults() (Options, error) {
	if o.Outputs == nil {
		o.Outputs = []Output{{Writer: os.Stderr}}
	}
	if o.Caller == nil {
		o.Caller = slog.LevelWarn
	}
	if o.Stack == nil {
		o.Stack = LevelOff
	}
	if o.MaxLine == 0 {
		o.MaxLine = defaultMaxLine
	}
	if o.StallBound == 0 {
		o.StallBound = defaultStallBound
	}
	if o.ExitTimeout == 0 {
		o.ExitTimeout = defaultExitTimeout
	}
	if o.Exit == nil {
		o.Exit = os.Exit
	}
	var errs []error
	if o.MaxLine < 512 {
		errs = append(errs, fmt.Errorf("Options.MaxLine is %d: give 512 bytes or more, or 0 for %d", o.MaxLine, defaultMaxLine))
	}
	if o.StallBound < 0 {
		errs = append(errs, fmt.Errorf("Options.StallBound is %v: give a positive duration, or 0 for %v", o.StallBound, defaultStallBound))
	}
	if o.ExitTimeout < 0 {
		errs = append(errs, fmt.Errorf("Options.ExitTimeout is %v: give a positive duration, or 0 for %v", o.ExitTimeout, defaultExitTimeout))
	}
	for name, l := range map[string]slog.Leveler{"Caller": o.Caller, "Stack": o.Stack} {
		if isNil(l) {
			errs = append(errs, fmt.Errorf("Options.%s is a nil %T", name, l))
		}
	}
	for i, out := range o.Outputs {
		if out.Level != nil && isNil(out.Level) {
			errs = append(errs, fmt.Errorf("Options.Outputs[%d].Level is a nil %T", i, out.Level))
		}
		if out.Encoder != nil && isNil(out.Encoder) {
			errs = append(errs, fmt.Errorf("Options.Outputs[%d].Encoder is a nil %T", i, out.Encoder))
		}
		if isNil(out.Writer) {
			errs = append(errs, fmt.Errorf("Options.Outputs[%d].Writer is nil: give a writer", i))
		}
		if out.Close && !isNil(out.Writer) {
			if _, ok := out.Writer.(io.Closer); !ok {
				errs = append(errs, fmt.Errorf("Options.Outputs[%d].Close is set, but its Writer, a %T, has no Close method", i, out.Writer))
			}
		}
	}
	if err := errors.Join(errs...); err != nil {
		return o, fmt.Errorf("rollway.New: %w", err)
	}
	return o, nil
}

// isNil also finds a nil pointer inside an interface, as a failed Open whose
// error was ignored leaves it.
func isNil(v any) bool {
	if v == nil {
		return true
	}
	rv := reflect.ValueOf(v)
	return (rv.Kind() == reflect.Pointer || rv.Kind() == reflect.Func) && rv.IsNil()
}
