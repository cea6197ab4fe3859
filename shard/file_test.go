package shard_test

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/rollway/rollway/internal/framed"
	"github.com/rollway/rollway/rollwaytest"
	"github.com/rollway/rollway/shard"
)

// kinds are all ways in which records get to a file.
var kinds = []shard.FileOptions{
	{Mode: shard.Direct}, {Mode: shard.Uncached}, {Mode: shard.Buffered},
	{Mode: shard.Direct, Framed: true}, {Mode: shard.Uncached, Framed: true}, {Mode: shard.Buffered, Framed: true},
}

func nameOf(o shard.FileOptions) string {
	if o.Framed {
		return o.Mode.String() + " framed"
	}
	return o.Mode.String()
}

var modes = []shard.Mode{shard.Direct, shard.Uncached, shard.Buffered}

// told collects what OnError gets.
type told struct {
	mu   sync.Mutex
	text []string
}

func (l *told) add(err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.text = append(l.text, err.Error())
}

func (l *told) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return strings.Join(l.text, "\n")
}

// openFile starts a Writer on path, with time to close on a busy machine too, and
// closes it at the end of the test.
func openFile(t *testing.T, path string, o shard.Options) *shard.Writer {
	t.Helper()
	if o.CloseTimeout == 0 {
		o.CloseTimeout = time.Minute
	}
	w, err := shard.Open(path, o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { w.Close() })
	return w
}

func closeFile(t *testing.T, w *shard.Writer) {
	t.Helper()
	if err := w.Close(); err != nil {
		t.Errorf("Close = %v", err)
	}
}

// seriesOf returns the paths of the files of path from old to new.
func seriesOf(t *testing.T, path string) []string {
	t.Helper()
	ext := filepath.Ext(path)
	names, err := filepath.Glob(strings.TrimSuffix(path, ext) + "-*" + ext)
	if err != nil {
		t.Fatal(err)
	}
	slices.Sort(names)
	if _, err := os.Stat(path); err == nil {
		names = append(names, path)
	}
	return names
}

// recordsOf reads files, from old to new, of records "G SEQ xxx": whole, each
// once, in the order of its goroutine, and nothing else but white space. It
// returns how many there are of each goroutine, and the bytes of white space.
func recordsOf(t *testing.T, paths ...string) (found map[int]int, padding int) {
	t.Helper()
	found, last := map[int]int{}, map[int]int{}
	for _, path := range paths {
		padding += readRecords(t, path, func(g, seq int) {
			if n, ok := last[g]; ok && seq <= n {
				t.Fatalf("%s: record %d of goroutine %d comes after %d", path, seq, g, n)
			}
			last[g] = seq
			found[g]++
		})
	}
	return found, padding
}

// readRecords calls visit for each record of a file and returns the bytes of
// white space. In a framed file nothing is out of the ordinary.
func readRecords(t *testing.T, path string, visit func(g, seq int)) (padding int) {
	t.Helper()
	return readTorn(t, path, false, visit)
}

// readTorn is readRecords, where a framed file may end within a batch.
func readTorn(t *testing.T, path string, torn bool, visit func(g, seq int)) (padding int) {
	t.Helper()
	data := snapshot(t, path)
	if framed.IsSegment(data) {
		readFramed(t, path, data, torn, visit)
		return 0
	}
	for line := range bytes.Lines(data) {
		text := bytes.TrimRight(line, " \n")
		padding += len(line) - len(text)
		if len(text) == 0 || text[0] == '{' {
			continue
		}
		padding-- // its line end
		visit(wholeRecord(t, text))
	}
	return padding
}

func readFramed(t *testing.T, path string, data []byte, torn bool, visit func(g, seq int)) {
	t.Helper()
	r, err := framed.NewReader(bytes.NewReader(data), int64(len(data)), framed.Options{})
	if err != nil {
		t.Fatalf("%s: %v", path, err)
	}
	for {
		rec, err := r.Next()
		if err == io.EOF {
			break
		}
		if err != nil {
			t.Fatalf("%s: %v", path, err)
		}
		if len(rec.Data) > 0 && rec.Data[0] != '{' {
			visit(wholeRecord(t, rec.Data))
		}
	}
	for _, f := range r.Findings() {
		if f.Kind != framed.TornTail || !torn {
			t.Errorf("%s: %v", path, f)
		}
	}
}

// record makes what wholeRecord reads: n bytes, or a few more.
func record(g, seq, n int) []byte {
	b := fmt.Appendf(nil, "%d %d ", g, seq)
	pad := max(0, n-len(b)-4)
	return append(strconv.AppendInt(append(b, bytes.Repeat([]byte{'x'}, pad)...), int64(pad), 10), '.')
}

