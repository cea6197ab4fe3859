package rollway

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"reflect"
	"sync"
	"time"

	"github.com/rollway/rollway/internal/encode"
	"github.com/rollway/rollway/internal/terminal"
)

// Encoder is a line format: [JSON], [Logfmt], [Console] or [Custom].
type Encoder interface {
	// options returns the format as package encode knows it, for lines to w.
	options(w io.Writer) (encode.Options, error)
}

// JSON is a format of one JSON object per line. Its zero value is the
// canonical line of the package comment and docs/FORMAT.md, which the collector
// takes as it is.
type JSON struct {
	Time     TimeFormat     // of the record and of time attributes
	Location *time.Location // default: UTC
	Duration DurationFormat
	Errors   ErrorFormat
	Level    LevelFormat
	Source   SourceFormat

	Bytes BytesFormat // default: base64

	// Layout sets the names and the order of the keys: fields separated by spaces,
	// each the name of a key of the canonical line, optionally followed by a colon
	// and the name to write. A field that is not listed is left out; an attribute
	// that would set it stays an attribute. An attrs field with an empty name puts
	// the attributes at the top level, where one with the name of a field that it
	// does not set gets the prefix attrs.:
	//
	//	time:@timestamp level:severity msg:message service trace_id error attrs:
	//
	// There is also the field stack, for the attribute of that name. version=8 writes
	// "version":"8". trace_id:trace=t/ puts t/ before the id in JSON, and likewise for
	// span_id. service:context{service} writes "context":{"service":"…"}, and likewise for
	// other fields than time, level, msg and attrs. Package preset has the layouts of other
	// libraries and of clouds.
	//
	// Default: time level msg service logger source trace_id span_id error attrs.
	Layout string
}

// Logfmt is a line of key=value pairs with the keys of the canonical line in their
// order; dots join the keys of groups. Values are quoted when necessary, with the
// escapes of JSON. A character that a key cannot contain becomes _. An attribute with
// the name of a field that it does not set gets the prefix attrs.
type Logfmt struct {
	Time     TimeFormat     // of the record and of time attributes
	Location *time.Location // default: UTC
	Duration DurationFormat
	Errors   ErrorFormat // with ErrorDetail: error, error.type, error.causes.0, error.causes.0.type and so on, error.stack
	Bytes    BytesFormat // default: as text
	Level    LevelFormat
	Source   SourceFormat // objects as SourceFull

	// Layout is as in [JSON], with one difference: attributes have no prefix unless
	// one is given, as in attrs:labels for labels.key=value.
	Layout string
}

// Console is a line for people: time of day, level, logger, message, attributes as
// key=value. Indented lines below it show the stack and, with ErrorDetail, the types
// and causes of errors. No value can forge a second line or send an escape code to
// the terminal: characters that are not printable are escaped, and a message that
// could be mistaken for an attribute is quoted.
type Console struct {
	// Color selects when lines are coloured. Default: ColorAuto.
	Color Color

	// TimeFormat is the format of the record's time: a layout of package time, or one
	// of the constants of TimeFormat. Times among the attributes are RFC 3339 in UTC.
	// Default: 15:04:05.000.
	TimeFormat string

	// Location is that of the record's time. Default: the local time zone.
	Location *time.Location

	// UTC is short for Location: time.UTC.
	UTC bool

	Duration DurationFormat // default: as text
	Errors   ErrorFormat
	Bytes    BytesFormat // default: as text
	Level    LevelFormat
	Source   SourceFormat // objects as SourceFull

	// Layout is as in [Logfmt], but time, level, logger and msg are written without a
	// name unless one is given, as in msg:msg. Default: time level logger msg error
	// attrs service trace_id span_id source.
	Layout string
}

// Custom is a format of the user's own. Outputs with the same LineEncoder share one
// encoding of each record if it is a pointer. A destination that takes records, not
// lines, keeps what AppendLine makes of a record and writes its number as the line, by
// which Write finds it: see NewOutput of bridge/otellog.
type Custom struct{ LineEncoder }

