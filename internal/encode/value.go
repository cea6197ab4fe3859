package encode

import (
	"encoding/json"
	"fmt"
	"log/slog"
	"reflect"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/rollway/rollway/internal/jsonline"
)

// maxDepth bounds nested groups, so that a LogValuer that returns itself inside a
// group ends.
const maxDepth = 32

const tooDeep = "!ERROR: too deep or too large"

// appendJSONValue appends any v as one JSON value.
func (f *Format) appendJSONValue(dst []byte, v slog.Value, depth int) []byte {
	if f.plain && viewOf(&v).isPlainError() {
		return jsonline.AppendString(dst, viewOf(&v).any().(error).Error())
	}
	return f.appendJSONKind(dst, v.Kind(), v, depth)
}

// appendJSONKind is appendJSONValue for a v whose kind is known.
func (f *Format) appendJSONKind(dst []byte, kind slog.Kind, v slog.Value, depth int) []byte {
	switch kind {
	case slog.KindString:
		return jsonline.AppendString(dst, v.String())
	case slog.KindInt64:
		return jsonline.AppendInt(dst, v.Int64())
	case slog.KindUint64:
		return jsonline.AppendUint(dst, v.Uint64())
	case slog.KindFloat64:
		return jsonline.AppendFloat(dst, v.Float64())
	case slog.KindBool:
		return strconv.AppendBool(dst, v.Bool())
	case slog.KindDuration:
		return f.appendDuration(dst, v.Duration())
	case slog.KindTime:
		return f.appendTimeValue(dst, v.Time())
	case slog.KindLogValuer:
		return f.appendJSONValue(dst, resolve(v), depth)
	case slog.KindGroup:
		if depth >= maxDepth || f.tooLong(dst) {
			return jsonline.AppendString(dst, tooDeep)
		}
		return append(f.appendMembers(append(dst, '{'), v.Group(), depth), '}')
	}
	return f.appendJSONAny(dst, viewOf(&v).any(), depth)
}

// appendDuration appends a duration as a JSON value.
func (f *Format) appendDuration(dst []byte, d time.Duration) []byte {
	switch f.Unit {
	case 0:
		return jsonline.AppendString(dst, d.String())
	case time.Nanosecond:
		return jsonline.AppendInt(dst, int64(d))
	}
	return jsonline.AppendFloat(dst, float64(d)/float64(f.Unit))
}

// resolve calls LogValue until the result is not a LogValuer. A panic becomes an
// error value, and so does an endless chain.
func resolve(v slog.Value) (out slog.Value) {
	defer func() {
		if r := recover(); r != nil {
			out = slog.StringValue(panicText(v.Any(), r))
		}
	}()
	n := enterValue()
	if n == nil {
		return slog.StringValue(logsItself)
	}
	defer leaveValue(n)
	for range 100 {
		if v.Kind() != slog.KindLogValuer {
			return v
		}
		v = v.LogValuer().LogValue()
	}
	return slog.StringValue("!ERROR: LogValue returned a LogValuer 100 times")
}

// panicText returns the text that replaces a value whose method panicked. For a nil
// pointer it only says so.
func panicText(value, r any) string {
	if v := reflect.ValueOf(value); v.Kind() == reflect.Pointer && v.IsNil() {
		return "<nil>"
	}
	if r == any(errTooDeep) {
		return tooDeep
	}
	return "!PANIC: " + safeSprint(r)
}

// safeSprint formats r, whose own methods may panic in ways that package fmt does not
// catch.
func safeSprint(r any) (s string) {
	defer func() {
		if recover() != nil {
			s = fmt.Sprintf("%T", r)
		}
	}()
	return fmt.Sprint(r)
}

