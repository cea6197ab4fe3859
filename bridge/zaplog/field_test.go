package zaplog_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"net"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/rollway/rollway"
	"github.com/rollway/rollway/bridge/zaplog"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
)

// zapsOwn returns the fields as zap's encoder of JSON writes them, with durations and
// times in the form of the Logger's.
func zapsOwn(t testing.TB, with, fields []zapcore.Field) any {
	t.Helper()
	enc := zapcore.NewJSONEncoder(zapcore.EncoderConfig{
		EncodeDuration: zapcore.NanosDurationEncoder,
		EncodeTime: func(at time.Time, e zapcore.PrimitiveArrayEncoder) {
			e.AppendString(at.UTC().Format("2006-01-02T15:04:05.000000000Z"))
		},
	})
	for _, f := range with {
		f.AddTo(enc)
	}
	line, err := enc.EncodeEntry(zapcore.Entry{}, fields)
	if err != nil {
		t.Fatal(err)
	}
	return decode(t, line.Bytes())
}

// decode returns the members of a line as tidy does.
func decode(t testing.TB, line []byte) any {
	t.Helper()
	dec := json.NewDecoder(bytes.NewReader(line))
	dec.UseNumber()
	var v any
	if err := dec.Decode(&v); err != nil {
		t.Fatalf("%s: %v", line, err)
	}
	return tidy(v)
}

// tidy removes members that are empty objects, which the Logger leaves out, and makes
// numbers with a fraction or an exponent, which may be written in several ways, floats.
func tidy(v any) any {
	switch v := v.(type) {
	case map[string]any:
		for key, member := range v {
			v[key] = tidy(member)
			if m, ok := v[key].(map[string]any); ok && len(m) == 0 {
				delete(v, key)
			}
		}
	case []any:
		for i := range v {
			v[i] = tidy(v[i])
		}
	case json.Number:
		if f, err := v.Float64(); err == nil && (len(v) > 20 || strings.ContainsAny(string(v), ".e")) {
			return f
		}
	}
	return v
}

// compare compares what zap's encoder and the Logger make of fields.
func compare(t testing.TB, with, fields []zapcore.Field) {
	t.Helper()
	var b bytes.Buffer
	own := newLogger(t, rollway.Options{Outputs: []rollway.Output{{Writer: &b, Encoder: rollway.JSON{Layout: "attrs:"}}}})
	zap.New(zaplog.New(own)).With(with...).Info("m", fields...)
	want := zapsOwn(t, with, fields)
	if got := decode(t, b.Bytes()); !reflect.DeepEqual(got, want) {
		t.Errorf("got\n%v\nzap has\n%v", got, want)
	}
}

var (
	aTime = time.Date(2026, 5, 28, 12, 40, 0, 5, time.FixedZone("x", 7200))
	text  = "a \"quoted\" text\n\u2028 \xff end"
)

// scalars has a field of each type, in all sizes.
func scalars() []zapcore.Field {
	i, u, s, yes := -5, uint16(9), "pointed to", true
	return []zapcore.Field{
		zap.String("string", text), zap.Stringp("stringp", &s), zap.Stringp("nilp", nil), zap.ByteString("bytestring", []byte(text)), zap.Binary("binary", []byte{0, 1, 255}),
		zap.Bool("yes", true), zap.Bool("no", false), zap.Boolp("boolp", &yes),
		zap.Int("int", -1<<62), zap.Int64("int64", -1<<63), zap.Int32("int32", -1<<31), zap.Int16("int16", -1<<15), zap.Int8("int8", -128), zap.Intp("intp", &i),
		zap.Uint("uint", 1<<63), zap.Uint64("uint64", 1<<64-1), zap.Uint32("uint32", 1<<32-1), zap.Uint16("uint16", 1<<16-1), zap.Uint8("uint8", 255), zap.Uint16p("uint16p", &u), zap.Uintptr("uintptr", 77),
		zap.Float64("float64", 1.5e-7), zap.Float32("float32", 0.1), zap.Float32("float32b", 3e38),
		zap.Complex128("complex128", 1-2i), zap.Complex64("complex64", complex(float32(0.1), 2)),
		zap.Duration("duration", 1530*time.Microsecond), zap.Time("time", aTime), zap.Time("early", time.Date(1500, 1, 2, 3, 4, 5, 6, time.UTC)), zap.Timep("timep", &aTime),
		zap.Error(nil), zap.NamedError("cause", errors.New("gone")), zap.Skip(),
		zap.Stringer("stringer", net.IPv4(10, 0, 0, 1)), zap.Stringer("nilstringer", (*pointer)(nil)),
		zap.Reflect("reflect", struct {
			A int `json:"a"`
			B []string
		}{1, []string{"x"}}),
		zap.Any("any", map[string]int{"x": 1}), zap.Any("anynil", nil), zap.Any("anyint", 5),
	}
}

