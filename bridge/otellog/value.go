package otellog

import (
	"bytes"
	"encoding/json"
	"fmt"
	"log/slog"
	"math"
	"strconv"
	"time"

	"github.com/rollway/rollway"
	"go.opentelemetry.io/otel/attribute"
)

// appendAttr appends the attributes that a becomes: none, one, or several. outside
// says that a is outside groups.
func appendAttr(dst []attribute.KeyValue, a slog.Attr, outside bool) []attribute.KeyValue {
	v := a.Value.Resolve()
	if a.Key == "" && v.Equal(slog.Value{}) {
		return dst
	}
	if v.Kind() == slog.KindGroup {
		if a.Key == "" {
			for _, g := range v.Group() {
				dst = appendAttr(dst, g, outside)
			}
			return dst
		}
		if len(v.Group()) == 0 {
			return dst
		}
	}
	if outside && a.Key == "error" {
		if err, ok := v.Any().(error); ok {
			return append(dst, keyMessage.String(text(err, err.Error)), keyType.String(fmt.Sprintf("%T", err)))
		}
	}
	return append(dst, attribute.KeyValue{Key: attribute.Key(a.Key), Value: valueOf(v)})
}

// text returns the result of method, or a text that says that it panicked: a value
// must not take down the caller of a log method.
func text(value any, method func() string) (s string) {
	defer func() {
		if p := recover(); p != nil {
			s = fmt.Sprintf("!PANIC: %T: %v", value, p)
		}
	}()
	return method()
}

// valueOf returns a resolved value of slog as a value of OpenTelemetry.
func valueOf(v slog.Value) attribute.Value {
	switch v.Kind() {
	case slog.KindString:
		return attribute.StringValue(v.String())
	case slog.KindInt64:
		return attribute.Int64Value(v.Int64())
	case slog.KindUint64:
		return uintValue(v.Uint64())
	case slog.KindFloat64:
		return attribute.Float64Value(v.Float64())
	case slog.KindBool:
		return attribute.BoolValue(v.Bool())
	case slog.KindDuration:
		return attribute.Int64Value(int64(v.Duration()))
	case slog.KindTime:
		return attribute.StringValue(v.Time().UTC().Format(time.RFC3339Nano))
	case slog.KindGroup:
		var attrs []attribute.KeyValue
		for _, a := range v.Group() {
			attrs = appendAttr(attrs, a, false)
		}
		return attribute.MapValue(attrs...)
	}
	return anyValue(v.Any())
}

func uintValue(n uint64) attribute.Value {
	if n > math.MaxInt64 {
		return attribute.StringValue(strconv.FormatUint(n, 10))
	}
	return attribute.Int64Value(int64(n))
}

func anyValue(value any) attribute.Value {
	switch v := value.(type) {
	case nil:
		return attribute.Value{}
	case rollway.ObjectAppender, rollway.ArrayAppender:
		return jsonValue(rollway.AppendJSON(nil, slog.AnyValue(value)), value)
	case error:
		return attribute.StringValue(text(v, v.Error))
	case []byte:
		return attribute.ByteSliceValue(v)
	case []string:
		return attribute.StringSliceValue(v)
	case []int:
		return attribute.IntSliceValue(v)
	case []int64:
		return attribute.Int64SliceValue(v)
	case []float64:
		return attribute.Float64SliceValue(v)
	case []bool:
		return attribute.BoolSliceValue(v)
	}
	if encoded, err := marshal(value); err == nil {
		return jsonValue(encoded, value)
	}
	return attribute.StringValue(text(value, func() string { return fmt.Sprintf("%+v", value) }))
}

// jsonValue returns the value that encoded, the JSON of value, describes.
func jsonValue(encoded []byte, value any) attribute.Value {
	d := json.NewDecoder(bytes.NewReader(encoded))
	d.UseNumber()
	parsed, err := readValue(d, 0)
	if err != nil {
		return attribute.StringValue(text(value, func() string { return fmt.Sprintf("%+v", value) }))
	}
	return parsed
}