// LineEncoder appends one line for a record and returns the extended slice. Several
// goroutines may call it at once. It must not keep r or attributes of it, and must not
// write a newline except at the end; a missing final one is added. If it panics, the line
// is a JSON object that reports the panic.
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
	UnixFloat    TimeFormat = "unixfloat" // seconds since 1970 with a fraction
)

// LevelFormat is the form in which a record's level is written.
type LevelFormat int

const (
	LevelUpper    LevelFormat = iota // INFO, WARN, WARN+1
	LevelLower                       // info, warn, warn+1
	LevelNumber                      // slog's number: 0, 4, 5
	LevelSyslog                      // the number of syslog's severity: 6, 4, 4
	LevelSeverity                    // the name of syslog's severity: INFO, WARNING, WARNING
)

// SourceFormat is the form in which the source of a call is written.
type SourceFormat int

const (
	SourceShort    SourceFormat = iota // db/pool.go:12
	SourceFull                         // /src/app/db/pool.go:12
	SourceFunction                     // example.com/app/db.(*Pool).Get
	SourceObject                       // an object with file, line and function
	SourceECS                          // an object with file.name, file.line and function
)

// DurationFormat is the form in which durations are written.
type DurationFormat int

const (
	DurationAuto   DurationFormat = iota // Nanoseconds; on the console DurationString
	Nanoseconds                          // an integer
	Microseconds                         // a number with a fraction
	Milliseconds                         // a number with a fraction
	Seconds                              // a number with a fraction
	DurationString                       // "1.5s"
)

// BytesFormat is the form in which a []byte is written. A nil one is null in JSON.
type BytesFormat int

const (
	BytesAuto   BytesFormat = iota // BytesBase64 in JSON, BytesText in the others
	BytesBase64                    // as encoding/json does
	BytesHex                       // lower-case digits
	BytesText                      // as a string
)

// ErrorFormat is the form in which errors are written.
type ErrorFormat int

const (
	// ErrorText is the error's text.
	ErrorText ErrorFormat = iota
	// ErrorDetail is an object. type and message are those of the error. causes lists the
	// errors that it wraps in the same form, outermost first. errors lists those that
	// it, or one of its causes, joins. At most 16 wrapped errors are written. stack is
	// there if the error, or one that it wraps, has a method Callers() []uintptr or
	// the StackTrace method of github.com/pkg/errors. Each message is the result of
	// Error, also of a wrapped error that is a LogValuer; with Options.Redact it is
	// that of LogValue.
	ErrorDetail
	// ErrorECS is ErrorDetail with the names of the Elastic Common Schema: stack_trace
	// in place of stack. A text in the field error becomes an object too.
	ErrorECS
)

// Color selects when a [Console] is coloured.
type Color int

const (
	ColorAuto   Color = iota // if the writer is a terminal
	ColorAlways              // also in a file or a pipe
	ColorNever
)

func (j JSON) options(io.Writer) (encode.Options, error) {
	o := encode.Options{Kind: encode.JSON, Time: string(j.Time), Location: j.Location, Layout: j.Layout}
	return withValues(o, cmp.Or(j.Duration, Nanoseconds), cmp.Or(j.Bytes, BytesBase64), j.Errors, j.Level, j.Source)
}

func (l Logfmt) options(io.Writer) (encode.Options, error) {
	o := encode.Options{Kind: encode.Logfmt, Time: string(l.Time), Location: l.Location, Layout: l.Layout}
	return withValues(o, cmp.Or(l.Duration, Nanoseconds), cmp.Or(l.Bytes, BytesText), l.Errors, l.Level, l.Source)
}

func (c Console) options(w io.Writer) (encode.Options, error) {
	o := encode.Options{
		Kind:          encode.Console,
		Layout:        c.Layout,
		Color:         c.Color == ColorAlways || c.Color == ColorAuto && terminal.Is(w),
		Clock:         cmp.Or(c.TimeFormat, "15:04:05.000"),
		ClockLocation: cmp.Or(c.Location, time.Local),
	}
	if c.UTC {
		o.ClockLocation = time.UTC
	}
	return withValues(o, cmp.Or(c.Duration, DurationString), cmp.Or(c.Bytes, BytesText), c.Errors, c.Level, c.Source)
}

