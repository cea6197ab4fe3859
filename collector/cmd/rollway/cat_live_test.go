package main

import (
	"bytes"
	"fmt"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/rollway/rollway/file"
	"github.com/rollway/rollway/internal/direct"
)

// rollway cat beside a File: each line that it prints is a whole line, or the
// beginning of one at the end of the file; all that was written before is there,
// and is found by an expression as well. Some of it is written in place and has
// white space around it. With Direct the file may be met in the moment in which it
// holds NUL bytes: then it is read again.
func TestCatBesideTheWriter(t *testing.T) {
	for _, mode := range []file.Mode{file.Direct, file.Uncached, file.Buffered} {
		t.Run(mode.String(), func(t *testing.T) {
			t.Parallel()
			path := filepath.Join(t.TempDir(), "log")
			f, err := file.Open(path, file.Options{Mode: mode, CloseTimeout: time.Minute})
			if err != nil {
				t.Fatal(err)
			}
			defer f.Close()
			large, err := direct.NewMemorySet(2, 1<<20+5000)
			if err != nil {
				t.Fatal(err)
			}
			defer large.Free()
			line := func(b []byte, g, size int) []byte {
				return fmt.Appendf(b, `{"level":"INFO","msg":"live","attrs":{"g":%d,"pad":"%s"}}`+"\n", g, strings.Repeat("x", size))
			}
			var stop atomic.Bool
			var writers sync.WaitGroup
			defer writers.Wait()
			defer stop.Store(true)
			for g := range 4 {
				writers.Go(func() { // ends when stop is set
					for i := 0; !stop.Load(); i++ {
						bufs := [][]byte{line(nil, g, i*7919%3000)}
						if g == 0 && i%20 == 1 {
							for k := range 2 {
								b := large.Bytes(k)[:0]
								for len(b) < 1<<20 {
									b = line(b, g, 2000)
								}
								bufs = append(bufs, b)
							}
						}
						if _, err := f.WriteBuffers(bufs, uint64(bytes.Count(bytes.Join(bufs, nil), []byte("\n")))); err != nil {
							t.Error(err)
						}
						if f.Stats().Bytes < 32<<20 {
							time.Sleep(time.Millisecond)
						} else { // cat is to reach the end
							time.Sleep(50 * time.Millisecond)
						}
					}
				})
			}
			for range 3 {
				for from := f.Stats().Written; f.Stats().Written < from+20; {
					time.Sleep(time.Millisecond)
				}
				written, zeros := int(f.Stats().Written), mode == file.Direct
				readLive(t, written, zeros, "cat", path)
				readLive(t, written, zeros, "cat", path, "-where", `level=info msg=live g>=0`)
			}
		})
	}
}

// readLive wants cat to print that many records at least.
func readLive(t *testing.T, least int, zeros bool, args ...string) {
	t.Helper()
	r := cli(t, "", args...)
	for tries := 0; zeros && (strings.Contains(r.stdout, "\x00") || len(args) > 2 && strings.Count(r.stdout, "\n") < least) && tries < 1000; tries++ {
		r = cli(t, "", args...)
	}
	r.want(t, exitOK)
	lines := strings.Split(r.stdout, "\n")
	records := 0
	for i, line := range lines {
		if line = strings.TrimRight(line, " "); line == "" {
			continue
		}
		if whole := strings.HasPrefix(line, `{"level":"INFO","msg":"live","attrs":{"g":`) && strings.HasSuffix(line, `"}}`); !whole && i < len(lines)-2 {
			t.Fatalf("line %d of %d: %.80q", i, len(lines), line)
		} else if whole {
			records++
		}
	}
	if records < least {
		t.Errorf("%v prints %d records, %d were flushed before", args, records, least)
	}
}