type pointer struct{ s string }

func (p *pointer) String() string { return p.s }

func containers() []zapcore.Field {
	return []zapcore.Field{
		zap.Object("object", everything{}), zap.Dict("dict", zap.Int("a", 1), zap.Dict("inner", zap.String("b", "x"))), zap.Inline(pair{3, 4}),
		zap.Array("array", everything{}), zap.Objects("objects", []pair{{1, 2}, {3, 4}}), zap.Object("empty", nobody{}), zap.Strings("nothing", nil),
		zap.Bools("bools", []bool{true, false}), zap.ByteStrings("bytestrings", [][]byte{[]byte("x")}), zap.Complex128s("complexes", []complex128{1i}), zap.Complex64s("complexes64", []complex64{2}),
		zap.Durations("durations", []time.Duration{time.Second}), zap.Float64s("float64s", []float64{1.5}), zap.Float32s("float32s", []float32{0.1}),
		zap.Ints("ints", []int{1, 2}), zap.Int64s("int64s", []int64{1}), zap.Int32s("int32s", []int32{1}), zap.Int16s("int16s", []int16{1}), zap.Int8s("int8s", []int8{1}),
		zap.Uints("uints", []uint{1, 2}), zap.Uint64s("uint64s", []uint64{1}), zap.Uint32s("uint32s", []uint32{1}), zap.Uint16s("uint16s", []uint16{1}), zap.Uint8s("uint8s", []uint8{1}), zap.Uintptrs("uintptrs", []uintptr{1}),
		zap.Strings("strings", []string{"a", text}), zap.Times("times", []time.Time{aTime}), zap.Stringers("stringers", []net.IP{net.IPv4(1, 2, 3, 4)}), zap.Errors("errors", []error{errors.New("a"), errors.New("b")}),
	}
}

// everything calls every method of both encoders.
type everything struct{}

func (everything) MarshalLogObject(e zapcore.ObjectEncoder) error {
	for _, f := range scalars() {
		f.AddTo(e)
	}
	e.OpenNamespace("space")
	e.AddInt("in", 1)
	e.OpenNamespace("inner")
	return errors.Join(e.AddObject("pair", pair{1, 2}), e.AddArray("array", everything{}), e.AddReflected("any", []int{1}))
}

func (everything) MarshalLogArray(e zapcore.ArrayEncoder) error {
	e.AppendBool(true)
	e.AppendString(text)
	e.AppendFloat32(0.1)
	e.AppendTime(aTime)
	return errors.Join(e.AppendObject(pair{5, 6}), e.AppendObject(nobody{}), e.AppendReflected(map[string]any{"a": nil}),
		e.AppendArray(zapcore.ArrayMarshalerFunc(func(e zapcore.ArrayEncoder) error { e.AppendInt(1); return nil })))
}

type nobody struct{}

func (nobody) MarshalLogObject(zapcore.ObjectEncoder) error { return nil }

// TestFields: zap's encoder and the Logger write the same members, for every type of
// field, in a call and in With.
func TestFields(t *testing.T) {
	all := append(scalars(), containers()...)
	compare(t, nil, all)
	compare(t, all, nil)
	compare(t, []zapcore.Field{zap.Int("a", 1), zap.Namespace("g"), zap.Int("b", 1), zap.Namespace("h")}, all)
	compare(t, nil, append([]zapcore.Field{zap.Int("before", 1), zap.Namespace("g"), zap.Namespace("h")}, all...))
	compare(t, []zapcore.Field{zap.Namespace("g")}, []zapcore.Field{zap.Namespace("h")})
}

// TestRandomFields compares them for random lists.
func TestRandomFields(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	some := func(all []zapcore.Field, prefix string) (list []zapcore.Field) {
		for n := r.IntN(25); len(list) < n; {
			f := all[r.IntN(len(all))]
			switch r.IntN(12) {
			case 0:
				f = zap.Namespace("space")
			case 1:
				f = zap.Dict("dict", f, zap.Namespace("n"), f)
			}
			f.Key = fmt.Sprint(prefix, len(list))
			list = append(list, f)
		}
		return list
	}
	all := append(scalars(), containers()...)
	for range 300 {
		if compare(t, some(all, "w"), some(all, "f")); t.Failed() {
			return
		}
	}
}

