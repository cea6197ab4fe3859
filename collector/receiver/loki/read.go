package loki

import (
	"bytes"
	"fmt"
	"log/slog"
	"time"
	"unicode/utf8"

	"github.com/go-json-experiment/json/jsontext"
	"google.golang.org/protobuf/encoding/protowire"

	"github.com/rollway/rollway/collector/normalize"
	"github.com/rollway/rollway/collector/receiver"
	"github.com/rollway/rollway/collector/receiver/wire"
	"github.com/rollway/rollway/internal/jsonline"
)

// reader turns a PushRequest into events. Nothing in it outlives the request.
type reader struct {
	q      *receiver.Request
	b      *normalize.Builder
	spread int64 // bytes read for events, labels counted for each
	labels []pair
	values []byte // of labels that had escapes
	time   []byte

	dec *jsontext.Decoder // of lines that may be JSON
	src bytes.Buffer

	transcoder
}

// pair is a label or a piece of metadata.
type pair struct{ name, value []byte }

// From these sizes on memory does not go back to the pool.
const (
	keepScratch = 1 << 20
	keepLabels  = 1 << 10 // labels
)

// labelBytes is what a label takes up in memory beside its text, also while their
// list grows.
const labelBytes = 128

var jsonOptions = []jsontext.Options{jsontext.AllowDuplicateNames(true), jsontext.AllowInvalidUTF8(true)}

func newReader() *reader {
	r := &reader{time: make([]byte, 0, 40)}
	r.dec = jsontext.NewDecoder(&r.src, jsonOptions...)
	r.transcoder.Init()
	return r
}

func (r *reader) release() {
	r.q, r.b, r.spread = nil, nil, 0
	clear(r.labels[:cap(r.labels)]) // a stream before may have had more
	r.labels = r.labels[:0]
	if cap(r.labels) > keepLabels {
		r.labels = nil
	}
	if cap(r.values) > keepScratch {
		r.values = nil
	}
	r.values = r.values[:0]
	r.transcoder.Release()
	readers.Put(r)
}

// Numbers that this package gives to fields that it transcodes from JSON: a
// label of a Stream, as a pair.
const fieldLabel = 1001

// read makes events of the entries of
//
//	PushRequest { streams 1 }
func (r *reader) read(q *receiver.Request, msg []byte) error {
	r.q = q
	r.b = q.Norm.Build(q.Batch, q.Received)
	defer r.b.Done()
	f := wire.Over(msg)
	for f.Next() {
		if f.Num == 1 && f.Is(protowire.BytesType) {
			if err := r.stream(f.Bytes); err != nil {
				return err
			}
		}
	}
	return broken("PushRequest", f.Err())
}

func broken(message string, err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("the body is not a valid push request: %s: %w; nothing was stored", message, err)
}

// stream reads
//
//	Stream { labels 1 string, entries 2, hash 3 }
func (r *reader) stream(msg []byte) error {
	r.labels, r.values = r.labels[:0], r.values[:0]
	size := 0
	f := wire.Over(msg)
	for f.Next() {
		if !f.Is(protowire.BytesType) {
			continue
		}
		switch f.Num {
		case 1:
			size += len(f.Bytes)
			if err := r.parseLabels(f.Bytes); err != nil {
				return err
			}
		case fieldLabel:
			size += len(f.Bytes)
			p, err := readPair(f.Bytes)
			if err != nil {
				return err
			}
			if err := r.add(p); err != nil {
				return err
			}
		}
	}
	if err := broken("Stream", f.Err()); err != nil {
		return err
	}
	f = wire.Over(msg)
	for f.Next() {
		if f.Num == 2 && f.Is(protowire.BytesType) {
			r.spread += int64(size + len(f.Bytes))
			if err := r.reserve(); err != nil {
				return err
			}
			if err := r.entry(f.Bytes); err != nil {
				return err
			}
		}
	}
	return nil
}

// add adds a label. There may be many that are small: what they take up is counted
// each time that their list grows.
func (r *reader) add(p pair) error {
	if len(r.labels) == cap(r.labels) {
		if err := r.reserve(); err != nil {
			return err
		}
	}
	r.labels = append(r.labels, p)
	return nil
}

