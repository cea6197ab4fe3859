package journal

import (
	"bytes"
	"context"
	"math"
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
