package rollway

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"regexp"
	"slices"
	"time"

	"github.com/rollway/rollway/internal/encode"
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

	// MaxLine is the longest line in bytes, its newline included. A longer line
	// is written with its message and texts cut. Its attribute cut_from_bytes
	// says how long it was; left_out lists the keys that found no room, with
	// their groups, as a.b.c. A key has at most 64 bytes there, and the list at
	// most MaxLine/8 or 1 KiB, whichever is less; an ellipsis ends a longer one.
	// Default: 1 MiB, as the collector and slab.Writer take; with Shards
	// slab.Writer takes SlabSize. At least 512.
	MaxLine int

	// Extract appends attributes from a call's context to dst, for instance a
	// tenant or a request id that other packages keep there. They are placed as
	// those of ContextWith. A function that panics adds nothing. Default: none.
	Extract []func(ctx context.Context, dst []slog.Attr) []slog.Attr

	// MaxWait is how long a call waits for a plain writer whose Write does not
	// return to another, before it drops the line for that output. Then nobody
	// waits for the writer until that Write has returned; the next line says in
	// the stream how many were dropped. For a writer that is slow but takes lines
	// a call waits for up to ten times MaxWait. Writers that have a WriteLevel
	// method are not concerned: they decide themselves. Default: 100 ms.
	MaxWait time.Duration

	// CloseTimeout bounds Close, and Fatal, Panic, FlushOnPanic, ExitOnSignal,
	// LogSync and LogPanic with their own line. Default: 5 s.
	CloseTimeout time.Duration

	// Exit ends the process after a Fatal line. Default: os.Exit.
	Exit func(code int)

	// OnError is told what went wrong with an output: at once, and then at most
	// once a minute for each, with the number of lines dropped meanwhile. At the
	// end of the process it is also told what was not delivered, and waited for
	// within CloseTimeout. Otherwise nobody waits for it: one goroutine, which
	// runs while there is something to tell, makes one call at a time. Default: a
	// line on os.Stderr, unless that is the output that failed.
	OnError func(error)
}

// Output is one destination of a [Logger].
type Output struct {
	// Name stands in errors and in Stats. Default: what the Writer's method Name
	// returns, as that of a file does, or else its type.
	Name string

	// Writer takes the lines, each in one Write of one whole line. A
	// line.LevelWriter is called through its WriteLevel, unless it is also the
	// LineEncoder of Encoder, by several goroutines at once, and bounds its waits
	// itself; if it is a line.TryWriter as well, it is not waited for before other
	// outputs have the line. Calls to any other, a plain writer, are made one at a
	// time. Required.
	//
	// The Logger owns it: Shutdown and Close close it, if it has a Close or a
	// Shutdown(context.Context) error, but never os.Stdin, os.Stdout and
	// os.Stderr.
	Writer io.Writer

	// Level is the lowest level that is written; it may change while the
	// Logger is in use. A Leveler with a method Admits(slog.Level) bool, as
	// LevelRange and LevelFunc have it, is asked that instead. Default: INFO,
	// or everything that Options.Levels lets through where that is set.
	Level slog.Leveler

	// Encoder is the format. Outputs with equal encoders share one encoding of
	// each record. Default: JSON{}.
	Encoder Encoder

	// KeepOpen makes the Logger's Shutdown and Close leave Writer open.
	KeepOpen bool
}

// Redaction hides values before any format sees them. With it, every format writes
// values that are not of slog's kinds as JSON writes them, so that what is searched
// is what is written.
type Redaction struct {
	// Keys are paths of keys whose values are replaced: password is that key
	// anywhere, user.ssn the key ssn in the group user at the top or the key
	// "user.ssn", http.headers.* every key in that group. In each part * matches
	// any text, ? any character, [a-z] one of a range; case is ignored. Groups,
	// structs, maps and slices inside a value are searched.
	Keys []string

	// Patterns are replaced wherever they match in a message, in a string, in
	// the text of an error or in any other string inside a value; not in keys
	// and numbers.
	Patterns []*regexp.Regexp

	// Replacement takes the place of what is hidden. Default: [REDACTED].
	Replacement string
}

const (
	defaultMaxWait      = 100 * time.Millisecond
	defaultCloseTimeout = 5 * time.Second
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
		o.MaxLine = encode.DefaultMaxLine
	}
	if o.MaxWait == 0 {
		o.MaxWait = defaultMaxWait
	}
	if o.CloseTimeout == 0 {
		o.CloseTimeout = defaultCloseTimeout
	}
	if o.Exit == nil {
		o.Exit = os.Exit
	}
	var errs []error
	if o.MaxLine < 512 {
		errs = append(errs, fmt.Errorf("Options.MaxLine is %d: give 512 bytes or more, or 0 for %d", o.MaxLine, encode.DefaultMaxLine))
	}
	if o.MaxWait < 0 {
		errs = append(errs, fmt.Errorf("Options.MaxWait is %v: give a positive duration, or 0 for %v", o.MaxWait, defaultMaxWait))
	}
	if o.CloseTimeout < 0 {
		errs = append(errs, fmt.Errorf("Options.CloseTimeout is %v: give a positive duration, or 0 for %v", o.CloseTimeout, defaultCloseTimeout))
	}
	for name, l := range map[string]slog.Leveler{"Caller": o.Caller, "Stack": o.Stack} {
		if encode.IsNil(l) {
			errs = append(errs, fmt.Errorf("Options.%s is a nil %T", name, l))
		}
	}
	for i, out := range o.Outputs {
		if out.Level != nil && encode.IsNil(out.Level) {
			errs = append(errs, fmt.Errorf("Options.Outputs[%d].Level is a nil %T", i, out.Level))
		}
		if out.Encoder != nil && encode.IsNil(out.Encoder) {
			errs = append(errs, fmt.Errorf("Options.Outputs[%d].Encoder is a nil %T", i, out.Encoder))
		}
		if encode.IsNil(out.Writer) {
			errs = append(errs, fmt.Errorf("Options.Outputs[%d].Writer is nil: give a writer", i))
		}
		if before := slices.IndexFunc(o.Outputs[:i], func(b Output) bool { return b.Name == out.Name }); before >= 0 && out.Name != "" {
			errs = append(errs, fmt.Errorf("Options.Outputs[%d].Name is %q, as that of Outputs[%d]: give each a name of its own", i, out.Name, before))
		}
	}
	if err := errors.Join(errs...); err != nil {
		return o, fmt.Errorf("rollway.New: %w", err)
	}
	return o, nil
}
