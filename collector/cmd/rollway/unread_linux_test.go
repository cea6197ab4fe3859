package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"
	"time"
)

// Both streams go to one pipe, and its reader stops reading: a service ends all
// the same.
func TestUnreadOutput(t *testing.T) {
	for _, args := range [][]string{
		{"serve", "-listen", "127.0.0.1:0", "-data", filepath.Join(t.TempDir(), "data")},
		{"relay", "-metrics-listen", "127.0.0.1:0", "-listen", "tcp://127.0.0.1:0", "-to", "tcp://127.0.0.1:1"},
	} {
		t.Run(args[0], func(t *testing.T) {
			t.Parallel()
			path := filepath.Join(t.TempDir(), "pipe")
			if err := syscall.Mkfifo(path, 0o600); err != nil {
				t.Fatal(err)
			}
			open := func(flag int) *os.File {
				f, err := os.OpenFile(path, flag, 0)
				if err != nil {
					t.Fatal(err)
				}
				t.Cleanup(func() { f.Close() })
				return f
			}
			r, w := open(os.O_RDWR), open(os.O_WRONLY)
			cmd := exec.Command("rollway", args...)
			cmd.Stdout, cmd.Stderr = w, w
			start(t, cmd)
			defer cmd.Process.Kill()
			if _, err := r.Read(make([]byte, 4<<10)); err != nil { // it runs
				t.Fatal(err)
			}
			fill(t, open(os.O_WRONLY)) // not w, which blocks since it is the program's
			sendSignal(t, cmd, syscall.SIGTERM)
			late := time.AfterFunc(time.Minute, func() { _ = cmd.Process.Kill() })
			defer late.Stop()
			if err := cmd.Wait(); err != nil {
				t.Errorf("it ended with %v", err)
			}
		})
	}
}
