package rollway

import (
	"maps"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/rollway/rollway/internal/jsonline"
)

// sources maps addresses in the code to "folder/file.go:line", escaped for a
// JSON string, so that each call site is looked up once. It gets as many
// entries as the program has calls of log methods.
type sources struct {
	known atomic.Pointer[map[uintptr]string] // replaced, never changed
	mu    sync.Mutex                         // held to replace known
}

func (s *sources) get(pc uintptr) (source string, ok bool) {
	known := s.known.Load()
	if known == nil {
		return "", false
	}
	source, ok = (*known)[pc]
	return source, ok
}

func (s *sources) put(pc uintptr, source string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	next := make(map[uintptr]string)
	if known := s.known.Load(); known != nil {
		maps.Copy(next, *known)
	}
	next[pc] = source
	s.known.Store(&next)
}

var (
	sourcesByPC     sources // by what runtime.Callers gives for a call site
	sourcesByReturn sources // by what returnAddress gives for it; "" where that is not enough
)

// callSource returns the source of the call of a log method, or of the call
// skip frames above it, and "" if that is not known. It is called by Logger.log
// alone, which passes the address that it will return to, or 0.
//
// Walking the stack is most of the price of a caller. Where the log method is
// inlined into the function that calls it, the return address tells the call
// site, and one walk for each of them is enough. Where it is not (behind an
// interface, a method value), many call sites have one return address.
func callSource(returnTo uintptr, skip int) string {
	if returnTo == 0 || skip != 0 {
		return sourceOf(callerPC(callerSkip + 1 + skip))
	}
	source, ok := sourcesByReturn.get(returnTo)
	switch {
	case !ok:
		return firstCall(returnTo)
	case source == "":
		return sourceOf(callerPC(callerSkip + 1))
	}
	return source
}

// firstCall is callSource for an address that is not known yet. callSource
// alone calls it.
func firstCall(returnTo uintptr) string {
	var pcs [2]uintptr                  // of the log method and of its caller
	if runtime.Callers(4, pcs[:]) < 2 { // behind Callers, firstCall, callSource, log
		return ""
	}
	source := sourceOf(pcs[1])
	frames := runtime.CallersFrames(pcs[:])
	method, _ := frames.Next()
	caller, _ := frames.Next()
	if method.Func == nil && method.Entry != 0 && method.Entry == caller.Entry {
		sourcesByReturn.put(returnTo, source) // inlined
	} else {
		sourcesByReturn.put(returnTo, "")
	}
	return source
}

// callerPC returns the program counter of the frame skip levels above its
// caller, or 0.
func callerPC(skip int) uintptr {
	var pcs [1]uintptr
	if runtime.Callers(skip+2, pcs[:]) == 0 {
		return 0
	}
	return pcs[0]
}

// sourceOf returns the source for a program counter as runtime.Callers and
// slog.Record have it, "" where it stands for nothing.
func sourceOf(pc uintptr) string {
	if pc == 0 {
		return ""
	}
	if source, ok := sourcesByPC.get(pc); ok {
		return source
	}
	source := lookUpSource(pc)
	sourcesByPC.put(pc, source)
	return source
}

func lookUpSource(pc uintptr) string {
	frame, _ := runtime.CallersFrames([]uintptr{pc}).Next()
	if frame.File == "" {
		return ""
	}
	file := frame.File
	if i := strings.LastIndexByte(file, '/'); i >= 0 {
		if j := strings.LastIndexByte(file[:i], '/'); j >= 0 {
			file = file[j+1:]
		}
	}
	return string(jsonline.AppendEscaped(nil, file)) + ":" + strconv.Itoa(frame.Line)
}
