package otlp

import (
	"math"

	"google.golang.org/protobuf/encoding/protowire"
)

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
type anyValue struct {
	kind  anyKind
	value uint64
	bytes []byte // of a string its text; of an array or a list in protocol buffers the message

	at, end int // in JSON; the end of an array or a list is known once it was read
}

func (v *anyValue) double() float64 { return math.Float64frombits(v.value) }

// named says what becomes of a key and a value.
type named uint8

const (
	asMember named = iota // of an object
	asOther               // likewise, except for the first service.name, which has a slot
	asAttr
	asField
)

// put gives the Builder a value, and returns its end in JSON.
func (r *reader) put(v anyValue) (end int, err error) {
	b := r.b
	switch v.kind {
	case anyString:
		b.String(r.textOf(v.bytes))
	case anyBool:
		b.Bool(v.value != 0)
	case anyInt:
		b.Int(int64(v.value))
	case anyDouble:
		b.Float(v.double())
	case anyBytes:
		b.Bytes(v.bytes)
	case anyArray:
		b.BeginArray()
		if r.json {
			end, err = r.jsonArray(v.at)
		} else {
			err = r.protobufArray(v.bytes)
		}
		if err == nil {
			b.EndArray()
		}
		return end, err
	case anyList:
		b.BeginObject()
		if end, err = r.list(v, asMember); err == nil {
			b.EndObject()
		}
		return end, err
	default:
		b.Null()
	}
	return v.end, nil
}

// list reads the keys and values of a KeyValueList. Once the event is a rejected one
// nested values are not read any more.
func (r *reader) list(v anyValue, as named) (end int, err error) {
	if r.json {
		return r.jsonPairsIn(&keyValueListMsg, v.at, as)
	}
	return 0, r.protobufPairs(v.bytes, 1, as)
}

// Numbers of the attributes among the fields of their messages.
const (
	resourceAttributes = 1
	scopeAttributes    = 3
)

// attributes makes an object of the attributes of a resource or a scope, field num
// of its message.
func (r *reader) attributes(msg *part, num protowire.Number, as named) (err error) {
	r.b.BeginObject()
	switch {
	case !r.json:
		err = r.protobufPairs(msg.bytes, num, as)
	case as == asOther:
		_, err = r.jsonPairsIn(&resourceMsg, msg.at, as)
	default:
		_, err = r.jsonPairsIn(&scopeMsg, msg.at, as)
	}
	if err == nil {
		r.b.EndObject()
	}
	return err
}

// name says where the next value goes.
func (r *reader) name(key []byte, as named) {
	switch as {
	case asAttr:
		r.b.Attr(key)
	case asField:
		r.b.Field(key)
	default:
		r.b.Name(key)
	}
}

var serviceName = []byte("service.name")
