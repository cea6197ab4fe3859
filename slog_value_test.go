package rollway

import (
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"math"
	"reflect"
	"strings"
	"testing"
	"time"
)

// TestValueView: slog.Value is read past its methods, so what is read there is
// held against them.
func TestValueView(t *testing.T) {
	if !viewable {
		t.Fatal("this Go has another slog.Value: change valueView, or the encoder is slow")
	}
	var noError *fs.PathError
	plain := errors.New("plain")
	f := &format{plain: true, maxLine: defaultMaxLine}
	for _, v := range []slog.Value{
		{}, slog.AnyValue(nil), slog.StringValue(""), slog.StringValue(`a "text"`),
		slog.IntValue(0), slog.Int64Value(math.MinInt64), slog.Uint64Value(math.MaxUint64), slog.BoolValue(true), slog.BoolValue(false),
		slog.Float64Value(-0.5), slog.Float64Value(math.Inf(1)), slog.Float64Value(1e300), slog.DurationValue(-time.Second),
		slog.TimeValue(time.Time{}), slog.TimeValue(time.Unix(1, 2)), slog.TimeValue(time.Date(1, 1, 1, 0, 0, 0, 0, time.UTC)),
		slog.GroupValue(), slog.GroupValue(slog.Int("a", 1)), slog.AnyValue(slog.KindBool), slog.AnyValue(slog.LevelWarn),
		slog.AnyValue(plain), slog.AnyValue(fmt.Errorf("wraps: %w", plain)), slog.AnyValue(fs.ErrNotExist), slog.AnyValue(noError), slog.AnyValue(reflect.Zero(reflect.TypeOf(plain)).Interface()),
		slog.AnyValue(&fs.PathError{Op: "open", Path: "x", Err: plain}), slog.AnyValue([]int{1}), slog.AnyValue(struct{ A int }{1}),
		slog.AnyValue(resolvesTo("text")),
	} {
		a := slog.Attr{Key: "key", Value: v}
		got := string(f.appendJSONAttrs([]byte("{"), []slog.Attr{a}, 0, nil))
		want := string(f.appendJSONOther([]byte("{"), &a, 0, nil)) // asks v.Kind
		if got != want {
			t.Errorf("%v %v is written %s, by its methods %s", v.Kind(), v, got, want)
		}
		if v.Kind() == slog.KindAny {
			if got, want := fmt.Sprintf("%T %#[1]v", viewOf(&v).any()), fmt.Sprintf("%T %#[1]v", v.Any()); got != want {
				t.Errorf("%v holds %s, its method says %s", v, got, want)
			}
		}
		err, _ := v.Any().(error)
		if got, want := viewOf(&v).isPlainError(), err != nil && isPlainError(err); got != want {
			t.Errorf("%v: isPlainError is %t, want %t", v, got, want)
		}
	}
}

type resolvesTo string

func (v resolvesTo) LogValue() slog.Value { return slog.StringValue(string(v)) }

// TestErrorKey: an error under the key error is found wherever it stands, and
// what stands around it stays in its order.
func TestErrorKey(t *testing.T) {
	l, b := newTestLogger(t, JSON{})
	for _, err := range []error{errBench, &fs.PathError{Op: "open", Path: "x", Err: errBench}} {
		for _, n := range []int{1, 2, 63, 64, 65, 130} {
			for at := range n {
				var attrs []slog.Attr
				var others []string
				for i := range n {
					if i == at {
						attrs = append(attrs, slog.Any("error", err))
						continue
					}
					attrs = append(attrs, slog.Int(fmt.Sprint("k", i), i))
					others = append(others, fmt.Sprintf(`"k%d":%d`, i, i))
				}
				want := fmt.Sprintf(`{"level":"INFO","msg":"m","error":%q`, err.Error())
				if len(others) > 0 {
					want += `,"attrs":{` + strings.Join(others, ",") + `}`
				}
				l.Info(t.Context(), "m", attrs...)
				if got := oneLine(t, b); got != want+"}" {
					t.Fatalf("%d attributes, the error at %d:\n got %s\nwant %s", n, at, got, want+"}")
				}
			}
		}
	}
}

// nest logs itself as an object in an object in a list, down to depth, where it
// panics, and goes on behind it.
type nest struct{ depth int }

func (n nest) AppendLog(o *Object) {
	o.Int("depth", n.depth)
	if n.depth == 0 {
		panic("at the bottom")
	}
	o.Object("object", nest{n.depth - 1})
	o.Any("list", nests{n.depth - 1})
	o.Object("none", nil)
	o.Bool("last", true)
}

type nests struct{ depth int }