type failing struct{ panics bool }

func (f failing) MarshalLogObject(e zapcore.ObjectEncoder) error {
	e.AddInt("a", 1)
	if f.panics {
		panic("in MarshalLogObject")
	}
	return errors.New("failed")
}
func (f failing) String() string { panic("in String") }
func (f failing) Error() string  { panic("in Error") }

// TestFailingFields: whatever a value does, the line is written, with its other fields.
func TestFailingFields(t *testing.T) {
	for _, c := range []struct {
		field zapcore.Field
		want  map[string]any
	}{
		{zap.Object("o", failing{}), map[string]any{"o": map[string]any{"o": map[string]any{"a": int64(1)}, "oError": "failed"}}},
		{zap.Object("o", failing{panics: true}), map[string]any{"o": "!PANIC: in MarshalLogObject"}},
		{zap.Dict("d", zap.Object("o", failing{})), map[string]any{"d": map[string]any{"o": map[string]any{"a": int64(1)}, "oError": "failed"}}},
		{zap.Inline(failing{}), map[string]any{"a": int64(1), "Error": "failed"}},
		{zap.Stringer("s", failing{}), map[string]any{"s": "PANIC=in String"}},
		{zap.NamedError("e", failing{}), map[string]any{"e": "!PANIC: in Error"}},
		{zap.Array("a", nil), map[string]any{"a": "!PANIC: interface conversion: interface is nil, not zapcore.ArrayMarshaler"}},
		{zap.Field{Key: "f", Type: 200}, map[string]any{"f": "!PANIC: unknown field type: {f 200 0  <nil>}"}},
	} {
		c.want["n"] = int64(7)
		l, rec := recorded(t)
		l.Info("m", c.field, zap.Int("n", 7))
		if r := one(t, rec); !reflect.DeepEqual(r.Attrs, c.want) {
			t.Errorf("got %s, want %v", r.Line, c.want)
		}
		l.With(c.field).Info("m", zap.Int("n", 7))
		if r := one(t, rec); !reflect.DeepEqual(r.Attrs, c.want) {
			t.Errorf("With: got %s, want %v", r.Line, c.want)
		}
	}
	l, rec := recorded(t)
	l.Info("after it", zap.Error(fmt.Errorf("outer: %w", errors.New("inner"))))
	if r := one(t, rec); r.Error != "outer: inner" || r.Attrs != nil {
		t.Errorf("got %s", r.Line)
	}
}

// TestMarshalersOfWhatIsNotWritten: they may be expensive.
func TestMarshalersOfWhatIsNotWritten(t *testing.T) {
	own := newLogger(t, rollway.Options{Outputs: []rollway.Output{{Writer: new(bytes.Buffer), Level: slog.LevelWarn}}})
	l := zap.New(zaplog.New(own))
	l.Info("m", zap.Object("o", zapcore.ObjectMarshalerFunc(func(zapcore.ObjectEncoder) error {
		t.Error("called")
		return nil
	})))
}

// TestOtherFormats: groups become prefixes, redaction sees members, and what With got
// stays as it was.
func TestOtherFormats(t *testing.T) {
	var b bytes.Buffer
	own := newLogger(t, rollway.Options{
		Outputs: []rollway.Output{{Writer: &b, Encoder: rollway.Logfmt{Layout: "msg attrs"}}},
		Redact:  &rollway.Redaction{Keys: []string{"o.b", "secret"}},
	})
	fields := []zapcore.Field{zap.Object("o", pair{1, 2}), zap.Inline(pair{3, 4}), zap.Dict("d", zap.String("secret", "x")), zap.Array("list", everything{})}
	l := zap.New(zaplog.New(own)).With(fields...)
	fields[0] = zap.Int("o", 5)
	l.Info("m", zap.Namespace("g"), zap.Duration("took", time.Second))
	if got := b.String(); !strings.HasPrefix(got, `msg=m o.a=1 o.b=[REDACTED] a=3 b=4 d.secret=[REDACTED] list=`) || !strings.Contains(got, " g.took=1000000000") {
		t.Errorf("got %s", got)
	}
}
