package otlp

import (
	"fmt"

	"google.golang.org/protobuf/encoding/protowire"

	"github.com/rollway/rollway/collector/receiver"
	"github.com/rollway/rollway/collector/receiver/wire"
)

// readProtobuf makes events of the records of
//
//	ExportLogsServiceRequest { resource_logs 1 }
func (r *reader) readProtobuf(q *receiver.Request) error {
	r.begin(q, false)
	defer r.b.Done()
	f := wire.Over(q.Body)
	for f.Next() {
		if f.Num == 1 && f.Is(protowire.BytesType) {
			if err := r.protobufResourceLogs(f.Bytes); err != nil {
				return err
			}
		}
	}
	return broken("ExportLogsServiceRequest", f.Err())
}

// broken names the message that an error of the wire format is in.
func broken(message string, err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("the body is not a valid ExportLogsServiceRequest: %s: %w; nothing was stored", message, err)
}

// shared returns what all that is in a ResourceLogs or ScopeLogs has in common,
// its fields 1 and 3.
func shared(msg []byte) (of, schemaURL []byte, err error) {
	f := wire.Over(msg)
	for f.Next() {
		switch {
		case f.Num == 1 && f.Is(protowire.BytesType):
			of = f.Bytes
		case f.Num == 3 && f.Is(protowire.BytesType):
			schemaURL = f.Bytes
		}
	}
	return of, schemaURL, f.Err()
}

// protobufResourceLogs reads
//
//	ResourceLogs { resource 1, scope_logs 2, schema_url 3 }
//
// whose fields may come in any order.
func (r *reader) protobufResourceLogs(msg []byte) error {
	var res resource
	var err error
	if res.msg.bytes, res.schemaURL, err = shared(msg); err != nil {
		return broken("ResourceLogs", err)
	}
	if err := res.read(); err != nil {
		return err
	}
	f := wire.Over(msg)
	for f.Next() {
		if f.Num == 2 && f.Is(protowire.BytesType) {
			if err := r.protobufScopeLogs(&res, f.Bytes); err != nil {
				return err
			}
		}
	}
	return nil
}

// read reads
//
//	Resource { attributes 1, dropped_attributes_count 2 }
func (res *resource) read() error {
	f := wire.Over(res.msg.bytes)
	for f.Next() {
		switch {
		case f.Num == resourceAttributes && f.Is(protowire.BytesType):
			kv, err := readKeyValue(f.Bytes)
			if err != nil {
				return err
			}
			if text, is := kv.service(); is && res.service == nil {
				res.service = text
			} else {
				res.others = true
			}
		case f.Num == 2 && f.Is(protowire.VarintType):
			res.dropped = f.Value
		}
	}
	return broken("Resource", f.Err())
}

// protobufScopeLogs reads
//
//	ScopeLogs { scope 1, log_records 2, schema_url 3 }
func (r *reader) protobufScopeLogs(res *resource, msg []byte) error {
	var sc scope
	var err error
	if sc.msg.bytes, sc.schemaURL, err = shared(msg); err != nil {
		return broken("ScopeLogs", err)
	}
	if err := sc.read(); err != nil {
		return err
	}
	f := wire.Over(msg)
	for f.Next() {
		if f.Num == 2 && f.Is(protowire.BytesType) {
			if err := r.reserve(sharedSize(res, &sc) + len(f.Bytes)); err != nil {
				return err
			}
			if err := r.protobufRecord(res, &sc, f.Bytes); err != nil {
				return err
			}
		}
	}
	return nil
}

// sharedSize returns how many bytes of a request each record of a scope shares.
func sharedSize(res *resource, sc *scope) int {
	return len(res.msg.bytes) + len(res.schemaURL) + len(sc.msg.bytes) + len(sc.schemaURL)
}

// read reads
//
//	InstrumentationScope { name 1, version 2, attributes 3, dropped_attributes_count 4 }
func (sc *scope) read() error {
	f := wire.Over(sc.msg.bytes)
	for f.Next() {
		switch {
		case f.Num == 1 && f.Is(protowire.BytesType):
			sc.name = f.Bytes
		case f.Num == 2 && f.Is(protowire.BytesType):
			sc.version = f.Bytes
		case f.Num == scopeAttributes && f.Is(protowire.BytesType):
			sc.attributes = true
		case f.Num == 4 && f.Is(protowire.VarintType):
			sc.dropped = f.Value
		}
	}
	return broken("InstrumentationScope", f.Err())
}

