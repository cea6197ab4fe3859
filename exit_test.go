package rollway

import (
	"bytes"
	"fmt"
	"runtime"
	"strings"
	"testing"
)

func TestFlushOnPanic(t *testing.T) {
	var b bytes.Buffer
	f := &flusher{}
	l := mustNew(t, Options{Outputs: []Output{{Writer: &b}, {Writer: f}}})
	func() {
		defer func() {
			if r := recover(); r != "boom\n" {
				t.Errorf("it goes on panicking with %v", r)
			}
		}()
		defer l.FlushOnPanic()
		panic("boom\n")
	}()
	if got := oneLine(t, &b); !strings.Contains(got, `"level":"PANIC","msg":"panic: boom\n"`) || !strings.Contains(got, "TestFlushOnPanic") {
		t.Errorf("got %s", got)
	}
	if got := strings.Join(f.calls, " "); got != "write flush" {
		t.Errorf("calls: %s", got)
	}
	func() { defer l.FlushOnPanic() }()
	if len(f.calls) != 2 {
		t.Error("without a panic it did something")
	}
}

func panicsHere() {
	panic("here")
}

// The source of the line is where the panic was, not where it was passed on.
func TestFlushOnPanicNamesThePlace(t *testing.T) {
	var b bytes.Buffer
	l := mustNew(t, Options{Outputs: []Output{{Writer: &b}}})
	var none []int
	_, _, here, _ := runtime.Caller(0)
	places := map[string]struct {
		do   func()
		line int
	}{
		"panic": {func() { panicsHere() }, here - 8},
		"nil": {func() {
			var p *Output
			p.Name = "x"
		}, here + 8},
		"index":        {func() { _ = none[b.Len()] }, here + 10},
		"passed on":    {func() { defer l.FlushOnPanic(); panicsHere() }, here - 8},
		"Logger.Panic": {func() { l.Panic(t.Context(), "m") }, here + 12},
	}
	for name, c := range places {
		b.Reset()
		func() {
			defer func() { _ = recover() }()
			defer l.FlushOnPanic()
			c.do()
		}()
		lines := strings.Split(strings.TrimSpace(b.String()), "\n")
		for _, line := range lines {
			if want := fmt.Sprintf(`/exit_test.go:%d"`, c.line); !strings.Contains(line, want) || !strings.Contains(line, `"level":"PANIC"`) {
				t.Errorf("%s: %s\nwant %s", name, line, want)
			}
		}
	}
}
