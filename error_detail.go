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
	var all [maxChain]error
	n := unwrapInto(&all, 0, err)
	chain := all[:n]
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
	if pcs := callersIn(err, chain); len(pcs) > 0 {
		dst = append(dst, `,"stack":`...)
		dst = jsonline.AppendString(dst, formatStack(pcs))
	}
	return append(dst, '}')
}

func appendMsgAndType(dst []byte, err error) []byte {
	dst = append(dst, `"msg":`...)
	dst = jsonline.AppendString(dst, errorText(err))
	dst = append(dst, `,"type":`...)
	return jsonline.AppendString(dst, typeName(err))
}

func errorText(err error) (text string) {
	defer func() {
		if r := recover(); r != nil {
			text = panicText(err, r)
		}
	}()
	if !enterValue() {
		return logsItself
	}
	defer leaveValue()
	return err.Error()
}

// unwrapInto writes what err wraps behind the n errors that chain holds, depth
// first, until it is full, and returns how many it holds then.
func unwrapInto(chain *[maxChain]error, n int, err error) int {
	switch e := err.(type) {
	case interface{ Unwrap() error }:
		n = addWrapped(chain, n, e.Unwrap())
	case interface{ Unwrap() []error }:
		for _, w := range e.Unwrap() {
			n = addWrapped(chain, n, w)
		}
	}
	return n
}

func addWrapped(chain *[maxChain]error, n int, err error) int {
	if err == nil || n == len(chain) {
		return n
	}
	chain[n] = err
	return unwrapInto(chain, n+1, err)
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

// callersIn returns the program counters of the first error that carries some.
func callersIn(err error, chain []error) []uintptr {
	pcs := callersOf(err)
	for i := 0; len(pcs) == 0 && i < len(chain); i++ {
		pcs = callersOf(chain[i])
	}
	return pcs
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
