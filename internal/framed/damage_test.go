package framed

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"slices"
	"testing"
)

// fixSums makes the checksums of all headers right, so that what they say is
// what is tested.
func fixSums(b []byte) {
	if len(b) >= headerFields {
		binary.LittleEndian.PutUint32(b[60:], crc32.Checksum(b[:60], castagnoli))
	}
	for at := SegmentHeaderSize; at+BatchHeaderSize <= len(b); at += MinBlock {
		if h := b[at:]; bytes.Equal(h[:4], batchMagic) {
			binary.LittleEndian.PutUint32(h[4:], crc32.Checksum(h[8:BatchHeaderSize], castagnoli))
		}
	}
}

// recycled is a segment of three batches over the remains of one of an earlier
// use with records of the same sizes at the same places, and of more batches.
func recycled(t testing.TB) *file {
	t.Helper()
	old := begin(t, nil, 512, 1)
	for i := range 6 {
		old.batch(texts(fmt.Sprintf("old%d", i), 20)...)
	}
	f := begin(t, old.bytes, 512, 2)
	for i := range 3 {
		f.batch(texts(fmt.Sprintf("new%d", i), 20)...)
	}
	if f.seg.Next >= old.seg.Next {
		t.Fatal("nothing is left of the earlier use")
	}
	return f
}

// subsequence fails unless got are records of want in their order.
func subsequence(t testing.TB, what string, got, want []string) {
	t.Helper()
	rest := want
	for _, s := range got {
		i := slices.Index(rest, s)
		if i < 0 {
			t.Fatalf("%s: record %q was not written, or not there", what, s)
		}
		rest = rest[i+1:]
	}
}

// Nothing of an earlier use of the file is taken for new.
func TestStale(t *testing.T) {
	f := recycled(t)
	got := mustRead(t, f.bytes)
	equal(t, got.records, f.records)
	if len(got.findings) != 0 || got.End != f.seg.Next {
		t.Errorf("%+v", got)
	}

	// Killed right after the header was written: the segment is empty.
	empty := begin(t, f.bytes, 512, 3)
	got = mustRead(t, empty.bytes)
	if len(got.records) != 0 || len(got.findings) != 0 || got.End != SegmentHeaderSize {
		t.Errorf("%+v", got)
	}
}

// Killed after any number of bytes of the last batch, over what was there
// before: the batches before are whole, of the last one what was written is
// delivered and the rest is reported, to the record.
func TestTornTail(t *testing.T) {
	for _, over := range []string{"stale", "zeros", "nothing"} {
		f := recycled(t)
		if over != "stale" {
			f = begin(t, nil, 512, 2)
			f.batch(texts("new0", 20)...)
		}
		before := bytes.Clone(f.bytes)
		at, done := f.seg.Next, len(f.records)
		f.batch(texts("last", 20)...)
		batch := f.bytes[at:f.seg.Next]
		for n := 0; n <= len(batch); n++ {
			b := bytes.Clone(before)
			switch over {
			case "zeros":
				b = append(b, make([]byte, len(batch)+4096)...)
			case "nothing":
				b = append(b, batch[:n]...)
			}
			copy(b[at:], batch[:n])
			got := mustRead(t, b)
			whole, size := 0, RecordSize(len("last-000"))
			for p := BatchHeaderSize; whole < 20 && n >= BatchHeaderSize && int(at)+p+size <= len(b) && bytes.Equal(b[int(at)+p:][:size], batch[p:][:size]); p += size {
				whole++ // what was there before may end like it
			}
			what := fmt.Sprintf("%d of %d bytes over %s", n, len(batch), over)
			equal(t, got.records, f.records[:done+whole])
			if least := (n - BatchHeaderSize) / size; whole < min(20, least) {
				t.Fatalf("%s: %d records are there", what, whole)
			}
			switch headed := n >= BatchHeaderSize; {
			case headed && whole < 20:
				if len(got.findings) != 1 || got.findings[0].Kind != TornTail || got.Lost != uint64(20-whole) || got.Damage != 0 {
					t.Fatalf("%s: %+v", what, got)
				}
			case headed || n == 0:
				if len(got.findings) != 0 || got.Lost != 0 {
					t.Fatalf("%s: %+v", what, got)
				}
			case len(got.findings) > 1:
				t.Fatalf("%s: %+v", what, got)
			}
		}
	}
}

