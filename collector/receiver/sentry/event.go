package sentry

import (
	"bytes"
	"log/slog"
	"slices"

	"github.com/rollway/rollway/collector/normalize"
	"github.com/rollway/rollway/collector/receiver/wire"
	"github.com/rollway/rollway/internal/jsonwalk"
)

// event makes a line of an event.
func (d *decoder) event(object []byte) {
	if !d.Start(object) {
		d.keepKind(kindEvent)
		return
	}
	d.setID(wire.Get(object, "event_id"))
	worded := false
	for w := wire.Members(object); w.Next() && !d.Failed(); {
		switch {
		case w.Is("timestamp"):
			d.PutSlot(normalize.Time, w.RawName(), w.RawValue())
		case w.Is("level"):
			d.PutSlot(normalize.Level, w.RawName(), w.RawValue())
		case w.Is("logger"):
			d.PutSlot(normalize.Logger, w.RawName(), w.RawValue())
		case w.Is("message") && wire.IsString(w.RawValue()):
			worded = true
			d.PutSlot(normalize.Message, w.RawName(), w.RawValue())
		case (w.Is("logentry") || w.Is("message")) && wire.IsObject(w.RawValue()):
			worded = d.logentry(w.RawName(), w.RawValue()) || worded
		case w.Is("exception"):
			d.exception(w.RawName(), w.RawValue())
		case w.Is("contexts") && wire.IsObject(w.RawValue()):
			d.contexts(w.RawName(), w.RawValue())
		default:
			d.PutAttr(w.RawName(), w.RawValue())
		}
	}
	if !worded && !d.Failed() {
		d.wordException(wire.Get(object, "exception"))
	}
	if level := wire.Get(object, "level"); level == nil || wire.IsNull(level) {
		d.SetLevel(slog.LevelError)
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
		d.PutAttr(name, object)
		return false
	}
	d.PutSlot(normalize.Message, name, text)
	d.PutRest(d.Text(name), object, func(name, value []byte) bool {
		return bytes.Equal(value, text) && (jsonwalk.Equal(name, "formatted") || jsonwalk.Equal(name, "message"))
	}, nil)
	return true
}

// contexts takes the ids of the trace out of an event's contexts.
func (d *decoder) contexts(name, object []byte) {
	trace := wire.Get(object, "trace")
	if !wire.IsObject(trace) {
		d.PutAttr(name, object)
		return
	}
	left := 0 // members of trace without the ids
	for w := wire.Members(trace); w.Next(); {
		switch {
		case !isID(w.RawName(), w.RawValue()):
			left++
		case w.Is("trace_id"):
			d.PutSlot(normalize.TraceID, w.RawName(), w.RawValue())
		default:
			d.PutSlot(normalize.SpanID, w.RawName(), w.RawValue())
		}
	}
	d.PutRest(d.Text(name), object, func(name, _ []byte) bool {
		return left == 0 && jsonwalk.Equal(name, "trace")
	}, func(name, value []byte) bool {
		if !wire.IsObject(value) || !jsonwalk.Equal(name, "trace") {
			return false
		}
		d.PutObject(value, isID)
		return true
	})
}

// isID reports whether a member of a trace is an id.
func isID(name, value []byte) bool {
	return wire.IsString(value) && (jsonwalk.Equal(name, "trace_id") || jsonwalk.Equal(name, "span_id"))
}

// lastException returns the exception that was seen by the program, which
// comes last, and how many there are, or nil.
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
	if last == nil || d.Has(normalize.Error) {
		d.PutAttr(name, value)
		return
	}
	d.Slot(normalize.Error)
	d.BeginObject()
	for w := wire.Members(last); w.Next() && !d.Failed(); {
		if w.Is("value") {
			d.Name(nameMessage)
		} else {
			d.Name(d.Text(w.RawName()))
		}
		d.JSON(w.RawValue())
	}
	if n > 1 {
		d.Name(nameCauses)
		d.BeginArray()
		for range n - 1 { // the nearest first
			values.Next()
			d.causes = append(d.causes, values.RawValue())
		}
		for _, cause := range slices.Backward(d.causes) {
			d.JSON(cause)
		}
		d.EndArray()
		clear(d.causes)
		d.causes = d.causes[:0]
	}
	d.EndObject()
	if wire.IsObject(value) && wire.Get(value, "values") != nil {
		d.PutRest(d.Text(name), value, func(name, _ []byte) bool { return jsonwalk.Equal(name, "values") }, nil)
	}
}

var nameMessage, nameCauses = []byte("message"), []byte("causes")

// maxMessage is how long a text an exception may become a message by; it is in the error
// all the same.
const maxMessage = 1 << 20

// wordException makes the message of an event that has none but an exception.
func (d *decoder) wordException(value []byte) {
	last, _, _ := lastException(value)
	if last == nil {
		return
	}
	kind, text := wire.Get(last, "type"), wire.Get(last, "value")
	if d.message = d.message[:0]; len(kind)+len(text) > maxMessage {
		return
	}
	if wire.IsString(kind) {
		d.message = append(d.message, d.Text(kind)...)
	}
	if wire.IsString(text) {
		if len(d.message) > 0 {
			d.message = append(d.message, ": "...)
		}
		d.message = append(d.message, d.Text(text)...)
	}
	if len(d.message) > 0 {
		d.Slot(normalize.Message)
		d.String(d.message)
	}
}
