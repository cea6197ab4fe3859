package rollwaytest

import (
	"fmt"
	"strings"
	"testing"
)

// fakeTB keeps what is logged and runs the cleanups when told.
type fakeTB struct {
	testing.TB
	logged   []string
	cleanups []func()
}

func (f *fakeTB) Helper()          {}
func (f *fakeTB) Log(args ...any)  { f.logged = append(f.logged, fmt.Sprint(args...)) }
func (f *fakeTB) Cleanup(c func()) { f.cleanups = append(f.cleanups, c) }

func TestTB(t *testing.T) {
	f := &fakeTB{TB: t}
	w := TB(f)
	for _, p := range []string{"one\n", "two\nthree\n", "four"} {
		if n, err := w.Write([]byte(p)); n != len(p) || err != nil {
			t.Errorf("Write = %d, %v", n, err)
		}
	}
	for _, c := range f.cleanups {
		c()
	}
	if _, err := w.Write([]byte("late\n")); err != nil {
		t.Errorf("Write after the test: %v", err)
	}
	if got := strings.Join(f.logged, "|"); got != "one|two\nthree|four" {
		t.Errorf("logged %q", got)
	}
}
