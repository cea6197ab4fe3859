package rollway

import (
	"runtime"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/rollway/rollway/internal/jsonline"
)

// sources remembers what each call site's program counter stands for, so that
// a call site is looked up once. There are as many entries as call sites.
var sources struct {
	known atomic.Pointer[map[uintptr]string] // replaced, never changed
	mu    sync.Mutex                         // held to replace known
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

// sourceOf returns "folder/file.go:line" for a program counter, escaped for a
// JSON string, or "" where it stands for nothing.
func sourceOf(pc uintptr) string {
	if known := sources.known.Load(); known != nil {
		if s, ok := (*known)[pc]; ok {
			return s
		}
	}
	return lookUpSource(pc)
}

func lookUpSource(pc uintptr) string {
	frame, _ := runtime.CallersFrames([]uintptr{pc}).Next()
	source := ""
	if frame.File != "" {
		file := frame.File
		if i := strings.LastIndexByte(file, '/'); i >= 0 {
			if j := strings.LastIndexByte(file[:i], '/'); j >= 0 {
				file = file[j+1:]
			}
		}
		source = string(jsonline.AppendEscaped(nil, file)) + ":" + strconv.Itoa(frame.Line)
	}
	sources.mu.Lock()
	defer sources.mu.Unlock()
	next := make(map[uintptr]string)
	if known := sources.known.Load(); known != nil {
		for k, v := range *known {
			next[k] = v
		}
	}
	next[pc] = source
	sources.known.Store(&next)
	return source
}
