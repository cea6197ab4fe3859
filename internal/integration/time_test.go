package integration

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rollway/rollway/file"
	"github.com/rollway/rollway/line"
	"github.com/rollway/rollway/slab"
)

// A line that passed two writers that buffer is as old as their intervals together
// allow, also when lines keep coming.
func TestAgesAddUp(t *testing.T) {
	const first, second = 200 * time.Millisecond, 300 * time.Millisecond
	heads := map[string]func(dst *slab.Writer) (line.Writer, error){
		"slab": func(dst *slab.Writer) (line.Writer, error) {
			return slab.New(dst, slab.Options{FlushInterval: first})
		},
		"sharded slab": func(dst *slab.Writer) (line.Writer, error) {
			return slab.New(dst, slab.Options{FlushInterval: first, Shards: 2})
		},
	}
	for name, open := range heads {
		t.Run(name+" over slab", func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var seen atomic.Int64
				dst := writeFunc(func(p []byte) (int, error) {
					for line := range strings.Lines(string(p)) {
						at, err := time.Parse(time.RFC3339Nano, strings.TrimSpace(line))
						if err != nil {
							t.Error(err)
						}
						if age := time.Since(at); age > first+second+10*time.Millisecond {
							t.Errorf("a line came after %v", age)
						}
						seen.Add(1)
					}
					return len(p), nil
				})
				inner, err := slab.New(dst, slab.Options{FlushInterval: second})
				if err != nil {
					t.Fatal(err)
				}
				w, err := open(inner)
				if err != nil {
					t.Fatal(err)
				}
				n := 0
				for _, pause := range []time.Duration{7 * time.Millisecond, 90 * time.Millisecond, time.Second, time.Minute} {
					for range 50 {
						fmt.Fprintln(w, time.Now().Format(time.RFC3339Nano))
						n++
						time.Sleep(pause)
					}
				}
				if seen.Load() != int64(n) {
					t.Errorf("%d lines came in time, want %d", seen.Load(), n)
				}
				if err := w.Close(); err != nil {
					t.Error(err)
				}
			})
		})
	}
}

// A slab.Writer's interval and a file's hour: each hour's file has that hour's
// lines, except for those that were held back over the full hour.
func TestSlabOverFileByHours(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		path := filepath.Join(t.TempDir(), "log")
		f, err := file.Open(path, file.Options{Every: time.Hour, Compress: file.Gzip{}, OnError: func(err error) { t.Error(err) }})
		if err != nil {
			t.Fatal(err)
		}
		const interval = 2 * time.Second
		w, err := slab.New(f, slab.Options{FlushInterval: interval})
		if err != nil {
			t.Fatal(err)
		}
		began, n := time.Now(), 0
		for ; time.Since(began) < 5*time.Hour; n++ {
			fmt.Fprintf(w, "%d %s\n", n, time.Now().UTC().Format(time.RFC3339Nano))
			time.Sleep(47 * time.Second)
		}
		if err := w.Close(); err != nil {
			t.Fatal(err)
		}
		if s := f.Stats(); s.Rotations != 5 && s.Rotations != 4 || s.Written != uint64(n) || s.Compressed != s.Rotations {
			t.Errorf("%d lines; Stats %+v", n, s)
		}
		packed, _ := filepath.Glob(path + "-*.gz")
		slices.Sort(packed)
		next := 0
		for _, name := range append(packed, path) {
			b, err := os.ReadFile(name)
			if err != nil {
				t.Fatal(err)
			}
			if name != path {
				b = unpack(t, b)
			}
			var hour time.Time
			for line := range strings.Lines(string(b)) {
				var seq int
				var text string
				fmt.Sscan(line, &seq, &text)
				at, err := time.Parse(time.RFC3339Nano, text)
				if err != nil || seq != next {
					t.Fatalf("%s: line %q, want number %d", name, line, next)
				}
				next++
				if hour.IsZero() {
					hour = at.Add(interval).Truncate(time.Hour)
				}
				if at.After(hour.Add(time.Hour)) || at.Before(hour.Add(-interval-time.Second)) {
					t.Errorf("%s: line of %v in the file of %v", name, at, hour)
				}
			}
		}
		if next != n {
			t.Errorf("%d lines found, want %d", next, n)
		}
	})
}

// The first file hangs for a minute: the lines go to the second within
// MaxWait, and to the first again after it is back, none lost.
func TestFailoverFromFileToFile(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := combination{end: fileEnd(file.Options{}), failover: true, head: slabHead(slab.Options{})}
		r := c.open(t)
		found, n := map[place]bool{}, 0
		minute := func() {
			for range 600 {
				if _, err := r.Write(appendLine(nil, 0, n, 50)); err != nil {
					t.Fatal(err)
				}
				n++
				time.Sleep(100 * time.Millisecond)
			}
		}
		count := func(e *end) int { return strings.Count(string(e.delivered()), "\n") }
		minute()
		if got := count(r.ends[0]); got < n-1 || count(r.ends[1]) != 0 {
			t.Errorf("%d of %d lines in the first file, %d in the second", got, n, count(r.ends[1]))
		}
		r.gates[0].stall()
		minute()
		if got := count(r.ends[1]); got < 595 {
			t.Errorf("%d of 600 lines in the second file while the first hangs", got)
		}
		r.gates[0].heal()
		second := count(r.ends[1])
		minute()
		if got := count(r.ends[1]) - second; got > 5 {
			t.Errorf("%d lines in the second file after the first is back", got)
		}
		if err := r.Close(); err != nil {
			t.Fatal(err)
		}
		// What hung in the first file may be in both.
		twice := 0
		for _, e := range r.ends {
			for line := range strings.Lines(string(e.delivered())) {
				var p, seq int
				fmt.Sscanf(line, `{"msg":"line","attrs":{"p":%d,"s":%d,`, &p, &seq)
				if found[place{p, seq}] {
					twice++
				}
				found[place{p, seq}] = true
			}
		}
		r.ledger().CheckSettled(t, n, len(found))
		if len(found) != n || twice > 5 {
			t.Errorf("%d of %d lines found, %d of them twice", len(found), n, twice)
		}
	})
}
