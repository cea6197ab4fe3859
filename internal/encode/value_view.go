package encode

import (
	"errors"
	"fmt"
	"log/slog"
	"math"
	"reflect"
	"time"
	"unsafe"
)

// valueView is a slog.Value in memory: a number, and an interface whose type
// determines the kind. Each method of slog.Value determines the kind again. The JSON
// encoder does so once, by the interface's first word.
type valueView struct {
	num  uint64
	typ  unsafe.Pointer // kindType, textType, timeType, or the type of the value
	data unsafe.Pointer // to the slog.Kind of num, to the text of num bytes, or to the value
}

// viewable reports whether valueView matches package slog. If it does not, in a later
// Go, the methods are called.
var viewable = func() bool {
	t := reflect.TypeFor[slog.Value]()
	if t.Size() != unsafe.Sizeof(valueView{}) || t.NumField() != 3 {
		return false
	}
	num, value := t.Field(1), t.Field(2)
	if num.Offset != unsafe.Offsetof(valueView{}.num) || num.Type.Kind() != reflect.Uint64 ||
		value.Offset != unsafe.Offsetof(valueView{}.typ) || value.Type != reflect.TypeFor[any]() {
		return false
	}
	for _, v := range []struct {
		slog.Value
		num uint64
	}{
		{slog.Int64Value(-2), math.MaxUint64 - 1}, {slog.Uint64Value(3), 3}, {slog.BoolValue(true), 1}, {slog.BoolValue(false), 0},
		{slog.Float64Value(0.5), math.Float64bits(0.5)}, {slog.DurationValue(7), 7},
	} {
		if view := viewOf(&v.Value); view.typ != kindType || view.num != v.num || *(*slog.Kind)(view.data) != v.Kind() {
			return false
		}
	}
	at := slog.TimeValue(time.Unix(0, -7))
	if view := viewOf(&at); view.typ != timeType || view.data == nil || int64(view.num) != -7 || at.Kind() != slog.KindTime {
		return false
	}
	if zero := slog.TimeValue(time.Time{}); viewOf(&zero).typ == timeType && viewOf(&zero).data != nil {
		return false
	}
	text := slog.StringValue("text")
	return viewOf(&text).typ == textType && viewOf(&text).text() == "text"
}()

var (
	kindType    = typeWord(slog.KindAny)
	textType    = valueType(slog.StringValue("text"))
	timeType    = valueType(slog.TimeValue(time.Unix(0, 0))) // num is in nanoseconds since 1970; data is nil for the zero time
	wrappedKind = valueType(slog.AnyValue(slog.KindAny))
	// The types of most errors. Their Error methods return a stored string, so they
	// cannot log or panic.
	plainErrors = [2]unsafe.Pointer{typeWord(errors.New("")), typeWord(fmt.Errorf("%w", errors.New("")))}
)

// valueType returns the type word of v, or nil if v is no valueView.
func valueType(v slog.Value) unsafe.Pointer {
	if unsafe.Sizeof(v) != unsafe.Sizeof(valueView{}) {
		return nil
	}
	return viewOf(&v).typ
}

func viewOf(v *slog.Value) *valueView { return (*valueView)(unsafe.Pointer(v)) }

func (v *valueView) text() string { return unsafe.String((*byte)(v.data), v.num) }

// isPlainError reports whether the value is an error of plainErrors.
func (v *valueView) isPlainError() bool {
	return viewable && isPlainPair(v.typ, v.data)
}

// any is Any for a Value of slog.KindAny.
func (v *valueView) any() any {
	if !viewable || v.typ == wrappedKind {
		return (*slog.Value)(unsafe.Pointer(v)).Any()
	}
	return *(*any)(unsafe.Pointer(&v.typ))
}

func isPlainError(value any) bool {
	words := (*[2]unsafe.Pointer)(unsafe.Pointer(&value))
	return isPlainPair(words[0], words[1])
}

// isPlainPair is isPlainError for the words of an interface.
func isPlainPair(typ, data unsafe.Pointer) bool {
	return (typ == plainErrors[0] || typ == plainErrors[1]) && data != nil
}

// typeWord returns the first word of an interface, which is its value's type.
func typeWord(v any) unsafe.Pointer { return (*[2]unsafe.Pointer)(unsafe.Pointer(&v))[0] }
