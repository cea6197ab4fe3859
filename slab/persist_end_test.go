//go:build linux || darwin

package slab_test

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/rollway/rollway/rollwaytest"
	"github.com/rollway/rollway/slab"
)

// The child of TestPersistOutlivesItsProcess: how it ends, and the slab file.
const endChild = "SLAB_END_CHILD"

func init() {
	if args := os.Getenv(endChild); args != "" {
		how, path, _ := strings.Cut(args, " ")
		fmt.Fprintln(os.Stderr, endWithLinesPending(how, path)) // it does not get here
		os.Exit(1)
	}
}

// pendingLines are those that the child has accepted: in sealed slabs, in the
// open one, and one longer than a slab.
func pendingLines() (lines []string) {
	for i := range 30 {
		size := 100
		if i == 17 {
			size = 5000
		}
		lines = append(lines, numbered(i, size))
	}
	return lines
}

// stuck is a destination that takes nothing and does not return.
type stuck struct{ called chan struct{} }

func (d stuck) Write([]byte) (int, error) {
	close(d.called)
	select {}
}

func endWithLinesPending(how, path string) error {
	dst := stuck{make(chan struct{})}
	w, err := slab.New(dst, slab.Options{SlabSize: 512, SlabCount: 16, Persist: path, FlushInterval: time.Hour, OnError: func(error) {}})
	if err != nil {
		return err
	}
	for _, l := range pendingLines() {
		if _, err := io.WriteString(w, l+"\n"); err != nil {
			return err
		}
	}
	<-dst.called
	if s := w.Stats(); s.Pending != 30 || s.Written != 0 {
		return fmt.Errorf("Stats = %+v, want 30 lines pending", s)
	}
	switch how {
	case "exit":
		os.Exit(7)
	case "panic":
		go func() { panic("the end") }()
	}
	time.Sleep(time.Hour)
	return errors.New("still there")
}

// A process that panics, or calls os.Exit, without Close: the next Writer
// delivers all that it had accepted, once and in order.
func TestPersistOutlivesItsProcess(t *testing.T) {
	for how, want := range map[string]struct {
		code int
		says string
	}{"exit": {7, ""}, "panic": {2, "panic: the end"}} {
		t.Run(how, func(t *testing.T) {
			path := inMemory(t)
			cmd := exec.Command(os.Args[0])
			cmd.Env = append(os.Environ(), endChild+"="+how+" "+path)
			var said bytes.Buffer
			cmd.Stderr = &said
			err := cmd.Run()
			if cmd.ProcessState.ExitCode() != want.code || !strings.Contains(said.String(), want.says) {
				t.Fatalf("the child: %v, want status %d\n%s", err, want.code, said.String())
			}
			nextDelivers(t, path, pendingLines())
		})
	}
}

func nextDelivers(t *testing.T, path string, lines []string) {
	t.Helper()
	dst := new(rollwaytest.Destination)
	w, err := slab.New(dst, slab.Options{SlabSize: 512, SlabCount: 16, Persist: path, CloseTimeout: time.Minute})
	if err != nil {
		t.Fatal(err)
	}
	put(t, w, "new")
	if err := w.Close(); err != nil {
		t.Error(err)
	}
	want(t, "lines", dst.Lines(), append(lines, "new"))
	settled(t, w, dst, len(lines)+1)
	if s := w.Stats(); s.Recovered != uint64(len(lines)) {
		t.Errorf("Recovered = %d, want %d", s.Recovered, len(lines))
	}
}
