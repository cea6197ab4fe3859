package normalize

import (
	"encoding/base64"
	"log/slog"
	"math"
	"strconv"
	"time"

	"github.com/rollway/rollway/internal/jsonline"
	"github.com/rollway/rollway/internal/jsonwalk"
)

// A Slot is a place of its own in the canonical line.
type Slot = key

// The slots that a Builder can be told to fill.
const (
	Time    Slot = keyTime
	Level   Slot = keyLevel
	Message Slot = keyMsg
	Service Slot = keyService
	Logger  Slot = keyLogger
	Source  Slot = keySource
	TraceID Slot = keyTraceID
	SpanID  Slot = keySpanID
	Error   Slot = keyError
)

// A Builder makes events out of what does not come as JSON objects of one
// event each: binary protocols, syslog, envelopes. Between Build and Done it
// is used like this, once for each event:
//
//	b.Begin()
//	b.SetTime(sec, nsec)                  // each optional
//	b.SetLevel(slog.LevelWarn)
//	b.Slot(normalize.Message); b.String(text)
//	b.Attr(name); b.Int(42)
//	b.Field(name); b.BeginObject(); b.Name(x); b.Bool(true); b.EndObject()
//	b.End()
//
// Slot, Attr and Field say where the one value that follows goes: to its slot,
// to attrs, or, by the table of known keys in the package comment, to either.
// As with JSON a value that does not fit its slot, or finds it taken, goes to
// attrs, and equal names in attrs get suffixes. Text that is not UTF-8 has
// U+FFFD in place of what is not. Calls in another order panic; the limits of
// the Normalizer make an event a rejected one.
type Builder struct {
	n   *Normalizer
	dst *Batch

	text   []byte // names and values of the event as JSON; while direct, attrs
	place  place  // of the value that comes next or is being built
	slot   key
	name   jsonwalk.Span
	value  int   // start of the value being built
	level  int   // objects and arrays that are open in it
	merged bool  // it is an object whose members go to attrs
	within scope // of that object
	direct bool  // it is being built where it stays, see begin
	first  bool  // the innermost object or array has nothing in it yet

	raw []byte // what the event was sent as, for Batch.DeadLetters
}

// place is where a value goes.
type place uint8

const (
	nowhere place = iota
	inSlot
	inAttrs
	byName
)

// Build starts a body whose events the caller takes apart itself. received
// replaces times that are missing. Done must follow before the Normalizer
// is used otherwise.
func (n *Normalizer) Build(dst *Batch, received time.Time) *Builder {
	n.begin(dst, nil, received)
	b := &n.builder
	b.n, b.dst, b.place, b.direct = n, dst, nowhere, false
	return b
}

// Done ends what Build began.
func (b *Builder) Done() {
	b.undirect()
	b.n.end()
	if cap(b.text) > keepScratch {
		b.text = nil
	}
	b.text, b.dst, b.raw = b.text[:0], nil, nil
}

// Begin begins an event.
func (b *Builder) Begin() {
	n := b.n
	b.undirect()
	n.pace(b.dst)
	n.ev = event{}
	n.newEvent()
	b.text, n.body.escapes = b.text[:0], false
	b.place, b.level, b.merged, b.raw = nowhere, 0, false, nil
	if b.dst.overflow || b.dst.Events()-n.body.first >= n.limits.MaxEvents {
		n.ev.fault = tooManyEvents
	}
}

// Raw says what the event, or the one that Reject is called for next, was sent
// as, to be kept if it is rejected; it is forgotten at the next Begin.
func (b *Builder) Raw(text []byte) { b.raw = text }

// SetTime sets the time of the event, seconds and nanoseconds since 1970.
func (b *Builder) SetTime(sec int64, nsec int) { b.n.setTime(sec, nsec) }

// SetLevel sets the level of the event. Without it the level is INFO.
func (b *Builder) SetLevel(level slog.Level) { b.n.setLevel(level) }

