package journal

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/rollway/rollway/internal/recordlog"
	"github.com/rollway/rollway/internal/testkit"
)

// A journal of a terabyte is ready within a second: 40,000 packed segments of 25 MiB on disk, which
// are holes except for their headers and footers.
func TestReadyWithATerabyte(t *testing.T) {
	n := testkit.Rounds(t, testkit.Bench, 500, 40_000)
	const (
		size    = 25 << 20
		records = 400_000
		frames  = 128
	)
	dir := t.TempDir()
	at := time.Date(2026, 5, 1, 0, 0, 0, 0, time.UTC)
	for i := range n + 1 { // Open reads the last one whole, finds no frame in it and sets it aside
		first, prev := uint64(i*records), uint64(max(i-1, 0)*records)
		h := recordlog.Header{Kind: recordlog.JournalSegment, ID: uint64(i + 1), First: first, Prev: prev, Created: at.UnixNano(), Flags: flagPacked}
		foot := recordlog.Footer{ID: h.ID, First: first, End: first + records, Sealed: at.UnixNano(), Records: records, LineBytes: 128 << 20, Written: at.UnixNano(), Step: minute}
		foot.MinTime, foot.MaxTime = at.UnixNano(), at.Add(time.Minute).UnixNano()
		foot.Sections = []recordlog.Section{{Kind: recordlog.FramesSection, Pos: segmentHeaderSize, Len: size}, {Kind: recordlog.KeysSection, Pos: segmentHeaderSize + size}}
		for m := range uint64(frames) {
			foot.Marks = append(foot.Marks, recordlog.Mark{First: first + m*records/frames, Pos: segmentHeaderSize + int64(m)*size/frames, Records: records / frames, MinTime: foot.MinTime, MaxTime: foot.MaxTime})
		}
		foot.Counts = []recordlog.Count{{Step: foot.MinTime / minute, Records: records}}
		f, err := os.OpenFile(filepath.Join(dir, segmentName(first, extSealed)), os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o640)
		testkit.OK(t, err)
		_, err = f.Write(h.Append(nil))
		testkit.OK(t, err)
		_, err = f.WriteAt(foot.Append(nil), segmentHeaderSize+size)
		testkit.OK(t, err)
		testkit.OK(t, f.Close())
		at = at.Add(time.Minute)
	}
	open := func() (j *Journal, took time.Duration) {
		t.Helper()
		begin := time.Now()
		j, err := Open(dir, Options{Pack: true})
		took = time.Since(begin)
		testkit.OK(t, err)
		if got := j.Next(); got < uint64(n*records) || j.Stats().Segments < n {
			t.Fatalf("next is %d of %d, %d segments", got, n*records, j.Stats().Segments)
		}
		return j, took
	}
	j, footers := open()
	_, err := j.Append(t.Context(), Batch{Lines: []byte("{}\n"), Records: 1})
	testkit.OK(t, err)
	testkit.OK(t, j.Close())
	j, took := open()
	defer j.Close()
	bytes := fmt.Sprintf("%.2f TB", float64(n)*size/1e12)
	t.Logf("%d segments of %s: ready after %v; without a manifest after %v", n, bytes, took.Round(time.Millisecond), footers.Round(time.Millisecond))
	if took > time.Second {
		t.Errorf("%s are ready after %v", bytes, took)
	}
}
