package spool

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/rollway/rollway/internal/disk"
	"github.com/rollway/rollway/internal/disktest"
	"github.com/rollway/rollway/internal/recordlog"
	"github.com/rollway/rollway/internal/testkit"
)

func mustOpen(t testing.TB, fs disk.FS, o Options) *Spool {
	t.Helper()
	o.Disk = fs
	s, err := Open("/s", o)
	testkit.OK(t, err)
	t.Cleanup(func() { s.Close() })
	return s
}

// text is line n of size bytes.
func text(n uint64, size int) string {
	s := fmt.Sprintf("%d ", n)
	return s + strings.Repeat("x", max(0, size-len(s)-1)) + "\n"
}

// texts is the lines from to to-1.
func texts(from, to uint64) string {
	var b strings.Builder
	for ; from < to; from++ {
		b.WriteString(text(from, 20))
	}
	return b.String()
}

func mustAppend(t testing.TB, s *Spool, lines string) {
	t.Helper()
	testkit.OK(t, s.Append([]byte(lines)))
	balanced(t, s)
}

func balanced(t testing.TB, s *Spool) {
	t.Helper()
	st := s.Stats()
	if in, out := st.Recovered+st.Appended, st.Acked+st.Dropped.Total()+st.Lines; in != out {
		t.Fatalf("recovered %d + appended %d = %d, but acked %d + dropped %+v + pending %d = %d",
			st.Recovered, st.Appended, in, st.Acked, st.Dropped, st.Lines, out)
	}
}

// pieceBytes is the size of a piece that tests ask for.
const pieceBytes = 512 << 10

func mustNext(t testing.TB, s *Spool) *Batch {
	t.Helper()
	b, err := s.Next(pieceBytes)
	testkit.OK(t, err)
	balanced(t, s)
	return b
}

func mustAck(t testing.TB, s *Spool, b *Batch, n int) {
	t.Helper()
	testkit.OK(t, s.Ack(b, n))
	balanced(t, s)
}

// drain settles everything and returns it. A small segment may stay.
func drain(t testing.TB, s *Spool) string {
	t.Helper()
	var all strings.Builder
	for b := mustNext(t, s); b != nil; b = mustNext(t, s) {
		all.Write(b.Data)
		mustAck(t, s, b, len(b.Data))
	}
	if st := s.Stats(); st.Lines != 0 || st.Unread != 0 || st.Segments > 1 || st.Bytes >= keepBytes || !st.Oldest.IsZero() || st.First != st.Next {
		t.Fatalf("drained, but %+v", st)
	}
	return all.String()
}

func want(t testing.TB, got, wanted string) {
	t.Helper()
	if got != wanted {
		t.Fatalf("got %d lines %.200q, want %d lines %.200q", strings.Count(got, "\n"), got, strings.Count(wanted, "\n"), wanted)
	}
}

func TestPartOfABatchIsSettled(t *testing.T) {
	mem := disktest.NewMem()
	s := mustOpen(t, mem, Options{})
	mustAppend(t, s, texts(0, 10))
	b := mustNext(t, s)
	for _, bad := range []int{-1, 7, 1000} {
		if err := s.Ack(b, bad); err == nil {
			t.Errorf("Ack(%d) = nil", bad)
		}
	}
	mustAck(t, s, b, len(texts(0, 4)))
	want(t, string(b.Data), texts(4, 10))
	if key := b.Key(6); key != fmt.Sprintf("%x-4-6", b.Segment) {
		t.Errorf("key %s", key)
	}
	testkit.OK(t, s.Close())
	s = mustOpen(t, mem, Options{})
	if st := s.Stats(); st.Recovered != 6 || st.First != 4 || st.Next != 10 {
		t.Fatalf("%+v", st)
	}
	want(t, drain(t, s), texts(4, 10))
}