func wholeRecord(t *testing.T, text []byte) (g, seq int) {
	t.Helper()
	f := strings.Fields(string(text))
	if len(f) != 3 {
		t.Fatalf("torn: %.80q", text)
	}
	g, err1 := strconv.Atoi(f[0])
	seq, err2 := strconv.Atoi(f[1])
	tail := strings.TrimLeft(f[2], "x")
	if tail != fmt.Sprintf("%d.", len(f[2])-len(tail)) || errors.Join(err1, err2) != nil {
		t.Fatalf("torn or mixed: %.80q", text)
	}
	return g, seq
}

// Many goroutines, every mode, every size: what was accepted is in the files.
func TestOpen(t *testing.T) {
	const each = 40
	for _, kind := range kinds {
		for _, goroutines := range []int{1, 200} {
			t.Run(fmt.Sprintf("%s %d", nameOf(kind), goroutines), func(t *testing.T) {
				path := filepath.Join(t.TempDir(), "log")
				var heard told
				o := shard.Options{BufferSize: 8 << 20, Shards: 4, Full: shard.Block, FlushInterval: 5 * time.Millisecond, StallAfter: time.Minute, OnError: heard.add}
				o.File = kind
				accepted := 0
				for run := range 2 { // the second goes on where the first one ended
					w := openFile(t, path, o)
					var wg sync.WaitGroup
					for g := range goroutines {
						wg.Go(func() {
							for i := range each {
								size := 1 + (g*7919+i*104729)%3000
								if i%16 == 5 {
									size = 1 + (g*7919+i*104729)%60_000
								}
								if err := w.LogBytes(record(g, run*each+i, size)); err != nil {
									t.Error(err)
								}
							}
						})
					}
					wg.Wait()
					closeFile(t, w)
					accepted += goroutines * each
					ledger(w).CheckSettled(t, goroutines*each, goroutines*each)
					if s := w.Stats(); s.File.Path != path {
						t.Errorf("Stats %+v", s)
					}
				}
				found, padding := recordsOf(t, seriesOf(t, path)...)
				total := 0
				for g := range goroutines {
					if found[g] != 2*each {
						t.Errorf("goroutine %d: %d records, want %d", g, found[g], 2*each)
					}
					total += found[g]
				}
				info, err := os.Stat(path)
				if err != nil || float64(padding) > 0.001*float64(info.Size()) || total != accepted {
					t.Errorf("%d records, want %d; %d bytes of padding in %d, %v", total, accepted, padding, info.Size(), err)
				}
				if s := heard.String(); s != "" && !strings.Contains(s, "is written Buffered, not") {
					t.Errorf("OnError got %s", s)
				}
			})
		}
	}
}

func TestLineWriterOnAFile(t *testing.T) {
	for _, mode := range modes {
		t.Run(mode.String(), func(t *testing.T) {
			rollwaytest.TestLineWriter(t, rollwaytest.Subject{Open: func(t *testing.T) *rollwaytest.Instance {
				path := filepath.Join(t.TempDir(), "log")
				o := shard.Options{BufferSize: 2 << 20, Shards: 2, FlushInterval: 5 * time.Millisecond, Full: shard.Block}
				o.File.Mode = mode
				w := openFile(t, path, o)
				return &rollwaytest.Instance{
					Writer: w,
					Delivered: func() []byte {
						data, err := os.ReadFile(path)
						if err != nil {
							t.Error(err)
						}
						return data
					},
					Ledger: func() rollwaytest.Ledger { return ledger(w) },
				}
			}})
		})
	}
}

// The published profiles take no more memory than two sets of buffers and a
// mebibyte.
func TestMemory(t *testing.T) {
	for name, o := range map[string]shard.Options{"zero": {}, "small": shard.SmallProfile(), "medium": shard.MediumProfile(), "large": shard.LargeProfile()} {
		w := openFile(t, filepath.Join(t.TempDir(), "log"), o)
		if n, most := w.Stats().Memory, 2*64<<20+1<<20; n > most || n < 2*64<<20 {
			t.Errorf("%s: %d bytes of memory, want no more than %d", name, n, most)
		}
		closeFile(t, w)
	}
}

