package loki

import (
	"log/slog"
	"time"

	"github.com/rollway/rollway/collector/normalize"
	"github.com/rollway/rollway/internal/jsonline"
	"github.com/rollway/rollway/internal/levels"
)

// entry is what an entry holds besides its metadata.
type entry struct {
	line      []byte
	metadata  []byte // as it was sent, in JSON; nil: none
	timed     bool   // it has a time
	sec, nsec int64
}

// First and last second of the years that RFC 3339 can write.
const (
	minUnix = -62167219200
	maxUnix = 253402300799
)

// setTime sets the time, unless it is one that a line cannot have.
func (e *entry) setTime(sec, nsec int64) {
	e.sec, e.nsec = sec, nsec
	e.timed = sec >= minUnix && sec <= maxUnix && nsec >= 0 && nsec < int64(time.Second)
}

// entry makes the event of an entry with the labels and the metadata that were read.
func (r *reader) entry(e *entry) {
	b := r.b
	b.Begin()
	b.Raw(e.line)
	if !b.Failed() {
		b.Message(e.line)
		r.stamp(e)
		for _, p := range r.labels {
			r.pair(p)
		}
		for _, p := range r.metadata {
			r.pair(p)
		}
	}
	r.end(e)
}

var nameTime = []byte("entry_time")

// stamp gives the event the entry's time, or keeps it if the event has another.
func (r *reader) stamp(e *entry) {
	if !e.timed {
		return
	}
	if has, sec, nsec := r.b.Time(); !has {
		r.b.SetTime(e.sec, int(e.nsec))
	} else if sec != e.sec || int64(nsec) != e.nsec {
		r.time = jsonline.AppendUnix(r.time[:0], e.sec, int(e.nsec))
		r.b.Attr(nameTime)
		r.b.String(r.time)
	}
}

// pair puts a label or a piece of metadata where its name says.
func (r *reader) pair(p pair) {
	switch string(p.name) {
	case "service_name":
		if !r.b.Has(normalize.Service) {
			r.b.Slot(normalize.Service)
			r.b.String(p.value)
			return
		}
	case "level", "severity", "lvl":
		if r.saysSame(p.value) {
			return
		}
	}
	r.b.Field(p.name)
	r.b.String(p.value)
}

// saysSame reports whether a label is the name for the level that the event
// has, as far as Loki has names: those of levels in between are rounded down,
// and PANIC is critical.
func (r *reader) saysSame(label []byte) bool {
	has, level := r.b.Level()
	if !has || len(label) > 24 {
		return false
	}
	named, known := levels.ParseAny(label)
	switch {
	case !known:
		return false
	case string(label) == "critical":
		return level >= levels.Panic && level < levels.Fatal || level == named
	case named <= levels.Trace:
		return level < slog.LevelDebug
	case named >= levels.Fatal:
		return level >= named
	case named == slog.LevelError:
		return level >= named && level < levels.Panic
	}
	return level >= named && level < named+4
}