func TestNumbersGoOnAfterARestartOfAnEmptySpool(t *testing.T) {
	mem := disktest.NewMem()
	s := mustOpen(t, mem, Options{})
	mustAppend(t, s, texts(0, 7))
	drain(t, s)
	s.Close()
	s = mustOpen(t, mem, Options{})
	if st := s.Stats(); st.First != 7 || st.Next != 7 || st.Recovered != 0 {
		t.Fatalf("%+v", st)
	}
}

// pieces settles everything and returns each piece with its key.
func pieces(t *testing.T, s *Spool) (all []string) {
	t.Helper()
	for b := mustNext(t, s); b != nil; b = mustNext(t, s) {
		all = append(all, b.Key(uint64(recordlog.LineCount(b.Data)))+" "+string(b.Data))
		mustAck(t, s, b, len(b.Data))
	}
	return all
}

// Without its cursor a spool returns the same pieces again, with the same keys.
func TestPiecesAndKeysOutliveTheCursor(t *testing.T) {
	mem := disktest.NewMem()
	s := mustOpen(t, mem, Options{})
	for n := range uint64(40_000) {
		mustAppend(t, s, text(n, 20+int(n%37)))
	}
	killed := mem.KillClone()
	first := pieces(t, s)
	again := pieces(t, mustOpen(t, killed, Options{}))
	if len(first) < 5 || len(first) > 50 {
		t.Errorf("%d pieces", len(first))
	}
	if strings.Join(first, "") != strings.Join(again, "") {
		t.Error("other pieces or keys after the kill")
	}
	seen := map[string]bool{}
	for _, p := range first {
		key, _, _ := strings.Cut(p, " ")
		if seen[key] {
			t.Errorf("key %s twice", key)
		}
		seen[key] = true
	}
}

// A process that is killed goes on with the very piece that it was delivering,
// also if more lines came after it.
func TestThePieceInFlightSurvivesAKill(t *testing.T) {
	mem := disktest.NewMem()
	s := mustOpen(t, mem, Options{})
	mustAppend(t, s, texts(0, 10))
	key := mustNext(t, s).Key(10)
	mustAppend(t, s, texts(10, 20))
	var b *Batch
	for range 2 {
		mem = mem.KillClone()
		s = mustOpen(t, mem, Options{})
		b = mustNext(t, s)
		want(t, string(b.Data), texts(0, 10))
		if b.Key(10) != key {
			t.Errorf("key %s, before %s", b.Key(10), key)
		}
	}
	mustAck(t, s, b, len(texts(0, 3)))
	s = mustOpen(t, mem.KillClone(), Options{})
	b = mustNext(t, s)
	want(t, string(b.Data), texts(3, 10))
	mustAck(t, s, b, len(b.Data))
	want(t, drain(t, s), texts(10, 20))
}

func TestLongLinesAndLargeAppends(t *testing.T) {
	s := mustOpen(t, disktest.NewMem(), Options{})
	long := text(0, 3<<20)
	many := texts(1, 50_000)
	mustAppend(t, s, long)
	mustAppend(t, s, many+text(50_000, 1<<20)+"\n")
	want(t, drain(t, s), long+many+text(50_000, 1<<20)+"\n")
}

func TestOneOwner(t *testing.T) {
	for _, fs := range []disk.FS{disktest.NewMem(), disk.Real{}} {
		dir := t.TempDir() + "/a/b"
		s, err := Open(dir, Options{Disk: fs})
		testkit.OK(t, err)
		if _, err := Open(dir, Options{Disk: fs}); !errors.Is(err, disk.ErrLocked) || !strings.Contains(err.Error(), "one owner") || !strings.Contains(err.Error(), dir) {
			t.Errorf("second Open: %v", err)
		}
		testkit.OK(t, s.Close())
		if s, err = Open(dir, Options{Disk: fs}); err != nil {
			t.Fatal(err)
		}
		s.Close()
	}
}

