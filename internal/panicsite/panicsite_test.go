package panicsite

import (
	"runtime"
	"strings"
	"testing"
)

func site(f func()) (pc uintptr, stack string) {
	defer func() {
		recover()
		pc, stack = Find()
	}()
	f()
	return 0, "no panic"
}

func panicHere() { panic("x") }

func nilHere() {
	var p *struct{ n int }
	p.n++
}

var zero int // not known to the compiler

func indexHere() { _ = make([]int, zero)[zero] }

var noMap map[string]int

func mapHere() { noMap["a"] = zero }

func castHere() {
	var v any = zero
	_ = v.(string)
}

func TestFind(t *testing.T) {
	for name, f := range map[string]func(){"panicHere": panicHere, "nilHere": nilHere, "indexHere": indexHere, "mapHere": mapHere, "castHere": castHere} {
		pc, stack := site(f)
		frame, _ := runtime.CallersFrames([]uintptr{pc}).Next()
		if !strings.HasSuffix(frame.Function, "panicsite."+name) {
			t.Errorf("pc is in %s, want %s", frame.Function, name)
		}
		first, _, _ := strings.Cut(stack, "\n")
		if !strings.HasSuffix(first, "panicsite."+name) || !strings.Contains(stack, "\n\t") || !strings.Contains(stack, "TestFind") {
			t.Errorf("stack begins at %s:\n%s", first, stack)
		}
	}
	var deep func(n int)
	deep = func(n int) {
		if n == 0 {
			panic("deep")
		}
		deep(n - 1)
	}
	if _, stack := site(func() { deep(1000) }); strings.Count(stack, "\n\t") != maxFrames {
		t.Errorf("%d frames of a deep stack, want %d", strings.Count(stack, "\n\t"), maxFrames)
	}
}

type bad struct{}

func (bad) Error() string { panic(bad{}) }

func TestText(t *testing.T) {
	if got := Text("no card"); got != "panic: no card" {
		t.Errorf("got %q", got)
	}
	if got := Text(bad{}); !strings.HasPrefix(got, "panic: ") {
		t.Errorf("got %q", got)
	}
}
