package journal

import (
	"encoding/hex"
	"flag"
	"os"
	"testing"
	"time"

	"github.com/rollway/rollway/internal/disktest"
	"github.com/rollway/rollway/internal/recordlog"
	"github.com/rollway/rollway/internal/recordlog/recordlogtest"
	"github.com/rollway/rollway/internal/testkit"
)

var update = flag.Bool("update", false, "rewrite the golden files")

func TestFormatTables(t *testing.T) {
	recordlogtest.CheckTables(t, "../../docs/FORMAT.md", "key.go", "manifest.go")
}

// The bytes of a segment are those of the golden file.
func TestGoldenSegment(t *testing.T) {
	header := recordlog.Header{Kind: recordlog.JournalSegment, ID: 0xdeadbeef, First: 5, Created: time.Date(2026, 5, 28, 12, 40, 0, 0, time.UTC).UnixNano(), Prev: 2}
	batch := lines(5, 2)
	frame := append(make([]byte, frameHeaderSize), batch.Lines...)
	h := recordlog.Frame{Unpacked: len(batch.Lines), First: 5, Records: 2, ID: 0xdeadbeef, MinTime: 5, MaxTime: 6}
	h.Put(frame)
	b := append(header.Append(nil), frame...)
	got := hex.Dump(b)
	const golden = "testdata/segment.hex"
	if *update {
		testkit.OK(t, os.WriteFile(golden, []byte(got), 0o644))
	}
	want, err := os.ReadFile(golden)
	testkit.OK(t, err)
	if got != string(want) {
		t.Errorf("the format has changed; a new one needs a new version:\n%s", got)
	}
	sum := newSummary(0xdeadbeef, 5)
	sum.frame(&h, frame)
	sum.lines(batch.Lines, batch.Records, h.MinTime)
	b = append(b, sum.end(nil, time.Unix(9, 0), nil)...)
	mem := disktest.NewMem()
	testkit.OK(t, mem.MkdirAll("/j", 0o750))
	testkit.OK(t, mem.WriteFile("/j/00000000000000000005.seg", b))
	j, err := Open("/j", Options{Disk: mem})
	testkit.OK(t, err)
	defer j.Close()
	f, ok, err := j.NewReader(5).TryNext()
	if err != nil || !ok || string(f.Lines) != string(batch.Lines) || f.MinTime != 5 || f.MaxTime != 6 {
		t.Fatalf("%+v %v %v", f, ok, err)
	}
}
