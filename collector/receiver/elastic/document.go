package elastic

import (
	"bytes"
	"slices"

	"github.com/rollway/rollway/collector/normalize"
	"github.com/rollway/rollway/collector/receiver/wire"
	"github.com/rollway/rollway/internal/jsonwalk"
)

type nestedSlot struct {
	object string
	member string
	dotted []byte
	slot   normalize.Slot
}

// nested are the members of objects of the Elastic Common Schema that have slots.
var nested = [...]nestedSlot{
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
	for w := wire.Members(object); w.Next() && !d.Failed(); {
		name := d.Text(w.RawName())
		switch {
		case wire.IsObject(w.RawValue()) && d.nested(name, w.RawValue()):
		case string(name) == "log.level":
			d.slot(normalize.Level, name, w.RawValue())
		case string(name) == "log.logger":
			d.slot(normalize.Logger, name, w.RawValue())
		case string(name) == "time" && sameTime(w.RawValue(), stamp):
		case bytes.HasPrefix(name, errorDot):
			if !errorDone && !d.Has(normalize.Error) {
				d.dottedError(object)
				errorDone = true
			} else if !errorDone {
				d.PutAttr(w.RawName(), w.RawValue())
			}
		default:
			d.PutField(w.RawName(), w.RawValue())
		}
	}
}

func (d *decoder) slot(s normalize.Slot, name, value []byte) {
	d.SlotNamed(s, name)
	d.JSON(value)
}

// nested takes from an object of the Elastic Common Schema what has a slot, and
// puts the rest into attrs; false if the name is of no such object.
func (d *decoder) nested(name, object []byte) bool {
	i := slices.IndexFunc(nested[:], func(n nestedSlot) bool { return n.object == string(name) })
	if i < 0 {
		return false
	}
	of := nested[i].object // name is valid until the next one
	for w := wire.Members(object); w.Next() && !d.Failed(); {
		if i := slotOf(of, w.RawName()); i >= 0 {
			d.slot(nested[i].slot, nested[i].dotted, w.RawValue())
		}
	}
	d.PutRest([]byte(of), object, func(name, _ []byte) bool { return slotOf(of, name) >= 0 }, nil)
	return true
}

// slotOf returns the index in nested of a member that has a slot, or -1.
func slotOf(object string, name []byte) int {
	for i := range nested {
		if object == nested[i].object && jsonwalk.Equal(name, nested[i].member) {
			return i
		}
	}
	return -1
}

var errorDot = []byte("error.")

// dottedError makes one object of all members whose names begin with "error.".
func (d *decoder) dottedError(object []byte) {
	d.Slot(normalize.Error)
	d.BeginObject()
	for w := wire.Members(object); w.Next() && !d.Failed(); {
		if name := d.Text(w.RawName()); bytes.HasPrefix(name, errorDot) {
			d.Name(name[len(errorDot):])
			d.JSON(w.RawValue())
		}
	}
	d.EndObject()
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
