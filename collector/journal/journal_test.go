package journal

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/rollway/rollway/internal/recordlog"
	"github.com/rollway/rollway/internal/testkit"
)

// lines returns n canonical lines that carry the numbers from..from+n-1, with
// their time range: record i has time i.
func lines(from, n int) Batch {
	b := Batch{Records: n, MinTime: int64(from), MaxTime: int64(from + n - 1)}
	for i := from; i < from+n; i++ {
		b.Lines = fmt.Appendf(b.Lines, `{"time":"2026-05-28T12:40:00.%09dZ","level":"INFO","msg":"record %d","attrs":{"n":%d}}`+"\n", i, i, i)
	}
	return b
}

func mustOpen(t testing.TB, dir string, o Options) *Journal {
	t.Helper()
	j, err := Open(dir, o)
	testkit.OK(t, err)
	t.Cleanup(func() { j.Close() })
	return j
}

func mustAppend(t testing.TB, j *Journal, b Batch) uint64 {
	t.Helper()
	first, err := j.Append(context.Background(), b)
	testkit.OK(t, err)
	return first
}

func TestAppendAndRead(t *testing.T) {
	dir := t.TempDir()
	j := mustOpen(t, dir, Options{SegmentBytes: 2000})
	for i := range 50 {
		b := lines(i*3, 3)
		b.Synced = i%5 == 0
		if first := mustAppend(t, j, b); first != uint64(i*3) {
			t.Fatalf("batch %d got offset %d", i, first)
		}
	}
	check := func(j *Journal, from uint64) {
		t.Helper()
		r := j.NewReader(from)
		defer r.Close()
		next := from
		for next < 150 {
			f, err := r.Next(context.Background())
			testkit.OK(t, err)
			if f.First != next || string(f.Lines) != string(lines(int(f.First), f.Records).Lines) {
				t.Fatalf("frame %d+%d at %d:\n%s", f.First, f.Records, next, f.Lines)
			}
			next += uint64(f.Records)
		}
		if _, ok, err := r.TryNext(); ok || err != nil && err != io.EOF {
			t.Fatalf("at the end: %v, %v", ok, err)
		}
	}
	for from := range uint64(151) {
		check(j, from)
	}
	testkit.OK(t, j.Close())
	check(j, 7)
	j2 := mustOpen(t, dir, Options{SegmentBytes: 2000})
	if f := j2.Recovery().Findings; len(f) != 0 {
		t.Fatal(f)
	}
	if j2.Next() != 150 || j2.First() != 0 {
		t.Fatalf("first %d, next %d", j2.First(), j2.Next())
	}
	check(j2, 100)
	mustAppend(t, j2, lines(150, 1))
}

func TestFollow(t *testing.T) {
	j := mustOpen(t, t.TempDir(), Options{})
	r := j.NewReader(0)
	defer r.Close()
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Millisecond)
	defer cancel()
	if _, err := r.Next(ctx); !errors.Is(err, context.DeadlineExceeded) {
		t.Fatal(err)
	}
	go func() {
		for i := range 100 {
			j.Append(context.Background(), lines(i, 1))
		}
		j.Close()
	}()
	next := uint64(0)
	for {
		f, err := r.Next(context.Background())
		if err == io.EOF {
			break
		}
		testkit.OK(t, err)
		if f.First != next {
			t.Fatalf("got %d, want %d", f.First, next)
		}
		next += uint64(f.Records)
	}
	if next != 100 {
		t.Fatal(next)
	}
}

func TestInUse(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "journal")
	if _, err := recordlog.InUse(dir); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("no folder: %v", err)
	}
	look := func(want bool, when string) {
		t.Helper()
		if is, err := recordlog.InUse(dir); err != nil || is != want {
			t.Errorf("%s: %v, %v", when, is, err)
		}
	}
	testkit.OK(t, os.Mkdir(dir, 0o750))
	look(false, "an empty folder")
	if left, _ := os.ReadDir(dir); len(left) > 0 {
		t.Errorf("to look has left %v", left)
	}
	j := mustOpen(t, dir, Options{})
	look(true, "open")
	testkit.OK(t, j.Close())
	look(false, "closed")
	mustOpen(t, dir, Options{}).Close() // looking has kept no lock
}
