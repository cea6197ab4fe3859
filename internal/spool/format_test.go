package spool

import (
	"bytes"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"flag"
	"hash/crc32"
	"os"
	"testing"
	"time"

	"github.com/rollway/rollway/internal/disktest"
)

var update = flag.Bool("update", false, "rewrite the golden file")

// goldenSegment is a segment of two batches.
func goldenSegment() []byte {
	when := time.Date(2026, 5, 28, 12, 40, 0, 0, time.UTC).UnixNano()
	b := appendSegmentHeader(nil, segmentHeader{version: formatVersion, id: 0xdeadbeef01020304, line: 5, batch: 2, created: when})
	for i := range 2 {
		body := texts(uint64(5+2*i), uint64(7+2*i))
		b = appendFrameHeader(b, &frameHeader{
			bodySum: crc32.Checksum([]byte(body), castagnoli), bodyLen: len(body), id: 0xdeadbeef01020304,
			batch: uint64(2 + i), line: uint64(5 + 2*i), time: when + int64(i), lines: 2,
		})
		b = append(b, body...)
	}
	return b
}

// The bytes are those of the golden file, and are read.
func TestGolden(t *testing.T) {
	b, c := goldenSegment(), appendCursor(nil, cursor{formatVersion, 4, 6, 2, 9, [8]uint64{7, 9}, 5})
	got := hex.Dump(b) + "\n" + hex.Dump(c)
	const golden = "testdata/format.hex"
	if *update {
		if err := os.WriteFile(golden, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	wanted, err := os.ReadFile(golden)
	if err != nil {
		t.Fatal(err)
	}
	if got != string(wanted) {
		t.Errorf("the format has changed; a new one needs a new version:\n%s", got)
	}
	mem := disktest.NewMem()
	if err := mem.MkdirAll("/s", 0o750); err != nil {
		t.Fatal(err)
	}
	for name, b := range map[string][]byte{"/s/00000000000000000005.spool": b, "/s/CURSOR": c} {
		if err := mem.WriteFile(name, b); err != nil {
			t.Fatal(err)
		}
	}
	s := mustOpen(t, mem, Options{})
	if st := s.Stats(); st.Recovered != 3 || st.Batches != 2 || st.Next != 9 {
		t.Fatalf("%+v", st)
	}
	p := mustNext(t, s)
	want(t, string(p.Data), texts(6, 7))
	if key := p.Key(1); key != "deadbeef01020304-6-1" {
		t.Errorf("key %s", key)
	}
	mustAck(t, s, p, len(p.Data))
	p = mustNext(t, s)
	want(t, string(p.Data), texts(7, 9))
}

// withChecksums returns data with right checksums wherever a header begins, so
// that the fuzzer gets past them.
func withChecksums(data []byte) []byte {
	data = bytes.Clone(data)
	if len(data) >= segmentHeaderSize && bytes.Equal(data[:8], segmentMagic) {
		binary.LittleEndian.PutUint32(data[60:], crc32.Checksum(data[:60], castagnoli))
	}
	for pos := 0; pos+frameHeaderSize <= len(data); pos++ {
		b := data[pos:]
		if !bytes.Equal(b[:4], frameMagic) {
			continue
		}
		if n := int(binary.LittleEndian.Uint32(b[12:])); n <= len(b)-frameHeaderSize {
			binary.LittleEndian.PutUint32(b[8:], crc32.Checksum(b[frameHeaderSize:frameHeaderSize+n], castagnoli))
		}
		binary.LittleEndian.PutUint32(b[4:], crc32.Checksum(b[8:frameHeaderSize], castagnoli))
	}
	return data
}

// FuzzSegment opens and reads a folder in which one segment, the last or the
// one before, holds any bytes: nothing panics, reading comes to an end, what
// is returned is whole lines with rising numbers, the ledger is balanced, and
// the spool goes on.
func FuzzSegment(f *testing.F) {
	golden := goldenSegment()
	for _, seed := range [][]byte{golden, golden[:64], golden[:100], golden[64:], append(bytes.Clone(golden), golden[64:]...), append(bytes.Clone(golden), "x\ny\n"...), nil, make([]byte, 500)} {
		for n := range 4 {
			f.Add(seed, n&1 != 0, n&2 != 0)
		}
	}
	f.Fuzz(func(t *testing.T, data []byte, last, sums bool) {
		if sums {
			data = withChecksums(data)
		}
		mem := disktest.NewMem()
		if err := mem.MkdirAll("/s", 0o750); err != nil {
			t.Fatal(err)
		}
		if err := mem.WriteFile("/s/00000000000000000005.spool", data); err != nil {
			t.Fatal(err)
		}
		if !last {
			after := bytes.ReplaceAll(golden, []byte{5, 0, 0, 0, 0, 0, 0, 0}, []byte{20, 0, 0, 0, 0, 0, 0, 0})
			after = bytes.ReplaceAll(after, []byte{7, 0, 0, 0, 0, 0, 0, 0}, []byte{22, 0, 0, 0, 0, 0, 0, 0})
			if err := mem.WriteFile("/s/00000000000000000020.spool", withChecksums(after)); err != nil {
				t.Fatal(err)
			}
		}
		s, err := Open("/s", Options{Disk: mem})
		if err != nil {
			var newer *UnsupportedError
			if !errors.As(err, &newer) {
				t.Fatal(err)
			}
			return
		}
		defer s.Close()
		balanced(t, s)
		if s.next.line >= maxNumber || s.next.batch >= maxNumber {
			return // no number is left for what is appended
		}
		mustAppend(t, s, "new\n")
		next, end := uint64(0), ""
		for steps := 0; ; steps++ {
			if steps > len(data)+100 {
				t.Fatal("reading does not come to an end")
			}
			b := mustNext(t, s)
			if b == nil {
				break
			}
			if b.Line < next || len(b.Data) == 0 || b.Data[len(b.Data)-1] != '\n' {
				t.Fatalf("line %d after %d: %q", b.Line, next, b.Data)
			}
			next = b.Line + uint64(countLines(b.Data))
			end = string(b.Data)
			mustAck(t, s, b, len(b.Data))
		}
		if len(end) < 4 || end[len(end)-4:] != "new\n" {
			t.Fatalf("the last lines are %q; %+v %v", end, s.Stats(), s.Findings())
		}
	})
}

// FuzzFrameHeader: what parses encodes to the same bytes.
func FuzzFrameHeader(f *testing.F) {
	header := goldenSegment()[64:120]
	f.Add(header)
	for i := 52; i < 56; i++ { // bytes that must be zero
		b := bytes.Clone(header)
		b[i] = 1
		f.Add(b)
	}
	f.Add([]byte{})
	f.Fuzz(func(t *testing.T, b []byte) {
		b = withChecksums(b)
		h, err := parseFrameHeader(b)
		if err == nil && !bytes.Equal(appendFrameHeader(nil, &h), b[:frameHeaderSize]) {
			t.Fatalf("%+v", h)
		}
	})
}

// FuzzCursor: what parses encodes to the same bytes.
func FuzzCursor(f *testing.F) {
	f.Add(appendCursor(nil, cursor{formatVersion, 4, 6, 2, 9, [8]uint64{7, 9}, 5}))
	f.Add([]byte{})
	f.Fuzz(func(t *testing.T, b []byte) {
		b = bytes.Clone(b)
		if len(b) >= cursorSize {
			clear(b[12:16])
			clear(b[120:124])
			binary.LittleEndian.PutUint32(b[124:], crc32.Checksum(b[:124], castagnoli))
		}
		c, err := parseCursor(b)
		if err == nil && !bytes.Equal(appendCursor(nil, c), b[:cursorSize]) {
			t.Fatalf("%+v", c)
		}
	})
}
