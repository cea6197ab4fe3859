package framed

import (
	"bytes"
	"encoding/hex"
	"flag"
	"fmt"
	"os"
	"testing"
	"time"
)

var update = flag.Bool("update", false, "rewrite the golden file")

// goldenSegment is a segment of two batches and the mark of the end.
func goldenSegment() []byte {
	when := time.Date(2026, 5, 28, 12, 40, 0, 0, time.UTC)
	h := Header{Block: 512, ID: 0xdeadbeef01020304, Generation: 3, Created: when}
	b := make([]byte, SegmentHeaderSize+3*512)
	putHeader(b, &h)
	for i, records := range [][]string{{"one", "two"}, {`{"msg":"three"}`}, nil} {
		number := uint64(0x1122334400000001 + i)
		buf, used := fill(number, records)
		bh := batchHeader{
			block: 512, offset: SegmentHeaderSize + 512*int64(i), id: h.ID, generation: 3, number: number, before: uint64(min(2*i, 3)),
			sealed: when.UnixNano() + int64(i), size: used, records: len(records),
		}
		bh.put(buf)
		copy(b[bh.offset:], buf[:used])
	}
	return b
}

// The bytes are those of the golden file, and are read.
func TestGolden(t *testing.T) {
	b := goldenSegment()
	got := hex.Dump(b[:64]) + "\n" + hex.Dump(b[SegmentHeaderSize:])
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
	r := mustRead(t, b)
	equal(t, r.records, []string{"one", "two", `{"msg":"three"}`})
	if !r.Complete || len(r.findings) != 0 || r.Last.Sub(r.First) != 2 {
		t.Errorf("%+v", r)
	}
}

// FuzzReader reads any bytes: it comes to an end, and the numbers in its
// summary agree with what it delivered.
func FuzzReader(f *testing.F) {
	golden := goldenSegment()
	for _, seed := range [][]byte{golden, golden[:64], golden[:SegmentHeaderSize+100], golden[SegmentHeaderSize:], append(make([]byte, SegmentHeaderSize), golden[SegmentHeaderSize:]...), recycled(f).bytes, nil} {
		f.Add(seed, false)
		f.Add(seed, true)
	}
	f.Fuzz(func(t *testing.T, b []byte, sums bool) {
		if sums {
			b = bytes.Clone(b)
			fixSums(b)
		}
		got, err := read(t, b, Options{MaxRecord: 100})
		if err != nil {
			return
		}
		long := 0
		size := int64(0)
		for _, f := range got.findings {
			if f.Kind == TooLong {
				long++
			}
			if f.Pos < 0 || f.Bytes < 0 || f.String() == "" {
				t.Fatalf("%+v", f)
			}
		}
		for _, s := range got.records {
			size += int64(len(s))
		}
		if got.Findings < maxFindings && got.Records != uint64(len(got.records)+long) || size > int64(len(b)) {
			t.Fatalf("%d records: %+v", len(got.records), got.Summary)
		}
		check, err := read(t, b, Options{CheckOnly: true})
		if err != nil || check.Records != got.Records || check.RecordBytes != got.RecordBytes || check.Lost != got.Lost {
			t.Fatalf("check only: %+v, %+v, %v", check.Summary, got.Summary, err)
		}
	})
}

// FuzzDamage puts any bytes anywhere over a segment of known records, after an
// earlier use of the same file: what is delivered was written, in order.
func FuzzDamage(f *testing.F) {
	seg := recycled(f)
	for at := 0; at < len(seg.bytes); at += 500 {
		f.Add(uint16(at), []byte{1, 0xff, 0}, uint16(at+1000), []byte("\xffRWB"), uint16(len(seg.bytes)))
	}
	f.Add(uint16(4096), seg.bytes[4608:5120], uint16(0), []byte{}, uint16(9000))
	f.Fuzz(func(t *testing.T, at1 uint16, p1 []byte, at2 uint16, p2 []byte, size uint16) {
		b := bytes.Clone(seg.bytes[:min(int(size), len(seg.bytes))])
		copy(b[min(int(at1), len(b)):], p1)
		copy(b[min(int(at2), len(b)):], p2)
		if bytes.Contains(p1, batchMagic) && len(p1) >= BatchHeaderSize || bytes.Contains(p2, batchMagic) && len(p2) >= BatchHeaderSize {
			return // may be a segment of its own
		}
		got, err := read(t, b, Options{})
		if err != nil {
			return
		}
		want := seg.records
		if got.Generation != 2 { // the header and all batches of the second use are gone
			want = nil
			for i := range 6 {
				want = append(want, texts(fmt.Sprintf("old%d", i), 20)...)
			}
		}
		subsequence(t, fmt.Sprintf("%d bytes at %d, %d at %d, cut at %d", len(p1), at1, len(p2), at2, size), got.records, want)
	})
}

// FuzzHeader: what parses encodes to the same bytes.
func FuzzHeader(f *testing.F) {
	golden := goldenSegment()
	f.Add(golden[:64])
	f.Add(golden[SegmentHeaderSize:][:64])
	f.Fuzz(func(t *testing.T, b []byte) {
		b = append(bytes.Clone(b), make([]byte, SegmentHeaderSize)...)[:SegmentHeaderSize]
		clear(b[40:60])
		clear(b[64:])
		fixSums(b)
		if h, err := ParseHeader(b); err == nil {
			again := make([]byte, SegmentHeaderSize)
			putHeader(again, &h)
			if !bytes.Equal(again, b) {
				t.Fatalf("%+v", h)
			}
		}
	})
}

// FuzzBatchHeader: what parses encodes to the same bytes.
func FuzzBatchHeader(f *testing.F) {
	f.Add(goldenSegment()[SegmentHeaderSize:][:64])
	f.Fuzz(func(t *testing.T, head []byte) {
		b := make([]byte, SegmentHeaderSize+BatchHeaderSize)
		copy(b[SegmentHeaderSize:], head)
		fixSums(b)
		head = b[SegmentHeaderSize:]
		if h, err := parseBatchHeader(head); err == nil {
			again := make([]byte, BatchHeaderSize)
			if h.put(again); !bytes.Equal(again, head) {
				t.Fatalf("%+v", h)
			}
		}
	})
}
