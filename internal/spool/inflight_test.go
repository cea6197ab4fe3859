package spool

import (
	"math/rand/v2"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/rollway/rollway/internal/disktest"
)

// takeAll hands out pieces until none comes, and returns them.
func takeAll(t testing.TB, s *Spool) (all []*Batch) {
	t.Helper()
	for b := mustNext(t, s); b != nil; b = mustNext(t, s) {
		all = append(all, b)
	}
	return all
}

func keysOf(all []*Batch) (keys []string) {
	for _, b := range all {
		keys = append(keys, keyOf(b))
	}
	return keys
}

func TestSeveralPiecesAreOut(t *testing.T) {
	mem := disktest.NewMem()
	writes := 0
	disk := &disktest.Faulty{FS: mem, Hook: func(op disktest.Op) disktest.Fault {
		if op.Kind == disktest.Write && op.Name == "/s/CURSOR" {
			writes++
		}
		return disktest.Fault{}
	}}
	s := mustOpen(t, disk, Options{SegmentBytes: 1000})
	var out []*Batch
	for n := range uint64(MaxInFlight) {
		mustAppend(t, s, texts(n*10, n*10+10))
		out = append(out, mustNext(t, s))
		want(t, string(out[n].Data), texts(n*10, n*10+10))
	}
	mustAppend(t, s, texts(80, 90))
	if b := mustNext(t, s); b != nil {
		t.Fatalf("a ninth piece: %q", b.Data)
	}
	if st := s.Stats(); st.Lines != 90 || st.First != 0 || st.Unread != frameHeader+200 {
		t.Fatalf("%+v", st)
	}
	keys := keysOf(out)

	// The cursor follows the oldest piece, and is not written for another.
	writes = 0
	for _, i := range []int{5, 1, 2} {
		mustAck(t, s, out[i], len(out[i].Data))
		if err := s.Ack(out[i], 1); err == nil {
			t.Error("a piece is settled twice")
		}
	}
	mustAck(t, s, out[3], 40)
	if st := s.Stats(); writes != 0 || st.First != 0 || st.Acked != 32 || st.Lines != 58 {
		t.Fatalf("%d writes, %+v", writes, st)
	}
	if b := mustNext(t, s); b != nil {
		t.Fatalf("a ninth piece: %q", b.Data)
	}

	// After a kill the same pieces come, whatever size is asked for, also if
	// they were handed out in part only before the next kill.
	killed := mem.KillClone()
	for n := range MaxInFlight {
		again := mustOpen(t, killed, Options{})
		var found []*Batch
		for range n {
			found = append(found, mustNext(t, again))
		}
		if got := keysOf(found); !slices.Equal(got, keys[:n]) {
			t.Fatalf("after a kill %q, before %q", got, keys[:n])
		}
		killed = killed.KillClone()
	}
	want(t, drain(t, mustOpen(t, killed, Options{})), texts(0, 90))

	// The oldest is settled: those settled before go with it.
	mustAck(t, s, out[0], len(out[0].Data))
	if st := s.Stats(); writes != 1 || st.First != 32 {
		t.Fatalf("%d writes, %+v", writes, st)
	}
	b := mustNext(t, s)
	want(t, string(b.Data), texts(80, 90))
	again := mustOpen(t, mem.KillClone(), Options{})
	found := takeAll(t, again)
	want(t, string(found[0].Data), texts(32, 40)) // the rest of the oldest
	if got := keysOf(found[1:]); !slices.Equal(got, append(slices.Clone(keys[4:]), keyOf(b))) {
		t.Fatalf("after a kill %q", got)
	}
	for _, i := range []int{7, 3, 4, 6} {
		mustAck(t, s, out[i], len(out[i].Data))
	}
	mustAck(t, s, b, len(b.Data))
	want(t, drain(t, s), "")
}

// A full piece is as large as asked for, and no larger.
func TestFullPieces(t *testing.T) {
	for _, maxBytes := range []int{0, 512 << 10, 1 << 20, 3 << 20} {
		mem := disktest.NewMem()
		s := mustOpen(t, mem, Options{})
		lines := texts(0, 40_000)
		for range 12 { // 800 KB in frames of 256 KiB and less
			mustAppend(t, s, lines)
		}
		for n := range uint64(20_000) {
			mustAppend(t, s, text(n, 400))
		}
		bare := mem.KillClone()
		bare.Remove("/s/CURSOR")
		read := func(s *Spool) (keys []string, full int) {
			for {
				b, err := s.Next(maxBytes)
				if err != nil {
					t.Fatal(err)
				}
				if b == nil {
					return keys, full
				}
				if len(b.Data) > max(maxBytes, 512<<10) {
					t.Fatalf("Next(%d) has %d bytes", maxBytes, len(b.Data))
				}
				if len(b.Data) > max(chunkBytes, maxBytes-maxFrame)/2 {
					full++
				}
				keys = append(keys, keyOf(b))
				mustAck(t, s, b, len(b.Data))
			}
		}
		keys, full := read(s)
		if full < len(keys)*2/3 {
			t.Errorf("Next(%d): %d of %d pieces are full", maxBytes, full, len(keys))
		}
		if again, _ := read(mustOpen(t, bare, Options{})); !slices.Equal(keys, again) {
			t.Errorf("Next(%d): other pieces without the cursor", maxBytes)
		}
	}
}