// reserve takes the memory of what was read so far.
func (r *reader) reserve() error {
	return r.q.Reserve(int64(cap(r.Out)) + r.spread + labelBytes*int64(cap(r.labels)))
}

// readPair reads
//
//	LabelPair { name 1, value 2 }
func readPair(msg []byte) (p pair, err error) {
	p.name, p.value, err = wire.Pair(msg)
	return p, broken("LabelPair", err)
}

// entry makes the event of
//
//	Entry { timestamp 1 Timestamp, line 2 string, structuredMetadata 3 LabelPair, parsed 4 LabelPair }
func (r *reader) entry(msg []byte) error {
	var line, stamp []byte
	f := wire.Over(msg)
	for f.Next() {
		if !f.Is(protowire.BytesType) {
			continue
		}
		switch f.Num {
		case 1:
			stamp = f.Bytes
		case 2:
			line = f.Bytes
		}
	}
	if err := broken("Entry", f.Err()); err != nil {
		return err
	}
	b := r.b
	b.Begin()
	b.Raw(line)
	if b.Failed() {
		return r.end(stamp, msg)
	}
	object := r.isObject(line)
	if object {
		if err := b.Object(line); err != nil {
			return err // isObject knows better
		}
	} else {
		b.Slot(normalize.Message)
		b.String(line)
	}
	if err := r.stamp(stamp); err != nil {
		return err
	}
	for _, p := range r.labels {
		r.pair(p)
	}
	f = wire.Over(msg)
	for f.Next() {
		if (f.Num == 3 || f.Num == 4) && f.Is(protowire.BytesType) {
			p, err := readPair(f.Bytes)
			if err != nil {
				return err
			}
			r.pair(p)
		}
	}
	return r.end(stamp, msg)
}

// isObject reports whether a line is one JSON object in valid UTF-8.
func (r *reader) isObject(line []byte) bool {
	trimmed := bytes.TrimLeft(line, " \t\r\n")
	if len(trimmed) < 2 || trimmed[0] != '{' || !utf8.Valid(trimmed) {
		return false
	}
	r.src = *bytes.NewBuffer(trimmed)
	r.dec.Reset(&r.src, jsonOptions...)
	defer func() { // keep nothing of the line
		r.src = bytes.Buffer{}
		r.dec.Reset(&r.src, jsonOptions...)
	}()
	if r.dec.SkipValue() != nil {
		return false
	}
	return len(bytes.TrimLeft(trimmed[r.dec.InputOffset():], " \t\r\n")) == 0
}

// stamp gives the event the entry's time, or keeps it if the event has another.
func (r *reader) stamp(msg []byte) error {
	sec, nsec, valid, err := readStamp(msg)
	if err != nil || !valid {
		return err
	}
	if has, s, n := r.b.Time(); !has {
		r.b.SetTime(sec, int(nsec))
	} else if s != sec || int64(n) != nsec {
		r.time = jsonline.AppendUnix(r.time[:0], sec, int(nsec))
		r.b.Attr(nameTime)
		r.b.String(r.time)
	}
	return nil
}

// readStamp reads
//
//	Timestamp { seconds 1, nanos 2 }
//
// and reports whether it is one that a line can have.
func readStamp(msg []byte) (sec, nsec int64, valid bool, err error) {
	f := wire.Over(msg)
	for f.Next() {
		if !f.Is(protowire.VarintType) {
			continue
		}
		switch f.Num {
		case 1:
			sec = int64(f.Value)
		case 2:
			nsec = int64(int32(f.Value))
		}
	}
	valid = msg != nil && sec >= minUnix && sec <= maxUnix && nsec >= 0 && nsec < int64(time.Second)
	return sec, nsec, valid, broken("Timestamp", f.Err())
}

// First and last second of the years that RFC 3339 can write.
const (
	minUnix = -62167219200
	maxUnix = 253402300799
)

var nameTime = []byte("entry_time")

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
	named, known := normalize.ParseLevel(string(label))
	switch {
	case !known:
		return false
	case string(label) == "critical":
		return level >= jsonline.LevelPanic && level < jsonline.LevelFatal || level == named
	case named <= jsonline.LevelTrace:
		return level < slog.LevelDebug
	case named >= jsonline.LevelFatal:
		return level >= named
	case named == slog.LevelError:
		return level >= named && level < jsonline.LevelPanic
	}
	return level >= named && level < named+4
}
