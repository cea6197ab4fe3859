//go:build unix

package rollway

import (
	"os"
	"strings"
	"syscall"
	"testing"
)

func TestExitOnSignal(t *testing.T) {
	code := make(chan int, 1)
	f := &flusher{}
	l := mustNew(t, Options{Outputs: []Output{{Writer: f}}, Exit: func(c int) { code <- c }})
	stop := l.ExitOnSignal(syscall.SIGHUP)
	self, err := os.FindProcess(os.Getpid())
	if err != nil {
		t.Fatal(err)
	}
	if err := self.Signal(syscall.SIGHUP); err != nil {
		t.Fatal(err)
	}
	if got := <-code; got != 128+1 {
		t.Errorf("exit status %d, want 129", got)
	}
	if got := strings.Join(f.calls, " "); got != "write flush" {
		t.Errorf("calls: %s", got)
	}
	stop()
	stop()
}