// DropOldest takes the place of pieces that are out; they stay with the caller.
func TestDropOldestWithPiecesOut(t *testing.T) {
	for seed := range uint64(20) {
		rng := rand.New(rand.NewPCG(seed, 0))
		mem := disktest.NewMem()
		s := mustOpen(t, mem, Options{MaxBytes: 5000, SegmentBytes: 600, Full: DropOldest})
		var out []*Batch
		for n := range uint64(6) {
			mustAppend(t, s, texts(n*4, n*4+4))
			out = append(out, mustNext(t, s))
		}
		mustAck(t, s, out[1], len(out[1].Data))
		for n := uint64(6); n < 300; n++ {
			mustAppend(t, s, texts(n*4, n*4+4))
			if st := s.Stats(); st.First != 0 || st.Bytes > 5000 {
				t.Fatalf("%+v", st)
			}
		}
		if again := mustOpen(t, mem.KillClone(), Options{}); again.Stats().Dropped.Total() > 0 || again.Stats().First != s.at {
			t.Fatalf("after a kill %+v; dropped up to %d", again.Stats(), s.at)
		}
		rng.Shuffle(len(out), func(i, j int) { out[i], out[j] = out[j], out[i] })
		acked := uint64(4)
		for _, b := range out[:4] {
			if b.lines > 0 {
				acked += b.lines
				want(t, string(b.Data), texts(b.Line, b.Line+b.lines))
				mustAck(t, s, b, len(b.Data))
			}
		}
		if st := s.Stats(); st.Acked != acked {
			t.Fatalf("%d acked, %+v", acked, st)
		}
		dropped := s.Stats().Dropped.Full
		s.Close()
		balanced(t, s)
		if st := s.Stats(); st.Dropped.Full != dropped+24-acked || st.Lines != st.Next-s.at {
			t.Fatalf("%+v", st)
		}
	}
}

// The memory of settled pieces is used again, and let go when it is much.
func TestMemoryOfPieces(t *testing.T) {
	s := mustOpen(t, disktest.NewMem(), Options{})
	line := []byte(strings.Repeat("x", 63) + "\n")
	if n := testing.AllocsPerRun(100, func() {
		if err := s.Append(line); err != nil {
			t.Fatal(err)
		}
		b := mustNext(t, s)
		mustAck(t, s, b, len(b.Data))
		if len(s.spare) != 1 {
			t.Fatalf("%d buffers are kept", len(s.spare))
		}
	}); n > 20 { // a segment and its header each time
		t.Errorf("%v allocations", n)
	}
	for range 40 {
		mustAppend(t, s, texts(0, 20_000))
	}
	out := takeAll(t, s)
	for _, b := range out {
		mustAck(t, s, b, len(b.Data))
		if len(s.spare) > 2 {
			t.Fatalf("%d buffers are kept", len(s.spare))
		}
	}
	mustAppend(t, s, text(0, 9*chunkBytes))
	mustAppend(t, s, text(1, 3*chunkBytes))
	drain(t, s)
	for _, buf := range s.spare {
		if cap(buf) > chunkBytes {
			t.Errorf("an empty spool keeps %d bytes", cap(buf))
		}
	}
}

// The buffer of a full piece is made once, and does not grow with each frame.
func TestABufferIsMadeOnce(t *testing.T) {
	const most = 4 << 20
	s := mustOpen(t, disktest.NewMem(), Options{})
	lines := texts(0, 10_000)
	for range 40 {
		mustAppend(t, s, lines)
	}
	if _, err := s.Next(0); err != nil { // makes the window through which s reads
		t.Fatal(err)
	}
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	b, err := s.Next(most)
	runtime.ReadMemStats(&after)
	if err != nil || len(b.Data) < most-maxFrame-pieceBytes {
		t.Fatalf("%d bytes, %v", len(b.Data), err)
	}
	if made := after.TotalAlloc - before.TotalAlloc; made > most+64<<10 {
		t.Errorf("%d bytes of memory made for a piece of %d", made, len(b.Data))
	}
	mustAppend(t, s, texts(0, 1))
	for _, b := range takeAll(t, s) {
		if cap(b.buf) > pieceBytes+64<<10 {
			t.Errorf("a piece of %d bytes has a buffer of %d", len(b.Data), cap(b.buf))
		}
	}
}