// marshal is json.Marshal without its panics.
func marshal(value any) (encoded []byte, err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("marshal %T: panic: %v", value, p)
		}
	}()
	return json.Marshal(value)
}

// maxDepth bounds nested maps and lists. A deeper value is the text of its JSON;
// OpenTelemetry's SDK drops values deeper than 64.
const maxDepth = 32

// readValue reads one JSON value, with the members of objects in their order.
func readValue(d *json.Decoder, depth int) (attribute.Value, error) {
	if depth > maxDepth {
		var raw json.RawMessage
		err := d.Decode(&raw)
		return attribute.StringValue(string(raw)), err
	}
	token, err := d.Token()
	if err != nil {
		return attribute.Value{}, err
	}
	switch t := token.(type) {
	case json.Delim:
		if t == '{' {
			members, err := readMembers(d, depth)
			return attribute.MapValue(members...), err
		}
		var elements []attribute.Value
		for d.More() {
			v, err := readValue(d, depth+1)
			if err != nil {
				return attribute.Value{}, err
			}
			elements = append(elements, v)
		}
		_, err := d.Token() // the closing bracket
		return attribute.SliceValue(elements...), err
	case json.Number:
		return numberValue(string(t)), nil
	case string:
		return attribute.StringValue(t), nil
	case bool:
		return attribute.BoolValue(t), nil
	}
	return attribute.Value{}, nil // null
}

// readMembers reads the members of an object whose opening brace has been read.
func readMembers(d *json.Decoder, depth int) (members []attribute.KeyValue, err error) {
	for d.More() {
		key, err := d.Token()
		if err != nil {
			return nil, err
		}
		v, err := readValue(d, depth+1)
		if err != nil {
			return nil, err
		}
		members = append(members, attribute.KeyValue{Key: attribute.Key(key.(string)), Value: v})
	}
	_, err = d.Token()
	return members, err
}

// numberValue returns an integer as an int64 if it fits, or as its digits; any
// other number as a float64 if it is in range, or as its text.
func numberValue(s string) attribute.Value {
	if n, err := strconv.ParseInt(s, 10, 64); err == nil {
		return attribute.Int64Value(n)
	}
	if f, err := strconv.ParseFloat(s, 64); err == nil && bytes.ContainsAny([]byte(s), ".eE") {
		return attribute.Float64Value(f)
	}
	return attribute.StringValue(s)
}

// anyOf returns a value of OpenTelemetry for a Logger.
func anyOf(v attribute.Value) any {
	switch v.Type() {
	case attribute.SLICE:
		list := make([]any, 0)
		for _, e := range v.AsSlice() {
			list = append(list, anyOf(e))
		}
		return list
	case attribute.MAP:
		m := make(map[string]any)
		for _, kv := range v.AsMap() {
			m[string(kv.Key)] = anyOf(kv.Value)
		}
		return m
	case attribute.FLOAT64:
		if f := v.AsFloat64(); math.IsNaN(f) || math.IsInf(f, 0) {
			return v.String() // encoding/json has no such number
		}
	case attribute.EMPTY:
		return nil
	}
	return v.AsInterface()
}

// slogAttrs returns attributes of OpenTelemetry for a Logger; maps are groups.
func slogAttrs(kvs []attribute.KeyValue) []slog.Attr {
	attrs := make([]slog.Attr, 0, len(kvs))
	for _, kv := range kvs {
		attrs = append(attrs, slogAttr(kv))
	}
	return attrs
}

func slogAttr(kv attribute.KeyValue) slog.Attr {
	key := string(kv.Key)
	if kv.Value.Type() == attribute.MAP && len(kv.Value.AsMap()) > 0 {
		return slog.Attr{Key: key, Value: slog.GroupValue(slogAttrs(kv.Value.AsMap())...)}
	}
	if kv.Value.Type() == attribute.FLOAT64 {
		return slog.Float64(key, kv.Value.AsFloat64())
	}
	return slog.Any(key, anyOf(kv.Value))
}
