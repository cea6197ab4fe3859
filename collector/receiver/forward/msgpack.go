package forward

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"strconv"
	"time"

	"github.com/rollway/rollway/collector/normalize"
)

// kind is that of a value of MessagePack.
type kind uint8

const (
	isInvalid kind = iota
	isNil
	isBool      // n: 1 or 0
	isInt       // int
	isUint      // uint, above what an int holds
	isFloat     // float
	isString    // data
	isBinary    // data
	isExtension // ext, data
	isArray     // n values follow
	isMap       // n pairs of values follow
)

var kindNames = [...]string{"no value", "nil", "a boolean", "a number", "a number", "a number", "a string", "binary data", "an extension", "an array", "a map"}

// token is a value, or the beginning of an array or a map.
type token struct {
	kind  kind
	ext   int8
	n     int
	int   int64
	uint  uint64
	float float64
	data  []byte // points into the message
}

func (t token) String() string {
	if t.kind == isArray || t.kind == isMap {
		return fmt.Sprintf("%s of %d", kindNames[t.kind], t.n)
	}
	return kindNames[t.kind]
}

var (
	errShort   = errors.New("more bytes are needed")
	errInvalid = errors.New("not MessagePack: the byte 0xc1 begins no value")
	errDeep    = errors.New("arrays and maps are nested more than 1000 deep")
)

// maxDepth is far beyond what an event may have, so that one that is too deep
// is rejected by itself.
const maxDepth = 1000

// scan reads the token at the beginning of b and returns its length. The error
// is errShort or errInvalid. Format: the MessagePack specification,
// https://github.com/msgpack/msgpack/blob/master/spec.md.
func scan(b []byte) (t token, n int, err error) {
	if len(b) == 0 {
		return t, 0, errShort
	}
	c := b[0]
	switch {
	case c <= 0x7f:
		return token{kind: isInt, int: int64(c)}, 1, nil
	case c <= 0x8f:
		return token{kind: isMap, n: int(c & 0x0f)}, 1, nil
	case c <= 0x9f:
		return token{kind: isArray, n: int(c & 0x0f)}, 1, nil
	case c <= 0xbf:
		return bytesToken(b, isString, 1, int(c&0x1f))
	case c >= 0xe0:
		return token{kind: isInt, int: int64(int8(c))}, 1, nil
	case c == 0xc1:
		return t, 0, errInvalid
	}
	shape := shapes[c-0xc0]
	if len(b) < 1+int(shape.size) {
		return t, 0, errShort
	}
	v := uint64(0)
	for _, d := range b[1 : 1+shape.size] {
		v = v<<8 | uint64(d)
	}
	n = 1 + int(shape.size)
	switch shape.kind {
	case isBool:
		return token{kind: isBool, n: int(c & 1)}, n, nil
	case isUint:
		if v <= math.MaxInt64 {
			return token{kind: isInt, int: int64(v)}, n, nil
		}
		return token{kind: isUint, uint: v}, n, nil
	case isInt:
		shift := 64 - 8*uint(shape.size)
		return token{kind: isInt, int: int64(v<<shift) >> shift}, n, nil
	case isFloat:
		if shape.size == 4 {
			return token{kind: isFloat, float: float64(math.Float32frombits(uint32(v)))}, n, nil
		}
		return token{kind: isFloat, float: math.Float64frombits(v)}, n, nil
	case isString, isBinary:
		return bytesToken(b, shape.kind, n, int(v))
	case isExtension:
		if shape.size == 0 { // of a fixed length
			v = 1 << (c - 0xd4)
		}
		if len(b) < n+1 {
			return t, 0, errShort
		}
		ext := int8(b[n])
		t, n, err = bytesToken(b, isExtension, n+1, int(v))
		t.ext = ext
		return t, n, err
	}
	return token{kind: shape.kind, n: int(v)}, n, nil
}

// shapes are the kinds of the values that begin with 0xc0 to 0xdf, and how many
// bytes of a number or a length follow.
var shapes = [32]struct {
	kind kind
	size uint8
}{
	{isNil, 0}, {isInvalid, 0}, {isBool, 0}, {isBool, 0},
	{isBinary, 1}, {isBinary, 2}, {isBinary, 4}, {isExtension, 1}, {isExtension, 2}, {isExtension, 4},
	{isFloat, 4}, {isFloat, 8}, {isUint, 1}, {isUint, 2}, {isUint, 4}, {isUint, 8},
	{isInt, 1}, {isInt, 2}, {isInt, 4}, {isInt, 8},
	{isExtension, 0}, {isExtension, 0}, {isExtension, 0}, {isExtension, 0}, {isExtension, 0},
	{isString, 1}, {isString, 2}, {isString, 4}, {isArray, 2}, {isArray, 4}, {isMap, 2}, {isMap, 4},
}

