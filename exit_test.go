package rollway

import (
	"bytes"
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
	if got := line(t, &b); !strings.Contains(got, `"level":"PANIC","msg":"panic: boom\n"`) || !strings.Contains(got, "TestFlushOnPanic") {
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