// protobufRecord makes the event of a
//
//	LogRecord {
//		time_unix_nano 1 fixed64, observed_time_unix_nano 11 fixed64,
//		severity_number 2, severity_text 3, body 5 AnyValue, attributes 6,
//		dropped_attributes_count 7, flags 8 fixed32, trace_id 9, span_id 10,
//		event_name 12
//	}
func (r *reader) protobufRecord(res *resource, sc *scope, msg []byte) error {
	var rec record
	b := r.b
	b.Begin()
	b.Raw(msg)
	if b.Failed() {
		r.end(res, sc)
		return nil
	}
	var body []byte
	f := wire.Over(msg)
	for f.Next() {
		if int(f.Num) >= len(recordTypes) || !f.Is(recordTypes[f.Num]) {
			continue
		}
		switch {
		case f.Num == recordAttributes:
			if err := r.protobufPair(f.Bytes, asAttr); err != nil {
				return err
			}
		case f.Num == recordBody:
			body = f.Bytes
		default:
			rec.set(f.Num, f.Value, f.Bytes)
		}
	}
	err := broken("LogRecord", f.Err())
	if err != nil {
		return err
	}
	if rec.body, err = readAny(body); err != nil {
		return err
	}
	if _, err := r.finish(&rec, sc, res); err != nil {
		return err
	}
	r.end(res, sc)
	return nil
}

// noType is the type of no field.
const noType protowire.Type = -1

// recordTypes are the types of a LogRecord's fields, by number.
var recordTypes = [...]protowire.Type{
	noType,
	protowire.Fixed64Type, // time_unix_nano
	protowire.VarintType,  // severity_number
	protowire.BytesType,   // severity_text
	noType,
	protowire.BytesType,   // body
	protowire.BytesType,   // attributes
	protowire.VarintType,  // dropped_attributes_count
	protowire.Fixed32Type, // flags
	protowire.BytesType,   // trace_id
	protowire.BytesType,   // span_id
	protowire.Fixed64Type, // observed_time_unix_nano
	protowire.BytesType,   // event_name
}

// keyValue is a
//
//	KeyValue { key 1 string, value 2 AnyValue }
type keyValue struct{ key, value []byte }

func readKeyValue(msg []byte) (kv keyValue, err error) {
	kv.key, kv.value, err = wire.Pair(msg)
	return kv, broken("KeyValue", err)
}

// service returns the value if the key is service.name and it is a string that
// is not empty.
func (kv *keyValue) service() (text []byte, is bool) {
	if string(kv.key) != string(serviceName) {
		return nil, false
	}
	v, err := readAny(kv.value)
	return v.bytes, err == nil && v.kind == anyString && len(v.bytes) > 0
}

// anyTypes are the types of an AnyValue's fields, by number.
var anyTypes = [...]protowire.Type{
	anyEmpty:  noType,
	anyString: protowire.BytesType,
	anyBool:   protowire.VarintType,
	anyInt:    protowire.VarintType,
	anyDouble: protowire.Fixed64Type,
	anyArray:  protowire.BytesType,
	anyList:   protowire.BytesType,
	anyBytes:  protowire.BytesType,
}

// readAny reads an AnyValue, the last of whose fields counts.
func readAny(msg []byte) (v anyValue, err error) {
	if text, rest := wire.Short(msg, byte(anyString)); text != nil && len(rest) == 0 {
		return anyValue{kind: anyString, bytes: text}, nil
	}
	f := wire.Over(msg)
	for f.Next() {
		if int(f.Num) < len(anyTypes) && f.Is(anyTypes[f.Num]) {
			v = anyValue{kind: anyKind(f.Num), value: f.Value, bytes: f.Bytes}
		}
	}
	return v, broken("AnyValue", f.Err())
}

// protobufValue gives the Builder the value of an AnyValue.
func (r *reader) protobufValue(msg []byte) error {
	v, err := readAny(msg)
	if err == nil {
		_, err = r.put(v)
	}
	return err
}

func (r *reader) protobufArray(msg []byte) error {
	f := wire.Over(msg)
	for !r.b.Failed() && f.Next() {
		if f.Num == 1 && f.Is(protowire.BytesType) {
			if err := r.protobufValue(f.Bytes); err != nil {
				return err
			}
		}
	}
	return broken("ArrayValue", f.Err())
}

// protobufPairs reads the KeyValues that are field num of a message.
func (r *reader) protobufPairs(msg []byte, num protowire.Number, as named) error {
	f := wire.Over(msg)
	for !r.b.Failed() && f.Next() {
		if f.Num != num || !f.Is(protowire.BytesType) {
			continue
		}
		if as == asOther {
			kv, err := readKeyValue(f.Bytes)
			if err != nil {
				return err
			}
			if _, is := kv.service(); is {
				as = asMember
				continue
			}
		}
		if err := r.protobufPair(f.Bytes, as); err != nil {
			return err
		}
	}
	return broken("KeyValueList", f.Err())
}

func (r *reader) protobufPair(msg []byte, as named) error {
	kv, err := readKeyValue(msg)
	if err != nil {
		return err
	}
	r.name(kv.key, as)
	return r.protobufValue(kv.value)
}
