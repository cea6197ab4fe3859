package file_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/rollway/rollway/file"
	"github.com/rollway/rollway/rollwaytest"
	"github.com/rollway/rollway/slab"
)

// The contract of a line writer, in every mode and behind a slab.Writer.
func TestLineWriterModes(t *testing.T) {
	for name, o := range map[string]file.Options{
		"by size":           {MaxSize: 20_000},
		"by size, packed":   {MaxSize: 50_000, Compress: file.Gzip{Level: 1}, CloseTimeout: time.Minute},
		"by time":           {Every: time.Second, CheckEvery: time.Nanosecond},
		"fsync by interval": {MaxSize: 100_000, Sync: file.Interval, SyncEvery: time.Millisecond},
		"fsync each write":  {MaxSize: 100_000, Sync: file.EachWrite},
	} {
		instance := func(t *testing.T) (*file.File, *rollwaytest.Instance) {
			path := filepath.Join(t.TempDir(), "log")
			o.OnError = func(err error) { t.Errorf("OnError(%v)", err) }
			o.OnNotice = func(s string) { t.Errorf("OnNotice(%s)", s) }
			f := open(t, path, o)
			return f, &rollwaytest.Instance{
				Midway: toldMode() == file.Direct,
				Writer: f,
				Delivered: func() []byte {
					_, contents := parts(t, path, nil)
					return []byte(strings.Join(contents, ""))
				},
				Ledger: func() rollwaytest.Ledger { return ledger(f) },
			}
		}
		t.Run(name, func(t *testing.T) {
			rollwaytest.TestLineWriter(t, rollwaytest.Subject{Open: func(t *testing.T) *rollwaytest.Instance {
				_, in := instance(t)
				return in
			}})
		})
		t.Run(name+" behind a slab", func(t *testing.T) {
			rollwaytest.TestLineWriter(t, rollwaytest.Subject{Open: func(t *testing.T) *rollwaytest.Instance {
				f, in := instance(t)
				dst := &gated{File: f}
				t.Cleanup(dst.heal)
				w, err := slab.New(dst, slab.Options{CloseTimeout: time.Minute, Retry: slab.Retry{Min: time.Millisecond, Max: 5 * time.Millisecond}})
				if err != nil {
					t.Fatal(err)
				}
				in.Writer, in.Stall, in.Fail, in.Heal = w, dst.stall, dst.fail, dst.heal
				in.Ledger = func() rollwaytest.Ledger {
					s := w.Stats()
					return rollwaytest.Ledger{Accepted: s.Accepted, Written: s.Written, Dropped: s.Dropped.Total(), Pending: s.Pending, Rejected: s.Rejected}
				}
				return in
			}})
		})
	}
}

// A Write is in one file, however large, and no line is in two.
func TestWriteGoesToOneFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "log")
	f := open(t, path, file.Options{MaxSize: 1000})
	var writes []string
	for i := range 60 {
		var b strings.Builder
		for l := range 1 + i%7 {
			fmt.Fprintf(&b, "write %d line %d %s\n", i, l, strings.Repeat("x", (i*131+l*17)%1900))
		}
		writes = append(writes, b.String())
		write(t, f, b.String())
	}
	_, contents := parts(t, path, nil)
	if strings.Join(contents, "") != strings.Join(writes, "") {
		t.Fatal("the series is not what was written")
	}
	for i, c := range contents {
		n := 0
		for c != "" && len(writes) > 0 && strings.HasPrefix(c, writes[0]) {
			c, writes, n = c[len(writes[0]):], writes[1:], n+1
		}
		if c != "" {
			t.Errorf("file %d ends within a Write", i)
		}
		if len(contents[i]) > 1000 && n > 1 {
			t.Errorf("file %d has %d bytes in %d Writes", i, len(contents[i]), n)
		}
	}
}

// Everything at once: lines are kept, calls return, the ledger is balanced.
func TestEverythingAtOnce(t *testing.T) {
	for round := range 5 {
		path := filepath.Join(t.TempDir(), "log")
		f := open(t, path, file.Options{MaxSize: 3000, Compress: file.Gzip{Level: 1}, KeepPlain: 1, Sync: file.Interval, SyncEvery: time.Millisecond, CheckEvery: time.Nanosecond, CloseTimeout: time.Minute})
		var wg sync.WaitGroup
		accepted := make([]int, 4)
		for p := range accepted {
			wg.Go(func() {
				for i := 0; ; i++ {
					if _, err := fmt.Fprintf(f, "%d %d\n", p, i); err != nil {
						if !errors.Is(err, os.ErrClosed) {
							t.Errorf("Write = %v", err)
						}
						return
					}
					accepted[p]++
				}
			})
		}
		for name, call := range map[string]func() error{
			"Rotate": f.Rotate,
			"Reopen": f.Reopen,
			"Sync":   f.Sync,
			"Flush":  func() error { return f.Flush(context.Background()) },
			"Prepare and Holds": func() error {
				volume, inode, offset, err := f.Prepare(10)
				if err == nil {
					_, err = f.Holds(volume, inode, offset/2, []byte("0 0\n"))
				}
				ledger(f).Check(t)
				return err
			},
		} {
			wg.Go(func() {
				for {
					if err := call(); err != nil {
						if !errors.Is(err, os.ErrClosed) {
							t.Errorf("%s = %v", name, err)
						}
						return
					}
					if name == "Sync" || name == "Flush" {
						if _, err := f.Write(nil); err != nil {
							return // these return nil after Close
						}
					}
				}
			})
		}
		eventually(t, "some work", func() bool { return f.Stats().Rotations > uint64(20*(round+1)) })
		for range 2 {
			wg.Go(func() {
				if err := f.Close(); err != nil {
					t.Errorf("Close = %v", err)
				}
			})
		}
		wg.Wait()
		total := 0
		_, contents := parts(t, path, nil)
		data := strings.Join(contents, "")
		next := make([]int, len(accepted))
		for line := range strings.Lines(data) {
			var p, i int
			if _, err := fmt.Sscanf(line, "%d %d", &p, &i); err != nil || i != next[p] {
				t.Fatalf("line %q, want number %d", line, next[p])
			}
			next[p]++
		}
		for p, n := range accepted {
			if next[p] != n {
				t.Errorf("producer %d: %d lines accepted, %d in the series", p, n, next[p])
			}
			total += n
		}
		ledger(f).CheckSettled(t, total, total)
	}
}

// Where the process goes after Open does not matter.
func TestRelativePath(t *testing.T) {
	dir := t.TempDir()
	if err := os.Mkdir(filepath.Join(dir, "old"), 0o700); err != nil {
		t.Fatal(err)
	}
	t.Chdir(dir)
	f := open(t, "log", file.Options{Folder: "old", CheckEvery: time.Nanosecond, OnError: func(err error) { t.Error(err) }})
	write(t, f, "1\n")
	t.Chdir(t.TempDir())
	if err := f.Rotate(); err != nil {
		t.Fatal(err)
	}
	write(t, f, "2\n")
	if err := f.Reopen(); err != nil {
		t.Fatal(err)
	}
	write(t, f, "3\n")
	want(t, filepath.Join(dir, "log"), "2\n3\n")
	if got := glob(t, filepath.Join(dir, "old", "log-*")); len(got) != 1 || f.Stats().Followed != 0 {
		t.Errorf("rotated %v, Stats %+v", got, f.Stats())
	}
}
