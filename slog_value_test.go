package rollway

import (
	"fmt"
	"io/fs"
	"log/slog"
	"strings"
	"testing"
)

// TestErrorKey: an error under the key error is found at any place, and
// the attributes around it keep their order.
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
// panics, and goes on after it.
type nest struct{ depth int }

func (n nest) AppendLog(o *Object) {
	o.Add(slog.Int("depth", n.depth))
	if n.depth == 0 {
		panic("at the bottom")
	}
	o.Object("object", nest{n.depth - 1})
	o.Add(slog.Any("list", nests{n.depth - 1}))
	o.Object("none", nil)
	o.Add(slog.Bool("last", true))
}

type nests struct{ depth int }

func (n nests) AppendLog(a *Array) {
	a.Object(nest(n))
	a.Add(slog.IntValue(n.depth))
	for range 32 { // one that panics does not count as a level for the next
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
				o.Add(slog.Int("a", 1))
				a.Object(objectFunc(func(o *Object) { o.Add(slog.Int("lost", 1)) }))
				o.Add(slog.Int("b", 2))
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
			o.Add(slog.Any("array", arrayFunc(func(a *Array) {
				a.Add(slog.IntValue(1))
				o.Add(slog.String("lost", "lost"))
				a.Add(slog.IntValue(2))
			})))
			o.Add(slog.Int("after", 3))
		}), `{"array":[1,2],"after":3}`},
		"object in an object in its array": {arrayFunc(func(a *Array) {
			a.Object(objectFunc(func(o *Object) {
				o.Object("in", objectFunc(func(o *Object) {
					o.Add(slog.Int("a", 1))
					a.Add(slog.StringValue("lost"))
					o.Add(slog.Int("b", 2))
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
		return fmt.Sprintf(`{"depth":%d,"object":%s,"list":[%s,%d%s],"none":null,"last":true}`, depth, object, element, depth-1, strings.Repeat(","+element, 32))
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
