package shard_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/rollway/rollway/shard"
)

func eventually(t *testing.T, what string, is func() bool) {
	t.Helper()
	for end := time.Now().Add(time.Minute); !is(); time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("after a minute still not: %s", what)
		}
	}
}

// write logs records of several goroutines, numbered from first on, until each
// has given n.
func write(t *testing.T, w *shard.Writer, goroutines, first, n, size int) {
	t.Helper()
	var wg sync.WaitGroup
	for g := range goroutines {
		wg.Go(func() {
			for i := first; i < first+n; i++ {
				if err := w.LogBytes(record(g, i, 1+(g*7919+i*104729)%size)); err != nil {
					t.Errorf("LogBytes = %v", err)
				}
			}
		})
	}
	wg.Wait()
}

// complete wants records 0 to n-1 of each goroutine in the files.
func complete(t *testing.T, goroutines, n int, paths ...string) {
	t.Helper()
	found, _ := recordsOf(t, paths...)
	for g := range goroutines {
		if found[g] != n {
			t.Errorf("goroutine %d: %d records in %d files, want %d", g, found[g], len(paths), n)
		}
	}
}

// Files are no larger than MaxSize, have names of their own, and hold each
// record once.
func TestRotation(t *testing.T) {
	for _, kind := range kinds {
		for _, sync := range []shard.SyncPolicy{shard.SyncNever, shard.SyncInterval, shard.SyncEach} {
			t.Run(fmt.Sprint(nameOf(kind), sync), func(t *testing.T) {
				const goroutines, each, maxSize = 8, 150, 200 << 10
				path := filepath.Join(t.TempDir(), "log.txt")
				o := shard.Options{BufferSize: 256 << 10, Shards: 4, Full: shard.Block, FlushInterval: time.Millisecond, StallAfter: time.Minute}
				o.File = kind
				o.File.MaxSize, o.File.Sync, o.File.SyncEvery = maxSize, sync, 2*time.Millisecond
				w := openFile(t, path, o)
				write(t, w, goroutines, 0, each, 3000)
				if err := w.Sync(); err != nil {
					t.Error(err)
				}
				closeFile(t, w)
				ledger(w).CheckSettled(t, goroutines*each, goroutines*each)
				files := seriesOf(t, path)
				complete(t, goroutines, each, files...)
				for _, name := range files {
					info, err := os.Stat(name)
					if err != nil || info.Size() > maxSize || info.Mode().Perm() != 0o640 {
						t.Errorf("%s: %d bytes, %v, %v", name, info.Size(), info.Mode(), err)
					}
				}
				s := w.Stats().File
				if int(s.Rotations) != len(files)-1 || len(files) < 8 || s.Syncs < s.Rotations {
					t.Errorf("%d files; Stats %+v", len(files), s)
				}
			})
		}
	}
}

