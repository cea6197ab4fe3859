// Package encode turns a record and its attributes into one line: JSON, logfmt,
// a line for people, or a format of the user's.
//
// [Format.Line] appends the line of a [Record]. Attributes stay on the stack of
// the log call: they are passed to concrete functions alone, since a slice that
// meets an interface method escapes. A [Scope] is what With, WithGroup and Named
// add to each record, encoded once.
package encode

import (
	"log/slog"
	"strings"
	"time"
)

// Kind is a family of formats.
type Kind uint8

const (
	JSON Kind = iota
	Logfmt
	Console
	Custom // Options.Custom
)

// Formats of a time, besides the layouts of package time.
const (
	RFC3339Nano  = "" // 2006-01-02T15:04:05.000000000Z, always nine digits
	RFC3339Milli = "rfc3339"
	UnixSeconds  = "unix"
	UnixMilli    = "unixms"
	UnixNano     = "unixns"
	UnixFloat    = "unixfloat" // seconds with a fraction
)

// Bytes is how a []byte is written.
type Bytes uint8

const (
	BytesBase64 Bytes = iota
	BytesHex
	BytesText
)

// Options configures a [Format]. Formats with equal Options write equal lines.
// Kind is the first field, so that Options of different kinds are compared
// without a look at Custom, which may not be comparable.
type Options struct {
	Kind        Kind
	Time        string         // RFC3339Nano and so on, or a layout of package time
	Location    *time.Location // nil: UTC
	Unit        time.Duration  // of durations; 0 writes them as text
	ErrorDetail bool           // errors with their types, causes and stacks
	ErrorECS    bool           // JSON, with ErrorDetail: the field error is always an object, with a stack_trace
	Bytes       Bytes
	Level       uint8  // index of levelForms
	Source      uint8  // index of Source.JSON
	Layout      string // fields separated by spaces; "" is the Kind's default
	MaxLine     int    // bytes

	Color         bool           // Console
	Clock         string         // Console: format of the record's time
	ClockLocation *time.Location // Console: not nil
	Custom        LineEncoder

	Replaces bool // records may have Record.Replaced
}

// DefaultMaxLine is the usual Options.MaxLine.
const DefaultMaxLine = 1 << 20

// Format is one way of writing a line. It is immutable and safe for concurrent
// use.
type Format struct {
	Options
	fields      []layoutField // nil: the canonical line of JSON, or Custom
	slots       uint          // a bit for each slot that the format has
	slotBits    keySet        // of those that attributes may fill
	plain       bool          // errors are written as their text, and not redacted
	byMembers   bool          // a value with members is written by these, also if it is a Stringer
	redact      *Redactor     // of errors; nil in formats of outputs, which get redacted ones
	attrsPrefix string        // text: in front of the keys of attributes
	nameLengths uint64        // a bit for each length of a field's name, where attributes stand beside the fields
}

// New returns a Format. The error names each mistake in Options.Layout.
func New(o Options) (*Format, error) {
	if o.Location == time.UTC {
		o.Location = nil
	}
	o.Layout = strings.Join(strings.Fields(o.Layout), " ")
	switch {
	case o.Layout != "":
	case o.Kind == Logfmt:
		o.Layout = canonicalLayout
	case o.Kind == Console:
		o.Layout = consoleLayout
	case o.Kind == JSON && (o.Level != 0 || o.Replaces):
		o.Layout = canonicalLayout
	}
	fields, err := parseLayout(o.Layout)
	f := &Format{Options: o, fields: fields, slots: slotsOf(fields), plain: !o.ErrorDetail}
	for slot, name := range slotNames {
		if f.slots&(1<<slot) != 0 && slotNamed(name) == slot {
			f.slotBits |= keyBit(name)
		}
	}
	if f.isText() {
		f.setTextNames()
	} else {
		f.setTopNames()
	}
	return f, err
}

// isText reports whether a line has no groups, only longer keys.
func (f *Format) isText() bool { return f.Kind == Logfmt || f.Kind == Console }

// Line appends the line of r, shortened if it is longer than MaxLine. logger is
// the Scope of the Logger, ctx that of the call's context, or nil.
func (f *Format) Line(dst []byte, s *Scratch, logger, ctx *Scope, r *Record, attrs []slog.Attr) []byte {
	start := len(dst)
	if f.Kind == JSON { // without another call
		dst = f.appendJSON(dst, s, logger, ctx, r, attrs)
	} else {
		dst = f.append(dst, s, logger, ctx, r, attrs)
	}
	if len(dst)-start > f.MaxLine {
		dst = f.shorten(dst, start, s, logger, ctx, r, attrs)
	}
	return dst
}

// append appends the line of r, however long.
func (f *Format) append(dst []byte, s *Scratch, logger, ctx *Scope, r *Record, attrs []slog.Attr) []byte {
	switch f.Kind {
	case Console, Logfmt:
		return f.appendText(dst, s, logger, ctx, r, attrs)
	case Custom:
		return f.appendCustom(dst, s, logger, ctx, r, attrs)
	}
	return f.appendJSON(dst, s, logger, ctx, r, attrs)
}

// tooLong reports whether a line is already so much longer than MaxLine that
// encoding stops: a LogValuer whose group contains itself twice would never end.
func (f *Format) tooLong(dst []byte) bool { return len(dst) > 4*f.MaxLine }

// zeroJSON is the format with default options.
var zeroJSON = Format{Options: Options{Unit: time.Nanosecond, MaxLine: DefaultMaxLine}, plain: true}

// AppendValue appends v as JSON with default options.
func AppendValue(dst []byte, v slog.Value) []byte {
	if len(dst) == 0 {
		return zeroJSON.appendJSONValue(dst, v, 0)
	}
	return append(dst, zeroJSON.appendJSONValue(nil, v, 0)...) // tooLong counts from here
}
