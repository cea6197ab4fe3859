package recordlog_test

import (
	"bytes"
	"fmt"
	"reflect"
	"strings"
	"testing"

	. "github.com/rollway/rollway/internal/recordlog"
)

// blockFrame returns a frame of 7 records, and its blocks: of tenant "a", deleted, "b" and "".
func blockFrame(id, first uint64) ([]byte, []Block, Runs) {
	stored := [][]byte{[]byte("packed lines of a"), nil, []byte("of nobody")}
	blocks := []Block{{Tenant: "a", Records: 3, Unpacked: 30}, {Tenant: "b", Records: 2, Unpacked: 20}, {Records: 2, Unpacked: 9}}
	for i, data := range stored {
		blocks[i].Len = len(data)
		if len(data) > 0 {
			blocks[i].Sum = Checksum(data)
		}
	}
	runs := Runs(nil).Append(0, 2).Append(1, 1).Append(2, 2).Append(0, 1).Append(1, 1)
	frame := AppendBlocks(append(make([]byte, FrameHeaderSize), "KEYS"...), blocks, runs)
	for i := range blocks {
		blocks[i].Pos = len(frame) - FrameHeaderSize
		frame = append(frame, stored[i]...)
	}
	h := Frame{First: first, ID: id, Records: 7, KeysLen: 4, Unpacked: 59, Codec: CodecZstd, Flags: FlagBlocks}
	h.Put(frame)
	return frame, blocks, runs
}

func TestBlocks(t *testing.T) {
	frame, want, runs := blockFrame(id, 5)
	h, err := ParseFrame(frame)
	if err != nil || h.Unknown() != "" {
		t.Fatal(h, err)
	}
	var w Walker
	w.Open(bytes.NewReader(append(make([]byte, HeaderSize), frame...)), "x", HeaderSize+int64(len(frame)))
	head, err := w.Head(&h)
	if err != nil || !bytes.HasPrefix(head, []byte("KEYS")) {
		t.Fatalf("%q, %v", head, err)
	}
	blocks, got, err := ParseBlocks(&h, head)
	if err != nil || !reflect.DeepEqual(blocks, want) || !bytes.Equal(got, runs) {
		t.Fatalf("%+v %v, %v, want %+v", blocks, got, err, want)
	}
	if data, err := w.Block(&blocks[0]); err != nil || string(data) != "packed lines of a" {
		t.Fatalf("%q, %v", data, err)
	}
	if data, err := w.Body(&h); err != nil || len(data) != h.BodyLen {
		t.Fatalf("%d bytes, %v", len(data), err)
	}
}

// Each byte of a frame with blocks is flipped: the records of one block are lost, or those
// of the frame, and the finding says which.
func TestDamagedBlocks(t *testing.T) {
	header := Header{Kind: JournalSegment, ID: id, First: 5}
	frame, blocks, _ := blockFrame(id, 5)
	file := header.Append(nil)
	start := len(file)
	file = append(file, frame...)
	after, _, _ := blockFrame(id, 12)
	file = append(file, after...)
	scan := func(b []byte) Segment {
		s, err := Scan(bytes.NewReader(b), "x", JournalSegment, int64(len(b)), 5, MaxNumber, nil)
		if err != nil {
			t.Fatal(err)
		}
		return s
	}
	if s := scan(file); s.Records != 10 || s.Deleted != 4 || s.Findings("x", false) != nil || s.Lost != nil {
		t.Fatalf("%+v", s)
	}
	for pos := start; pos < start+len(frame); pos++ {
		b := bytes.Clone(file)
		b[pos] ^= 1
		s := scan(b)
		list := s.Findings("x", false)
		wantRecords, want := int64(5), "x: damaged, "
		for _, k := range blocks {
			if at := start + FrameHeaderSize + k.Pos; pos >= at && pos < at+k.Len {
				wantRecords = int64(10 - k.Records)
				want = fmt.Sprintf("x: damaged, %d bytes at byte %d, the block of tenant %q", k.Len, at, k.Tenant)
				lost := uint64(0)
				for _, r := range s.Lost {
					lost += r.To - r.From
				}
				if lost != uint64(k.Records) {
					t.Errorf("byte %d: lost %v", pos, s.Lost)
				}
			}
		}
		if s.Records != wantRecords || !strings.Contains(fmt.Sprint(list), want) {
			t.Errorf("byte %d: %d records, %v, want %d, %s", pos, s.Records, list, wantRecords, want)
		}
	}
}

// FuzzBlocks: a head that is accepted tells the block of every record.
func FuzzBlocks(f *testing.F) {
	frame, _, _ := blockFrame(1, 0)
	f.Add(frame[FrameHeaderSize:], 7, 59)
	f.Fuzz(func(t *testing.T, body []byte, records, unpacked int) {
		h := Frame{Records: records, Unpacked: unpacked, BodyLen: len(body), KeysLen: min(4, len(body)), Flags: FlagBlocks}
		blocks, runs, err := ParseBlocks(&h, body)
		if err != nil {
			return
		}
		left, pos := make([]int, len(blocks)), 0
		for len(runs) > 0 {
			i, n := runs.Next()
			left[i] += n
		}
		for i, b := range blocks {
			if left[i] != b.Records || b.Pos < pos || b.Pos+b.Len > len(body) {
				t.Fatalf("block %d: %+v", i, b)
			}
			pos = b.Pos + b.Len
		}
	})
}
