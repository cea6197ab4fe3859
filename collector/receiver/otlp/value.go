package otlp

import (
	"errors"
	"fmt"
	"math"

	"github.com/rollway/rollway/collector/receiver/wire"
	"github.com/rollway/rollway/internal/jsonwalk"
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

// anyValue is what an AnyValue has.
type anyValue struct {
	kind anyKind
	value
}

func (v *anyValue) double() float64 { return math.Float64frombits(v.number) }

// any calls use for the one value of an AnyValue, in protocol buffers the last of
// several. use returns the end of an array or a list in JSON.
func (r *reader) any(msg part, use func(v anyValue) (end int, err error)) (end int, err error) {
	if !r.json {
		v, err := readAny(msg.bytes)
		if err != nil {
			return 0, err
		}
		return use(v)
	}
	seen := false
	end, err = r.jsonFields(&anyValueMsg, msg.at, func(f *field, v value) (int, error) {
		if seen {
			return 0, r.Invalid(v.at, fmt.Errorf("an AnyValue has one value, but %s is another", f.name))
		}
		seen = true
		return use(anyValue{anyKind(f.num), v})
	})
	if err == nil && !seen {
		_, err = use(anyValue{})
	}
	return end, err
}

// readAny reads an AnyValue in protocol buffers.
func readAny(msg []byte) (v anyValue, err error) {
	if text, rest := wire.Short(msg, byte(anyString)); text != nil && len(rest) == 0 { // as most are
		return anyValue{anyString, value{part: part{bytes: text}}}, nil
	}
	w := wire.Over(msg)
	for w.Next() {
		if f := anyValueMsg.byNumber(w.Num, w.Type); f != nil {
			v = anyValue{anyKind(f.num), value{part: part{bytes: w.Bytes}, number: w.Value}}
		}
	}
	return v, broken(&anyValueMsg, w.Err())
}

// put gives the Builder a value. It returns the end of an array or a list in JSON.
func (r *reader) put(v anyValue) (end int, err error) {
	b := r.b
	switch v.kind {
	case anyString:
		b.String(r.textOf(v.bytes))
	case anyBool:
		b.Bool(v.number != 0)
	case anyInt:
		b.Int(int64(v.number))
	case anyDouble:
		b.Float(v.double())
	case anyBytes:
		b.Bytes(v.bytes)
	case anyArray:
		b.BeginArray()
		end, err = r.fields(&arrayValueMsg, v.part, func(_ *field, v value) (int, error) {
			if b.Failed() {
				return 0, nil
			}
			return r.any(v.part, r.put)
		})
		if err == nil {
			b.EndArray()
		}
	case anyList:
		end, err = r.object(&keyValueListMsg, v.part, asMember)
	default:
		b.Null()
	}
	return end, err
}

// named says what becomes of a key and a value.
type named uint8

const (
	asMember named = iota // of an object
	asOther               // likewise, except for the first of each of ownNames
	asAttr
	asField
)

// object makes an object of the KeyValues in a message.
func (r *reader) object(m *message, msg part, as named) (end int, err error) {
	r.b.BeginObject()
	if end, err = r.pairs(m, msg, as); err == nil {
		r.b.EndObject()
	}
	return end, err
}

// pairs gives the Builder the KeyValues in a message. Once the event is a rejected one
// nested values are not read any more.
func (r *reader) pairs(m *message, msg part, as named) (end int, err error) {
	var seen [numOwn]bool
	return r.fields(m, msg, func(f *field, v value) (int, error) {
		if f.message != &keyValueMsg {
			return 0, nil
		}
		if as == asOther {
			p, err := r.keyValue(v.part)
			if err != nil {
				return 0, err
			}
			if i, text := r.ownResource(&p); text != nil && !seen[i] {
				seen[i] = true
				return p.end, nil
			}
		}
		return r.pair(v.part, as)
	})
}

// pair gives the Builder a KeyValue.
func (r *reader) pair(msg part, as named) (end int, err error) {
	if r.b.Failed() {
		return 0, nil
	}
	if r.json {
		if end := r.jsonPlainPair(msg.at, as); end > 0 {
			return end, nil
		}
		return r.jsonPair(msg.at, as)
	}
	key, value, err := wire.Pair(msg.bytes)
	if err != nil {
		return 0, broken(&keyValueMsg, err)
	}
	r.name(key, as)
	if text, rest := wire.Short(value, byte(anyString)); text != nil && len(rest) == 0 { // as most are
		r.b.String(text)
		return 0, nil
	}
	v, err := readAny(value)
	if err != nil {
		return 0, err
	}
	return r.put(v)
}

// jsonPlainPair is jsonPair for the form that most attributes have. If the KeyValue
// has another it does nothing and returns -1.
func (r *reader) jsonPlainPair(at int, as named) (end int) {
	const beforeKey, beforeValue, atEnd = `{"key":`, `,"value":{"stringValue":`, `}}`
	key := r.After(beforeKey, at)
	value := r.After(beforeValue, r.StringEnd(key))
	valueEnd := r.StringEnd(value)
	if end = r.After(atEnd, valueEnd); end < 0 {
		return -1
	}
	r.name(r.Text(r.Body[key:value-len(beforeValue)]), as)
	r.b.String(r.Text(r.Body[value:valueEnd]))
	return end
}

// maxReread is how many times the length of a request is read again to find keys.
const maxReread = 16

var (
	errAnother = errors.New("a KeyValue has one key and one value, and this is another")
	errOrder   = errors.New("a value before its key")
)

// jsonPair gives the Builder the KeyValue at an offset. Its key comes first as a rule;
// else the value is passed over and read again.
func (r *reader) jsonPair(at int, as named) (end int, err error) {
	hasKey, hasValue := false, false
	end, err = r.jsonFields(&keyValueMsg, at, func(f *field, v value) (int, error) {
		switch {
		case hasValue, hasKey && f.num == 1:
			return 0, r.Invalid(at, errAnother)
		case f.num == 1:
			hasKey = true
			r.name(r.Text(v.bytes), as)
			return 0, nil
		case !hasKey:
			return 0, errOrder
		}
		hasValue = true
		return r.any(v.part, r.put)
	})
	if hasKey || err != nil && err != errOrder {
		if err == nil && !hasValue {
			r.b.Null()
		}
		return end, err
	}
	p, err := r.keyValue(part{at: at})
	if err != nil {
		return 0, err
	}
	if r.reread += p.end - at; r.reread > maxReread*len(r.Body) {
		return 0, r.Invalid(at, errors.New("values that hold others come before their keys"))
	}
	r.name(r.textOf(p.key), as)
	if !p.hasValue {
		r.b.Null()
		return p.end, nil
	}
	_, err = r.any(p.value, r.put)
	return p.end, err
}

// keyValue is a KeyValue.
type keyValue struct {
	key      []byte // a string; or nil
	value    part
	hasValue bool
	end      int // in JSON
}

// keyValue finds the parts of a KeyValue.
func (r *reader) keyValue(msg part) (p keyValue, err error) {
	if !r.json {
		p.key, p.value.bytes, err = wire.Pair(msg.bytes)
		p.hasValue = true
		return p, broken(&keyValueMsg, err)
	}
	p.end, err = r.jsonFields(&keyValueMsg, msg.at, func(f *field, v value) (int, error) {
		switch {
		case f.num == 1 && p.key == nil:
			p.key = v.bytes
		case f.num == 2 && !p.hasValue:
			p.value, p.hasValue = v.part, true
		default:
			return 0, r.Invalid(msg.at, errAnother)
		}
		return 0, nil
	})
	return p, err
}

// ownNames are the attributes of a resource that have a place of their own in an event.
var ownNames = [...]string{ofService: "service.name", ofHost: "host.name"}

const (
	ofService = iota
	ofHost
	numOwn
)

// ownResource returns which of ownNames the key of a KeyValue is, and the value if that is
// a string that is not empty.
func (r *reader) ownResource(p *keyValue) (i int, text []byte) {
	for i < numOwn && (r.json && !jsonwalk.Equal(p.key, ownNames[i]) || !r.json && string(p.key) != ownNames[i]) {
		i++
	}
	if i == numOwn || !p.hasValue {
		return 0, nil
	}
	r.any(p.value, func(v anyValue) (int, error) {
		if v.kind == anyString && len(r.textOf(v.bytes)) > 0 {
			text = v.bytes
		}
		return 0, nil
	})
	return i, text
}

// Numbers of the attributes among the fields of their messages.
const (
	resourceAttributes = 1
	scopeAttributes    = 3
)

// name says where the next value goes.
func (r *reader) name(key []byte, as named) {
	switch as {
	case asAttr:
		r.b.Member(key)
	case asField:
		r.b.Field(key)
	default:
		r.b.Name(key)
	}
}