// Cut anywhere: all whole records before the cut come, and nothing else. With
// the mark of the end every cut shows.
func TestEveryTruncation(t *testing.T) {
	f := begin(t, nil, 512, 1)
	for i := range 3 {
		f.batch(texts(fmt.Sprint("batch", i), 15)...)
	}
	f.end()
	for n := range f.bytes {
		got, err := read(t, f.bytes[:n], Options{})
		if n < 8 {
			if err == nil {
				t.Fatalf("cut at %d: no error", n)
			}
			continue
		}
		if err != nil {
			t.Fatalf("cut at %d: %v", n, err)
		}
		equal(t, got.records, f.records[:len(got.records)])
		if want := wholeRecords(f, int64(n)); len(got.records) != want {
			t.Fatalf("cut at %d: %d records, want %d", n, len(got.records), want)
		}
		if got.Complete && int64(n) < f.seg.Next-512+BatchHeaderSize {
			t.Fatalf("cut at %d: complete", n)
		}
	}
}

// wholeRecords is how many records of f end at n or before.
func wholeRecords(f *file, n int64) int {
	count, at := 0, int64(SegmentHeaderSize)
	done := 0
	for _, end := range f.ends {
		at += BatchHeaderSize
		for _, s := range f.records[done:end] {
			if at += int64(RecordSize(len(s))); at <= n {
				count++
			}
		}
		done, at = end, roundUp(at, f.seg.Block)
	}
	return count
}

// Any bit turned over: nothing wrong is delivered, nothing is lost beside what
// the bit belongs to, and what is lost is reported, to the record.
func TestEveryBitFlip(t *testing.T) {
	f := recycled(t)
	f.end()
	size := len(f.records) / 3
	records := RecordSize(len(f.records[0])) * size
	for bit := range int(f.seg.Next) * 8 {
		if at := bit / 8; at >= headerFields && at < SegmentHeaderSize && bit%8 != at%8 {
			continue // nothing is there: one bit of each byte is enough
		}
		f.bytes[bit/8] ^= 1 << (bit % 8)
		got := mustRead(t, f.bytes)
		f.bytes[bit/8] ^= 1 << (bit % 8)

		what := fmt.Sprintf("bit %d of byte %d", bit%8, bit/8)
		subsequence(t, what, got.records, f.records)
		lost := len(f.records) - len(got.records)
		inBatch := (bit/8 - SegmentHeaderSize) % int(roundUp(int64(BatchHeaderSize+records), 512))
		last := int64(bit/8) >= f.seg.Next-512
		most := 0
		switch {
		case bit/8 < SegmentHeaderSize || last:
		case inBatch < BatchHeaderSize:
			most = size
		case inBatch < BatchHeaderSize+records:
			most = 1
		}
		if lost != most || got.Lost != uint64(lost) {
			t.Fatalf("%s: %d records are lost, want %d: %+v", what, lost, most, got)
		}
		silent := len(got.findings) == 0
		if covered := most > 0 || bit/8 < headerFields || last && bit/8-int(f.seg.Next-512) < BatchHeaderSize; silent == covered || !silent && got.Damage == 0 {
			t.Fatalf("%s: %+v", what, got.findings)
		}
	}
}