// Time returns the time that the event has, in seconds and nanoseconds since
// 1970, if it has one.
func (b *Builder) Time() (has bool, sec int64, nsec int) {
	return b.Has(keyTime), b.n.ev.sec, b.n.ev.nsec
}

// Level returns the level that the event has, if it has one.
func (b *Builder) Level() (has bool, level slog.Level) {
	return b.Has(keyLevel), b.n.ev.level
}

// Has reports whether the event has a value for the slot already.
func (b *Builder) Has(slot Slot) bool { return b.n.ev.filled&(1<<slot) != 0 }

// Failed reports whether a limit has made the event a rejected one already:
// the rest of it may be left out, except End.
func (b *Builder) Failed() bool { return b.n.ev.fault != ok }

// Slot says that the next value goes to a slot of its own. Time and Level take
// all forms that they take as JSON.
func (b *Builder) Slot(s Slot) { b.aim(inSlot, s, len(b.text)) }

// SlotNamed is Slot for a value that came under another name than the slot's,
// by which it goes to attrs if it has to.
func (b *Builder) SlotNamed(s Slot, name []byte) {
	start := len(b.text)
	b.quote(name)
	b.aim(inSlot, s, start)
}

// Attr says that the next value goes to attrs under the name.
func (b *Builder) Attr(name []byte) {
	b.aim(inAttrs, keyOther, len(b.text))
	b.begin(name)
}

// Field says that the next value goes where the name says.
func (b *Builder) Field(name []byte) { b.field(name, b.n.keys.lookup(topLevel, name)) }

// Member is Attr for a name that the sender's program has chosen: a part of an error, or what
// has one name among attributes, goes there.
func (b *Builder) Member(name []byte) { b.field(name, b.n.keys.below(name)) }

func (b *Builder) field(name []byte, slot key) {
	if slot == keyOther {
		b.Attr(name)
		return
	}
	start := len(b.text)
	b.quote(name)
	b.aim(byName, slot, start)
}

func (b *Builder) aim(p place, slot key, start int) {
	if b.place != nowhere {
		panic("normalize: Builder: a place was named before the value of the one before")
	}
	b.place, b.slot = p, slot
	b.name = jsonwalk.Span{Start: start, End: len(b.text)}
	b.value = len(b.text)
}

// Name names the next member of the object that was begun last.
func (b *Builder) Name(name []byte) {
	switch {
	case b.level == 0 && b.merged:
		b.place = nowhere
		b.field(name, b.n.keys.lookup(b.within, name))
	case b.level == 0:
		panic("normalize: Builder: Name outside of an object")
	default:
		b.comma()
		b.quote(name)
		b.text = append(b.text, ':')
		b.first = true // no comma before the value
	}
}

// String is a value. A message that is binary data makes the event a rejected one.
func (b *Builder) String(v []byte) {
	b.before()
	message := b.slot == keyMsg && b.level == 0
	switch {
	case len(v) < long:
		if !b.quote(v) && message && IsBinary(v) {
			b.fail(binary)
		}
	case message && IsBinary(v):
		b.fail(binary)
	case b.n.ev.fault == ok && b.longer(escaped(v), b.n.limits.MaxEventBytes):
		b.quote(v)
	}
	b.after()
}

// quote appends v as a JSON string, and reports whether it needs no escapes and is UTF-8.
func (b *Builder) quote(v []byte) (same bool) {
	start := len(b.text)
	b.text = jsonline.AppendStringBytes(b.text, v)
	same = len(b.text)-start == len(v)+len(`""`)
	b.n.body.escapes = b.n.body.escapes || !same
	return same
}

// long is how long a value is for which there is room in any case.
const long = 4 << 10

// longer reports whether there is room for a value of size bytes. Without room, or with a
// size above most, the event is a rejected one.
func (b *Builder) longer(size, most int) bool {
	b.n.work += uint(size)
	if size > most || !b.n.roomFor(len(b.text)+size) {
		b.fail(tooLarge)
	}
	return b.n.ev.fault == ok
}