func TestKeep(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "log.txt")
	for _, name := range []string{"log-20200101T000000.000000000Z-1.txt", "log-2.txt", "log-20200101T000000.000000000Z-1.txt.gz"} {
		if err := os.WriteFile(filepath.Join(dir, name), nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	o := shard.Options{BufferSize: 64 << 10, Shards: 1, Full: shard.Block}
	o.File = shard.FileOptions{MaxSize: 100 << 10, Keep: 3}
	w := openFile(t, path, o)
	write(t, w, 1, 0, 1000, 1500)
	closeFile(t, w)
	var left []string
	for _, name := range seriesOf(t, path) {
		left = append(left, filepath.Base(name))
	}
	if len(left) != 5 || left[0] != "log-2.txt" && left[3] != "log-2.txt" || strings.Contains(strings.Join(left, " "), "-2020") {
		t.Errorf("left: %q", left)
	}
	if _, err := os.Stat(filepath.Join(dir, "log-20200101T000000.000000000Z-1.txt.gz")); err != nil {
		t.Error(err)
	}
	if s := w.Stats().File; s.Removed != s.Rotations-2 {
		t.Errorf("Stats %+v", s)
	}
}

// A buffer that is written where it is ends in a space, with its line end behind
// it: no record is torn by that, and Reopen need not wait for the rest of one.
func TestReopenAfterAWriteInPlace(t *testing.T) {
	for _, mode := range modes {
		path := filepath.Join(t.TempDir(), "log")
		o := shard.Options{BufferSize: 4 << 20, Shards: 1, Full: shard.Block, StallAfter: time.Minute, CloseTimeout: 20 * time.Second}
		o.File = shard.FileOptions{Mode: mode, CheckEvery: -1}
		w := openFile(t, path, o)
		const each = 7 // 2.1 MB
		for round := range 3 {
			for i := range each {
				log(t, w, string(record(0, round*each+i, 300_000)))
			}
			if err := w.Flush(t.Context()); err != nil {
				t.Fatal(err)
			}
			if err := os.Rename(path, fmt.Sprintf("%s-%d", path, round)); err != nil {
				t.Fatal(err)
			}
			if err := w.Reopen(); err != nil {
				t.Fatalf("%v: Reopen = %v", mode, err)
			}
		}
		closeFile(t, w)
		if found, _ := recordsOf(t, path+"-0", path+"-1", path+"-2", path); found[0] != 3*each {
			t.Errorf("%v: %d records, want %d", mode, found[0], 3*each)
		}
		ledger(w).CheckSettled(t, 3*each, 3*each)
	}
}

// logrotate's create mode: the file is renamed, then Reopen is called, or the
// Writer sees it by itself. Nothing is lost and no file holds a part of a line.
func TestReopen(t *testing.T) {
	for _, itself := range []bool{false, true} {
		for _, mode := range modes {
			t.Run(fmt.Sprint(mode, itself), func(t *testing.T) {
				path := filepath.Join(t.TempDir(), "log")
				o := shard.Options{BufferSize: 256 << 10, Shards: 4, Full: shard.Block, FlushInterval: time.Millisecond, StallAfter: time.Minute}
				o.File = shard.FileOptions{Mode: mode, CheckEvery: -1}
				if itself {
					o.File.CheckEvery = time.Millisecond
				}
				w := openFile(t, path, o)
				var n atomic.Int64
				var stop atomic.Bool
				var wg sync.WaitGroup
				for g := range 4 {
					wg.Go(func() {
						for i := 0; !stop.Load() || i < 100; i++ {
							if err := w.LogBytes(record(g, i, 1+i%2000)); err != nil {
								t.Error(err)
							}
							n.Add(1)
							if i%50 == 49 {
								time.Sleep(2 * time.Millisecond)
							}
						}
					})
				}
				for round := range 5 {
					from := w.Stats().Written
					eventually(t, "records in the new file", func() bool { return w.Stats().Written > from+50 })
					if err := os.Rename(path, fmt.Sprintf("%s-%d", path, round)); err != nil {
						t.Fatal(err)
					}
					if itself && (round != 3 || mode != shard.Direct) { // else it waits a second for who moved it
						// The Writer's own, if it has waited for a second.
						f, err := os.OpenFile(path, os.O_CREATE|os.O_WRONLY, 0o600)
						if err != nil {
							t.Fatal(err)
						}
						f.Close()
					}
					if itself {
						eventually(t, "the new file", func() bool { return w.Stats().File.Reopens > uint64(round) })
					} else if err := w.Reopen(); err != nil {
						t.Error(err)
					}
					if _, err := os.Stat(path); err != nil {
						t.Error(err)
					}
				}
				stop.Store(true)
				wg.Wait()
				closeFile(t, w)
				ledger(w).CheckSettled(t, int(n.Load()), int(n.Load()))
				found, _ := recordsOf(t, append(seriesOf(t, path)[:5], path)...)
				total := 0
				for _, k := range found {
					total += k
				}
				if total != int(n.Load()) {
					t.Errorf("%d records found, %d were given", total, n.Load())
				}
				if s := w.Stats().File; s.Reopens != 5 {
					t.Errorf("Stats %+v", s)
				}
				if err := w.Reopen(); !errors.Is(err, os.ErrClosed) {
					t.Errorf("Reopen after Close = %v", err)
				}
			})
		}
	}
}

// What copytruncate does is noticed: no byte 0 comes into the file, and lines
// go on from its new end. So is another program that appends.
func TestFileChangedByOthers(t *testing.T) {
	for _, mode := range modes {
		path := filepath.Join(t.TempDir(), "log")
		var heard told
		o := small
		o.File.Mode, o.OnError = mode, heard.add
		w := openFile(t, path, o)
		flush := func() {
			t.Helper()
			if err := w.Flush(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
		is := func(want string) {
			t.Helper()
			if data, err := os.ReadFile(path); string(data) != want || err != nil {
				t.Errorf("%v: the file has %q, %v, want %q", mode, data, err, want)
			}
		}
		log(t, w, "one", strings.Repeat("1", 5000))
		flush()
		if err := os.Truncate(path, 0); err != nil {
			t.Fatal(err)
		}
		log(t, w, "two")
		flush()
		is("two\n")
		f, err := os.OpenFile(path, os.O_WRONLY|os.O_APPEND, 0)
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		if _, err := f.WriteString("foreign\n"); err != nil {
			t.Fatal(err)
		}
		log(t, w, "three")
		flush()
		is("two\nforeign\nthree\n")
		if err := os.Truncate(path, 5); err != nil { // within a line
			t.Fatal(err)
		}
		log(t, w, "four")
		flush()
		is("two\n" + "four\n")
		if err := os.Truncate(path, 4); err != nil {
			t.Fatal(err)
		}
		closeFile(t, w)
		is("two\n")
		if s := heard.String(); strings.Count(s, "was cut from") != 3 || strings.Count(s, "someone else writes to it") != 1 {
			t.Errorf("OnError got %s", s)
		}
		if s := w.Stats().File; s.Truncations != 3 {
			t.Errorf("Stats %+v", s)
		}
	}
}
