package journal

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"syscall"
	"testing"

	"github.com/klauspost/compress/zstd"

	"github.com/rollway/rollway/internal/disktest"
	"github.com/rollway/rollway/internal/testkit"
)

// bigBatch is a batch of n lines of 100 to 199 bytes.
func bigBatch(n int) Batch {
	b := Batch{Records: n, MinTime: 1, MaxTime: 2}
	for i := range n {
		b.Lines = fmt.Appendf(b.Lines, `{"n":%d,"pad":"%0*d"}`+"\n", i, 80+i%100, 0)
	}
	return b
}

// A batch above MaxGroupBytes becomes several frames, so that no reader has to
// hold it whole; it is still stored whole or not at all.
func TestBigBatchInPieces(t *testing.T) {
	const limit = 4000
	b := bigBatch(500)
	long := append(bytes.Repeat([]byte("x"), 3*limit), '\n') // a line above the limit is a frame of its own
	b.Lines, b.Records = append(b.Lines, long...), b.Records+1
	b.Lines, b.Records = append(b.Lines, "{}\n"...), b.Records+1

	dir := t.TempDir()
	j := mustOpen(t, dir, Options{MaxGroupBytes: limit})
	mustAppend(t, j, lines(0, 3))
	if first := mustAppend(t, j, b); first != 3 {
		t.Fatalf("first offset is %d, want 3", first)
	}
	if next := mustAppend(t, j, lines(3, 2)); next != 3+uint64(b.Records) {
		t.Fatalf("the next batch is at %d, want %d", next, 3+b.Records)
	}
	check := func(j *Journal) {
		t.Helper()
		r := j.NewReader(3)
		defer r.Close()
		var got []byte
		next := uint64(3)
		for next < 3+uint64(b.Records) {
			f, ok, err := r.TryNext()
			if err != nil || !ok {
				t.Fatalf("at %d: %v %v", next, ok, err)
			}
			if f.First != next {
				t.Fatalf("a frame begins at %d, want %d", f.First, next)
			}
			if len(f.Lines) > limit && f.Records != 1 {
				t.Fatalf("a frame of %d records has %d bytes, limit %d", f.Records, len(f.Lines), limit)
			}
			if n := bytes.Count(f.Lines, []byte("\n")); n != f.Records {
				t.Fatalf("a frame says %d records and holds %d", f.Records, n)
			}
			got = append(got, f.Lines...)
			next += uint64(f.Records)
		}
		if !bytes.Equal(got, b.Lines) {
			t.Fatal("other lines than were appended")
		}
	}
	check(j)
	if err := j.Close(); err != nil {
		t.Fatal(err)
	}
	j = mustOpen(t, dir, Options{})
	if f := j.Recovery().Findings; len(f) > 0 {
		t.Fatalf("findings after a clean end: %v", f)
	}
	check(j)
}

// When a later piece cannot be written, the earlier ones are taken back.
func TestBigBatchTakenBack(t *testing.T) {
	writes, failAt := 0, 0
	j, err := Open("/j", Options{MaxGroupBytes: 4000, Disk: &disktest.Faulty{FS: disktest.NewMem(), Hook: func(op disktest.Op) disktest.Fault {
		if op.Kind == disktest.Write && isSegment(op.Name) {
			if writes++; writes == failAt {
				return disktest.Fault{Err: syscall.ENOSPC, Short: 100}
			}
		}
		return disktest.Fault{}
	}}})
	if err != nil {
		t.Fatal(err)
	}
	defer j.Close()
	mustAppend(t, j, lines(0, 2))
	b := lines(2, 200)
	for piece := 1; piece <= 5; piece++ {
		writes, failAt = 0, piece
		if _, err := j.Append(context.Background(), b); !errors.Is(err, ErrFull) {
			t.Fatalf("piece %d failed: got %v, want ErrFull", piece, err)
		}
		if next := j.Next(); next != 2 {
			t.Fatalf("after a failed batch the next offset is %d, want 2", next)
		}
	}
	failAt = 0
	if first := mustAppend(t, j, b); first != 2 {
		t.Fatalf("first offset is %d, want 2", first)
	}
	offsets, gaps := readAll(t, j)
	if len(offsets) != 202 || len(gaps) > 0 {
		t.Fatalf("%d records and gaps %v, want 202 and none", len(offsets), gaps)
	}
}

