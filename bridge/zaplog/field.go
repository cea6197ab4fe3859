package zaplog

import (
	"context"
	"fmt"
	"log/slog"
	"math"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/rollway/rollway"
	"go.uber.org/zap/zapcore"
)

// appendAttrs appends fields up to a namespace, with which rest begins. A context among
// them becomes ctx.
func appendAttrs(ctx *context.Context, dst []slog.Attr, fields []zapcore.Field) (attrs []slog.Attr, rest []zapcore.Field) {
	for i := range fields {
		f := &fields[i]
		switch f.Type {
		case zapcore.SkipType:
			continue
		case zapcore.NamespaceType:
			return dst, fields[i:]
		case zapcore.InlineMarshalerType:
			dst = append(dst, slog.Attr{Value: valueOf(f)})
			continue
		case zapcore.ReflectType, zapcore.StringerType: // zap.Any makes either of a context
			if c, ok := f.Interface.(context.Context); ok {
				*ctx = c
				continue
			}
		}
		dst = append(dst, slog.Attr{Key: f.Key, Value: valueOf(f)})
	}
	return dst, nil
}

// group returns a namespace, with which fields begins, and all fields after it.
func group(ctx *context.Context, fields []zapcore.Field) slog.Attr {
	attrs, rest := appendAttrs(ctx, nil, fields[1:])
	if len(rest) > 0 {
		attrs = append(attrs, group(ctx, rest))
	}
	return slog.Attr{Key: fields[0].Key, Value: slog.GroupValue(attrs...)}
}

func valueOf(f *zapcore.Field) slog.Value {
	switch f.Type {
	case zapcore.StringType:
		return slog.StringValue(f.String)
	case zapcore.Int64Type, zapcore.Int32Type, zapcore.Int16Type, zapcore.Int8Type:
		return slog.Int64Value(f.Integer)
	case zapcore.Uint64Type, zapcore.Uint32Type, zapcore.Uint16Type, zapcore.Uint8Type, zapcore.UintptrType:
		return slog.Uint64Value(uint64(f.Integer))
	case zapcore.BoolType:
		return slog.BoolValue(f.Integer == 1)
	case zapcore.DurationType:
		return slog.DurationValue(time.Duration(f.Integer))
	case zapcore.Float64Type:
		return slog.Float64Value(math.Float64frombits(uint64(f.Integer)))
	case zapcore.ReflectType, zapcore.ErrorType, zapcore.BinaryType:
		return slog.AnyValue(f.Interface)
	}
	return slog.AnyValue((*lazy)(f)) // a pointer in an interface costs no allocation
}

// lazy is a field that the Logger converts when it writes the line. It catches panics.
type lazy zapcore.Field

// LogValue returns what zap makes of the field: a group for an inline object, which has no
// key, and for a value with the error of its marshaler.
func (f *lazy) LogValue() slog.Value {
	c := spare.Get().(*collector)
	defer c.free()
	zapcore.Field(*f).AddTo(c)
	if c.close(); len(c.attrs) == 1 && f.Type != zapcore.InlineMarshalerType {
		return c.attrs[0].Value
	}
	return slog.GroupValue(slices.Clone(c.attrs)...)
}

// collector is an encoder of zap's for objects and for arrays, whose elements have no keys.
type collector struct {
	attrs  []slog.Attr
	opened []namespace
}

type namespace struct {
	key  string
	from int // index of its first attribute
}

var spare = sync.Pool{New: func() any { return new(collector) }}

func (c *collector) free() {
	if cap(c.attrs) <= 1024 { // an unusually large one is not kept
		clear(c.attrs)
		c.attrs, c.opened = c.attrs[:0], c.opened[:0]
		spare.Put(c)
	}
}

// close ends the namespaces.
func (c *collector) close() {
	for _, n := range slices.Backward(c.opened) {
		inside := slices.Clone(c.attrs[n.from:])
		c.attrs = append(c.attrs[:n.from], slog.Attr{Key: n.key, Value: slog.GroupValue(inside...)})
	}
	c.opened = c.opened[:0]
}

// elements is a collected array.
type elements []slog.Attr

func (e elements) AppendLog(a *rollway.Array) {
	for _, element := range e {
		a.Add(element.Value)
	}
}

func (c *collector) AddArray(key string, m zapcore.ArrayMarshaler) error {
	inner := spare.Get().(*collector)
	defer inner.free()
	err := m.MarshalLogArray(inner)
	c.add(key, slog.AnyValue(elements(slices.Clone(inner.attrs))))
	return err
}

func (c *collector) AddObject(key string, m zapcore.ObjectMarshaler) error {
	inner := spare.Get().(*collector)
	defer inner.free()
	err := m.MarshalLogObject(inner)
	inner.close()
	c.add(key, slog.GroupValue(slices.Clone(inner.attrs)...))
	return err
}

