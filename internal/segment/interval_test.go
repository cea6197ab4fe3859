package segment

import (
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rollway/rollway/internal/disk"
)

// Under Interval the file is synced every SyncEvery if it was written to, and not
// if it was not.
func TestSyncInterval(t *testing.T) {
	path := filepath.Join(t.TempDir(), "log")
	synctest.Test(t, func(t *testing.T) {
		const every = 3 * time.Second
		l := openLog(t, path, Options{Sync: Interval, SyncEvery: every, StallAfter: time.Hour})
		defer l.Close()
		for round := range uint64(3) {
			if _, err := l.Write([]byte("line\n")); err != nil {
				t.Fatal(err)
			}
			for _, at := range []struct {
				wait time.Duration
				want uint64
			}{{every - time.Millisecond, round}, {time.Millisecond, round + 1}, {5 * every, round + 1}} {
				time.Sleep(at.wait)
				synctest.Wait()
				if n := l.Stats().Syncs; n != at.want {
					t.Fatalf("round %d: %d calls of fsync, want %d", round, n, at.want)
				}
			}
		}
	})
}

// An fsync in the background that takes long holds up no write, and is told: once
// for a row of them.
func TestStalledSyncInterval(t *testing.T) {
	path := filepath.Join(t.TempDir(), "log")
	synctest.Test(t, func(t *testing.T) {
		const every, after = time.Second, 100 * time.Millisecond
		var heard notices
		var takes atomic.Int64 // ns
		l := openLog(t, path, Options{Sync: Interval, SyncEvery: every, StallAfter: after, Notice: heard.add})
		defer l.Close()
		l.syncData = func(f *os.File) error {
			time.Sleep(time.Duration(takes.Load()))
			return disk.SyncData(f)
		}
		round := func(fsync time.Duration, told int) {
			t.Helper()
			takes.Store(int64(fsync))
			began := time.Now()
			if _, err := l.Write([]byte("line\n")); err != nil {
				t.Fatal(err)
			}
			time.Sleep(every + after/2) // within the fsync
			if _, err := l.Write([]byte("line\n")); err != nil {
				t.Fatal(err)
			}
			if took := time.Since(began); took != every+after/2 {
				t.Errorf("two writes took %v", took-every-after/2)
			}
			time.Sleep(after)
			if n := strings.Count(heard.String(), "in the background has not returned for 100ms"); n != told {
				t.Fatalf("with an fsync of %v it was told %d times, want %d: %s", fsync, n, told, heard.String())
			}
			time.Sleep(10*every - after/2 - after) // the next round begins at a tick
		}
		round(0, 0)
		round(after-time.Millisecond, 0)
		round(3*every, 1)
		if n := l.Stats().Syncs; n < 4 {
			t.Errorf("%d calls of fsync", n)
		}
		round(0, 1)
		round(after+time.Millisecond, 2)
	})
}