// packedChunk is a chunk of b's lines, as a frame of zstd.
func packedChunk(t testing.TB, b Batch) Chunk {
	t.Helper()
	enc, err := zstd.NewWriter(nil, zstd.WithEncoderConcurrency(1))
	testkit.OK(t, err)
	defer enc.Close()
	return Chunk{Bytes: enc.EncodeAll(b.Lines, nil), Packed: true, Size: len(b.Lines), Records: b.Records}
}

// Chunks that are packed already become frames of the open segment as they are. Everything
// that reads an open segment reads them: a reader, the next start, the audit, cat, the
// footer and the packer.
func TestPackedChunks(t *testing.T) {
	mem := disktest.NewMem()
	open := func(pack bool) *Journal {
		j, err := Open("/j", Options{Disk: mem, MaxGroupBytes: 4000, SegmentBytes: 20_000, Pack: pack})
		testkit.OK(t, err)
		checkKinds(t, j, []FindingKind{})
		return j
	}
	j := open(false)
	const rounds, each = 8, 160
	for i := range rounds {
		n := i * each
		raw, last := lines(n, 40), lines(n+140, 20)
		b := Batch{
			Before:  []Chunk{{Bytes: raw.Lines, Size: len(raw.Lines), Records: 40}, packedChunk(t, lines(n+40, 100))},
			Lines:   last.Lines,
			Records: each, MinTime: raw.MinTime, MaxTime: last.MaxTime, Synced: i%2 == 0,
		}
		if i == rounds-1 { // ends with what is packed
			b.Before, b.Lines = append(b.Before, packedChunk(t, last)), nil
		}
		key := fmt.Sprint("key ", i)
		for again := range 2 {
			if r, err := j.AppendKeyed(context.Background(), key, b); err != nil || r.First != uint64(n) || r.Records != each || r.Duplicate != (again == 1) {
				t.Fatalf("%+v, %v", r, err)
			}
		}
		b.Before[1].Records++
		if _, err := j.Append(context.Background(), b); err == nil {
			t.Fatal("a batch whose chunks have other lines than it says is stored")
		}
	}
	all := ""
	for i := range rounds {
		all += string(lines(i*each, each).Lines)
	}
	if st := j.Stats(); st.LineBytes != uint64(len(all)) || st.Records != rounds*each {
		t.Errorf("%d bytes in %d records counted; want %d in %d", st.LineBytes, st.Records, len(all), rounds*each)
	}
	check := func(j *Journal) {
		t.Helper()
		for _, from := range []uint64{0, 7, 90, each + 141, rounds*each - 1} {
			r := j.NewReader(from)
			defer r.Close()
			got := ""
			for r.Offset() < rounds*each {
				f, ok, err := r.TryNext()
				if err != nil || !ok {
					t.Fatalf("at %d: %v %v", r.Offset(), ok, err)
				}
				got += string(f.Lines)
			}
			if want := lines(int(from), rounds*each-int(from)); got != string(want.Lines) {
				t.Fatalf("from %d: other lines than were appended", from)
			}
		}
		rep, err := audit(mem, "/j", AuditOptions{})
		if err != nil || len(rep.Damage(0)) > 0 || rep.Records != rounds*each || rep.Keys != rounds {
			t.Fatalf("%+v, %v", rep, err)
		}
	}
	check(j)
	testkit.OK(t, j.Close())
	j = open(false) // reads the open segment whole, seals the others
	check(j)
	testkit.OK(t, j.Close())
	j = open(true)
	waitPacked(t, j)
	if st := j.Stats(); st.LastError != nil || st.PackedSegments == 0 {
		t.Fatalf("%+v", st)
	}
	check(j)
	testkit.OK(t, j.Close())
}
