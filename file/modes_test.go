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
	"github.com/rollway/rollway/internal/testkit"
)

// A Write is in one file, however large, and no line is in two.
func TestWriteGoesToOneFile(t *testing.T) {
	t.Parallel()
	eachMode(t, func(t *testing.T, mode file.Mode) {
		path := filepath.Join(t.TempDir(), "log")
		f := open(t, path, file.Options{Mode: mode, MaxSize: 1000})
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
	})
}

// Everything at once: lines are kept, calls return, the ledger is balanced.
func TestEverythingAtOnce(t *testing.T) {
	t.Parallel()
	eachMode(t, func(t *testing.T, mode file.Mode) {
		for round := range 2 {
			path := filepath.Join(t.TempDir(), "log")
			f := openChecking(t, path, file.Options{Mode: mode, MaxSize: 3000, Compress: file.Gzip{Level: 1}, KeepPlain: 1, Sync: file.SyncInterval, SyncEvery: time.Millisecond}, quick)
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
			eventually(t, "some work", func() bool { return f.Stats().Rotations > uint64(10*(round+1)) })
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
	})
}

// Where the process goes after Open does not matter.
func TestRelativePath(t *testing.T) {
	dir := t.TempDir()
	testkit.OK(t, os.Mkdir(filepath.Join(dir, "old"), 0o700))
	t.Chdir(dir)
	f := openChecking(t, "log", file.Options{Folder: "old", OnError: func(err error) { t.Error(err) }}, quick)
	write(t, f, "1\n")
	t.Chdir(t.TempDir())
	testkit.OK(t, f.Rotate())
	write(t, f, "2\n")
	testkit.OK(t, f.Reopen())
	write(t, f, "3\n")
	want(t, filepath.Join(dir, "log"), "2\n3\n")
	if got := glob(t, filepath.Join(dir, "old", "log-*")); len(got) != 1 || f.Stats().Followed != 0 {
		t.Errorf("rotated %v, Stats %+v", got, f.Stats())
	}
}
