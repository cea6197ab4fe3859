package rollway

import (
	"encoding/json"
	"fmt"
	"log/slog"
	"reflect"
	"strconv"
	"sync/atomic"
	"time"
	"unicode/utf8"

	"github.com/rollway/rollway/internal/jsonline"
)

// maxDepth bounds groups in groups, so that a LogValuer that returns itself
// inside a group ends.
const maxDepth = 32

const tooDeep = "!ERROR: too deep or too large"

// appendJSONValue appends v as one JSON value, whatever it is.
func (f *format) appendJSONValue(dst []byte, v slog.Value, depth int) []byte {
	if f.plain && viewOf(&v).isPlainError() {
		return jsonline.AppendString(dst, viewOf(&v).any().(error).Error())
	}
	return f.appendJSONKind(dst, v.Kind(), v, depth)
}

// appendJSONKind is appendJSONValue for a v whose kind is known.
func (f *format) appendJSONKind(dst []byte, kind slog.Kind, v slog.Value, depth int) []byte {
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

// appendTimeValue appends a time as a JSON value.
func (f *format) appendTimeValue(dst []byte, t time.Time) []byte {
	switch f.time {
	case UnixSeconds:
		return strconv.AppendInt(dst, t.Unix(), 10)
	case UnixMilli:
		return strconv.AppendInt(dst, t.UnixMilli(), 10)
	case UnixNano:
		return strconv.AppendInt(dst, unixNano(t), 10)
	case RFC3339Nano:
		if f.location == nil {
			dst = append(dst, '"')
			dst = jsonline.AppendTime(dst, t)
			return append(dst, '"')
		}
	}
	dst = append(dst, '"')
	mark := len(dst)
	dst = f.appendLayoutTime(dst, t)
	for _, c := range dst[mark:] {
		if c < ' ' || c == '"' || c == '\\' || c >= utf8.RuneSelf { // of a layout of the user's
			return jsonline.AppendString(dst[:mark-1], string(dst[mark:]))
		}
	}
	return append(dst, '"')
}

// appendLayoutTime appends a time in a layout of package time.
func (f *format) appendLayoutTime(dst []byte, t time.Time) []byte {
	if f.time == RFC3339Milli && f.location == nil {
		return jsonline.AppendMilli(dst, t)
	}
	return f.inYears(t).AppendFormat(dst, f.timeLayout())
}

func (f *format) zone() *time.Location {
	if f.location == nil {
		return time.UTC
	}
	return f.location
}

func (f *format) timeLayout() string {
	switch f.time {
	case RFC3339Nano:
		return "2006-01-02T15:04:05.000000000Z07:00"
	case RFC3339Milli:
		return "2006-01-02T15:04:05.000Z07:00"
	}
	return string(f.time)
}

// appendDuration appends a duration as a JSON value.
func (f *format) appendDuration(dst []byte, d time.Duration) []byte {
	switch f.duration {
	case Microseconds:
		return jsonline.AppendFloat(dst, float64(d)/float64(time.Microsecond))
	case Milliseconds:
		return jsonline.AppendFloat(dst, float64(d)/float64(time.Millisecond))
	case Seconds:
		return jsonline.AppendFloat(dst, d.Seconds())
	case DurationString:
		return jsonline.AppendString(dst, d.String())
	}
	return jsonline.AppendInt(dst, int64(d))
}

// resolve calls LogValue until something else comes of it. A panic becomes an
// error value, and so does a chain without end.
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

// panicText is what stands in the place of a value whose method panicked. A
// nil pointer is no more than that.
func panicText(value, r any) string {
	if v := reflect.ValueOf(value); v.Kind() == reflect.Pointer && v.IsNil() {
		return "<nil>"
	}
	if r == any(errTooDeep) {
		return tooDeep
	}
	return "!PANIC: " + safeSprint(r)
}

// safeSprint formats r, whose own methods may panic beyond what package fmt
// catches.
func safeSprint(r any) (s string) {
	defer func() {
		if recover() != nil {
			s = fmt.Sprintf("%T", r)
		}
	}()
	return fmt.Sprint(r)
}

// appendJSONAny appends a value of any type: what LogValue returns, what has an
// append method as that appends it, errors as ErrorFormat says, the rest as
// appendByMethod or by its kind. A value that cannot be encoded becomes a string
// that begins with !ERROR, one that panics a string that begins with !PANIC.
func (f *format) appendJSONAny(dst []byte, value any, depth int) (out []byte) {
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
	switch v := value.(type) {
	case nil:
		return append(dst, "null"...)
	case encoded:
		return append(dst, v.line...)
	case slog.LogValuer: // in another value; first, as it may hide what the other methods show
		return f.appendJSONValue(dst, slog.AnyValue(v), depth+1)
	case ObjectAppender:
		return f.appendObject(dst, v, depth)
	case ArrayAppender:
		return f.appendArray(dst, v, depth)
	case error:
		if f.errors == ErrorDetail {
			return appendErrorDetail(dst, v)
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
	case []byte:
		return f.appendBytes(dst, v)
	case *[]byte:
		return f.appendBytes(dst, deref(v))
	case json.RawMessage:
		return appendRawJSON(dst, v)
	case *json.RawMessage:
		if v == nil {
			return append(dst, "null"...)
		}
		return appendRawJSON(dst, *v)
	}
	if out, ok := f.appendJSONList(dst, value); ok {
		return out
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

// appendJSONList appends a slice of a common type, or what a pointer to one
// points to: a slice in an interface is an allocation, a pointer is not.
func (f *format) appendJSONList(dst []byte, value any) ([]byte, bool) {
	switch v := value.(type) {
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

// deref returns what p points to, nil for nil.
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
