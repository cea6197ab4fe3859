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

// rollway cat beside the Writer: each line that it prints is a whole record, or
// the beginning of one at the end of a text file; all that was flushed before is
// there, and is found by an expression as well. Some of it is written in place and
// has white space around it. Under Direct a text file may be met in the moment in
// which it holds bytes 0: then it is read again.
func TestCatBesideTheWriter(t *testing.T) {
	for _, mode := range []shard.Mode{shard.Direct, shard.Uncached, shard.Buffered} {
		for _, framed := range []bool{false, true} {
			t.Run(fmt.Sprintf("%v framed %v", mode, framed), func(t *testing.T) {
				path := filepath.Join(t.TempDir(), "log")
				o := shard.Options{BufferSize: 4 << 20, Shards: 2, Full: shard.Block, FlushInterval: 2 * time.Millisecond, StallAfter: time.Minute, CloseTimeout: time.Minute}
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
							size, pause := i*7919%3000, time.Millisecond
							if g == 0 && i < 20 { // these fill a buffer
								size, pause = 99_999, 0
							}
							if err := w.LogBytes(fmt.Appendf(nil, `{"level":"INFO","msg":"live","attrs":{"g":%d,"pad":"%s"}}`, g, strings.Repeat("x", size))); err != nil {
								t.Error(err)
							}
							time.Sleep(pause)
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
					written, zeros := int(w.Stats().Written), mode == shard.Direct && !framed
					readLive(t, written, zeros, "cat", path)
					readLive(t, written, zeros, "cat", path, "-where", `level=info msg=live g>=0`)
				}
			})
		}
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
