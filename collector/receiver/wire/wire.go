// Package wire reads what clients send without building it: protocol buffers field by
// field, JSON value by value.
package wire

import (
	"encoding/binary"

	"google.golang.org/protobuf/encoding/protowire"
)

// Fields goes over the fields of one message:
//
//	for f := wire.Over(msg); f.Next(); {
//		switch f.Num { … }
//	}
//	if f.Err() != nil { … }
//
// Fields that end a message early, or groups that do not end, are an error.
type Fields struct {
	Num   protowire.Number
	Type  protowire.Type
	Value uint64 // of a varint, or of what has a fixed size
	Bytes []byte // of what has a length; part of the message

	rest []byte
	err  error
}

// Over returns the fields of a message, before the first.
func Over(msg []byte) Fields { return Fields{rest: msg} }

// Short returns the value of the field that a message begins with, and the rest
// of the message, if that is the field num, below 16, of a type that has a
// length, and the length is below 128. Otherwise value is nil.
func Short(msg []byte, num byte) (value, rest []byte) {
	if len(msg) < 2 || msg[0] != num<<3|byte(protowire.BytesType) || msg[1] >= 0x80 || int(msg[1]) > len(msg)-2 {
		return nil, nil
	}
	end := 2 + int(msg[1])
	return msg[2:end], msg[end:]
}

// Pair returns the fields 1 and 2 of a message, of a type that has a length, as of a
// key and its value.
func Pair(msg []byte) (key, value []byte, err error) {
	// As nearly all are: both fields in this order, and short.
	if key, rest := Short(msg, 1); key != nil {
		if value, rest := Short(rest, 2); value != nil && len(rest) == 0 {
			return key, value, nil
		}
	}
	f := Over(msg)
	for f.Next() {
		switch {
		case !f.Is(protowire.BytesType):
		case f.Num == 1:
			key = f.Bytes
		case f.Num == 2:
			value = f.Bytes
		}
	}
	return key, value, f.Err()
}

// Err returns why Next returned false before the end of the message.
func (f *Fields) Err() error { return f.err }

// Next goes to the next field.
func (f *Fields) Next() bool {
	b := f.rest
	if len(b) < 2 || b[0] < 1<<3 || b[0] >= 0x80 {
		return f.next()
	}
	// The tag is one byte, as nearly all are, and what is after it is short.
	typ, size, start := protowire.Type(b[0]&7), int(b[1]), 2
	if size >= 0x80 && typ == protowire.BytesType && len(b) > 2 && b[2] < 0x80 {
		size, start = size&0x7f|int(b[2])<<7, 3
	}
	switch {
	case typ == protowire.VarintType && size < 0x80:
		f.Value, f.Bytes, f.rest = uint64(size), nil, b[2:]
	case typ == protowire.Fixed64Type && len(b) >= 9:
		f.Value, f.Bytes, f.rest = binary.LittleEndian.Uint64(b[1:9]), nil, b[9:]
	case typ == protowire.BytesType && (size < 0x80 || start == 3) && size <= len(b)-start:
		f.Value, f.Bytes, f.rest = 0, b[start:start+size], b[start+size:]
	default:
		return f.next()
	}
	f.Num, f.Type = protowire.Number(b[0]>>3), typ
	return true
}

// next is Next for all fields.
func (f *Fields) next() bool {
	if len(f.rest) == 0 {
		return false
	}
	num, typ, n := protowire.ConsumeTag(f.rest)
	if n < 0 {
		return f.fail(n)
	}
	f.Num, f.Type, f.Value, f.Bytes = num, typ, 0, nil
	f.rest = f.rest[n:]
	switch typ {
	case protowire.VarintType:
		f.Value, n = protowire.ConsumeVarint(f.rest)
	case protowire.Fixed32Type:
		var v uint32
		v, n = protowire.ConsumeFixed32(f.rest)
		f.Value = uint64(v)
	case protowire.Fixed64Type:
		f.Value, n = protowire.ConsumeFixed64(f.rest)
	case protowire.BytesType:
		f.Bytes, n = protowire.ConsumeBytes(f.rest)
	default:
		n = protowire.ConsumeFieldValue(num, typ, f.rest)
	}
	if n < 0 {
		return f.fail(n)
	}
	f.rest = f.rest[n:]
	return true
}

func (f *Fields) fail(n int) bool {
	f.err, f.rest = protowire.ParseError(n), nil
	return false
}

// Is reports whether the field has the type that it should have. A field of
// another is as good as unknown.
func (f *Fields) Is(typ protowire.Type) bool { return f.Type == typ }
