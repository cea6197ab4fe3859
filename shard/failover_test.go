package shard_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rollway/rollway/shard"
)

// From the failover the first folder is tried again every minute, until it is
// back.
func TestFailoverGoesHome(t *testing.T) {
	dir := t.TempDir()
	first, away, second := filepath.Join(dir, "first"), filepath.Join(dir, "away"), filepath.Join(dir, "second")
	if err := errors.Join(os.Mkdir(first, 0o700), os.Mkdir(second, 0o700)); err != nil {
		t.Fatal(err)
	}
	synctest.Test(t, func(t *testing.T) {
		path, other := filepath.Join(first, "log"), filepath.Join(second, "log")
		var heard told
		o := small
		o.StallAfter, o.OnError = time.Hour, heard.add
		o.File = shard.FileOptions{Framed: true, Failover: second}
		w := openFile(t, path, o)
		record := func(name, want string) {
			t.Helper()
			log(t, w, name)
			if err := w.Flush(t.Context()); err != nil {
				t.Fatal(err)
			}
			if got := w.Stats().File.Path; got != want {
				t.Fatalf("%s went to %s, want %s", name, got, want)
			}
		}
		record("one", path)
		// The file is cut, so it is left, and its folder is gone.
		if err := errors.Join(os.Truncate(path, 0), os.Rename(first, away)); err != nil {
			t.Fatal(err)
		}
		record("two", other)
		began := time.Now()
		at := func(d time.Duration) { time.Sleep(d - time.Since(began)) }
		at(61 * time.Second)
		record("three", other) // tried again, and still gone
		if err := os.Rename(away, first); err != nil {
			t.Fatal(err)
		}
		at(119 * time.Second)
		record("four", other)
		at(122 * time.Second)
		record("five", path)
		record("six", path)
		closeFile(t, w)
		ledger(w).CheckSettled(t, 6, 6)
		if s := w.Stats().File; s.Failovers != 1 || !strings.Contains(heard.String(), "the lines go to "+path+" again") {
			t.Errorf("Stats %+v, OnError got %s", s, heard.String())
		}
		if got := strings.Join(framedRecords(t, other), " "); got != "two three four" {
			t.Errorf("the failover has %s", got)
		}
		if got := strings.Join(framedRecords(t, path), " "); got != "five six" {
			t.Errorf("the first folder has %s", got)
		}
	})
}
