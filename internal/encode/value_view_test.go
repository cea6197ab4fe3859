package encode

import (
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"math"
	"reflect"
	"testing"
	"time"
)

// TestValueView: the encoder reads slog.Value without its methods, and must get what
// these return.
func TestValueView(t *testing.T) {
	if !viewable {
		t.Fatal("this Go has another slog.Value: change valueView, or the encoder is slow")
	}
	var noError *fs.PathError
	plain := errors.New("plain")
	f := &zeroJSON
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
