package rollway

import (
	"cmp"
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

	// Levels sets the lowest level by the Logger's name. A line is written if both
	// Levels and the Output's level admit it. Default: only the Outputs' levels
	// count.
	Levels *Levels

	// Caller is the lowest level at which a record has the file and line of its call.
	// Default: WARN. LevelOff: never.
	Caller slog.Leveler

	// Stack is the lowest level at which a record has the stack of its goroutine, in
	// the attribute stack. Default: LevelOff.
	Stack slog.Leveler

	// Trace returns the W3C trace and span id that a context carries, for the
	// keys trace_id and span_id. With OpenTelemetry:
	//
	//	func(ctx context.Context) ([16]byte, [8]byte, bool) {
	//		sc := trace.SpanContextFromContext(ctx)
	//		return sc.TraceID(), sc.SpanID(), sc.IsValid()
	//	}
	//
	// If it panics, the line has no trace. Default: none.
	Trace func(context.Context) (traceID [16]byte, spanID [8]byte, ok bool)

	// ReplaceAttr rewrites attributes before any format sees them, as that of
	// slog.HandlerOptions: it gets them resolved, with the open groups; of groups the
	// members; and the fields time, level (a slog.Level), msg and source (a
	// *slog.Source). A zero Attr is left out. A field's new key is written as it is, and
	// not compared with other keys. The Logger's name and the ids of Trace are not passed,
	// and Custom encoders get fields as they were. Every line allocates for it; for names
	// alone take Layout, which costs nothing. It must be safe for concurrent use.
	// Default: none.
	ReplaceAttr func(groups []string, a slog.Attr) slog.Attr

	// Sampling limits how often the same message is written. Default: none.
	Sampling *Sampling

	// Redact hides values, after ReplaceAttr. Every line pays for the search. Default: none.
	Redact *Redaction

	// MaxLine is the length in bytes of the longest line, with its newline. The
	// message and the texts of a longer line are shortened. The attribute
	// cut_from_bytes has its former length; left_out lists the keys that found no
	// room, with their groups, as a.b.c. That list is at most MaxLine/8 and 1 KiB
	// long, a key in it at most 64 bytes; an ellipsis ends a longer one. Default: 1
	// MiB, as the collector and slab.Writer accept; slab.Writer with Shards accepts
	// SlabSize. At least 512.
	MaxLine int

	// Extract appends attributes from a call's context to dst, for instance a
	// tenant or a request id that other packages keep there. They are placed as
	// those of ContextWith. A function that panics adds nothing. Default: none.
	Extract []func(ctx context.Context, dst []slog.Attr) []slog.Attr

	// MaxWait is how long a call waits while another call is in a plain writer's
	// Write, before it drops the line for that output. After that, no call waits for
	// the writer until that Write returns; the next line in the stream says how many
	// were dropped. For a slow writer that still makes progress, a call waits up to
	// ten times MaxWait. Writers with a WriteLevel method bound their waits
	// themselves. Default: 100 ms.
	MaxWait time.Duration

	// CloseTimeout bounds Close, and also Fatal, Panic, FlushOnPanic, ExitOnSignal,
	// LogSync and LogPanic, their own line included. Default: 5 s.
	CloseTimeout time.Duration

	// Exit ends the process after a Fatal line. Default: os.Exit.
	Exit func(code int)

	// OnError receives the errors of outputs: the first at once, and then at most one
	// a minute for each output, with the number of lines dropped in between. At the
	// end of the process it also receives what was not delivered, and is awaited
	// within CloseTimeout. Otherwise it runs in the background, one call at a time,
	// on a goroutine that exists only while there is something to report. Default: a
	// line on os.Stderr, unless that is the output that failed.
	OnError func(error)
}

// Output is one destination of a [Logger].
type Output struct {
	// Name identifies the output in errors and in Stats. Default: the result of the
	// Writer's Name method, which a file has, or else its type.
	Name string

	// Writer receives each line in one Write. A line.LevelWriter is called through
	// WriteLevel, by several goroutines at once, and bounds its waits itself; if it
	// is also a line.TryWriter, other outputs get the line before the Logger waits
	// for it. Calls to any other writer, a plain writer, are made one at a time.
	// Required.
	//
	// The Logger owns it. Shutdown and Close close it if it has a method Close or
	// Shutdown(context.Context) error, but never os.Stdin, os.Stdout and os.Stderr.
	Writer io.Writer

	// Level is the lowest level that is written; it may change while the Logger is in
	// use. A Leveler with a method Admits(slog.Level) bool, such as LevelRange and
	// LevelFunc, is asked that instead. Default: INFO, or with Options.Levels every
	// level that these admit.
	Level slog.Leveler

	// Encoder is the format. Outputs with equal Encoders share one encoding of each
	// record. Default: JSON{}.
	Encoder Encoder

	// KeepOpen makes the Logger's Shutdown and Close leave Writer open.
	KeepOpen bool
}

// Redaction hides values before any format sees them. With it, every format writes
// values that are not of slog's kinds as JSON, so that the text that is searched is
// the text that is written.
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

	// Replacement is written in place of hidden text. Default: [REDACTED].
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
	o.Caller = cmp.Or[slog.Leveler](o.Caller, slog.LevelWarn)
	o.Stack = cmp.Or[slog.Leveler](o.Stack, LevelOff)
	o.MaxLine = cmp.Or(o.MaxLine, encode.DefaultMaxLine)
	o.MaxWait = cmp.Or(o.MaxWait, defaultMaxWait)
	o.CloseTimeout = cmp.Or(o.CloseTimeout, defaultCloseTimeout)
	if o.Exit == nil {
		o.Exit = os.Exit
	}
	var errs []error
	refuse := func(bad bool, format string, args ...any) {
		if bad {
			errs = append(errs, fmt.Errorf("Options."+format, args...))
		}
	}
	refuse(o.MaxLine < 512, "MaxLine is %d: give 512 bytes or more, or 0 for %d", o.MaxLine, encode.DefaultMaxLine)
	refuse(o.MaxWait < 0, "MaxWait is %v: give a positive duration, or 0 for %v", o.MaxWait, defaultMaxWait)
	refuse(o.CloseTimeout < 0, "CloseTimeout is %v: give a positive duration, or 0 for %v", o.CloseTimeout, defaultCloseTimeout)
	for name, l := range map[string]slog.Leveler{"Caller": o.Caller, "Stack": o.Stack} {
		refuse(encode.IsNil(l), "%s is a nil %T", name, l)
	}
	for i, out := range o.Outputs {
		refuse(out.Level != nil && encode.IsNil(out.Level), "Outputs[%d].Level is a nil %T", i, out.Level)
		refuse(out.Encoder != nil && encode.IsNil(out.Encoder), "Outputs[%d].Encoder is a nil %T", i, out.Encoder)
		refuse(encode.IsNil(out.Writer), "Outputs[%d].Writer is nil: give a writer", i)
		before := slices.IndexFunc(o.Outputs[:i], func(b Output) bool { return b.Name == out.Name })
		refuse(before >= 0 && out.Name != "", "Outputs[%d].Name is %q, the same as of Outputs[%d]: give each its own name", i, out.Name, before)
	}
	if err := errors.Join(errs...); err != nil {
		return o, fmt.Errorf("rollway.New: %w", err)
	}
	return o, nil
}
