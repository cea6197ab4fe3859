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
		if d.Start(object) {
			d.Reject(normalize.ReasonNotObject, "logs without an array of items")
		}
		return
	}
	for w := wire.Elements(items); w.NextName(); {
		d.Begin()
		if d.Failed() || w.Kind() != '{' {
			w.SkipValue()
			d.Raw(w.RawValue())
			if d.Failed() {
				d.End()
				d.keepKind(kindLog)
			} else {
				d.Reject(normalize.ReasonNotObject, "a log is not an object")
			}
			continue
		}
		members := w.Inside()
		d.members(&members)
		w.Leave(&members)
		d.Raw(w.RawValue())
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
	for !d.Failed() && w.NextName() {
		if w.Is("attributes") && w.Kind() == '{' {
			attributes := w.Inside()
			d.attributes(&attributes)
			w.Leave(&attributes)
			continue
		}
		w.SkipValue()
		switch {
		case w.Is("timestamp"):
			d.PutSlot(normalize.Time, w.RawName(), w.RawValue())
		case w.Is("level"):
			d.PutSlot(normalize.Level, w.RawName(), w.RawValue())
		case w.Is("body"):
			d.PutSlot(normalize.Message, w.RawName(), w.RawValue())
		case w.Is("trace_id") && w.Kind() == '"':
			d.PutSlot(normalize.TraceID, w.RawName(), w.RawValue())
		case w.Is("span_id") && w.Kind() == '"':
			d.PutSlot(normalize.SpanID, w.RawName(), w.RawValue())
		default:
			d.PutAttr(w.RawName(), w.RawValue())
		}
	}
}

// attributes gives attributes, each {"value":…,"type":…}, by their values. One
// that says more is kept whole.
func (d *decoder) attributes(w *jsonwalk.Walk) {
	for !d.Failed() && w.Next() {
		value := w.RawValue()
		if wire.IsObject(value) {
			value = unwrapped(value)
		}
		switch {
		case w.Is("logger.name"):
			d.PutSlot(normalize.Logger, w.RawName(), value)
		case w.Is("service.name"):
			d.PutSlot(normalize.Service, w.RawName(), value)
		default:
			d.PutAttr(w.RawName(), value)
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
