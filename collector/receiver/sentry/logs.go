package sentry

import (
	"github.com/rollway/rollway/collector/normalize"
	"github.com/rollway/rollway/collector/receiver/wire"
	"github.com/rollway/rollway/internal/jsonwalk"
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
	for w := wire.Elements(items); w.NextName(); {
		d.b.Begin()
		if d.b.Failed() || w.Kind() != '{' {
			w.SkipValue()
			d.b.Raw(w.RawValue())
			if d.b.Failed() {
				d.b.End()
				d.keepKind(kindLog)
			} else {
				d.b.Reject(normalize.ReasonNotObject, "a log is not an object")
			}
			continue
		}
		members := w.Inside()
		d.members(&members)
		w.Leave(&members)
		d.b.Raw(w.RawValue())
		d.endLog()
	}
}

// log makes a line of an object. The event has begun.
func (d *decoder) log(object []byte) {
	members := wire.Members(object)
	d.members(&members)
	d.endLog()
}

func (d *decoder) endLog() {
	if !d.end() {
		d.keepKind(kindLog)
	}
}

func (d *decoder) members(w *jsonwalk.Walk) {
	for !d.b.Failed() && w.NextName() {
		if w.Is("attributes") && w.Kind() == '{' {
			attributes := w.Inside()
			d.attributes(&attributes)
			w.Leave(&attributes)
			continue
		}
		w.SkipValue()
		switch {
		case w.Is("timestamp"):
			d.slot(normalize.Time, w.RawName(), w.RawValue())
		case w.Is("level"):
			d.slot(normalize.Level, w.RawName(), w.RawValue())
		case w.Is("body"):
			d.slot(normalize.Message, w.RawName(), w.RawValue())
		case w.Is("trace_id") && w.Kind() == '"':
			d.slot(normalize.TraceID, w.RawName(), w.RawValue())
		case w.Is("span_id") && w.Kind() == '"':
			d.slot(normalize.SpanID, w.RawName(), w.RawValue())
		default:
			d.attr(w.RawName(), w.RawValue())
		}
	}
}

// attributes gives attributes, each {"value":…,"type":…}, by their values. One
// that says more is kept whole.
func (d *decoder) attributes(w *jsonwalk.Walk) {
	for !d.b.Failed() && w.Next() {
		value := w.RawValue()
		if wire.IsObject(value) {
			value = unwrapped(value)
		}
		switch {
		case w.Is("logger.name"):
			d.slot(normalize.Logger, w.RawName(), value)
		case w.Is("service.name"):
			d.slot(normalize.Service, w.RawName(), value)
		default:
			d.attr(w.RawName(), value)
		}
	}
}

// unwrapped returns the value of an attribute.
func unwrapped(attribute []byte) []byte {
	var value []byte
	for w := wire.Members(attribute); w.Next(); {
		switch {
		case w.Is("value"):
			value = w.RawValue()
		case !w.Is("type"):
			return attribute
		}
	}
	if value == nil {
		return attribute
	}
	return value
}
