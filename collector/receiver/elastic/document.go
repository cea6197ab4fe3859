package elastic

import (
	"bytes"

	"github.com/rollway/rollway/collector/normalize"
	"github.com/rollway/rollway/collector/receiver/wire"
	"github.com/rollway/rollway/internal/jsonwalk"
)

// nested are the objects of the Elastic Common Schema of which one member or
// two have slots.
var nested = [...]struct {
	object string
	member string
	dotted []byte
	slot   normalize.Slot
}{
	{"log", "level", []byte("log.level"), normalize.Level},
	{"log", "logger", []byte("log.logger"), normalize.Logger},
	{"service", "name", []byte("service.name"), normalize.Service},
	{"trace", "id", []byte("trace.id"), normalize.TraceID},
	{"span", "id", []byte("span.id"), normalize.SpanID},
}

// document gives the members of a document to the event.
func (d *decoder) document(object []byte) {
	stamp := wire.Get(object, "@timestamp")
	errorDone := false
	for w := wire.Members(object); w.Next() && !d.b.Failed(); {
		name := d.name(w.RawName())
		switch {
		case wire.IsObject(w.RawValue()) && d.nested(name, w.RawValue()):
		case string(name) == "log.level":
			d.slot(normalize.Level, name, w.RawValue())
		case string(name) == "log.logger":
			d.slot(normalize.Logger, name, w.RawValue())
		case string(name) == "time" && sameTime(w.RawValue(), stamp):
		case bytes.HasPrefix(name, errorDot):
			if !errorDone && !d.b.Has(normalize.Error) {
				d.dottedError(object)
				errorDone = true
			} else if !errorDone {
				d.b.Attr(name)
				d.b.JSON(w.RawValue())
			}
		default:
			d.b.Field(name)
			d.plain = wire.Put(d.b, d.plain, w.RawValue())
		}
	}
}

func (d *decoder) slot(s normalize.Slot, name, value []byte) {
	d.b.SlotNamed(s, name)
	d.b.JSON(value)
}

// nested takes from an object of the Elastic Common Schema what has a slot, and
// puts the rest into attrs; false if the name is of no such object.
func (d *decoder) nested(name, object []byte) bool {
	known, rest := false, 0
	for i := range nested {
		if string(name) == nested[i].object {
			known = true
		}
	}
	if !known {
		return false
	}
	for w := wire.Members(object); w.Next() && !d.b.Failed(); {
		if i := slotOf(name, &w); i >= 0 {
			d.slot(nested[i].slot, nested[i].dotted, w.RawValue())
		} else {
			rest++
		}
	}
	if rest == 0 {
		return true
	}
	// name may be where an unquoted name is kept, which members need.
	var buf [16]byte
	name = append(buf[:0], name...)
	d.b.Attr(name)
	d.b.BeginObject()
	for w := wire.Members(object); w.Next() && !d.b.Failed(); {
		if slotOf(name, &w) < 0 {
			d.b.Name(d.name(w.RawName()))
			d.b.JSON(w.RawValue())
		}
	}
	d.b.EndObject()
	return true
}

// slotOf returns the index in nested of a member that has a slot, or -1.
func slotOf(object []byte, w *jsonwalk.Walk) int {
	for i := range nested {
		if string(object) == nested[i].object && w.Is(nested[i].member) {
			return i
		}
	}
	return -1
}

var errorDot = []byte("error.")

// dottedError makes one object of all members whose names begin with "error.".
func (d *decoder) dottedError(object []byte) {
	d.b.Slot(normalize.Error)
	d.b.BeginObject()
	for w := wire.Members(object); w.Next() && !d.b.Failed(); {
		if name := d.name(w.RawName()); bytes.HasPrefix(name, errorDot) {
			d.b.Name(name[len(errorDot):])
			d.b.JSON(w.RawValue())
		}
	}
	d.b.EndObject()
}

// sameTime reports whether two strings are the same time in UTC, apart from zeros
// at the end of its fraction.
func sameTime(a, b []byte) bool {
	short := func(v []byte) []byte {
		v = bytes.TrimSuffix(v, []byte(`Z"`))
		if bytes.IndexByte(v, '.') >= 0 {
			v = bytes.TrimSuffix(bytes.TrimRight(v, "0"), []byte("."))
		}
		return v
	}
	return wire.IsString(a) && wire.IsString(b) && bytes.HasSuffix(a, []byte(`Z"`)) && bytes.Equal(short(a), short(b))
}