func (n nests) AppendLog(a *Array) {
	a.Object(nest(n))
	a.Add(slog.IntValue(n.depth))
	for range maxDepth { // one that panics does not count as a level for the next
		a.Object(nest(n))
	}
}

// TestAppendFromInside: what a value appends to the array or object that it is
// in, while that one appends it, is lost and does not tear the line.
func TestAppendFromInside(t *testing.T) {
	l, b := newTestLogger(t, JSON{})
	for name, c := range map[string]struct {
		value any
		want  string
	}{
		"object in its array": {arrayFunc(func(a *Array) {
			a.Object(objectFunc(func(o *Object) {
				o.Int("a", 1)
				a.Object(objectFunc(func(o *Object) { o.Int("lost", 1) }))
				o.Int("b", 2)
				a.Add(slog.StringValue("lost"), slog.StringValue("too"))
			}))
			a.Add(slog.IntValue(3))
		}), `[{"a":1,"b":2},3]`},
		"array in its array": {arrayFunc(func(a *Array) {
			a.Add(slog.AnyValue(arrayFunc(func(inner *Array) {
				inner.Add(slog.IntValue(1))
				a.Add(slog.StringValue("lost"))
				inner.Add(slog.IntValue(2))
			})), slog.IntValue(3))
		}), `[[1,2],3]`},
		"LogValuer in its array": {arrayFunc(func(a *Array) {
			a.Add(slog.IntValue(1), slog.AnyValue(valuerFunc(func() slog.Value {
				a.Add(slog.StringValue("lost"))
				return slog.IntValue(2)
			})))
		}), `[1,2]`},
		"array in its object": {objectFunc(func(o *Object) {
			o.Any("array", arrayFunc(func(a *Array) {
				a.Add(slog.IntValue(1))
				o.String("lost", "lost")
				a.Add(slog.IntValue(2))
			}))
			o.Int("after", 3)
		}), `{"array":[1,2],"after":3}`},
		"object in an object in its array": {arrayFunc(func(a *Array) {
			a.Object(objectFunc(func(o *Object) {
				o.Object("in", objectFunc(func(o *Object) {
					o.Int("a", 1)
					a.Add(slog.StringValue("lost"))
					o.Int("b", 2)
				}))
			}))
		}), `[{"in":{"a":1,"b":2}}]`},
	} {
		l.Info(t.Context(), "m", slog.Any("n", c.value))
		if got, want := oneLine(t, b), `{"level":"INFO","msg":"m","attrs":{"n":`+c.want+`}}`; got != want {
			t.Errorf("%s:\n got %s\nwant %s", name, got, want)
		}
	}
}

// TestAppendToWhatPanicked: what is appended to an array that a panic has ended
// does not tear the line.
func TestAppendToWhatPanicked(t *testing.T) {
	l, b := newTestLogger(t, JSON{})
	l.Info(t.Context(), "m", slog.Any("n", arrayFunc(func(a *Array) {
		var ended *Array
		a.Add(slog.AnyValue(arrayFunc(func(inner *Array) {
			ended = inner
			panic("ended")
		})), slog.AnyValue(arrayFunc(func(inner *Array) {
			inner.Add(slog.IntValue(1))
			ended.Add(slog.StringValue(strings.Repeat("lost", 20))) // panics, or is inner again
			inner.Add(slog.IntValue(2))
		})))
	})))
	if got := oneLine(t, b); !strings.HasPrefix(got, `{"level":"INFO","msg":"m","attrs":{"n":["!PANIC: ended",`) { // is valid, too
		t.Error(got)
	}
}

type (
	objectFunc func(o *Object)
	arrayFunc  func(a *Array)
	valuerFunc func() slog.Value
)

func (f objectFunc) AppendLog(o *Object)  { f(o) }
func (f arrayFunc) AppendLog(a *Array)    { f(a) }
func (f valuerFunc) LogValue() slog.Value { return f() }

func TestNestedObjects(t *testing.T) {
	const bottom = `"!PANIC: at the bottom"`
	object := func(depth int, object, element string) string {
		return fmt.Sprintf(`{"depth":%d,"object":%s,"list":[%s,%d%s],"none":null,"last":true}`, depth, object, element, depth-1, strings.Repeat(","+element, maxDepth))
	}
	one := object(1, bottom, bottom)
	l, b := newTestLogger(t, JSON{})
	for range 3 { // also with objects of the pool that were in use
		l.Info(t.Context(), "m", slog.Any("n", nest{2}))
		if got, want := oneLine(t, b), `{"level":"INFO","msg":"m","attrs":{"n":`+object(2, one, one)+`}}`; got != want {
			t.Fatalf("\n got %s\nwant %s", got, want)
		}
	}
}
