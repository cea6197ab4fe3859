package journal

import (
	"bytes"
	"context"
	"math"
	"sync/atomic"
	"testing"

	"github.com/rollway/rollway/internal/disktest"
)

// Spans follow each other without a gap, forwards and backwards, and begin where frames do;
// also after a start, when nothing is known of the segments yet.
func TestSpan(t *testing.T) {
	d, dir := disktest.NewMem(), t.TempDir()
	o := Options{Disk: d, SegmentBytes: 3 << 20}
	j := mustOpen(t, dir, o)
	line := make([]byte, 10_000)
	for i := range line {
		line[i] = 'x'
	}
	line[len(line)-1] = '\n'
	for i := range 1000 {
		if _, err := j.Append(context.Background(), Batch{Lines: line, Records: 1, MinTime: int64(i), MaxTime: int64(i)}); err != nil {
			t.Fatal(err)
		}
	}
	for round := range 2 {
		var all [][2]uint64
		for at := uint64(0); at < j.Next(); {
			first, end := j.Span(at, math.MinInt64, math.MaxInt64)
			if first != at || end <= at {
				t.Fatalf("at %d: %d to %d", at, first, end)
			}
			all = append(all, [2]uint64{first, end})
			at = end
		}
		if len(all) < 5 || len(all) > 60 {
			t.Errorf("%d spans of 10 MB: %v", len(all), all)
		}
		for _, s := range all {
			for _, at := range []uint64{s[0], (s[0] + s[1]) / 2, s[1] - 1} {
				if first, end := j.Span(at, math.MinInt64, math.MaxInt64); first != s[0] || end != s[1] {
					t.Errorf("at %d: %d to %d, want %v", at, first, end, s)
				}
			}
		}
		if first, end := j.Span(j.Next()+5, math.MinInt64, math.MaxInt64); first != j.Next() || end != math.MaxUint64 {
			t.Errorf("after the end: %d to %d", first, end)
		}
		if first, end := j.Span(10, 5000, 6000); first != 0 || end < 250 || end > 330 {
			t.Errorf("a segment of another time: %d to %d", first, end)
		}
		if round == 0 {
			if err := j.Close(); err != nil {
				t.Fatal(err)
			}
			j = mustOpen(t, dir, o)
		}
	}
	r := j.NewReader(0)
	defer r.Close()
	for _, at := range []uint64{900, 3, 3, 500, 501, 0} {
		if err := r.Seek(at); err != nil {
			t.Fatal(err)
		}
		if f, ok, err := r.TryNext(); err != nil || !ok || f.First != at || string(f.Lines) != string(line) {
			t.Errorf("at %d: %+v %v %v", at, f.First, ok, err)
		}
	}
}

// A reader with an end does not look for a frame of its times beyond it.
func TestReaderEnd(t *testing.T) {
	j := mustOpen(t, t.TempDir(), Options{Disk: disktest.NewMem(), SegmentBytes: 4000})
	line := append(bytes.Repeat([]byte{'x'}, 99), '\n')
	for i := range 100 {
		if _, err := j.Append(context.Background(), Batch{Lines: line, Records: 1, MinTime: int64(i), MaxTime: int64(i)}); err != nil {
			t.Fatal(err)
		}
	}
	r, seen := j.NewReader(10), new(Seen)
	defer r.Close()
	r.SetSeen(seen)
	r.SetTimeRange(90, 95)
	r.SetEnd(15)
	for range 2 {
		if f, ok, err := r.TryNext(); ok || err != nil || r.Offset() < 15 || r.Offset() > 90 || seen.Read.Load() > 0 || seen.ByTime.Load() > 5 {
			t.Fatalf("%+v %v %v at %d after %d frames", f, ok, err, r.Offset(), seen.ByTime.Load())
		}
	}
	r.SetEnd(math.MaxUint64)
	if f, ok, err := r.TryNext(); !ok || err != nil || f.First != 90 {
		t.Errorf("%+v %v %v", f, ok, err)
	}
}

// A reader that seeks finds the record, and opens no file anew for one of the same segment.
func TestSeek(t *testing.T) {
	var opened atomic.Int64
	o := Options{SegmentBytes: 60_000, MaxGroupBytes: 3000, Pack: true, Disk: &disktest.Faulty{FS: disktest.NewMem(), Hook: func(op disktest.Op) disktest.Fault {
		if op.Kind == disktest.Open {
			opened.Add(1)
		}
		return disktest.Fault{}
	}}}
	m := newMixed(t, 9, "", "shop", "bank")
	j := mustOpen(t, t.TempDir(), o)
	m.fill(j, 3000)
	waitPacked(t, j)
	r := j.NewReader(0)
	defer r.Close()
	same, many := 0, 0
	var in *segment
	for range 300 {
		at := m.rng.Uint64N(j.Next())
		before := opened.Load()
		if err := r.Seek(at); err != nil {
			t.Fatal(err)
		}
		f, ok, err := r.TryNext()
		if line, _, _ := bytes.Cut(f.Lines, []byte{'\n'}); err != nil || !ok || f.First != at || string(line)+"\n" != m.model[at] {
			t.Fatalf("at %d: %d %q %v %v", at, f.First, line, ok, err)
		}
		switch n := opened.Load() - before; {
		case r.seg != in:
			in, many = r.seg, many+1
		case n > 0:
			t.Fatalf("at %d of the same segment %d files were opened", at, n)
		default:
			same++
		}
	}
	if same < 20 || many < 20 {
		t.Errorf("%d seeks in one segment, %d to another", same, many)
	}
	j.mu.Lock()
	r.seg.created++ // the marks are of another file
	at, before := r.seg.first, opened.Load()
	j.mu.Unlock()
	if err := r.Seek(at); err != nil {
		t.Fatal(err)
	}
	if f, ok, err := r.TryNext(); !ok || err != nil || f.First != at || opened.Load() == before {
		t.Errorf("after the file was replaced: %d %v %v, %d files were opened", f.First, ok, err, opened.Load()-before)
	}
}
