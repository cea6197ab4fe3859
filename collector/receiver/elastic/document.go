package elastic

import (
	"bytes"

	"github.com/rollway/rollway/collector/receiver/wire"
)

// document gives the members of a document to the event.
func (d *decoder) document(object []byte) {
	stamp := wire.Get(object, "@timestamp")
	for w := wire.Members(object); w.Next() && !d.Failed(); {
		if !w.Is("time") || !sameTime(w.RawValue(), stamp) {
			d.PutField(w.RawName(), w.RawValue())
		}
	}
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