// escaped returns the length of v as a JSON string without its quotes, if it is UTF-8.
func escaped(v []byte) int {
	size := len(v)
	for _, c := range v {
		switch {
		case c == '"' || c == '\\' || c >= '\b' && c <= '\r' && c != '\v':
			size++
		case c < ' ':
			size += len(`\u0001`) - 1
		}
	}
	return size
}

// Int is a value.
func (b *Builder) Int(v int64) {
	b.before()
	b.text = jsonline.AppendInt(b.text, v)
	b.after()
}

// Uint is a value.
func (b *Builder) Uint(v uint64) {
	b.before()
	b.text = jsonline.AppendUint(b.text, v)
	b.after()
}

// Float is a value. One that JSON has no number for is its name as a string.
func (b *Builder) Float(v float64) {
	b.before()
	switch {
	case math.IsNaN(v):
		b.text = append(b.text, `"NaN"`...)
	case math.IsInf(v, 1):
		b.text = append(b.text, `"+Inf"`...)
	case math.IsInf(v, -1):
		b.text = append(b.text, `"-Inf"`...)
	default:
		b.text = jsonline.AppendFloat(b.text, v)
	}
	b.after()
}

// Bool is a value.
func (b *Builder) Bool(v bool) {
	b.before()
	b.text = strconv.AppendBool(b.text, v)
	b.after()
}

// Null is a value.
func (b *Builder) Null() {
	b.before()
	b.text = append(b.text, "null"...)
	b.after()
}

// Bytes is a value: a string, base64 by RFC 4648 with padding.
func (b *Builder) Bytes(v []byte) {
	b.before()
	if len(v) < long || b.longer(base64.StdEncoding.EncodedLen(len(v)), b.n.limits.MaxEventBytes) {
		b.text = append(b.text, '"')
		b.text = base64.StdEncoding.AppendEncode(b.text, v)
		b.text = append(b.text, '"')
	}
	b.after()
}

// spaced is how many times the size of the largest line an object may have that is not
// looked at: there may be white space in it.
const spaced = 2

// JSON is a value: raw is one valid JSON value.
func (b *Builder) JSON(raw []byte) {
	b.before()
	b.n.body.escapes = true // raw may have some
	if raw = b.n.mend(raw); b.Failed() || len(raw) >= long && !b.longer(len(raw), spaced*b.n.limits.MaxEventBytes) {
		b.after()
		return
	}
	if b.direct && !isScalar(raw) {
		var fault reason
		if b.text, fault = appendValue(b.text, raw, len(b.text)+len(raw), b.mostLevels()-b.level); fault != ok {
			b.fail(fault)
		}
	} else {
		b.text = append(b.text, raw...)
	}
	b.after()
}

// BeginObject begins a value of members, each a Name and a value.
func (b *Builder) BeginObject() {
	if b.level == 0 && !b.merged && b.place == byName && merges(b.slot) {
		name := b.text[b.name.Start+1 : b.name.End-1]
		b.merged, b.within = true, scopeOf(b.slot, name)
		b.place = nowhere
		return
	}
	b.open('{')
}

// EndObject ends the object that was begun last.
func (b *Builder) EndObject() {
	if b.level == 0 && b.merged {
		b.merged = false
		return
	}
	b.shut('}')
}

// BeginArray begins a value of values.
func (b *Builder) BeginArray() { b.open('[') }

// EndArray ends the array that was begun last.
func (b *Builder) EndArray() { b.shut(']') }

func (b *Builder) open(bracket byte) {
	b.before()
	b.text = append(b.text, bracket)
	b.level++
	b.first = true
	if b.level > b.mostLevels() {
		b.fail(tooDeep)
	}
}

// fail makes the event a rejected one: nothing of it needs to be kept.
func (b *Builder) fail(r reason) {
	if b.n.ev.fault == ok {
		b.n.ev.fault = r
	}
	b.text = b.text[:b.value]
}