// withValues sets how o writes durations, bytes, errors, levels and sources.
func withValues(o encode.Options, d DurationFormat, b BytesFormat, e ErrorFormat, l LevelFormat, s SourceFormat) (encode.Options, error) {
	for _, v := range []struct {
		field          string
		n, least, most int
	}{
		{"Duration", int(d), int(Nanoseconds), int(DurationString)}, {"Bytes", int(b), int(BytesBase64), int(BytesText)},
		{"Errors", int(e), 0, int(ErrorECS)}, {"Level", int(l), 0, int(LevelSeverity)}, {"Source", int(s), 0, int(SourceECS)},
	} {
		if v.n < v.least || v.n > v.most {
			return o, fmt.Errorf("field %s is %d: use one of the constants", v.field, v.n)
		}
	}
	o.Unit = [...]time.Duration{
		Nanoseconds: time.Nanosecond, Microseconds: time.Microsecond, Milliseconds: time.Millisecond, Seconds: time.Second, DurationString: 0,
	}[d]
	o.Bytes = [...]encode.Bytes{BytesBase64: encode.BytesBase64, BytesHex: encode.BytesHex, BytesText: encode.BytesText}[b]
	o.ErrorDetail, o.ErrorECS = e >= ErrorDetail, e == ErrorECS
	o.Level, o.Source = uint8(l), uint8(s)
	return o, nil
}

func (c Custom) options(io.Writer) (encode.Options, error) {
	if c.LineEncoder == nil {
		return encode.Options{}, errors.New("Custom.LineEncoder is nil")
	}
	return encode.Options{Kind: encode.Custom, Custom: lineEncoder(c)}, nil
}

func isPointer(v any) bool { return reflect.TypeOf(v).Kind() == reflect.Pointer }

// sameFormat reports whether lines in a and b are equal. It does not compare two
// LineEncoders of a type that cannot be compared, which would panic.
func sameFormat(a, b encode.Options) bool {
	if a.Kind == encode.Custom && b.Kind == encode.Custom {
		return isPointer(a.Custom.(lineEncoder).LineEncoder) && a.Custom == b.Custom
	}
	return a == b
}

// lineEncoder calls a LineEncoder with a Record.
type lineEncoder struct{ LineEncoder }

var records = sync.Pool{New: func() any { return new(Record) }}

func (e lineEncoder) AppendLine(dst []byte, l *encode.Line) []byte {
	r := records.Get().(*Record)
	defer func() {
		*r = Record{}
		records.Put(r)
	}()
	*r = Record{l.Time, l.Level, l.Message, l.Logger, "", "", l.TraceID, l.SpanID, l.Context, l.Attrs}
	if l.Source != nil {
		r.Source, r.Function = l.Source.Text(0), l.Source.Function
	}
	return e.LineEncoder.AppendLine(dst, r)
}

// Record is the argument of a [LineEncoder]. It is valid only during the call.
type Record struct {
	Time     time.Time // zero if the record has none
	Level    slog.Level
	Message  string
	Logger   string // name, or ""
	Source   string // folder/file.go:line, or ""
	Function string // of the call, as runtime.Frame has it, or ""
	TraceID  [16]byte
	SpanID   [8]byte // zero, like TraceID, if Options.Trace found none

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

// Attrs calls yield for each attribute in order, until it returns false: those of the
// context, of the Logger and of the call, in the groups that WithGroup opened.
// LogValuers are not resolved; [AppendJSON] does that. The ids that Options.Trace
// found are not among them.
func (r *Record) Attrs(yield func(slog.Attr) bool) {
	for _, a := range r.attrs {
		if !yield(a) {
			return
		}
	}
}

// AppendJSON appends v as a Logger with the format JSON{} writes it: always valid
// JSON in UTF-8 without line breaks. It is for a [LineEncoder] and for code that
// exports attributes. If a method of v panics, the result is a string that begins
// with !PANIC; if v cannot be encoded, one that begins with !ERROR. Both give the
// reason.
func AppendJSON(dst []byte, v slog.Value) []byte { return encode.AppendValue(dst, v) }