// Blocks that never reached the disk, one or several, whatever they held
// before: everything else is delivered, and the ledger is exact where something
// sound follows.
func TestLostBlocks(t *testing.T) {
	f := begin(t, nil, 512, 5)
	for i := range 4 {
		f.batch(texts(fmt.Sprint("batch", i), 150)...)
	}
	f.end()
	old := begin(t, nil, 512, 4)
	for i := range 4 {
		old.batch(texts(fmt.Sprint("stale", i), 150)...)
	}
	for from := SegmentHeaderSize; from < int(f.seg.Next)-512; from += 512 {
		for _, n := range []int{512, 1024, 4096} {
			to := min(from+n, int(f.seg.Next)-512)
			for what, stale := range map[string][]byte{"stale": old.bytes, "zeros": make([]byte, len(f.bytes))} {
				b := bytes.Clone(f.bytes)
				copy(b[from:to], stale[from:])
				got := mustRead(t, b)
				what = fmt.Sprintf("%s from %d to %d", what, from, to)
				subsequence(t, what, got.records, f.records)
				if lost := len(f.records) - len(got.records); got.Lost != uint64(lost) || lost == 0 || got.Damage == 0 {
					t.Fatalf("%s: %d lost, reported %d: %v", what, lost, got.Lost, got.findings)
				}
				if most := 512/RecordSize(len("batch0-000")) + 2; n == 512 && from/512*512 != from && len(f.records)-len(got.records) > most {
					t.Fatalf("%s: %d records are lost with one block", what, len(f.records)-len(got.records))
				}
			}
		}
	}
}

// The header is lost, or older than what stands behind it: the batches say
// whose they are.
func TestLostHeader(t *testing.T) {
	f := recycled(t)
	for what, change := range map[string]func(b []byte){
		"zeros": func(b []byte) { clear(b[:SegmentHeaderSize]) },
		"header and first batch lost": func(b []byte) {
			clear(b[:SegmentHeaderSize+512])
		},
		"older": func(b []byte) {
			old := begin(t, nil, 512, 1)
			copy(b, old.header())
		},
	} {
		b := bytes.Clone(f.bytes)
		change(b)
		got := mustRead(t, b)
		want := f.records
		if what == "header and first batch lost" {
			want = f.records[20:]
		}
		if what != "header and first batch lost" || len(got.records) < 20 {
			equal(t, got.records, want)
		}
		if len(got.findings) == 0 || got.findings[0].Kind != OldHead || got.Lost != uint64(60-len(got.records)) || got.Generation != 2 {
			t.Errorf("%s: %+v", what, got)
		}
	}
}

// A batch that was sealed for one segment is sealed again for the next and is
// whole there, under the same number and with the same offsets.
func TestSealAgain(t *testing.T) {
	a, b := begin(t, nil, 512, 1), begin(t, nil, 4096, 2)
	a.batch("before")
	number := a.numbers.Next()
	buf, used := fill(number, texts("moved", 50))
	at := a.seg.Next
	a.put(a.seg.Seal(buf, used, 50, number)[:1024], at) // then the disk failed
	a.bytes = append(a.bytes, make([]byte, 4096)...)
	b.put(b.seg.Seal(buf, used, 50, number), SegmentHeaderSize)

	got := mustRead(t, b.bytes)
	equal(t, got.records, texts("moved", 50))
	names := map[string]string{}
	for _, bytes := range [][]byte{a.bytes, b.bytes} {
		r, err := NewReader(readerAt(bytes), int64(len(bytes)), Options{})
		if err != nil {
			t.Fatal(err)
		}
		for {
			rec, err := r.Next()
			if err != nil {
				break
			}
			name := fmt.Sprint(rec.Batch, rec.Offset)
			if had, ok := names[name]; ok && had != string(rec.Data) {
				t.Errorf("%s is %q and %q", name, had, rec.Data)
			}
			names[name] = string(rec.Data)
		}
	}
	if len(names) != 51 {
		t.Errorf("%d names", len(names))
	}
}

func readerAt(b []byte) *bytes.Reader { return bytes.NewReader(b) }
