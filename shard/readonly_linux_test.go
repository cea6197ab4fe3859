package shard_test

import (
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/rollway/rollway/internal/smalldisk"
	"github.com/rollway/rollway/shard"
)

// The first disk takes no writes any more before Open, as an ext4 that has met an
// error and a program that starts again: records go to the failover, and by Reopen
// back.
func TestFailoverFromAReadOnlyDisk(t *testing.T) {
	dir := smalldisk.Mount(t, "size=4m")
	if dir == "" {
		return
	}
	remount := func(flags uintptr) {
		t.Helper()
		if err := syscall.Mount("", dir, "", syscall.MS_REMOUNT|flags, ""); err != nil {
			t.Fatal(err)
		}
	}
	for _, kind := range []shard.FileOptions{{}, {Framed: true}} {
		second := t.TempDir()
		path, other := filepath.Join(dir, nameOf(kind)), filepath.Join(second, nameOf(kind))
		o := small
		o.File = kind
		o.StallAfter = 1 << 40
		remount(syscall.MS_RDONLY)
		if w, err := shard.Open(path, o); err == nil {
			w.Close()
			t.Errorf("%s: Open without a failover = nil", nameOf(kind))
		}
		var heard told
		o.File.Failover, o.OnError = second, heard.add
		w := openFile(t, path, o)
		record := func(text, want string) {
			t.Helper()
			log(t, w, text)
			if err := w.Flush(t.Context()); err != nil {
				t.Fatal(err)
			}
			if got := w.Stats().File.Path; got != want {
				t.Errorf("%s: %s went to %s, want %s", nameOf(kind), text, got, want)
			}
		}
		record("away", other)
		if s := heard.String(); !strings.Contains(s, "read-only file system") || !strings.Contains(s, "the lines go to the failover") {
			t.Errorf("%s: OnError got %s", nameOf(kind), s)
		}
		remount(0)
		if err := w.Reopen(); err != nil {
			t.Errorf("%s: Reopen = %v", nameOf(kind), err)
		}
		record("home", path)
		closeFile(t, w)
		ledger(w).CheckSettled(t, 2, 2)
		for name, want := range map[string]string{path: "home", other: "away"} {
			got := strings.TrimSuffix(string(snapshot(t, name)), "\n")
			if kind.Framed {
				got = strings.Join(framedRecords(t, name), " ")
			}
			if got != want {
				t.Errorf("%s has %q, want %q", name, got, want)
			}
		}
		if s := w.Stats().File; s.Failovers != 1 {
			t.Errorf("Stats %+v", s)
		}
	}
}
