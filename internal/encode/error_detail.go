package encode

import (
	"reflect"
	"runtime"
	"slices"
	"strconv"

	"github.com/rollway/rollway/internal/jsonline"
)

// maxCauses bounds the wrapped errors that are written, also if an error wraps
// itself.
const maxCauses = 16

// appendErrorDetail appends err with its type, causes and stack.
func (f *Format) appendErrorDetail(dst []byte, err error) []byte {
	left := maxCauses
	dst = appendErrorTree(dst, err, &left)
	if pcs := callersIn(err); len(pcs) > 0 {
		key := `,"stack":`
		if f.ErrorECS {
			key = `,"stack_trace":`
		}
		dst = append(dst[:len(dst)-1], key...)
		dst = append(jsonline.AppendString(dst, FormatStack(pcs)), '}')
	}
	return dst
}

// appendErrorTree appends err as an object, with at most left errors in it.
func appendErrorTree(dst []byte, err error, left *int) []byte {
	dst = appendTypeAndMessage(append(dst, '{'), err)
	several, one := unwrapped(err)
	dst = appendJoined(dst, several, left)
	key := `,"causes":[`
	for ; one != nil && *left > 0; key = "," {
		*left--
		dst = appendTypeAndMessage(append(append(dst, key...), '{'), one)
		several, one = unwrapped(one)
		dst = append(appendJoined(dst, several, left), '}')
	}
	if key == "," {
		dst = append(dst, ']')
	}
	return append(dst, '}')
}

func appendJoined(dst []byte, several []error, left *int) []byte {
	key := `,"errors":[`
	for _, e := range several {
		if *left--; *left < 0 {
			break
		}
		dst = appendErrorTree(append(dst, key...), e, left)
		key = ","
	}
	if key == "," {
		dst = append(dst, ']')
	}
	return dst
}

// eachCause calls yield for each error that err wraps, outermost first, with its path
// in the tree of errors, which begins with the path of err; the number of joined
// errors around it; and whether it is one of several. It returns path, perhaps with
// more capacity.
func eachCause(path []byte, err error, depth int, left *int, yield func(path []byte, err error, depth int, joined bool)) []byte {
	at := len(path)
	several, one := unwrapped(err)
	for i := int64(0); ; i++ {
		stem := len(path)
		for j, e := range several {
			if *left--; *left < 0 {
				break
			}
			path = strconv.AppendInt(append(path[:stem], ".errors."...), int64(j), 10)
			yield(path, e, depth+1, true)
			path = eachCause(path, e, depth+1, left, yield)
		}
		if one == nil || *left <= 0 {
			return path[:at]
		}
		*left--
		path = strconv.AppendInt(append(path[:at], ".causes."...), i, 10)
		yield(path, one, depth, false)
		several, one = unwrapped(one)
	}
}

// eachField calls yield for each key of an error in a logfmt line with ErrorDetail,
// the first being key.
func eachField(key []byte, err error, yield func(key []byte, text string)) []byte {
	both := func(key []byte, err error, _ int, _ bool) {
		yield(key, errorText(err))
		yield(append(key, ".type"...), typeName(err))
	}
	both(key, err, 0, false)
	left := maxCauses
	key = slices.Grow(key, 128) // with room for the suffixes appended here
	key = eachCause(key, err, 0, &left, both)
	if pcs := callersIn(err); len(pcs) > 0 {
		yield(append(key, ".stack"...), FormatStack(pcs))
	}
	return key
}

func appendTypeAndMessage(dst []byte, err error) []byte {
	dst = append(dst, `"type":`...)
	dst = jsonline.AppendString(dst, typeName(err))
	dst = append(dst, `,"message":`...)
	return jsonline.AppendString(dst, errorText(err))
}

func errorText(err error) (text string) {
	if isPlainError(err) {
		return err.Error()
	}
	defer func() {
		if r := recover(); r != nil {
			text = panicText(err, r)
		}
	}()
	n := enterValue()
	if n == nil {
		return logsItself
	}
	defer leaveValue(n)
	return err.Error()
}

// unwrapped returns the error that err wraps, or several.
func unwrapped(err error) (several []error, one error) {
	switch e := err.(type) {
	case interface{ Unwrap() error }:
		return nil, e.Unwrap()
	case interface{ Unwrap() []error }:
		if several = e.Unwrap(); slices.Contains(several, nil) {
			several = slices.DeleteFunc(slices.Clone(several), func(e error) bool { return e == nil })
		}
		if len(several) == 1 {
			return nil, several[0]
		}
	}
	return several, nil
}

// callersIn returns the program counters of the first error that has some, among err
// and the errors that it wraps.
func callersIn(err error) []uintptr {
	left := maxCauses
	return callersBelow(err, &left)
}

func callersBelow(err error, left *int) []uintptr {
	for ; err != nil && *left >= 0; *left-- {
		if pcs := callersOf(err); len(pcs) > 0 {
			return pcs
		}
		several, one := unwrapped(err)
		for _, e := range several {
			if pcs := callersBelow(e, left); len(pcs) > 0 {
				return pcs
			}
		}
		err = one
	}
	return nil
}

// callersOf returns the program counters of err, if it has some.
func callersOf(err error) []uintptr {
	if r, ok := err.(redactedError); ok {
		err = r.err
	}
	if e, ok := err.(interface{ Callers() []uintptr }); ok {
		return e.Callers()
	}
	m := reflect.ValueOf(err).MethodByName("StackTrace")
	if !m.IsValid() || m.Type().NumIn() != 0 || m.Type().NumOut() != 1 {
		return nil
	}
	out := m.Type().Out(0)
	if out.Kind() != reflect.Slice || out.Elem().Kind() != reflect.Uintptr {
		return nil
	}
	frames := m.Call(nil)[0]
	pcs := make([]uintptr, frames.Len())
	for i := range pcs {
		pcs[i] = uintptr(frames.Index(i).Uint())
	}
	return pcs
}

// FormatStack formats a stack as the runtime does: a function and, on the next line
// after a tab, its file and line.
func FormatStack(pcs []uintptr) string {
	if len(pcs) == 0 {
		return ""
	}
	var b []byte
	frames := runtime.CallersFrames(pcs)
	for {
		frame, more := frames.Next()
		if frame.Function != "" {
			if len(b) > 0 {
				b = append(b, '\n')
			}
			b = append(b, frame.Function...)
			b = append(b, "\n\t"...)
			b = append(b, frame.File...)
			b = append(b, ':')
			b = strconv.AppendInt(b, int64(frame.Line), 10)
		}
		if !more {
			return string(b)
		}
	}
}
