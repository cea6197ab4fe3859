//go:build unix

package main

import (
	"bytes"
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
)

// What was sent of a file is known under the name that a rotation has given it,
// whichever of the names is sent first.
func TestSendAfterRotation(t *testing.T) {
	for name, newFirst := range map[string]bool{"new file first": true, "old file first": false} {
		t.Run(name, func(t *testing.T) {
			f, dir := newFakeCollector(t), t.TempDir()
			path := filepath.Join(dir, "app.log")
			send := func(name string, want []string, said ...string) {
				t.Helper()
				cli(t, "", "send", "-addr", f.URL, "-state", filepath.Join(dir, "state"), name).want(t, 0, said...)
				if got := f.messages(t); !slices.Equal(got, want) {
					t.Fatalf("%s: got %q, want %q", name, got, want)
				}
			}
			move := func(from, to string) {
				t.Helper()
				if err := os.Rename(from, to); err != nil {
					t.Fatal(err)
				}
			}
			writeFile(t, path, "a1\na2\na3\n")
			send(path, []string{"a1", "a2", "a3"})
			appendFile(t, path, "a4\na5\n")
			move(path, path+".1")
			writeFile(t, path, "b1\n")
			if newFirst {
				send(path, []string{"b1"}, "it was replaced by another file", "the previous file is now app.log.1 and has lines that were not sent")
				send(path+".1", []string{"a4", "a5"}, "continuing at line 4")
			} else {
				send(path+".1", []string{"a4", "a5"}, "continuing at line 4")
				send(path, []string{"b1"})
			}
			send(path, nil, "nothing new")
			send(path+".1", nil, "nothing new")

			appendFile(t, path, "b2\n")
			move(path+".1", path+".2")
			move(path, path+".1")
			writeFile(t, path, "c1\n")
			send(path+".1", []string{"b2"}, "continuing at line 2")
			send(path+".2", nil, "nothing new")
			send(path, []string{"c1"})

			// A copy is another file, and is sent.
			writeFile(t, path+".copy", "c1\n")
			send(path+".copy", []string{"c1"})
		})
	}
}

// A signal ends the wait for a named pipe's writer, and for its next line.
func TestSendNamedPipe(t *testing.T) {
	f, pipe := newFakeCollector(t), filepath.Join(t.TempDir(), "pipe")
	if err := syscall.Mkfifo(pipe, 0o600); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	go cancel()
	if _, err := openInput(ctx, pipe, nil); !errors.Is(err, context.Canceled) {
		t.Errorf("without a writer: %v", err)
	}

	var stderr bytes.Buffer
	cmd := exec.Command("rollway", "send", "-addr", f.URL, pipe)
	cmd.Stderr = &stderr
	start(t, cmd)
	w, err := os.OpenFile(pipe, os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	if _, err := w.WriteString("one\n"); err != nil {
		t.Fatal(err)
	}
	waitFor(t, "the line", func() bool { return f.taken() == 1 })
	sendSignal(t, cmd, syscall.SIGTERM)
	cmd.Wait()
	if got := stderr.String(); cmd.ProcessState.ExitCode() != 1 || !strings.Contains(got, "interrupted after 1 line\n") {
		t.Errorf("%v, %q", cmd.ProcessState, got)
	}
}
