package main

import (
	"fmt"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/rollway/rollway/shard"
)

// rollway cat and rollway verify beside the Writer: each line that cat prints is
// a whole record, or the beginning of one at the end of a text file; all that
// was flushed before is there. Under Direct a text file may be met in the moment
// in which it holds bytes 0: then it is read again.
func TestCatBesideTheWriter(t *testing.T) {
	for _, mode := range []shard.Mode{shard.Direct, shard.Uncached, shard.Buffered} {
		for _, framed := range []bool{false, true} {
			t.Run(fmt.Sprintf("%v framed %v", mode, framed), func(t *testing.T) {
				path := filepath.Join(t.TempDir(), "log")
				o := shard.Options{BufferSize: 1 << 20, Shards: 2, Full: shard.Block, FlushInterval: 2 * time.Millisecond, StallAfter: time.Minute, CloseTimeout: time.Minute}
				o.File = shard.FileOptions{Mode: mode, Framed: framed}
				w, err := shard.Open(path, o)
				if err != nil {
					t.Fatal(err)
				}
				defer w.Close()
				var stop atomic.Bool
				var writers sync.WaitGroup
				defer writers.Wait()
				defer stop.Store(true)
				for g := range 4 {
					writers.Go(func() { // ends when stop is set
						for i := 0; !stop.Load(); i++ {
							if err := w.LogBytes(fmt.Appendf(nil, `{"g":%d,"pad":"%s"}`, g, strings.Repeat("x", i*7919%3000))); err != nil {
								t.Error(err)
							}
							time.Sleep(time.Millisecond)
						}
					})
				}
				for range 5 {
					for from := w.Stats().Written; w.Stats().Written < from+20; {
						time.Sleep(time.Millisecond)
					}
					if err := w.Flush(t.Context()); err != nil {
						t.Fatal(err)
					}
					readLive(t, path, int(w.Stats().Written), mode == shard.Direct && !framed)
				}
			})
		}
	}
}

// readLive wants cat to print that many records at least.
func readLive(t *testing.T, path string, least int, zeros bool) {
	t.Helper()
	r := cli(t, "", "cat", path)
	for tries := 0; zeros && strings.Contains(r.stdout, "\x00") && tries < 1000; tries++ {
		r = cli(t, "", "cat", path)
	}
	r.want(t, exitOK)
	lines := strings.Split(r.stdout, "\n")
	records := 0
	for i, line := range lines {
		if line = strings.TrimRight(line, " "); line == "" {
			continue
		}
		if whole := strings.HasPrefix(line, `{"g":`) && strings.HasSuffix(line, `"}`); !whole && i < len(lines)-2 {
			t.Fatalf("line %d of %d: %.80q", i, len(lines), line)
		} else if whole {
			records++
		}
	}
	if records < least {
		t.Errorf("%d records, %d were flushed before", records, least)
	}
}
