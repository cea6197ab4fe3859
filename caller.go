package rollway

import (
	"log/slog"
	"maps"
	"runtime"
	"sync"
	"sync/atomic"

	"github.com/rollway/rollway/internal/encode"
)

// sources maps program counters to sources, so that each call site is looked up once. It
// grows to the number of log calls in the program.
type sources struct {
	known atomic.Pointer[map[uintptr]*encode.Source] // replaced, never changed
	mu    sync.Mutex                                 // held to replace known
}

func (s *sources) get(pc uintptr) (source *encode.Source, ok bool) {
	known := s.known.Load()
	if known == nil {
		return nil, false
	}
	source, ok = (*known)[pc]
	return source, ok
}

func (s *sources) put(pc uintptr, source *encode.Source) {
	s.mu.Lock()
	defer s.mu.Unlock()
	next := make(map[uintptr]*encode.Source)
	if known := s.known.Load(); known != nil {
		maps.Copy(next, *known)
	}
	next[pc] = source
	s.known.Store(&next)
}

var (
	sourcesByPC     sources // by program counter, as of runtime.Callers
	sourcesByReturn sources // by returnAddress; nil if many call sites share it
)

// source returns the source of the user's call, or of the call skip frames above
// it, and nil if that is not known. write alone calls it.
//
// Walking the stack is most of the price of a caller. If the log method is inlined
// into the function that calls it, the address that Logger.log returns to tells the
// call site, and one walk for each of them is enough. If it is not (a call through
// an interface, a method value), many call sites have one return address.
func (o *origin) source(skip int) *encode.Source {
	switch {
	case o.by != byLog:
		return sourceOf(o.pc)
	case o.pc == 0 || skip != 0:
		return sourceOf(callerPC(callerSkip + 2 + skip))
	}
	source, ok := sourcesByReturn.get(o.pc)
	switch {
	case !ok:
		return firstCall(o.pc)
	case source == nil:
		return sourceOf(callerPC(callerSkip + 2))
	}
	return source
}

// skip returns the number of frames between write and the user's call; from slog, if
// that is of a method of slog.Logger.
func (o *origin) skip(l *Logger) int {
	switch o.by {
	case byLog:
		return callerSkip + l.skip
	case byCode:
		return callerSkip - 1 + l.skip
	}
	return callerSkip + 1
}

// firstCall is source for a return address that is not known yet. source alone
// calls it.
func firstCall(returnTo uintptr) *encode.Source {
	var pcs [2]uintptr                  // of the log method and of its caller
	if runtime.Callers(5, pcs[:]) < 2 { // after Callers, firstCall, source, write, log
		return nil
	}
	source := sourceOf(pcs[1])
	frames := runtime.CallersFrames(pcs[:])
	method, _ := frames.Next()
	caller, _ := frames.Next()
	if method.Func == nil && method.Entry != 0 && method.Entry == caller.Entry {
		sourcesByReturn.put(returnTo, source) // inlined
	} else {
		sourcesByReturn.put(returnTo, nil)
	}
	return source
}

// stack returns the stack of the caller's caller skip levels up.
func stack(skip int) string {
	var pcs [64]uintptr
	return encode.FormatStack(pcs[:runtime.Callers(skip+2, pcs[:])])
}

// callerPC returns the program counter of the frame skip levels above its caller, or
// 0.
func callerPC(skip int) uintptr {
	var pcs [1]uintptr
	if runtime.Callers(skip+2, pcs[:]) == 0 {
		return 0
	}
	return pcs[0]
}

// sourceOf returns the source for a program counter as of runtime.Callers and
// slog.Record, or nil.
func sourceOf(pc uintptr) *encode.Source {
	if pc == 0 {
		return nil
	}
	if source, ok := sourcesByPC.get(pc); ok {
		return source
	}
	source := lookUpSource(pc)
	sourcesByPC.put(pc, source)
	return source
}

func lookUpSource(pc uintptr) *encode.Source {
	frame, _ := runtime.CallersFrames([]uintptr{pc}).Next()
	if frame.File == "" {
		return nil
	}
	return encode.NewSource(slog.Source{File: frame.File, Line: frame.Line, Function: frame.Function})
}
