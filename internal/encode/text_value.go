package encode

import (
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"log/slog"
	"math"
	"reflect"
	"strconv"
	"time"
	"unsafe"

	"github.com/rollway/rollway/internal/jsonline"
)

// resolved is resolve for a value that is rarely a LogValuer.
func resolved(v slog.Value) slog.Value {
	if v.Kind() == slog.KindLogValuer {
		return resolve(v)
	}
	return v
}

// bytesAsString returns b for a callee that does not keep it.
func bytesAsString(b []byte) string { return unsafe.String(unsafe.SliceData(b), len(b)) }

// value appends v, which is resolved and not a group, quoted if its end would
// otherwise be unclear. key is for lines below the line.
func (t *textLine) value(key string, v slog.Value) {
	switch v.Kind() {
	case slog.KindString:
		t.word(v.String())
	case slog.KindInt64:
		t.dst = jsonline.AppendInt(t.dst, v.Int64())
	case slog.KindUint64:
		t.dst = jsonline.AppendUint(t.dst, v.Uint64())
	case slog.KindFloat64:
		t.float(v.Float64())
	case slog.KindBool:
		t.dst = strconv.AppendBool(t.dst, v.Bool())
	case slog.KindDuration:
		if t.f.Unit == 0 {
			t.dst = append(t.dst, v.Duration().String()...)
		} else {
			t.dst = t.f.appendDuration(t.dst, v.Duration())
		}
	case slog.KindTime:
		t.timeValue(v.Time())
	case slog.KindGroup: // only in a slot
		t.json = t.f.appendJSONValue(t.json[:0], v, 0)
		t.fromJSON()
	default:
		t.any(key, v.Any())
	}
}

// float appends f as in JSON, and NaN and infinities without quotes.
func (t *textLine) float(f float64) {
	if math.IsNaN(f) || math.IsInf(f, 0) {
		t.dst = strconv.AppendFloat(t.dst, f, 'g', -1, 64)
		return
	}
	t.dst = jsonline.AppendFloat(t.dst, f)
}

func (t *textLine) word(s string) { t.dst = t.f.appendWord(t.dst, s) }

// requote quotes what was appended from mark on, if necessary.
func (t *textLine) requote(mark int) {
	if !isPlain(bytesAsString(t.dst[mark:])) {
		s := string(t.dst[mark:])
		t.dst = t.dst[:mark]
		t.word(s)
	}
}

func (t *textLine) timeValue(v time.Time) {
	f := t.f
	switch {
	case f.Time == UnixSeconds, f.Time == UnixMilli, f.Time == UnixNano, f.Time == UnixFloat:
		t.dst = f.appendTimeValue(t.dst, v)
	case f.Time == RFC3339Nano && f.Location == nil:
		t.dst = jsonline.AppendTime(t.dst, v)
	default:
		mark := len(t.dst)
		t.dst = f.appendLayoutTime(t.dst, v)
		t.requote(mark)
	}
}

// any appends a value of any type; one that panics becomes !PANIC.
func (t *textLine) any(key string, value any) {
	mark, below := len(t.dst), len(t.below)
	defer func() {
		if r := recover(); r != nil {
			t.dst, t.below = t.dst[:mark], t.below[:below]
			t.word(panicText(value, r))
		}
	}()
	switch v := value.(type) {
	case encoded:
		t.dst = append(t.dst, v.line...)
		t.below = append(t.below, v.below...)
		return
	}
	if out, ok := AppendSelf(t.f, t.json[:0], value, 0); ok {
		t.json = out
		t.fromJSON()
		return
	}
	switch v := value.(type) {
	case json.RawMessage, *json.RawMessage:
	case error:
		t.error(key, v)
		return
	case []byte:
		t.bytes(v)
		return
	case *[]byte:
		t.bytes(deref(v))
		return
	case fmt.Stringer:
		t.word(v.String())
		return
	}
	// As JSON: the encoder ends if a value contains itself; package fmt would not.
	t.json = t.f.appendJSONAny(t.json[:0], value, 0)
	t.fromJSON()
}

// fromJSON appends t.json: the text of a JSON string; other JSON as it is, which
// needs no quotes on the console.
func (t *textLine) fromJSON() {
	encoded := bytesAsString(t.json)
	switch {
	case len(encoded) > 1 && encoded[0] == '"':
		if inside := encoded[1 : len(encoded)-1]; isPlain(inside) { // without a backslash
			t.word(inside)
			return
		}
		var s string
		if json.Unmarshal(t.json, &s) != nil {
			s = encoded // unreachable: it is JSON
		}
		t.word(s)
	case t.f.Kind == Console:
		t.dst = appendPrintable(t.dst, encoded, escapeNested)
	default:
		t.word(encoded)
	}
}

func (t *textLine) bytes(b []byte) {
	switch t.f.Bytes {
	case BytesBase64:
		mark := len(t.dst)
		t.dst = base64.StdEncoding.AppendEncode(t.dst, b)
		t.requote(mark) // it may end in =
	case BytesHex:
		t.dst = hex.AppendEncode(t.dst, b)
	default:
		t.word(bytesAsString(b))
		return
	}
	if len(b) == 0 {
		t.word("")
	}
}

// error appends an error's text and, with ErrorDetail, its type and causes: in logfmt
// as key.type, key.causes.0, key.causes.0.type and so on and key.stack, on the console
// below the line.
func (t *textLine) error(key string, err error) {
	t.word(errorText(err))
	if !t.f.ErrorDetail {
		return
	}
	if t.f.Kind == Console {
		t.errorBelow(key, err)
		return
	}
	mark := len(t.prefix)
	t.prefix = append(t.prefix, key...)
	first := true
	path := eachField(t.prefix, err, func(path []byte, text string) {
		if !first {
			t.prefix = path
			t.key("")
			t.word(text)
		}
		first = false
	})
	t.prefix = path[:mark]
}

// typeName returns the type of an error; for a redacted one its original type.
func typeName(err error) string {
	if r, ok := err.(redactedError); ok {
		err = r.err
	}
	return reflect.TypeOf(err).String()
}
