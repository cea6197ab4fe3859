// Package normalize turns what clients send (JSON objects, arrays, NDJSON)
// into canonical lines, in one pass from the bytes of the wire: no maps, no
// decoded values, no allocation per event.
//
// What is valid JSON is what package jsontext accepts, too: FuzzQuick.
//
// # Bodies
//
// The form of a body is read from the body. After an optional byte order mark:
//
//   - If its first line that is not blank holds whole JSON values, the body is
//     read line by line. A line that is not JSON is rejected alone, a line may
//     hold an array of events or several objects in a row, blank lines and
//     CRLF are fine.
//   - Else, if it starts with '[', it is one array that spans lines.
//   - Else it is read as objects that span lines. If that fails and the first
//     line was broken within itself, or some later line starts with '{' in its
//     first column and is whole, it was NDJSON with a bad first line after all
//     and is read line by line.
//
// A syntax error in a body that is not read line by line rejects the whole
// body, so that its sender can repair and send it again without storing
// anything twice.
//
// # Keys
//
// names.go has the one table of names that are read, in exactly this spelling, and how they
// are; docs/NAMES.md is made of it. First names count at once, others in events that have
// nothing under these.
//
// A message that is an event itself, as JSON or logfmt, is opened, see payload.go.
//
// The members of an object under metadata, attributes, fields, context or
// attrs are merged into attrs; all other keys go to attrs as they are. Nothing
// is lost: the second alias of a slot, and a value that its slot cannot hold,
// go to attrs under the name they came with. A number or a boolean as msg
// becomes its text. A name that attrs already has gets the suffix _2, _3, … .
// Objects below that level keep their members as they were sent, equal names
// included.
//
// An error is a text, or an object of type, message, stack and causes, see failure.go. An
// event that has one and no level is ERROR, and gets a fingerprint.
//
// An event without a usable time has the time when it was received, unless its message is
// a line of text that begins with one; likewise its level, see package textlog. One whose
// time is far from that, see Limits, keeps it, and attrs gets time_suspect
// (future or past) and received; unless it has a time_suspect already.
//
// The id of a trace, 16 bytes, or of a span, 8 bytes, that comes in base64 with
// padding, or in hexadecimal with capital letters, is written in small hexadecimal
// letters. What is neither stays as it is.
//
// Strings keep their escapes and numbers their digits; only white space
// between tokens is removed. A canonical line therefore comes out byte for
// byte as it went in, unless it holds equal names in attrs, a suspect time, an id or an error
// in another form, or an error without a fingerprint.
package normalize

import (
	"bytes"
	"cmp"
	"errors"
	"log/slog"
	"math"
	"time"
	"unicode/utf8"

	"github.com/rollway/rollway/internal/jsonwalk"
	"github.com/rollway/rollway/internal/times"
)

// Limits on one event and one body; a field that is zero means its default.
// An event over a limit is rejected alone.
type Limits struct {
	MaxEventBytes int // canonical line without its '\n'; default 1 MiB
	MaxDepth      int // nested objects and arrays in the canonical line, itself included; default 64
	MaxFields     int // members of attrs; default 1024
	MaxKeyBytes   int // bytes of a name, at any depth, as sent; default 1 KiB
	MaxValueBytes int // bytes of a string, without its quotes, or a number, at any depth, as in the line; default: no limit of its own
	MaxEvents     int // events in one call of Body or Line; default 100,000
	MaxRejections int // rejections described in Batch.Rejected, the others are counted only; default 100

	// An event whose time is further than this from when it was received, after
	// or before, keeps its time and is marked; see the package comment. Default
	// a day and a year; negative: never marked.
	MaxFuture, MaxPast time.Duration

	Text Text  // of messages
	Keys *Keys // names that are read; nil: those of the table

	NoFingerprint bool // of errors
}

// WithDefaults returns l with its zero fields filled in.
func (l Limits) WithDefaults() Limits {
	def := func(v *int, d int) {
		if *v <= 0 {
			*v = d
		}
	}
	def(&l.MaxEventBytes, 1<<20)
	def(&l.MaxDepth, 64)
	def(&l.MaxFields, 1024)
	def(&l.MaxKeyBytes, 1<<10)
	def(&l.MaxValueBytes, math.MaxInt)
	def(&l.MaxEvents, 100_000)
	def(&l.MaxRejections, 100)
	l.MaxFuture = cmp.Or(l.MaxFuture, 24*time.Hour)
	l.MaxPast = cmp.Or(l.MaxPast, 365*24*time.Hour)
	return l
}

// ErrEmpty is returned by Body for a body without any value.
var ErrEmpty = errors.New("the body is empty; expected a JSON object, an array of objects, or one object per line")

