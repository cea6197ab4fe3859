//go:build unix

package shard_test

import (
	"errors"
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/rollway/rollway/rollwaytest"
	"github.com/rollway/rollway/shard"
)

func TestReopenOn(t *testing.T) {
	path := filepath.Join(t.TempDir(), "log")
	w := openFile(t, path, small)
	stop := w.ReopenOn(syscall.SIGUSR2)
	defer stop()
	w.ReopenOn()()
	for round := range 3 {
		log(t, w, "one")
		if err := w.Flush(t.Context()); err != nil {
			t.Fatal(err)
		}
		if err := os.Rename(path, path+"-old"); err != nil {
			t.Fatal(err)
		}
		if err := syscall.Kill(os.Getpid(), syscall.SIGUSR2); err != nil {
			t.Fatal(err)
		}
		eventually(t, "the new file", func() bool { return w.Stats().File.Reopens > uint64(round) })
		if data := string(snapshot(t, path+"-old")); data != "one\n" {
			t.Errorf("the old file has %q", data)
		}
	}
	stop()
	stop()
	closeFile(t, w)
}

// reopener counts calls of its Reopen.
type reopener struct {
	*rollwaytest.Destination
	calls int
	err   error
}

func (r *reopener) Reopen() error { r.calls++; return r.err }

// The destination of New is reopened if it can be.
func TestReopenOfADestination(t *testing.T) {
	boom := errors.New("boom")
	dst := &reopener{Destination: new(rollwaytest.Destination)}
	w, err := shard.New(dst, small)
	if err != nil {
		t.Fatal(err)
	}
	if err := w.Reopen(); err != nil || dst.calls != 1 {
		t.Errorf("Reopen = %v, %d calls", err, dst.calls)
	}
	dst.err = boom
	if err := w.Reopen(); !errors.Is(err, boom) {
		t.Errorf("Reopen = %v", err)
	}
	dst.Fail(nil) // it is reopened also while it fails
	log(t, w, "one")
	eventually(t, "a failure", func() bool { return w.Stats().Errors > 0 })
	if err := w.Reopen(); !errors.Is(err, boom) {
		t.Errorf("Reopen = %v", err)
	}
	dst.Heal()
	closeFile(t, w)
	settled(t, w, 1, 1)

	w, _ = open(t, small)
	if err := w.Reopen(); !errors.Is(err, errors.ErrUnsupported) {
		t.Errorf("Reopen = %v", err)
	}
}
