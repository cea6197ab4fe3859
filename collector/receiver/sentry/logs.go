package sentry

import (
	"github.com/rollway/rollway/collector/normalize"
	"github.com/rollway/rollway/collector/receiver/wire"
)

// logs makes lines of the records in a payload of logs.
func (d *decoder) logs(object []byte) {
	items := wire.Get(object, "items")
	if !wire.IsArray(items) {
		if d.begin(object) {
			d.b.Reject(normalize.ReasonNotObject, "logs without an array of items")
		}
		return
	}
	for w := wire.Elements(items); w.Next(); {
		if !d.begin(w.Value) {
			d.keepKind(kindLog)
			continue
		}
		if !wire.IsObject(w.Value) {
			d.b.Reject(normalize.ReasonNotObject, "a log is not an object")
			continue
		}
		d.log(w.Value)
	}
}

func (d *decoder) log(object []byte) {
	for w := wire.Members(object); w.Next() && !d.b.Failed(); {
		switch {
		case w.Is("timestamp"):
			d.slot(normalize.Time, w.Name, w.Value)
		case w.Is("level"):
			d.slot(normalize.Level, w.Name, w.Value)
		case w.Is("body"):
			d.slot(normalize.Message, w.Name, w.Value)
		case w.Is("trace_id") && wire.IsString(w.Value):
			d.slot(normalize.TraceID, w.Name, w.Value)
		case w.Is("span_id") && wire.IsString(w.Value):
			d.slot(normalize.SpanID, w.Name, w.Value)
		case w.Is("attributes") && wire.IsObject(w.Value):
			d.attributes(w.Value)
		default:
			d.attr(w.Name, w.Value)
		}
	}
	if !d.end() {
		d.keepKind(kindLog)
	}
}

// attributes gives attributes, each {"value":…,"type":…}, by their values. One
// that says more is kept whole.
func (d *decoder) attributes(object []byte) {
	for w := wire.Members(object); w.Next() && !d.b.Failed(); {
		value := w.Value
		if wire.IsObject(value) {
			value = unwrapped(value)
		}
		switch {
		case w.Is("logger.name"):
			d.slot(normalize.Logger, w.Name, value)
		case w.Is("service.name"):
			d.slot(normalize.Service, w.Name, value)
		default:
			d.attr(w.Name, value)
		}
	}
}

// unwrapped returns the value of an attribute.
func unwrapped(attribute []byte) []byte {
	var value []byte
	for w := wire.Members(attribute); w.Next(); {
		switch {
		case w.Is("value"):
			value = w.Value
		case !w.Is("type"):
			return attribute
		}
	}
	if value == nil {
		return attribute
	}
	return value
}
