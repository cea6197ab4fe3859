package journal

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"syscall"
	"testing"

	"github.com/rollway/rollway/internal/disktest"
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
