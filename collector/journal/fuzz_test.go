package journal

import (
	"bytes"
	"context"
	"errors"
	"io"
	"testing"
	"time"

	"github.com/rollway/rollway/internal/disktest"
	"github.com/rollway/rollway/internal/recordlog"
	"github.com/rollway/rollway/internal/recordlog/recordlogtest"
	"github.com/rollway/rollway/internal/testkit"
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
	newer, keys := bytes.Clone(whole), bytes.Clone(whole)
	newer[segmentHeaderSize+60] = 9 // codec
	h, _ := recordlog.ParseFrame(whole[segmentHeaderSize:])
	h.Keys, h.KeysLen = 1, h.BodyLen
	h.Put(keys[segmentHeaderSize:][:h.Size()])
	newer = recordlogtest.WithChecksums(newer)
	for _, seed := range [][]byte{packedBlocks(f, nil), packedBlocks(f, map[string]bool{"shop": true}), whole, whole[:64], whole[:100], whole[64:], append(whole[:len(whole):len(whole)], whole[64:]...), newer, keys, nil, make([]byte, 500)} {
		for n := range 4 {
			f.Add(seed, n&1 != 0, n&2 != 0)
		}
	}
	f.Fuzz(func(t *testing.T, data []byte, sealed, resum bool) {
		if resum {
			data = recordlogtest.WithChecksums(data)
		}
		mem := disktest.NewMem()
		testkit.OK(t, mem.MkdirAll("/j", 0o750))
		name := "/j/00000000000000000000.open"
		if sealed {
			name = seg0
			header := recordlog.Header{Kind: recordlog.JournalSegment, ID: 7, First: 10}
			after := header.Append(nil)
			testkit.OK(t, mem.WriteFile("/j/00000000000000000010.open", after))
		}
		testkit.OK(t, mem.WriteFile(name, data))
		var newer *UnsupportedError
		if _, err := audit(mem, "/j", AuditOptions{}); err != nil {
			t.Fatal(err)
		}
		j, err := Open("/j", Options{Disk: mem})
		if errors.As(err, &newer) && !sealed {
			return
		}
		testkit.OK(t, err)
		defer j.Close()
		if _, err := j.Append(context.Background(), lines(0, 1)); err != nil && j.Next() < recordlog.MaxNumber-10 {
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
			if fr.First != next || recordlog.LineCount(fr.Lines) != fr.Records {
				t.Fatalf("frame %d+%d at %d", fr.First, fr.Records, next)
			}
			next += uint64(fr.Records)
		}
	})
}

// packedBlocks is a segment of few records, packed into blocks of tenants, without those due.
func packedBlocks(f *testing.F, due map[string]bool) []byte {
	mem := disktest.NewMem()
	j, err := Open("/j", Options{Disk: mem, SegmentBytes: 1000})
	testkit.OK(f, err)
	defer j.Close()
	for n := range 12 {
		mustAppend(f, j, Batch{Lines: []byte(tenantLine(n, []string{"shop", "", "bank"}[n%3], 10)), Records: 1})
	}
	for j.nextRetired() != nil {
		time.Sleep(time.Millisecond)
	}
	s := j.nextUnpacked()
	testkit.OK(f, j.pack(s))
	if due != nil {
		testkit.OK(f, j.drop(s, due))
	}
	b, err := mem.ReadFile(seg0)
	testkit.OK(f, err)
	return b
}
