package rollway

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"reflect"
	"strings"
	"time"
)

// Encoder is a line format: [JSON], [Logfmt], [Console] or [Custom].
type Encoder interface {
	// settings returns the format's settings as they hold for w.
	settings(w io.Writer) (formatSettings, error)
}

// JSON is a format of one JSON object per line. Its zero value is the
// canonical line of the package comment and docs/FORMAT.md, which the collector
// takes as it is.
type JSON struct {
	Time     TimeFormat     // of the record and of time attributes
	Location *time.Location // default: UTC
	Duration DurationFormat
	Errors   ErrorFormat

	Bytes BytesFormat // default: base64

	// Layout sets the names and the order of the keys: fields separated by
	// spaces, each the name of a key of the canonical line, and behind a colon
	// the name that it gets. A field that is not listed is left out; an
	// attribute that would take its place stays an attribute. An attrs field
	// with an empty name puts the attributes at the top, where one with the name
	// of a field that it does not fill gets attrs. in front:
	//
	//	time:@timestamp level:severity msg:message service trace_id error attrs:
	//
	// Default: time level msg service logger source trace_id span_id error attrs.
	Layout string
}

// Logfmt is a line of key=value pairs with the keys of the canonical line in
// their order; those of groups are joined with dots. Values are quoted where
// they must be, with the escapes of JSON; what cannot stand in a key becomes _.
// An attribute with the name of a field that it does not fill gets attrs. in
// front.
type Logfmt struct {
	Time     TimeFormat     // of the record and of time attributes
	Location *time.Location // default: UTC
	Duration DurationFormat
	Errors   ErrorFormat // with ErrorDetail: error, error.type, error.chain.0, error.chain.0.type and so on, error.stack
	Bytes    BytesFormat // default: as text

	// Layout is as that of [JSON], with one difference: attributes have no name
	// in front unless one is given, as in attrs:labels for labels.key=value.
	Layout string
}

// Console is a line for people: time of day, level, logger, message, attributes
// as key=value. Below it, indented, stand the stack and, with ErrorDetail, what
// errors are and wrap. Whatever a value holds, it can neither forge a second
// line nor reach the terminal as an escape code: what is not printable is
// written as an escape, and a message that could be taken for an attribute is
// put in quotes.
type Console struct {
	// Color says when to colour. Default: ColorAuto.
	Color Color

	// TimeFormat is a layout of package time for the record's time, or one of
	// the constants of TimeFormat. Times among the attributes are RFC 3339 in
	// UTC. Default: 15:04:05.000.
	TimeFormat string

	// Location is that of the record's time. Default: the local time zone.
	Location *time.Location

	// UTC is short for Location: time.UTC.
	UTC bool

	Duration DurationFormat // default: as text
	Errors   ErrorFormat
	Bytes    BytesFormat // default: as text

	// Layout is as that of [Logfmt]; time, level, logger and msg stand without
	// a name unless they are given one, as in msg:msg.
	// Default: time level logger msg error attrs service trace_id span_id source.
	Layout string
}

// Custom is a format of the user's own. Outputs with the same LineEncoder share
// one encoding of each record if it is a pointer. If it is also the Output's
// Writer, and a pointer, it may pass the record on while it encodes. It is then
// called once for each record, however long, after the other outputs have their
// line and by one goroutine at a time, and is waited for as a plain writer is.
type Custom struct{ LineEncoder }

// LineEncoder appends one line for a record and returns the extended slice. It
// is called by several goroutines at once, unless Custom says otherwise, and must
// not keep r or anything of it. A missing last newline is added; to leave no other in the line is its own
// business. Where it panics, the line is a JSON object that says so.
type LineEncoder interface {
	AppendLine(dst []byte, r *Record) []byte
}

// TimeFormat is a layout of package time, or one of the constants.
type TimeFormat string

const (
	RFC3339Nano  TimeFormat = ""        // 2006-01-02T15:04:05.000000000Z, always nine digits
	RFC3339Milli TimeFormat = "rfc3339" // 2006-01-02T15:04:05.000Z
	UnixSeconds  TimeFormat = "unix"    // seconds since 1970, an integer
	UnixMilli    TimeFormat = "unixms"
	UnixNano     TimeFormat = "unixns"
)

// DurationFormat says how a duration is written.
type DurationFormat int

const (
	DurationAuto   DurationFormat = iota // Nanoseconds, on the console DurationString
	Nanoseconds                          // an integer
	Microseconds                         // a number with a fraction
	Milliseconds                         // a number with a fraction
	Seconds                              // a number with a fraction
	DurationString                       // "1.5s"
)

// BytesFormat says how a []byte is written. A nil one is null in JSON.
type BytesFormat int

const (
	BytesAuto   BytesFormat = iota // BytesBase64 in JSON, BytesText in the others
	BytesBase64                    // as encoding/json has it
	BytesHex                       // lower-case digits
	BytesText                      // as a string
)

// ErrorFormat says how an error is written.
type ErrorFormat int

const (
	// ErrorText is the error's text.
	ErrorText ErrorFormat = iota
	// ErrorDetail is an object: msg, type, and, if it wraps others, chain, a
	// list of the same, outermost first; errors, a list of such objects, where
	// it, or one of its chain, joins several; 16 of all these at most; and
	// stack, if the error or one that it wraps has a method Callers() []uintptr
	// or a StackTrace method as that of github.com/pkg/errors. Each msg is what
	// Error returns, also of a wrapped error that is a LogValuer; only with
	// Options.Redact it is what LogValue returns.
	ErrorDetail
)