func (b *Builder) shut(bracket byte) {
	b.text = append(b.text, bracket)
	b.level--
	b.after()
}

// comma separates values and members in what is open.
func (b *Builder) comma() {
	if !b.first {
		b.text = append(b.text, ',')
	}
	b.first = false
}

func (b *Builder) before() {
	if b.place == nowhere {
		panic("normalize: Builder: a value without a place")
	}
	if n := b.n; n.ev.fault != ok || len(b.text) > n.body.granted {
		b.check()
	}
	if b.level > 0 {
		b.comma()
	}
}

// check makes the event a rejected one if it is too large or there is no room for it.
func (b *Builder) check() {
	if n := b.n; n.ev.fault != ok || len(b.text) > b.value+n.limits.MaxEventBytes || !n.moreRoom(len(b.text)) {
		b.fail(tooLarge)
	}
}

// after puts a value that is whole where it belongs.
func (b *Builder) after() {
	b.first = false
	if b.level > 0 {
		return
	}
	if b.direct {
		b.finish()
		return
	}
	n, p := b.n, b.place
	b.place = nowhere
	if n.ev.fault == ok {
		n.ev.fault = n.overlong(b.text[b.value:])
	}
	if n.ev.fault != ok {
		b.text = b.text[:b.name.Start]
		return
	}
	n.body.text = b.text
	value := jsonwalk.Span{Start: b.value, End: len(b.text)}
	if n.fill(b.slot, value) || p == byName && n.wait(b.slot, b.name, value) {
		return
	}
	if p == inSlot && b.name.Len() == 0 { // it was not named yet
		start := len(b.text)
		b.text = jsonline.AppendString(b.text, b.slot.String())
		b.name = jsonwalk.Span{Start: start, End: len(b.text)}
		n.body.text = b.text
	}
	n.ev.fault = n.addAttr(b.name, value, false)
	b.text = b.text[:min(b.name.Start, b.value)] // it is in attrs
}

// End ends the event and reports whether it is one of Batch.Records, or was left
// out by a rule as Dropped tells; otherwise it is a rejected one.
func (b *Builder) End() bool {
	n := b.n
	if b.place != nowhere || b.level > 0 || b.merged {
		panic("normalize: Builder: End within a value")
	}
	n.body.text = b.text
	if n.ev.fault == ok {
		n.appendLine(b.dst)
	}
	switch {
	case b.dst.overflow:
		b.dst.Records++
		return true
	case n.ev.fault != ok:
		n.add(b.dst, n.ev.fault, 0, n.explain(b.dst, n.ev.fault), b.raw)
	}
	return n.ev.fault == ok
}

// Context is called after an End or a Reject that has counted an event as
// rejected. What write appends, about size bytes, is kept with it, see
// Batch.Context.
func (b *Builder) Context(size int, write func(dst []byte) []byte) { b.dst.addContext(size, write) }

// Dropped reports whether the event that End was called for last was left out by
// a rule.
func (b *Builder) Dropped() bool { return b.n.dropped }

// Ignore counts something that is no log, see Batch.Ignored.
func (b *Builder) Ignore(kind string) { b.dst.Ignore(kind) }

// Describes reports whether the detail of a rejection made now would be listed. One that
// takes time to write can be left out otherwise.
func (b *Builder) Describes() bool { return b.n.describes(b.dst) }

// Reject counts an event that was not begun, or not ended, as rejected for one
// of the Reason constants; detail tells a human what was found and what was
// expected.
func (b *Builder) Reject(name, detail string) {
	b.undirect()
	b.place, b.level, b.merged = nowhere, 0, false
	for r := ok + 1; r < numReasons; r++ {
		if reasonNames[r] == name {
			b.n.add(b.dst, r, 0, detail, b.raw)
			return
		}
	}
	panic("normalize: Builder: no reason is called " + name)
}
