package sentry

import (
	"bytes"
	"log/slog"

	"github.com/rollway/rollway/collector/normalize"
	"github.com/rollway/rollway/collector/receiver/wire"
	"github.com/rollway/rollway/internal/jsonwalk"
)

// event makes a line of an event.
func (d *decoder) event(object []byte) {
	if !d.begin(object) {
		d.keepKind(kindEvent)
		return
	}
	d.setID(wire.Get(object, "event_id"))
	worded := false
	for w := wire.Members(object); w.Next() && !d.b.Failed(); {
		switch {
		case w.Is("timestamp"):
			d.slot(normalize.Time, w.RawName(), w.RawValue())
		case w.Is("level"):
			d.slot(normalize.Level, w.RawName(), w.RawValue())
		case w.Is("logger"):
			d.slot(normalize.Logger, w.RawName(), w.RawValue())
		case w.Is("message") && wire.IsString(w.RawValue()):
			worded = true
			d.slot(normalize.Message, w.RawName(), w.RawValue())
		case (w.Is("logentry") || w.Is("message")) && wire.IsObject(w.RawValue()):
			worded = d.logentry(w.RawName(), w.RawValue()) || worded
		case w.Is("exception"):
			d.exception(w.RawName(), w.RawValue())
		case w.Is("contexts") && wire.IsObject(w.RawValue()):
			d.contexts(w.RawName(), w.RawValue())
		default:
			d.attr(w.RawName(), w.RawValue())
		}
	}
	if !worded && !d.b.Failed() {
		d.wordException(wire.Get(object, "exception"))
	}
	if level := wire.Get(object, "level"); level == nil || wire.IsNull(level) {
		d.b.SetLevel(slog.LevelError)
	}
	if !d.end() {
		d.keepKind(kindEvent)
		return
	}
	d.events++
}

// logentry takes the text of a message out of an object; what else there is
// beside it goes to attrs. It reports whether there is a text.
func (d *decoder) logentry(name, object []byte) bool {
	text, message := wire.Get(object, "formatted"), wire.Get(object, "message")
	if !wire.IsString(text) {
		text = message
	}
	if !wire.IsString(text) {
		d.attr(name, object)
		return false
	}
	d.slot(normalize.Message, name, text)
	d.rest(name, object, text)
	return true
}

// rest puts members of an object into attrs, as an object, if there are any:
// those of a message that are not its text, or, with no text, those beside the
// values of an exception.
func (d *decoder) rest(name, object, text []byte) {
	begun := false
	for w := wire.Members(object); w.Next() && !d.b.Failed(); {
		if text == nil && w.Is("values") || (w.Is("formatted") || w.Is("message")) && bytes.Equal(w.RawValue(), text) {
			continue
		}
		if !begun {
			begun = true
			d.b.Attr(d.name(name))
			d.b.BeginObject()
		}
		d.b.Name(d.name(w.RawName()))
		d.b.JSON(w.RawValue())
	}
	if begun {
		d.b.EndObject()
	}
}

// contexts takes the ids of the trace out of an event's contexts.
func (d *decoder) contexts(name, object []byte) {
	trace := wire.Get(object, "trace")
	if !wire.IsObject(trace) {
		d.attr(name, object)
		return
	}
	left := 0 // members of trace without the ids
	for w := wire.Members(trace); w.Next(); {
		switch {
		case w.Is("trace_id") && wire.IsString(w.RawValue()):
			d.slot(normalize.TraceID, w.RawName(), w.RawValue())
		case w.Is("span_id") && wire.IsString(w.RawValue()):
			d.slot(normalize.SpanID, w.RawName(), w.RawValue())
		default:
			left++
		}
	}
	begun := false
	for w := wire.Members(object); w.Next() && !d.b.Failed(); {
		isTrace := w.Is("trace")
		if isTrace && left == 0 {
			continue
		}
		if !begun {
			begun = true
			d.b.Attr(d.name(name))
			d.b.BeginObject()
		}
		d.b.Name(d.name(w.RawName()))
		if !isTrace || !wire.IsObject(w.RawValue()) {
			d.b.JSON(w.RawValue())
			continue
		}
		d.b.BeginObject()
		for t := wire.Members(w.RawValue()); t.Next() && !d.b.Failed(); {
			if isID := t.Is("trace_id") || t.Is("span_id"); !isID || !wire.IsString(t.RawValue()) {
				d.b.Name(d.name(t.RawName()))
				d.b.JSON(t.RawValue())
			}
		}
		d.b.EndObject()
	}
	if begun {
		d.b.EndObject()
	}
}

// lastException returns the exception that was seen by the program, which
// comes last, and how many there are; nil if there is none.
func lastException(value []byte) (last []byte, values jsonwalk.Walk, n int) {
	list := value
	if wire.IsObject(value) {
		if list = wire.Get(value, "values"); list == nil && wire.Get(value, "type") != nil {
			return value, jsonwalk.Walk{}, 1
		}
	}
	if !wire.IsArray(list) {
		return nil, jsonwalk.Walk{}, 0
	}
	for w := wire.Elements(list); w.Next(); {
		last = w.RawValue()
		n++
	}
	if !wire.IsObject(last) {
		return nil, jsonwalk.Walk{}, 0
	}
	return last, wire.Elements(list), n
}

// exception makes the error of an event's exceptions.
func (d *decoder) exception(name, value []byte) {
	last, values, n := lastException(value)
	if last == nil || d.b.Has(normalize.Error) {
		d.attr(name, value)
		return
	}
	d.b.Slot(normalize.Error)
	d.b.BeginObject()
	for w := wire.Members(last); w.Next() && !d.b.Failed(); {
		if w.Is("value") {
			d.b.Name(nameMessage)
		} else {
			d.b.Name(d.name(w.RawName()))
		}
		d.b.JSON(w.RawValue())
	}
	if n > 1 {
		d.b.Name(nameCauses)
		d.b.BeginArray()
		for range n - 1 {
			values.Next()
			d.b.JSON(values.RawValue())
		}
		d.b.EndArray()
	}
	d.b.EndObject()
	if wire.IsObject(value) && wire.Get(value, "values") != nil {
		d.rest(name, value, nil)
	}
}

var nameMessage, nameCauses = []byte("message"), []byte("causes")

// wordException makes the message of an event that has none but an exception.
func (d *decoder) wordException(value []byte) {
	last, _, _ := lastException(value)
	if last == nil {
		return
	}
	kind, text := wire.Get(last, "type"), wire.Get(last, "value")
	d.text = d.text[:0]
	if wire.IsString(kind) {
		d.text = append(d.text, d.name(kind)...)
	}
	if wire.IsString(text) {
		if len(d.text) > 0 {
			d.text = append(d.text, ": "...)
		}
		d.text = append(d.text, d.name(text)...)
	}
	if len(d.text) > 0 {
		d.b.Slot(normalize.Message)
		d.b.String(d.text)
	}
}