// A Normalizer holds the scratch memory of normalization. It is for one goroutine at a
// time; its memory is bounded by Limits, and between calls it points neither into input
// nor into a Batch.
type Normalizer struct {
	limits Limits
	short  int         // bytes of JSON that no limit on a key or a value can be under
	body   body        // set for the length of one call of Body or Line
	ev     event       // set for the length of one event
	late   late        // emptied at each event's end
	inner  uint8       // 1 while a payload is read
	shapes [2][2]shape // by inner, and whether the object is one that is merged

	attrs   []byte // members of attrs so far, each followed by ','
	names   nameSet
	keys    *Keys
	failure failure // of the event
	extras  *Extras
	unquote []byte        // an unescaped string
	service jsonwalk.Span // in attrs, what names the service of an event without one; empty: nothing
	ready   jsonwalk.Span // the message in body.text whose text is all of opened; empty: there is none
	mended  []byte        // the event, if it was not UTF-8
	opened  []byte        // of a payload: slots of the event around it, and its own text
	times   times.Cache

	enricher  Enricher  // nil: none
	defaults  *Defaults // its
	fixed     Extras    // what it adds to each event
	scratch   Scratch   // its
	known     Known     // what it is told of the event
	defaulted uint16    // bit per slot for which defaults has a value
	dropped   bool      // the event just ended was, by a rule
	before    attempt   // as the event was before a payload was read, or the enricher asked for more of it
	parsed    bool      // the enricher was asked for more of it

	builder Builder

	pause  func() // nil: nobody has to be asked
	events int    // since the last pause
	lines  int    // bytes of lines at the last pause
	work   uint   // bytes of rejected events and of long values since then
}

// body is what one call of Body or Line works on.
type body struct {
	dst      *Batch
	granted  int // bytes of an event for which there is scratch memory
	received time.Time
	first    int  // events in the batch before this call
	dirty    bool // holds invalid UTF-8 somewhere
	escapes  bool // holds a backslash somewhere
	all      []byte
	text     []byte // part of all that is being read
	base     int    // offset of text in all
	line     int    // line of text's first byte, 0 if unknown
	seen     struct{ offset, line int }
}

// event is what is known of an event while its members pass.
type event struct {
	start   int // offset in body.text
	slots   [numSlots]jsonwalk.Span
	filled  uint16 // bit per slot
	sec     int64
	nsec    int
	level   slog.Level
	fault   reason
	faultAt int  // offset in body.text
	got     int  // the number that broke the limit
	shut    bool // its message was found to be no payload
}

// keepScratch is the size from which scratch memory is given up after a call.
const keepScratch = 64 << 10

// New returns a Normalizer.
func New(limits Limits) *Normalizer {
	n := &Normalizer{limits: limits.WithDefaults(), keys: limits.Keys.orDefault()}
	n.short = min(n.limits.MaxKeyBytes, n.limits.MaxValueBytes)
	n.names.init()
	return n
}

// Body appends the events of a request's body to dst. received replaces
// times that are missing or unusable. The error is ErrEmpty, with nothing
// added to dst, or a *SyntaxError if the body as a whole was rejected, which
// dst then counts as one rejected event; all else is in dst alone.
func (n *Normalizer) Body(dst *Batch, b []byte, received time.Time) error {
	n.begin(dst, b, received)
	defer n.end()
	return n.readBody(dst)
}

// Line appends the event or events of one NDJSON line, with or without its
// line end, to dst. A blank line holds none. What is wrong with the line is in
// dst; the error is the *SyntaxError of a line that is not JSON.
func (n *Normalizer) Line(dst *Batch, line []byte, received time.Time) error {
	n.begin(dst, line, received)
	defer n.end()
	return n.readWhole(dst, 0, len(line), 0)
}

func (n *Normalizer) begin(dst *Batch, b []byte, received time.Time) {
	n.body = body{dst: dst, granted: min(max(freeScratch, dst.scratch/scratchTimes), n.limits.MaxEventBytes), received: received, first: dst.Events(), dirty: !utf8.Valid(b), escapes: b == nil || bytes.IndexByte(b, '\\') >= 0, all: b}
	n.body.seen.line = 1
}

func (n *Normalizer) end() {
	n.body = body{}
	if cap(n.attrs) > keepScratch {
		n.attrs = nil
	}
	if cap(n.unquote) > keepScratch {
		n.unquote = nil
	}
	if cap(n.opened) > keepScratch {
		n.opened = nil
	}
	if cap(n.mended) > keepScratch {
		n.mended = nil
	}
	if cap(n.failure.value) > keepScratch {
		n.failure.value = nil
	}
	n.names.shrink(keepScratch)
	n.scratch.shrink()
}

// MaxEventBytes is the limit on a canonical line.
func (n *Normalizer) MaxEventBytes() int { return n.limits.MaxEventBytes }

// Drop throws the scratch memory of n away.
func (n *Normalizer) Drop() {
	n.attrs, n.unquote, n.opened, n.mended, n.failure.value, n.builder.text, n.scratch = nil, nil, nil, nil, nil, nil, Scratch{}
	n.names.shrink(0)
}

// Kept is how many bytes n keeps between calls.
func (n *Normalizer) Kept() int {
	s := &n.scratch
	return cap(n.attrs) + cap(n.unquote) + cap(n.opened) + cap(n.mended) + cap(n.failure.value) + cap(n.builder.text) + cap(n.names.text) + cap(n.names.try) + cap(s.A) + cap(s.B) + cap(s.Text) + cap(s.Path) + cap(s.Template)
}

// Memory returns all bytes that n keeps between calls, for those that check that
// nobody uses them meanwhile.
func (n *Normalizer) Memory() [13][]byte {
	s := &n.scratch
	return [13][]byte{n.attrs, n.unquote, n.opened, n.mended, n.failure.value, n.builder.text, n.names.text, n.names.try, s.A, s.B, s.Text, s.Path, s.Template}
}

// setText sets body.text to all[start:end] and returns it.
func (n *Normalizer) setText(start, end, line int) []byte {
	n.body.text, n.body.base, n.body.line = n.body.all[start:end], start, line
	return n.body.text
}