func TestAfterClose(t *testing.T) {
	s := mustOpen(t, disktest.NewMem(), Options{})
	mustAppend(t, s, texts(0, 3))
	b := mustNext(t, s)
	for range 2 {
		testkit.OK(t, s.Close())
	}
	if err := s.Append([]byte(texts(3, 5))); !errors.Is(err, os.ErrClosed) {
		t.Error(err)
	}
	if _, err := s.Next(0); !errors.Is(err, os.ErrClosed) {
		t.Error(err)
	}
	if s.Expire(b) {
		t.Error("Expire dropped lines")
	}
	if err := s.Ack(b, 20); !errors.Is(err, os.ErrClosed) {
		t.Error(err)
	}
	if err := s.Sync(); !errors.Is(err, os.ErrClosed) {
		t.Error(err)
	}
	balanced(t, s)
	if st := s.Stats(); st.Lines != 3 || st.Refused != 2 {
		t.Errorf("%+v", st)
	}
}

func TestBadArguments(t *testing.T) {
	for _, o := range []Options{{MaxBytes: -1}, {MaxAge: -1}, {SegmentBytes: -1}, {Full: 2}} {
		o.Disk = disktest.NewMem()
		if _, err := Open("/s", o); err == nil {
			t.Errorf("%+v is accepted", o)
		}
	}
	s := mustOpen(t, disktest.NewMem(), Options{})
	if err := s.Append([]byte("no end")); err == nil {
		t.Error("an unterminated line is accepted")
	}
	if err := s.Append(nil); err != nil {
		t.Error(err)
	}
}

func TestStatsWhileTheDiskHangs(t *testing.T) {
	hang, hung := make(chan struct{}), make(chan struct{})
	f := &disktest.Faulty{FS: disktest.NewMem()}
	armed := false
	f.Hook = func(op disktest.Op) disktest.Fault {
		if armed && op.Kind == disktest.Write {
			close(hung)
			<-hang
			armed = false
		}
		return disktest.Fault{}
	}
	s := mustOpen(t, f, Options{})
	mustAppend(t, s, texts(0, 1))
	armed = true
	done := make(chan error)
	go func() { done <- s.Append([]byte(texts(1, 2))) }()
	<-hung
	if st := s.Stats(); st.Lines != 1 {
		t.Errorf("%+v", st)
	}
	close(hang)
	if err := <-done; err != nil {
		t.Error(err)
	}
}

func TestAppendAllocatesNothing(t *testing.T) {
	s, err := Open(t.TempDir(), Options{})
	testkit.OK(t, err)
	defer s.Close()
	p := []byte(texts(0, 100))
	mustAppend(t, s, string(p))
	if n := testing.AllocsPerRun(100, func() {
		testkit.OK(t, s.Append(p))
	}); n > 0 {
		t.Errorf("%v allocations per Append", n)
	}
}

func TestSkipLines(t *testing.T) {
	b := []byte("a\nbb\n\nc\n")
	for n, wanted := range []string{"a\nbb\n\nc\n", "bb\n\nc\n", "\nc\n", "c\n", ""} {
		if got := b[recordlog.SkipLines(b, uint64(n)):]; !bytes.Equal(got, []byte(wanted)) {
			t.Errorf("%d: %q", n, got)
		}
	}
}

// Lines that are settled at once do not make and remove a file each; Close leaves
// none behind.
func TestAppendsShareASegment(t *testing.T) {
	mem := disktest.NewMem()
	d, set := failing(mem)
	removed := 0
	set(func(op disktest.Op) error {
		if op.Kind == disktest.Remove {
			removed++
		}
		return nil
	})
	s := mustOpen(t, d, Options{})
	line := text(0, 1000)
	for range 5000 {
		mustAppend(t, s, line)
		want(t, drain(t, s), line)
	}
	if removed < 4 || removed > 6 {
		t.Errorf("%d files removed for 5 MB", removed)
	}
	testkit.OK(t, s.Close())
	if st := s.Stats(); st.Segments != 0 || st.Bytes != 0 {
		t.Errorf("after Close %+v", st)
	}
}