func TestOpenErrors(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "log")
	small := shard.Options{BufferSize: 1 << 20, Shards: 2}
	with := func(change func(*shard.Options)) shard.Options {
		o := small
		change(&o)
		return o
	}
	for want, o := range map[string]shard.Options{
		"BufferSize is":     {BufferSize: 1},
		"Direct is true":    with(func(o *shard.Options) { o.Direct, o.File.Mode = true, shard.Uncached }),
		"File.Mode is":      with(func(o *shard.Options) { o.File.Mode = 7 }),
		"File.Perm is":      with(func(o *shard.Options) { o.File.Perm = fs.ModeSetuid }),
		"File.MaxSize is":   with(func(o *shard.Options) { o.File.MaxSize = 1<<19 + 8191 }),
		"File.MaxSize is -": with(func(o *shard.Options) { o.File.MaxSize = -1 }),
		"File.Keep is -":    with(func(o *shard.Options) { o.File.Keep = -1 }),
		"File.Keep is 1":    with(func(o *shard.Options) { o.File.Keep = 1 }),
		"File.Chunk is 1":   with(func(o *shard.Options) { o.File.Chunk = 1 }),
		"File.Chunk is 4":   with(func(o *shard.Options) { o.File.Chunk = 4097 }),
		"File.Chunk is 2":   with(func(o *shard.Options) { o.File.Chunk = 2 << 30 }),
		"File.Sync is":      with(func(o *shard.Options) { o.File.Sync = 3 }),
		"File.SyncEvery is": with(func(o *shard.Options) { o.File.SyncEvery = -1 }),
		"is the folder of":  with(func(o *shard.Options) { o.File.Failover = dir }),
		"is not a folder":   with(func(o *shard.Options) { o.File.Failover = filepath.Join(dir, "none") }),
	} {
		if w, err := shard.Open(path, o); w != nil || err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", want, err)
		}
	}
	if err := os.WriteFile(filepath.Join(dir, "binary"), bytes.Repeat([]byte{1}, 17<<20), 0o600); err != nil {
		t.Fatal(err)
	}
	for path, want := range map[string]string{
		"":                                 "path is empty",
		dir:                                "is a folder",
		dir + "/":                          "names a folder",
		filepath.Join(dir, "none", "log"):  "none",
		filepath.Join(dir, "binary"):       "not a log file",
		filepath.Join(dir, "binary", "or"): "binary",
	} {
		if w, err := shard.Open(path, small); w != nil || err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v", path, err)
		}
	}
	if _, err := os.Stat(path); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a bad option made a file: %v", err)
	}
	if _, err := shard.New(new(rollwaytest.Destination), shard.Profile(50)); err == nil || !strings.Contains(err.Error(), "for Open only") {
		t.Errorf("New with Direct = %v", err)
	}

	w := openFile(t, path, small)
	if _, err := shard.Open(path, small); err == nil || !strings.Contains(err.Error(), "is written by another") {
		t.Errorf("a second Writer: %v", err)
	}
	closeFile(t, w)
	closeFile(t, openFile(t, path, small))
}

func TestOpenCutsATornLine(t *testing.T) {
	for _, mode := range modes {
		path := filepath.Join(t.TempDir(), "log")
		if err := os.WriteFile(path, []byte("whole\ntorn"), 0o600); err != nil {
			t.Fatal(err)
		}
		var heard told
		o := small
		o.File.Mode, o.OnError = mode, heard.add
		w := openFile(t, path, o)
		log(t, w, "next")
		closeFile(t, w)
		if data, err := os.ReadFile(path); string(data) != "whole\nnext\n" || err != nil {
			t.Errorf("%v: the file has %q, %v", mode, data, err)
		}
		if s := heard.String(); !strings.Contains(s, `4 bytes cut, beginning with "torn"`) {
			t.Errorf("OnError got %s", s)
		}
	}
}

// What a crash has left of a record is cut also where it is longer than any line of
// most logs.
func TestOpenCutsALongTornRecord(t *testing.T) {
	path := filepath.Join(t.TempDir(), "log")
	if err := os.WriteFile(path, append([]byte("whole\n"), bytes.Repeat([]byte("x"), 20<<20)...), 0o600); err != nil {
		t.Fatal(err)
	}
	w := openFile(t, path, shard.Options{BufferSize: 48 << 20, Shards: 2})
	log(t, w, "next")
	closeFile(t, w)
	if data, err := os.ReadFile(path); string(data) != "whole\nnext\n" || err != nil {
		t.Errorf("the file has %d bytes, %v", len(data), err)
	}
}

// Neither LogBytes nor Write allocates, where it need not wait.
func TestOpenDoesNotAllocate(t *testing.T) {
	for _, mode := range modes {
		o := shard.Options{BufferSize: 16 << 20, Shards: 1, FlushInterval: time.Minute}
		o.File.Mode = mode
		w := openFile(t, filepath.Join(t.TempDir(), "log"), o)
		rec, line := bytes.Repeat([]byte("r"), 255), []byte("line\n")
		const calls = 12_000
		least := uint64(math.MaxUint64)
		for range 5 { // the first warms up; other goroutines of the process may allocate now and then
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			for range calls / 3 {
				w.LogBytes(rec)
				w.Write(line)
				w.Write(line[:4])
			}
			runtime.ReadMemStats(&after)
			least = min(least, after.Mallocs-before.Mallocs)
		}
		if least > 2 { // of the runtime's own
			t.Errorf("%v: %d allocations in %d calls", mode, least, calls)
		}
		if s := w.Stats(); s.Accepted != 5*calls || s.Dropped.Total() > 0 {
			t.Errorf("%v: Stats %+v", mode, s)
		}
		closeFile(t, w)
	}
}