// Color says when a [Console] is coloured.
type Color int

const (
	ColorAuto   Color = iota // where the writer is a terminal
	ColorAlways              // also in a file or a pipe
	ColorNever
)

type formatKind uint8

const (
	kindJSON formatKind = iota
	kindLogfmt
	kindConsole
	kindCustom
)

// formatSettings is what the Logger needs to encode a record. Outputs with
// equal settings share one encoding.
type formatSettings struct {
	kind     formatKind
	color    bool
	time     TimeFormat
	location *time.Location // nil: UTC
	duration DurationFormat
	errors   ErrorFormat
	bytes    BytesFormat
	layout   string
	custom   LineEncoder
	emits    bool // custom is the Writer: it is called when the line is written

	clock       TimeFormat     // of the record's time on the console
	zoneOfClock *time.Location // not nil there
	attrsPrefix string         // text: in front of the keys of attributes
	nameLengths uint64         // a bit for each length that a field's name has, where attributes stand beside the fields
}

// isText reports whether a line has no groups, only longer keys.
func (s *formatSettings) isText() bool { return s.kind == kindLogfmt || s.kind == kindConsole }

func (s formatSettings) equal(o formatSettings) bool {
	if s.kind == kindCustom && o.kind == kindCustom {
		// Comparing two values that cannot be compared would panic.
		return reflect.TypeOf(s.custom).Kind() == reflect.Pointer && s.custom == o.custom && s.emits == o.emits
	}
	return s.kind == o.kind && s == o
}

func (j JSON) settings(io.Writer) (formatSettings, error) {
	s := formatSettings{kind: kindJSON, time: j.Time, location: j.Location, duration: j.Duration, errors: j.Errors, bytes: j.Bytes,
		layout: strings.Join(strings.Fields(j.Layout), " ")}
	if err := s.check(); err != nil {
		return s, err
	}
	fields, err := parseLayout(s.layout)
	s.setTop(fields)
	return s, err
}

func (l Logfmt) settings(io.Writer) (formatSettings, error) {
	s := formatSettings{kind: kindLogfmt, time: l.Time, location: l.Location, duration: l.Duration, errors: l.Errors, bytes: l.Bytes, layout: l.Layout}
	return s, errors.Join(s.check(), s.setText(canonicalLayout))
}

func (c Console) settings(w io.Writer) (formatSettings, error) {
	s := formatSettings{kind: kindConsole, duration: c.Duration, errors: c.Errors, bytes: c.Bytes, layout: c.Layout,
		clock: TimeFormat(c.TimeFormat), zoneOfClock: c.Location}
	if s.clock == "" {
		s.clock = "15:04:05.000"
	}
	if s.zoneOfClock == nil {
		s.zoneOfClock = time.Local
	}
	if c.UTC {
		s.zoneOfClock = time.UTC
	}
	s.color = c.Color == ColorAlways || c.Color == ColorAuto && isTerminal(w)
	return s, errors.Join(s.check(), s.setText(consoleLayout))
}

func (c Custom) settings(w io.Writer) (formatSettings, error) {
	if c.LineEncoder == nil {
		return formatSettings{}, fmt.Errorf("Custom.LineEncoder is nil")
	}
	emits := reflect.TypeOf(w) == reflect.TypeOf(c.LineEncoder) && reflect.TypeOf(w).Kind() == reflect.Pointer && any(w) == any(c.LineEncoder)
	return formatSettings{kind: kindCustom, custom: c.LineEncoder, emits: emits}, nil
}

func (s *formatSettings) check() error {
	if s.location == time.UTC {
		s.location = nil
	}
	if s.duration < DurationAuto || s.duration > DurationString {
		return fmt.Errorf("field Duration is %d: take one of the constants", s.duration)
	}
	if s.duration == DurationAuto {
		s.duration = Nanoseconds
		if s.kind == kindConsole {
			s.duration = DurationString
		}
	}
	if s.bytes < BytesAuto || s.bytes > BytesText {
		return fmt.Errorf("field Bytes is %d: take one of the constants", s.bytes)
	}
	if s.bytes == BytesAuto {
		s.bytes = BytesBase64
		if s.kind != kindJSON {
			s.bytes = BytesText
		}
	}
	if s.errors < ErrorText || s.errors > ErrorDetail {
		return fmt.Errorf("field Errors is %d: take one of the constants", s.errors)
	}
	return nil
}

// Record is what a [LineEncoder] gets. It is valid during the call alone.
type Record struct {
	Time    time.Time // zero if the record has none
	Level   slog.Level
	Message string
	Logger  string // name, or ""
	Source  string // folder/file.go:line, or ""
	TraceID [16]byte
	SpanID  [8]byte // zero, as TraceID, where Options.Trace found none

	ctx   context.Context
	attrs []slog.Attr
}

// Context returns the context of the call; it is never nil.
func (r *Record) Context() context.Context {
	if r.ctx == nil {
		return context.Background()
	}
	return r.ctx
}

// Attrs calls yield for each attribute in order until it returns false: those
// of the context, of the Logger and of the call, in the groups that WithGroup
// opened. LogValuers are not resolved; [AppendJSON] does that. The ids that
// Options.Trace found are not among them.
func (r *Record) Attrs(yield func(slog.Attr) bool) {
	for _, a := range r.attrs {
		if !yield(a) {
			return
		}
	}
}
