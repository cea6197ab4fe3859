// Package zone uses locations and formats times.
package zone

import "time"

var (
	moment = time.Unix(1664323200, 123456789)
	last   time.Time // what keeps the compiler from leaving the work out
	length int
	text   string
	number int64
)

// Load loads the location and uses it.
func Load(name string) {
	l, err := time.LoadLocation(name)
	if err != nil {
		panic(err)
	}
	last = moment.In(l)
}

// Must loads a location for In.
func Must(name string) *time.Location {
	l, err := time.LoadLocation(name)
	if err != nil {
		panic(err)
	}
	return l
}

// In uses a location that was loaded before.
func In(l *time.Location) { last = moment.In(l) }

// Fixed makes a location with this offset in seconds and uses it.
func Fixed(name string, offset int) { last = moment.In(time.FixedZone(name, offset)) }

// AppendRoom formats into room that suffices.
func AppendRoom() {
	var a [64]byte
	length = len(moment.UTC().AppendFormat(a[:0], time.RFC3339Nano))
}

// AppendTight formats into room for 16 bytes.
func AppendTight() {
	var a [16]byte
	length = len(moment.UTC().AppendFormat(a[:0], time.RFC3339Nano))
}

// Format makes a string.
func Format() { text = moment.UTC().Format(time.RFC3339Nano) }

// Unix takes the time as a number.
func Unix() { number = moment.UnixNano() }
