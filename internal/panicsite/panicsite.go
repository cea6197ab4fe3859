// Package panicsite tells where a panic came from that is being recovered.
package panicsite

import (
	"fmt"
	"log/slog"
	"runtime"
	"strconv"
	"strings"
)

// maxFrames bounds the stack of a panic.
const maxFrames = 64

// Find returns where the panic came from that is being recovered: its program
// counter, as slog.Record.PC has it, and the stack from there on, a function
// and, below it, a tab, its file and line. It is called by the deferred function
// that recovers, or by a function that this calls. Where Logger.FlushOnPanic
// went on panicking, or Logger.Panic panicked, it is not that method but what
// led to it.
func Find() (pc uintptr, stack string) {
	var pcs [maxFrames + 16]uintptr
	frames := runtime.CallersFrames(pcs[:runtime.Callers(2, pcs[:])])
	var b strings.Builder
	panicked := false
	for n := 0; n < maxFrames; {
		frame, more := frames.Next()
		switch {
		case frame.Function == "runtime.gopanic" && pc == 0:
			panicked = true
		case pc != 0 || panicked && !passesOn(frame.Function):
			if pc == 0 {
				pc = frame.PC + 1 // of the instruction after the call, as runtime.Callers returns it
			} else {
				b.WriteByte('\n')
			}
			b.WriteString(frame.Function)
			b.WriteString("\n\t")
			b.WriteString(frame.File)
			b.WriteByte(':')
			b.WriteString(strconv.Itoa(frame.Line))
			n++
		}
		if !more {
			break
		}
	}
	return pc, b.String()
}

// passesOn reports whether a function is not the place of a panic but on the way
// from there.
func passesOn(function string) bool {
	for _, prefix := range []string{"runtime.", "internal/runtime/", "github.com/rollway/rollway.(*Logger)."} {
		if strings.HasPrefix(function, prefix) {
			return true
		}
	}
	return false
}

// Text formats what was panicked with, of a slog.LogValuer what LogValue returns.
// The methods of p may panic beyond what package fmt catches.
func Text(p any) (text string) {
	defer func() {
		if recover() != nil {
			text = fmt.Sprintf("panic: %T", p)
		}
	}()
	if v, ok := p.(slog.LogValuer); ok {
		p = slog.AnyValue(v).Resolve()
	}
	return "panic: " + fmt.Sprint(p)
}