// AddFloat32 adds the float64 that is written like v, 0.1 for 0.1.
func (c *collector) AddFloat32(key string, v float32) {
	wide, _ := strconv.ParseFloat(strconv.FormatFloat(float64(v), 'g', -1, 32), 64)
	c.add(key, slog.Float64Value(wide))
}

// textOf returns a complex number as zap writes it, 1+2i.
func textOf(v any) string { return strings.Trim(fmt.Sprint(v), "()") }

func (c *collector) add(k string, v slog.Value) {
	c.attrs = append(c.attrs, slog.Attr{Key: k, Value: v})
}

func (c *collector) OpenNamespace(k string)                       { c.opened = append(c.opened, namespace{k, len(c.attrs)}) }
func (c *collector) AddReflected(k string, v any) error           { c.add(k, slog.AnyValue(v)); return nil }
func (c *collector) AddBinary(k string, v []byte)                 { c.add(k, slog.AnyValue(slices.Clone(v))) }
func (c *collector) AddByteString(k string, v []byte)             { c.add(k, slog.StringValue(string(v))) }
func (c *collector) AddBool(k string, v bool)                     { c.add(k, slog.BoolValue(v)) }
func (c *collector) AddComplex128(k string, v complex128)         { c.AddString(k, textOf(v)) }
func (c *collector) AddComplex64(k string, v complex64)           { c.AddString(k, textOf(v)) }
func (c *collector) AddDuration(k string, v time.Duration)        { c.add(k, slog.DurationValue(v)) }
func (c *collector) AddFloat64(k string, v float64)               { c.add(k, slog.Float64Value(v)) }
func (c *collector) AddInt(k string, v int)                       { c.add(k, slog.IntValue(v)) }
func (c *collector) AddInt64(k string, v int64)                   { c.add(k, slog.Int64Value(v)) }
func (c *collector) AddInt32(k string, v int32)                   { c.AddInt(k, int(v)) }
func (c *collector) AddInt16(k string, v int16)                   { c.AddInt(k, int(v)) }
func (c *collector) AddInt8(k string, v int8)                     { c.AddInt(k, int(v)) }
func (c *collector) AddString(k, v string)                        { c.add(k, slog.StringValue(v)) }
func (c *collector) AddTime(k string, v time.Time)                { c.add(k, slog.TimeValue(v)) }
func (c *collector) AddUint(k string, v uint)                     { c.AddUint64(k, uint64(v)) }
func (c *collector) AddUint64(k string, v uint64)                 { c.add(k, slog.Uint64Value(v)) }
func (c *collector) AddUint32(k string, v uint32)                 { c.AddUint64(k, uint64(v)) }
func (c *collector) AddUint16(k string, v uint16)                 { c.AddUint64(k, uint64(v)) }
func (c *collector) AddUint8(k string, v uint8)                   { c.AddUint64(k, uint64(v)) }
func (c *collector) AddUintptr(k string, v uintptr)               { c.AddUint64(k, uint64(v)) }
func (c *collector) AppendArray(m zapcore.ArrayMarshaler) error   { return c.AddArray("", m) }
func (c *collector) AppendObject(m zapcore.ObjectMarshaler) error { return c.AddObject("", m) }
func (c *collector) AppendReflected(v any) error                  { return c.AddReflected("", v) }
func (c *collector) AppendBool(v bool)                            { c.AddBool("", v) }
func (c *collector) AppendByteString(v []byte)                    { c.AddByteString("", v) }
func (c *collector) AppendComplex128(v complex128)                { c.AddString("", textOf(v)) }
func (c *collector) AppendComplex64(v complex64)                  { c.AddString("", textOf(v)) }
func (c *collector) AppendDuration(v time.Duration)               { c.AddDuration("", v) }
func (c *collector) AppendFloat64(v float64)                      { c.AddFloat64("", v) }
func (c *collector) AppendFloat32(v float32)                      { c.AddFloat32("", v) }
func (c *collector) AppendInt(v int)                              { c.AddInt("", v) }
func (c *collector) AppendInt64(v int64)                          { c.AddInt64("", v) }
func (c *collector) AppendInt32(v int32)                          { c.AddInt("", int(v)) }
func (c *collector) AppendInt16(v int16)                          { c.AddInt("", int(v)) }
func (c *collector) AppendInt8(v int8)                            { c.AddInt("", int(v)) }
func (c *collector) AppendString(v string)                        { c.AddString("", v) }
func (c *collector) AppendTime(v time.Time)                       { c.AddTime("", v) }
func (c *collector) AppendUint(v uint)                            { c.AddUint("", v) }
func (c *collector) AppendUint64(v uint64)                        { c.AddUint64("", v) }
func (c *collector) AppendUint32(v uint32)                        { c.AddUint64("", uint64(v)) }
func (c *collector) AppendUint16(v uint16)                        { c.AddUint64("", uint64(v)) }
func (c *collector) AppendUint8(v uint8)                          { c.AddUint64("", uint64(v)) }
func (c *collector) AppendUintptr(v uintptr)                      { c.AddUint64("", uint64(v)) }
