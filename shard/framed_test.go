package shard_test

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/rollway/rollway/internal/framed"
	"github.com/rollway/rollway/shard"
)

// framedRecords returns the records of a framed file.
func framedRecords(t *testing.T, path string) (records []string) {
	t.Helper()
	data := snapshot(t, path)
	r, err := framed.NewReader(bytes.NewReader(data), int64(len(data)), framed.Options{})
	if err != nil {
		t.Fatal(err)
	}
	for {
		rec, err := r.Next()
		if err == io.EOF {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		records = append(records, string(rec.Data))
	}
	if f := r.Findings(); len(f) > 0 {
		t.Errorf("%s: %v", path, f)
	}
	return records
}

// Records are any bytes; Write's lines are records without their ends; a loss
// is a record too.
func TestFramedRecords(t *testing.T) {
	for _, mode := range modes {
		path := filepath.Join(t.TempDir(), "log")
		o := small
		o.File = shard.FileOptions{Mode: mode, Framed: true}
		w := openFile(t, path, o)
		log(t, w, "", "a\nb\x00c", strings.Repeat("l", 64<<10-64-8))
		if err := w.LogBytes(make([]byte, 64<<10-64-8+1)); !errors.Is(err, shard.ErrTooLarge) {
			t.Errorf("LogBytes = %v", err)
		}
		for _, p := range []string{"one\n", "two", "three\n\nfive\nsix"} {
			if n, err := io.WriteString(w, p); n != len(p) || err != nil {
				t.Errorf("Write = %d, %v", n, err)
			}
		}
		closeFile(t, w)
		ledger(w).CheckSettled(t, 10, 9)
		var got []string
		for _, r := range framedRecords(t, path) {
			if !strings.HasPrefix(r, "{") {
				got = append(got, r)
			} else if !strings.Contains(r, `"reason":"line too large","dropped":1}`) {
				t.Errorf("record %q", r)
			}
		}
		want := []string{"", "a\nb\x00c", strings.Repeat("l", 64<<10-64-8), "one", "two", "three", "", "five", "six"}
		if fmt.Sprint(got) != fmt.Sprint(want) {
			t.Errorf("%v: %d records %.100q", mode, len(got), got)
		}
		if s := w.Stats(); s.Notices != 1 {
			t.Errorf("Stats %+v", s)
		}
	}
}

// Files that are done are written over: as many as Keep stay, each sound, with
// the newest records. A file of the run before is kept as one of them.
func TestFramedFilesAreUsedAgain(t *testing.T) {
	recycled := uint64(0)
	for _, mode := range modes {
		for _, sync := range []shard.SyncPolicy{shard.SyncNever, shard.SyncInterval, shard.SyncEach} {
			const goroutines, each, keep = 4, 200, 3
			path := filepath.Join(t.TempDir(), "log.rec")
			o := shard.Options{BufferSize: 128 << 10, Shards: 4, Full: shard.Block, FlushInterval: time.Millisecond, StallAfter: time.Minute}
			o.File = shard.FileOptions{Mode: mode, Framed: true, MaxSize: 200 << 10, Keep: keep, Sync: sync, SyncEvery: time.Millisecond}
			for run := range 2 {
				w := openFile(t, path, o)
				write(t, w, goroutines, run*each, each, 5000)
				closeFile(t, w)
				ledger(w).CheckSettled(t, goroutines*each, goroutines*each)
				files := seriesOf(t, path)
				if len(files) < keep+1 || len(files) > keep+2 {
					t.Errorf("%d files", len(files))
				}
				last := map[int]int{}
				for _, name := range files {
					readRecords(t, name, func(g, seq int) {
						if n, ok := last[g]; ok && seq != n+1 {
							t.Fatalf("%s: record %d of goroutine %d comes after %d", name, seq, g, n)
						}
						last[g] = seq
					})
					if info, err := os.Stat(name); err != nil || info.Size() > 200<<10 {
						t.Errorf("%s has %d bytes, %v", name, info.Size(), err)
					}
				}
				newest := false
				for _, n := range last {
					newest = newest || n == (run+1)*each-1
				}
				s := w.Stats().File
				if recycled += s.Recycled; !newest || s.Rotations < s.Recycled || s.Recycled+s.Removed == 0 {
					t.Errorf("the last records are %v; Stats %+v", last, s)
				}
			}
		}
	}
	if recycled == 0 { // one file may still be in use when its turn comes, but not each
		t.Error("no file was used again")
	}
}

// Text and framed records do not come into one file.
func TestFramedAndTextAreToldApart(t *testing.T) {
	dir := t.TempDir()
	text, records := filepath.Join(dir, "text"), filepath.Join(dir, "records")
	with := small
	with.File.Framed = true
	w := openFile(t, text, small)
	log(t, w, "one")
	closeFile(t, w)
	w = openFile(t, records, with)
	log(t, w, "one")
	closeFile(t, w)
	before := snapshot(t, records)
	if _, err := shard.Open(records, small); err == nil || !strings.Contains(err.Error(), "holds framed records") {
		t.Errorf("text into framed: %v", err)
	}
	if _, err := shard.Open(text, with); err == nil || !strings.Contains(err.Error(), "holds no framed records") {
		t.Errorf("framed into text: %v", err)
	}
	if !bytes.Equal(before, snapshot(t, records)) || string(snapshot(t, text)) != "one\n" {
		t.Error("a refused file was changed")
	}
	closeFile(t, openFile(t, records, with))
	files := seriesOf(t, records)
	if len(files) != 2 || !bytes.Equal(snapshot(t, files[0]), before) {
		t.Errorf("files %v", files)
	}
}
