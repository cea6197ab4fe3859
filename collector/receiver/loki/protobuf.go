package loki

import (
	"fmt"

	"google.golang.org/protobuf/encoding/protowire"

	"github.com/rollway/rollway/collector/receiver"
	"github.com/rollway/rollway/collector/receiver/wire"
)

// readProtobuf makes events of the entries of
//
//	PushRequest { streams 1 }
func (r *reader) readProtobuf(q *receiver.Request) error {
	r.begin(q)
	defer r.b.Done()
	return each("PushRequest", q.Body, 1, r.protobufStream)
}

// each has read read the fields of a number in a message, of a type that has a length.
func each(message string, msg []byte, num protowire.Number, read func(field []byte) error) error {
	f := wire.Over(msg)
	for f.Next() {
		if f.Num == num && f.Is(protowire.BytesType) {
			if err := read(f.Bytes); err != nil {
				return err
			}
		}
	}
	return broken(message, f.Err())
}

// broken names the message that an error of the wire format is in.
func broken(message string, err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("the body is not a valid push request: %s: %w; nothing was stored", message, err)
}

// protobufStream reads
//
//	Stream { labels 1 string, entries 2, hash 3 }
func (r *reader) protobufStream(msg []byte) error {
	r.labels, r.values = r.labels[:0], r.values[:0]
	if err := each("Stream", msg, 1, r.parseLabels); err != nil {
		return err
	}
	f := wire.Over(msg)
	for f.Next() {
		if f.Num == 2 && f.Is(protowire.BytesType) {
			if err := r.protobufEntry(f.Bytes, &f); err != nil {
				return err
			}
		}
	}
	return broken("Stream", f.Err())
}

// protobufEntry makes the event of
//
//	Entry { timestamp 1 Timestamp, line 2 string, structuredMetadata 3 LabelPair, parsed 4 LabelPair }
//	LabelPair { name 1, value 2 }
//
// and of those after it, among the fields of its stream, that only continue it.
func (r *reader) protobufEntry(msg []byte, stream *wire.Fields) (err error) {
	var e entry
	r.metadata = r.metadata[:0]
	f := wire.Over(msg)
	for f.Next() {
		if !f.Is(protowire.BytesType) {
			continue
		}
		switch f.Num {
		case 1:
			err = e.readTimestamp(f.Bytes)
		case 2:
			e.line = f.Bytes
		case 3, 4:
			var p pair
			if p.name, p.value, err = wire.Pair(f.Bytes); err == nil {
				err = r.add(&r.metadata, p)
			} else {
				err = broken("LabelPair", err)
			}
		}
		if err != nil {
			return err
		}
	}
	if err := broken("Entry", f.Err()); err != nil {
		return err
	}
	if err := r.join(&e, func() ([]byte, bool) { return r.protobufLine(stream) }, func() { stream.Next() }); err != nil {
		return err
	}
	r.entry(&e)
	return nil
}

// readTimestamp reads
//
//	Timestamp { seconds 1, nanos 2 }
func (e *entry) readTimestamp(msg []byte) error {
	var sec, nsec int64
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
	e.setTime(sec, nsec)
	return broken("Timestamp", f.Err())
}
