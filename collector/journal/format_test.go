package journal

import (
	"encoding/hex"
	"flag"
	"hash/crc32"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/rollway/rollway/internal/disktest"
)

var update = flag.Bool("update", false, "rewrite the golden files")

// The table above the code and the one in docs/FORMAT.md are the same.
func TestFormatTables(t *testing.T) {
	for _, file := range []string{"frame.go", "keyfile.go"} {
		checkTable(t, file)
	}
}

func checkTable(t *testing.T, file string) {
	src, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	var code strings.Builder
	for line := range strings.Lines(string(src)) {
		if rest, ok := strings.CutPrefix(line, "//\t"); ok {
			code.WriteString(rest)
		} else if strings.TrimSpace(line) == "//" && code.Len() > 0 {
			code.WriteString("\n")
		}
	}
	doc, err := os.ReadFile("../../docs/FORMAT.md")
	if err != nil {
		t.Fatal(err)
	}
	if table := strings.TrimSpace(code.String()); len(table) < 500 || !strings.Contains(string(doc), "```\n"+table+"\n```") {
		t.Errorf("docs/FORMAT.md does not contain the table of %s:\n%s", file, table)
	}
}

// The bytes of a segment are those of the golden file.
func TestGoldenSegment(t *testing.T) {
	b := appendSegmentHeader(nil, segmentHeader{version: formatVersion, id: 0xdeadbeef, first: 5, created: time.Date(2026, 5, 28, 12, 40, 0, 0, time.UTC).UnixNano(), prev: 2})
	batch := lines(5, 2)
	h := frameHeader{bodyLen: len(batch.Lines), unpacked: len(batch.Lines), first: 5, records: 2, id: 0xdeadbeef, minTime: 5, maxTime: 6, bodySum: crc32.Checksum(batch.Lines, castagnoli)}
	frame := make([]byte, frameHeaderSize)
	putFrameHeader(frame, &h)
	b = append(append(b, frame...), batch.Lines...)
	got := hex.Dump(b)
	const golden = "testdata/segment.hex"
	if *update {
		if err := os.WriteFile(golden, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(golden)
	if err != nil {
		t.Fatal(err)
	}
	if got != string(want) {
		t.Errorf("the format has changed; a new one needs a new version:\n%s", got)
	}
	mem := disktest.NewMem()
	if err := mem.MkdirAll("/j", 0o750); err != nil {
		t.Fatal(err)
	}
	if err := mem.WriteFile("/j/00000000000000000005.seg", b); err != nil {
		t.Fatal(err)
	}
	j, err := Open("/j", Options{Disk: mem})
	if err != nil {
		t.Fatal(err)
	}
	defer j.Close()
	f, ok, err := j.NewReader(5).TryNext()
	if err != nil || !ok || string(f.Lines) != string(batch.Lines) || f.MinTime != 5 || f.MaxTime != 6 {
		t.Fatalf("%+v %v %v", f, ok, err)
	}
}
