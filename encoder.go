package rollway

import (
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

	// Layout sets the names and the order of the keys: fields separated by
	// spaces, each the name of a key of the canonical line, and behind a colon
	// the name that it gets. A field that is not listed is left out; an
	// attribute that would take its place stays an attribute. An attrs field
	// with an empty name puts the attributes at the top:
	//
	//	time:@timestamp level:severity msg:message service trace_id error attrs:
	//
	// Default: time level msg service logger source trace_id span_id error attrs.
	Layout string
}

// Logfmt is a line of key=value pairs with the keys of the canonical line;
// those of groups are joined with dots. Values are quoted where they must be,
// with the escapes of JSON.
type Logfmt struct {
	Time     TimeFormat     // of the record and of time attributes
	Location *time.Location // default: UTC
	Duration DurationFormat
}

// Console is a line for people: time of day, level, message, attributes as
// key=value. Whatever a value holds, it can neither forge a second line nor
// reach the terminal as an escape code.
type Console struct {
	// Color says when to colour. Default: ColorAuto.
	Color Color

	// TimeFormat is a layout of package time. Default: 15:04:05.000.
	TimeFormat string

	// UTC shows times in UTC. Default: the local time zone.
	UTC bool
}

// Custom is a format of the user's own. Outputs with the same LineEncoder share
// one encoding of each record if it is a pointer.
type Custom struct{ LineEncoder }

// LineEncoder appends one line for a record and returns the extended slice. It
// is called by several goroutines at once and must not keep r or anything of
// it. A missing last newline is added; to leave no other in the line is its own
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
	Nanoseconds    DurationFormat = iota // an integer
	Milliseconds                         // a number with a fraction
	Seconds                              // a number with a fraction
	DurationString                       // "1.5s"
)

// ErrorFormat says how an error is written.
type ErrorFormat int

const (
	// ErrorText is the error's text.
	ErrorText ErrorFormat = iota
	// ErrorDetail is an object: msg, type, and, if it wraps others, chain, a
	// list of the same, outermost first, at most 16 of them; and stack, if the
	// error or one that it wraps has a method Callers() []uintptr or a
	// StackTrace method as that of github.com/pkg/errors.
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
	layout   string
	custom   LineEncoder
}

func (s formatSettings) equal(o formatSettings) bool {
	if s.kind == kindCustom && o.kind == kindCustom {
		// Comparing two values that cannot be compared would panic.
		return reflect.TypeOf(s.custom).Kind() == reflect.Pointer && s.custom == o.custom
	}
	return s.kind == o.kind && s == o
}

func (j JSON) settings(io.Writer) (formatSettings, error) {
	s := formatSettings{kind: kindJSON, time: j.Time, location: j.Location, duration: j.Duration, errors: j.Errors,
		layout: strings.Join(strings.Fields(j.Layout), " ")}
	if err := s.check(); err != nil {
		return s, err
	}
	_, err := parseLayout(s.layout)
	return s, err
}

func (l Logfmt) settings(io.Writer) (formatSettings, error) {
	s := formatSettings{kind: kindLogfmt, time: l.Time, location: l.Location, duration: l.Duration}
	return s, s.check()
}

func (c Console) settings(w io.Writer) (formatSettings, error) {
	s := formatSettings{kind: kindConsole, time: TimeFormat(c.TimeFormat), location: time.Local, duration: DurationString}
	if s.time == "" {
		s.time = "15:04:05.000"
	}
	if c.UTC {
		s.location = time.UTC
	}
	s.color = c.Color == ColorAlways || c.Color == ColorAuto && isTerminal(w)
	return s, nil
}

func (c Custom) settings(io.Writer) (formatSettings, error) {
	if c.LineEncoder == nil {
		return formatSettings{}, fmt.Errorf("Custom.LineEncoder is nil")
	}
	return formatSettings{kind: kindCustom, custom: c.LineEncoder}, nil
}

func (s *formatSettings) check() error {
	if s.location == time.UTC {
		s.location = nil
	}
	if s.duration < Nanoseconds || s.duration > DurationString {
		return fmt.Errorf("field Duration is %d: take one of the constants", s.duration)
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

	attrs []slog.Attr
}

// Attrs calls yield for each attribute in order until it returns false: those
// of the context, of the Logger and of the call, in the groups that WithGroup
// opened. LogValuers are not resolved.
func (r *Record) Attrs(yield func(slog.Attr) bool) {
	for _, a := range r.attrs {
		if !yield(a) {
			return
		}
	}
}