func bytesToken(b []byte, k kind, head, size int) (token, int, error) {
	if size < 0 || len(b)-head < size {
		return token{}, 0, errShort
	}
	return token{kind: k, data: b[head : head+size : head+size]}, head + size, nil
}

// walker finds the end of a value, and goes on from where it was when more
// bytes have come.
type walker struct {
	at   int
	todo []uint64 // values to come in each array and map that is open
}

func (w *walker) reset() { w.at, w.todo = 0, w.todo[:0] }

// value returns the length of the value at the beginning of b, which begins
// with what the call before was given. The error is errShort if more is needed.
func (w *walker) value(b []byte) (int, error) {
	for {
		t, n, err := scan(b[w.at:])
		if err != nil {
			return 0, err
		}
		w.at += n
		if todo := t.values(); todo > 0 {
			if len(w.todo) == maxDepth {
				return 0, errDeep
			}
			w.todo = append(w.todo, todo)
			continue
		}
		for len(w.todo) > 0 {
			last := len(w.todo) - 1
			if w.todo[last]--; w.todo[last] > 0 {
				break
			}
			w.todo = w.todo[:last]
		}
		if len(w.todo) == 0 {
			return w.at, nil
		}
	}
}

// values is how many values belong to t and follow it.
func (t *token) values() uint64 {
	switch t.kind {
	case isArray:
		return uint64(t.n)
	case isMap:
		return 2 * uint64(t.n)
	}
	return 0
}

// reader reads a message that a walker has found whole.
type reader struct{ b []byte }

// before returns the bytes between r and later, a reader of the same message.
func (r *reader) before(later *reader) []byte { return r.b[:len(r.b)-len(later.b)] }

// next reads a token. After the end there are nils.
func (r *reader) next() token {
	t, n, err := scan(r.b)
	if err != nil {
		r.b = nil
		return token{kind: isNil}
	}
	r.b = r.b[n:]
	return t
}

// skip passes over what belongs to t, which was read.
func (r *reader) skip(t token) { r.skipValues(int(t.values())) }

func (r *reader) skipValues(n int) {
	for ; n > 0 && len(r.b) > 0; n-- {
		t := r.next()
		n += int(t.values())
	}
}

// maxNumber is longer than any number or boolean as text.
const maxNumber = 32

// text returns a key as text; buf is room for another value. It reports
// false for what has no text of its own.
func (t *token) text(buf []byte) ([]byte, bool) {
	switch t.kind {
	case isString, isBinary:
		return t.data, true
	case isNil:
		return append(buf, "null"...), true
	case isBool:
		return strconv.AppendBool(buf, t.n != 0), true
	case isInt:
		return strconv.AppendInt(buf, t.int, 10), true
	case isUint:
		return strconv.AppendUint(buf, t.uint, 10), true
	case isFloat:
		return strconv.AppendFloat(buf, t.float, 'g', -1, 64), true
	}
	return nil, false
}

// eventTime is the type of the extension that is a time: seconds and
// nanoseconds, 32 bits each.
const eventTime = 0

// time returns t as seconds and nanoseconds since 1970, if it is a time.
func (t *token) time() (sec int64, nsec int, ok bool) {
	const last = 253402300799 // of the year 9999
	switch {
	case t.kind == isInt && t.int >= 0 && t.int <= last:
		return t.int, 0, true
	case t.kind == isFloat && t.float >= 0 && t.float <= last:
		whole, part := math.Modf(t.float)
		return int64(whole), int(part * 1e9), true
	case t.kind == isExtension && t.ext == eventTime && len(t.data) == 8:
		nsec := binary.BigEndian.Uint32(t.data[4:])
		return int64(binary.BigEndian.Uint32(t.data)), int(nsec), nsec < 1e9
	}
	return 0, 0, false
}

func binaryValue(b *normalize.Builder, data []byte) {
	if normalize.IsText(data) {
		b.String(data)
	} else {
		b.Bytes(data)
	}
}

var (
	nameType = []byte("type")
	nameData = []byte("data")
)

func extension(b *normalize.Builder, t *token) {
	if sec, nsec, ok := t.time(); ok {
		var buf [40]byte
		b.String(time.Unix(sec, int64(nsec)).UTC().AppendFormat(buf[:0], time.RFC3339Nano))
		return
	}
	b.BeginObject()
	b.Name(nameType)
	b.Int(int64(t.ext))
	b.Name(nameData)
	b.Bytes(t.data)
	b.EndObject()
}
