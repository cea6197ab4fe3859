package rollway

import (
	"reflect"
	"runtime"
	"strconv"

	"github.com/rollway/rollway/internal/jsonline"
)

// maxChain bounds the errors of a chain that are written, also where an error
// wraps itself.
const maxChain = 16

// appendErrorDetail appends err as ErrorDetail says.
func appendErrorDetail(dst []byte, err error) []byte {
	dst = append(dst, '{')
	dst = appendMsgAndType(dst, err)
	var chain []error
	chain = unwrapAll(chain, err)
	for i, e := range chain {
		if i == 0 {
			dst = append(dst, `,"chain":[`...)
		} else {
			dst = append(dst, ',')
		}
		dst = append(dst, '{')
		dst = appendMsgAndType(dst, e)
		dst = append(dst, '}')
	}
	if len(chain) > 0 {
		dst = append(dst, ']')
	}
	for _, e := range append([]error{err}, chain...) {
		if pcs := callersOf(e); len(pcs) > 0 {
			dst = append(dst, `,"stack":`...)
			dst = jsonline.AppendString(dst, formatStack(pcs))
			break
		}
	}
	return append(dst, '}')
}

func appendMsgAndType(dst []byte, err error) []byte {
	dst = append(dst, `"msg":`...)
	dst = jsonline.AppendString(dst, errorText(err))
	dst = append(dst, `,"type":`...)
	if r, ok := err.(redactedError); ok {
		err = r.err
	}
	return jsonline.AppendString(dst, reflect.TypeOf(err).String())
}

func errorText(err error) (text string) {
	defer func() {
		if r := recover(); r != nil {
			text = panicText(err, r)
		}
	}()
	return err.Error()
}

// unwrapAll appends what err wraps, depth first, until there are maxChain.
func unwrapAll(chain []error, err error) []error {
	for _, w := range unwrapOnce(err) {
		if w != nil && len(chain) < maxChain {
			chain = unwrapAll(append(chain, w), w)
		}
	}
	return chain
}

func unwrapOnce(err error) []error {
	switch e := err.(type) {
	case interface{ Unwrap() error }:
		return []error{e.Unwrap()}
	case interface{ Unwrap() []error }:
		return e.Unwrap()
	}
	return nil
}

// callersOf returns the program counters that err carries, if it does.
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

// stack returns the stack of the caller's caller skip levels up.
func stack(skip int) string {
	var pcs [64]uintptr
	return formatStack(pcs[:runtime.Callers(skip+2, pcs[:])])
}

// formatStack writes a stack as the runtime does: a function and, below it, a
// tab, its file and line.
func formatStack(pcs []uintptr) string {
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
