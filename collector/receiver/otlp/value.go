package otlp

import (
	"math"

	"google.golang.org/protobuf/encoding/protowire"

	"github.com/rollway/rollway/collector/receiver/wire"
)

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
	if string(kv.key) != "service.name" {
		return nil, false
	}
	v, err := readAny(kv.value)
	return v.bytes, err == nil && v.kind == anyString && len(v.bytes) > 0
}

// anyKind is which of its fields an AnyValue has: their numbers.
type anyKind uint8

const (
	anyEmpty anyKind = iota
	anyString
	anyBool
	anyInt
	anyDouble
	anyArray
	anyList
	anyBytes
)

// anyValue is an
//
//	AnyValue {
//		string_value 1, bool_value 2, int_value 3 int64, double_value 4,
//		array_value 5 ArrayValue { values 1 AnyValue },
//		kvlist_value 6 KeyValueList { values 1 KeyValue },
//		bytes_value 7
//	}
//
// of which the last field counts.
type anyValue struct {
	kind  anyKind
	value uint64
	bytes []byte
}

func (v *anyValue) double() float64 { return math.Float64frombits(v.value) }

var anyTypes = [...]protowire.Type{
	anyString: protowire.BytesType,
	anyBool:   protowire.VarintType,
	anyInt:    protowire.VarintType,
	anyDouble: protowire.Fixed64Type,
	anyArray:  protowire.BytesType,
	anyList:   protowire.BytesType,
	anyBytes:  protowire.BytesType,
}

func readAny(msg []byte) (v anyValue, err error) {
	if text, rest := wire.Short(msg, byte(anyString)); text != nil && len(rest) == 0 {
		return anyValue{kind: anyString, bytes: text}, nil
	}
	f := wire.Over(msg)
	for f.Next() {
		if f.Num >= 1 && int(f.Num) < len(anyTypes) && f.Is(anyTypes[f.Num]) {
			v = anyValue{anyKind(f.Num), f.Value, f.Bytes}
		}
	}
	return v, broken("AnyValue", f.Err())
}

// value is the value of an AnyValue for the Builder. A nesting that makes the
// event a rejected one is not followed further.
func (r *reader) value(msg []byte) error {
	v, err := readAny(msg)
	if err != nil {
		return err
	}
	return r.put(&v)
}

func (r *reader) put(v *anyValue) error {
	b := r.b
	switch v.kind {
	case anyString:
		b.String(v.bytes)
	case anyBool:
		b.Bool(v.value != 0)
	case anyInt:
		b.Int(int64(v.value))
	case anyDouble:
		b.Float(v.double())
	case anyBytes:
		b.Bytes(v.bytes)
	case anyArray:
		return r.array(v.bytes)
	case anyList:
		return r.members(v.bytes, 1, false)
	default:
		b.Null()
	}
	return nil
}

func (r *reader) array(msg []byte) error {
	r.b.BeginArray()
	f := wire.Over(msg)
	for !r.b.Failed() && f.Next() {
		if f.Num == 1 && f.Is(protowire.BytesType) {
			if err := r.value(f.Bytes); err != nil {
				return err
			}
		}
	}
	r.b.EndArray()
	return broken("ArrayValue", f.Err())
}

// members is an object of the KeyValues that are field num of msg; of a
// resource without the first service.name, which has a slot.
func (r *reader) members(msg []byte, num protowire.Number, ofResource bool) error {
	r.b.BeginObject()
	f := wire.Over(msg)
	for !r.b.Failed() && f.Next() {
		if f.Num != num || !f.Is(protowire.BytesType) {
			continue
		}
		kv, err := readKeyValue(f.Bytes)
		if err != nil {
			return err
		}
		if ofResource {
			if _, is := kv.service(); is {
				ofResource = false
				continue
			}
		}
		r.b.Name(kv.key)
		if err := r.value(kv.value); err != nil {
			return err
		}
	}
	r.b.EndObject()
	return broken("KeyValueList", f.Err())
}
