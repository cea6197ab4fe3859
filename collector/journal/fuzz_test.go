package journal

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"hash/crc32"
	"io"
	"testing"

	"github.com/rollway/rollway/internal/disktest"
)

// FuzzSegment opens and reads a folder in which one segment, open or sealed,
// holds any bytes: nothing panics, every reader comes to an end, the offsets
// rise, and the journal goes on.
func FuzzSegment(f *testing.F) {
	base := memJournal(f, 0, 4, 3)
	whole, err := base.ReadFile("/j/00000000000000000000.open")
	if err != nil {
		f.Fatal(err)
	}
	newer := append([]byte(nil), whole...)
	h, _ := parseFrameHeader(newer[segmentHeaderSize:])
	h.codec = 9
	putFrameHeader(newer[segmentHeaderSize:], &h)
	h.codec, h.keys, h.keysLen = 0, 1, h.bodyLen
	keys := append([]byte(nil), whole...)
	putFrameHeader(keys[segmentHeaderSize:], &h)
	for _, seed := range [][]byte{whole, whole[:64], whole[:100], whole[64:], append(whole[:len(whole):len(whole)], whole[64:]...), newer, keys, nil, make([]byte, 500)} {
		for n := range 4 {
			f.Add(seed, n&1 != 0, n&2 != 0)
		}
	}
	f.Fuzz(func(t *testing.T, data []byte, sealed, resum bool) {
		if resum {
			data = withChecksums(data)
		}
		mem := disktest.NewMem()
		if err := mem.MkdirAll("/j", 0o750); err != nil {
			t.Fatal(err)
		}
		name := "/j/00000000000000000000.open"
		if sealed {
			name = seg0
			after := appendSegmentHeader(nil, segmentHeader{version: formatVersion, id: 7, first: 10})
			if err := mem.WriteFile("/j/00000000000000000010.open", after); err != nil {
				t.Fatal(err)
			}
		}
		if err := mem.WriteFile(name, data); err != nil {
			t.Fatal(err)
		}
		var newer *UnsupportedError
		if _, err := verify(mem, "/j", 0, 0, nil); err != nil {
			t.Fatal(err)
		}
		j, err := Open("/j", Options{Disk: mem})
		if errors.As(err, &newer) && !sealed {
			return
		}
		if err != nil {
			t.Fatal(err)
		}
		defer j.Close()
		if _, err := j.Append(context.Background(), lines(0, 1)); err != nil && j.Next() < 1<<63 {
			t.Fatal(err)
		}
		r := j.NewReader(0)
		defer r.Close()
		for next, steps := uint64(0), 0; ; steps++ {
			if steps > len(data)+100 {
				t.Fatal("the reader does not come to an end")
			}
			fr, ok, err := r.TryNext()
			var gap *Gap
			switch {
			case errors.As(err, &gap):
				next = gap.To
				continue
			case errors.As(err, &newer):
				return
			case err != nil && err != io.EOF:
				t.Fatal(err)
			case !ok:
				if r.Offset() != j.Next() {
					t.Fatalf("the reader ends at %d, the journal at %d", r.Offset(), j.Next())
				}
				return
			}
			if fr.First != next || lineCount(fr.Lines) != fr.Records {
				t.Fatalf("frame %d+%d at %d", fr.First, fr.Records, next)
			}
			next += uint64(fr.Records)
		}
	})
}

// withChecksums returns data with right checksums wherever a header begins, so
// that the fuzzer gets past them.
func withChecksums(data []byte) []byte {
	data = append([]byte(nil), data...)
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

// FuzzFrameHeader: what parses encodes to the same bytes.
func FuzzFrameHeader(f *testing.F) {
	for _, h := range []frameHeader{
		{records: 1, bodyLen: 3, unpacked: 3},
		{first: 1 << 60, records: 99, bodyLen: maxBody, keysLen: 7, keys: 2, codec: 1, flags: 3, id: 1 << 31, minTime: -1, maxTime: 1},
	} {
		var b [frameHeaderSize]byte
		putFrameHeader(b[:], &h)
		f.Add(b[:])
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		h, err := parseFrameHeader(b)
		if err != nil {
			return
		}
		var again [frameHeaderSize]byte
		putFrameHeader(again[:], &h)
		if g, err := parseFrameHeader(again[:]); err != nil || g != h {
			t.Fatalf("%+v became %+v: %v", h, g, err)
		}
	})
}