// appendJSONAny appends a value of any type: the result of LogValue, what an append
// method appends, an error by Options.ErrorDetail, the rest by appendByMethod or by
// its kind. A value that cannot be encoded becomes a string that begins with !ERROR,
// one that panics a string that begins with !PANIC.
func (f *Format) appendJSONAny(dst []byte, value any, depth int) (out []byte) {
	mark := len(dst)
	var inside *atomic.Int32 // count to leave
	defer func() {
		if inside != nil {
			leaveValue(inside)
		}
		if r := recover(); r != nil {
			out = jsonline.AppendString(dst[:mark], panicText(value, r))
		}
	}()
	if out, ok := f.appendKnown(dst, value); ok {
		return out
	}
	if v, ok := value.(slog.LogValuer); ok { // in another value; first, as it may hide what the other methods show
		return f.appendJSONValue(dst, slog.AnyValue(v), depth+1)
	}
	if out, ok := AppendSelf(f, dst, value, depth); ok {
		return out
	}
	if v, ok := value.(error); ok {
		if f.ErrorDetail {
			return f.appendErrorDetail(dst, v)
		}
		if _, ok := value.(json.Marshaler); !ok {
			if inside = enterValue(); inside == nil {
				return jsonline.AppendString(dst, logsItself)
			}
			if f.redact != nil {
				return jsonline.AppendString(dst, f.redact.errorText(v))
			}
			return jsonline.AppendString(dst, v.Error())
		}
	}
	if out, ok := f.appendByMethod(dst, value, depth); ok {
		return out
	}
	v := reflect.ValueOf(value)
	info := infoOf(v.Type())
	if info.byAddr { // the pointer has the method
		return f.appendReflect(dst, v, depth)
	}
	return f.appendPlain(dst, v, info, depth)
}

// appendKnown appends a value of a type without methods: a slice of a common
// type, or what a pointer to one points to, since a slice in an interface costs
// an allocation and a pointer does not.
func (f *Format) appendKnown(dst []byte, value any) ([]byte, bool) {
	switch v := value.(type) {
	case nil:
		return append(dst, "null"...), true
	case encoded:
		return append(dst, v.line...), true
	case []byte:
		return f.appendBytes(dst, v), true
	case *[]byte:
		return f.appendBytes(dst, deref(v)), true
	case json.RawMessage:
		return AppendRawJSON(dst, v), true
	case *json.RawMessage:
		if v == nil {
			return append(dst, "null"...), true
		}
		return AppendRawJSON(dst, *v), true
	case []string:
		return appendJSONSlice(dst, v, jsonline.AppendString), true
	case *[]string:
		return appendJSONSlice(dst, deref(v), jsonline.AppendString), true
	case []int:
		return appendJSONSlice(dst, v, appendInt), true
	case *[]int:
		return appendJSONSlice(dst, deref(v), appendInt), true
	case []int64:
		return appendJSONSlice(dst, v, jsonline.AppendInt), true
	case *[]int64:
		return appendJSONSlice(dst, deref(v), jsonline.AppendInt), true
	case []float64:
		return appendJSONSlice(dst, v, jsonline.AppendFloat), true
	case *[]float64:
		return appendJSONSlice(dst, deref(v), jsonline.AppendFloat), true
	case []bool:
		return appendJSONSlice(dst, v, strconv.AppendBool), true
	case *[]bool:
		return appendJSONSlice(dst, deref(v), strconv.AppendBool), true
	case []time.Time:
		return appendJSONSlice(dst, v, f.appendTimeValue), true
	case *[]time.Time:
		return appendJSONSlice(dst, deref(v), f.appendTimeValue), true
	case []time.Duration:
		return appendJSONSlice(dst, v, f.appendDuration), true
	case *[]time.Duration:
		return appendJSONSlice(dst, deref(v), f.appendDuration), true
	}
	return dst, false
}

func appendInt(dst []byte, n int) []byte { return jsonline.AppendInt(dst, int64(n)) }

// deref returns the slice that p points to, nil for nil.
func deref[T any](p *[]T) []T {
	if p == nil {
		return nil
	}
	return *p
}

func appendJSONSlice[T any](dst []byte, s []T, appendOne func([]byte, T) []byte) []byte {
	if s == nil {
		return append(dst, "null"...)
	}
	dst = append(dst, '[')
	for i, v := range s {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = appendOne(dst, v)
	}
	return append(dst, ']')
}
