package request

import (
	"fmt"
	"runtime"
	"strconv"
	"strings"
)

// maxFrames bounds the stack of a panic.
const maxFrames = 64

// PanicSite returns where the panic came from that is being recovered: its
// program counter, as slog.Record.PC has it, and the stack from there on, a
// function and, below it, a tab, its file and line. It is called by the
// deferred function that recovers, or by a function that this calls.
func PanicSite() (pc uintptr, stack string) {
	var pcs [maxFrames + 16]uintptr
	frames := runtime.CallersFrames(pcs[:runtime.Callers(2, pcs[:])])
	var b strings.Builder
	panicked := false
	for n := 0; n < maxFrames; {
		frame, more := frames.Next()
		switch {
		case pc != 0 || panicked && !strings.HasPrefix(frame.Function, "runtime."):
			if pc == 0 {
				pc = frame.PC + 1 // of the instruction behind the call, as runtime.Callers has it
			} else {
				b.WriteByte('\n')
			}
			b.WriteString(frame.Function)
			b.WriteString("\n\t")
			b.WriteString(frame.File)
			b.WriteByte(':')
			b.WriteString(strconv.Itoa(frame.Line))
			n++
		case frame.Function == "runtime.gopanic":
			panicked = true
		}
		if !more {
			break
		}
	}
	return pc, b.String()
}

// PanicText formats what was panicked with, whose own methods may panic beyond
// what package fmt catches.
func PanicText(p any) (text string) {
	defer func() {
		if recover() != nil {
			text = fmt.Sprintf("panic: %T", p)
		}
	}()
	return "panic: " + fmt.Sprint(p)
}
