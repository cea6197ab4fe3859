package journal

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rollway/rollway/collector/columns"
	"github.com/rollway/rollway/internal/disktest"
	"github.com/rollway/rollway/internal/recordlog"
	"github.com/rollway/rollway/internal/testkit"
)

// waitPacked waits until nothing is left to seal and to pack.
func waitPacked(t testing.TB, j *Journal) {
	t.Helper()
	for end := time.Now().Add(time.Minute); j.nextRetired() != nil || j.nextUnpacked() != nil; time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			t.Fatal("the segments are not packed within a minute")
		}
	}
}

const packedRecords = 4000

// packedJournal is a journal of packedRecords records and 1000 keys, closed, and
// packed if pack is set.
func packedJournal(t *testing.T, pack bool) *disktest.Mem {
	t.Helper()
	mem := disktest.NewMem()
	j, err := Open("/j", Options{Disk: mem, SegmentBytes: 50_000, MaxGroupBytes: 3000, Pack: pack})
	testkit.OK(t, err)
	for n := 0; n < packedRecords; {
		b := lines(n, min([]int{1, 2, 3, 40}[n%4], packedRecords-n)) // 40 are several frames
		if _, err := j.AppendKeyed(context.Background(), fmt.Sprint("key ", n), b); err != nil {
			t.Fatal(err)
		}
		n += b.Records
	}
	if pack {
		waitPacked(t, j)
		st := j.Stats()
		if int(st.PackedSegments) != st.Segments-1 || st.Segments < 5 || st.PackedTo*3 > st.PackedFrom || st.LastError != nil {
			t.Fatalf("%+v", st)
		}
		bytes := int64(0)
		entries, err := mem.List("/j")
		testkit.OK(t, err)
		for _, e := range entries {
			if strings.HasSuffix(e.Name, extSealed) || strings.HasSuffix(e.Name, extOpen) {
				bytes += e.Size
			}
		}
		if bytes != st.Bytes {
			t.Fatalf("%d bytes in the folder, Stats says %d", bytes, st.Bytes)
		}
	}
	testkit.OK(t, j.Close())
	return mem
}

// A batch that is a little longer than a frame becomes two frames, and one when it is packed.
func TestPackedWithoutSmallFrames(t *testing.T) {
	j := mustOpen(t, t.TempDir(), Options{SegmentBytes: 4 << 20, Pack: true})
	b := lines(0, packBytes/len(lines(1_000_000, 1).Lines)+1000)
	if n := len(b.Lines); n <= packBytes || n > mostPacked {
		t.Fatalf("a batch of %d bytes", n)
	}
	for range 7 {
		mustAppend(t, j, b)
	}
	waitPacked(t, j)
	j.mu.Lock()
	defer j.mu.Unlock()
	packed := 0
	for _, s := range j.segs {
		if s.packed {
			packed++
			if batches := int(s.end-s.first) / b.Records; len(s.marks) != batches {
				t.Errorf("%d batches are packed in %d frames", batches, len(s.marks))
			}
		}
	}
	if packed == 0 {
		t.Error("no segment is packed")
	}
}

func TestPackedReads(t *testing.T) {
	mem := packedJournal(t, true)
	rep, err := audit(mem, "/j", AuditOptions{})
	if err != nil || len(rep.Damage(0)) > 0 || rep.Records != packedRecords {
		t.Fatalf("%+v, %v", rep, err)
	}
	j, err := Open("/j", Options{Disk: mem})
	testkit.OK(t, err)
	defer j.Close()
	checkKinds(t, j, []FindingKind{})
	if offsets, gaps := readAll(t, j); len(offsets) != packedRecords || len(gaps) != 0 {
		t.Fatalf("%d records, gaps %v", len(offsets), gaps)
	}
	for from := uint64(0); from < packedRecords; from += 37 {
		r := j.NewReader(from)
		f, ok, err := r.TryNext()
		if !ok || err != nil || f.First != from {
			t.Fatalf("from %d: %+v, %v", from, f, err)
		}
		if n, err := recordNumber(string(f.Lines[:lineEnd(f.Lines)-1])); err != nil || n != int(from) {
			t.Fatalf("offset %d holds %d, %v", from, n, err)
		}
		r.Close()
	}
	r := j.NewReader(0)
	defer r.Close()
	r.SetTimeRange(2000, 2000)
	found := false
	for {
		f, ok, err := r.TryNext()
		testkit.OK(t, err)
		if !ok {
			break
		}
		found = found || f.First <= 2000 && 2000 < f.First+uint64(f.Records)
	}
	if !found {
		t.Fatal("the record of time 2000 is not found by its time")
	}
}

// What is known of a segment from its file's time, and of its keys, outlives the
// packing.
func TestPackedKeepsTimeAndKeys(t *testing.T) {
	mem := packedJournal(t, false)
	written := func(o Options) (times []int64) {
		o.Disk = mem
		j, err := Open("/j", o)
		testkit.OK(t, err)
		if o.Pack {
			waitPacked(t, j)
		}
		j.mu.Lock()
		for _, s := range j.segs[:len(j.segs)-1] {
			times = append(times, s.written.UnixNano())
			if s.packed != o.Pack && o.Pack {
				t.Errorf("segment %d is not packed", s.first)
			}
		}
		j.mu.Unlock()
		testkit.OK(t, j.Close())
		return times
	}
	before := written(Options{})
	time.Sleep(2 * time.Millisecond) // so that a new file has another time
	written(Options{Pack: true})
	if after := written(Options{}); fmt.Sprint(after) != fmt.Sprint(before) {
		t.Errorf("last writes were at %v, and are at %v", before, after)
	}
	j, err := Open("/j", Options{Disk: mem})
	testkit.OK(t, err)
	defer j.Close()
	for n := 0; n < packedRecords; {
		b := lines(n, min([]int{1, 2, 3, 40}[n%4], packedRecords-n))
		r, err := j.AppendKeyed(context.Background(), fmt.Sprint("key ", n), b)
		if err != nil || !r.Duplicate || r.First != uint64(n) {
			t.Fatalf("key of %d: %+v, %v", n, r, err)
		}
		n += b.Records
	}
}

// A reader that is in a segment while it is packed reads on.
func TestPackedUnderAReader(t *testing.T) {
	for _, before := range []int{0, 1, 7} {
		mem := packedJournal(t, false)
		j, err := Open("/j", Options{Disk: mem, SegmentBytes: 50_000})
		testkit.OK(t, err)
		readers := make([]*Reader, 0, packedRecords/100)
		for from := uint64(0); from < packedRecords; from += 100 {
			r := j.NewReader(from)
			for range before {
				if _, ok, err := r.TryNext(); err != nil || !ok && r.Offset() != packedRecords {
					t.Fatal(err)
				}
			}
			readers = append(readers, r)
		}
		for s := j.nextUnpacked(); s != nil; s = j.nextUnpacked() {
			testkit.OK(t, j.pack(s))
		}
		for _, r := range readers {
			next := r.Offset()
			for next < packedRecords {
				f, ok, err := r.TryNext()
				if err != nil || !ok || f.First != next {
					t.Fatalf("at %d: %+v, %v, %v", next, f.First, ok, err)
				}
				if string(f.Lines) != string(lines(int(f.First), f.Records).Lines) {
					t.Fatalf("frame %d holds other lines", f.First)
				}
				next += uint64(f.Records)
			}
			r.Close()
		}
		testkit.OK(t, j.Close())
	}
}

// A damaged segment stays as it is, is reported, and stops nothing.
func TestPackDamaged(t *testing.T) {
	mem := packedJournal(t, false)
	edit(t, mem, seg0, func(b []byte) []byte {
		b[len(b)/2] ^= 1
		return b
	})
	damaged, err := mem.ReadFile(seg0)
	testkit.OK(t, err)
	j, err := Open("/j", Options{Disk: mem, Pack: true})
	testkit.OK(t, err)
	waitPacked(t, j)
	st := j.Stats()
	if st.LastError == nil || !strings.Contains(st.LastError.Error(), "which stays as it is") || int(st.PackedSegments) != st.Segments-2 {
		t.Errorf("%+v", st)
	}
	if now, err := mem.ReadFile(seg0); err != nil || !bytes.Equal(now, damaged) {
		t.Error("the damaged segment was changed")
	}
	offsets, gaps := readAll(t, j)
	missed := 0
	for _, g := range gaps {
		missed += int(g.Missed())
	}
	if missed == 0 || missed > 40 || len(offsets)+missed != packedRecords {
		t.Errorf("%d read, %d missed: %v", len(offsets), missed, gaps)
	}
	testkit.OK(t, j.Close())
	// And a packed one that is damaged later.
	for _, e := range []string{"/j/" + segmentName(j.segs[2].first, extSealed)} {
		edit(t, mem, e, func(b []byte) []byte {
			b[len(b)/2] ^= 1
			return b
		})
	}
	if j, err = Open("/j", Options{Disk: mem}); err != nil {
		t.Fatal(err)
	}
	defer j.Close()
	r := j.NewReader(0)
	defer r.Close()
	read, lost := 0, 0
	for {
		f, ok, err := r.TryNext()
		var gap *Gap
		if errors.As(err, &gap) {
			lost += int(gap.Missed())
			continue
		}
		if err == io.EOF || err == nil && !ok {
			break
		}
		testkit.OK(t, err)
		read += f.Records
	}
	if lost <= missed || read+lost != packedRecords {
		t.Errorf("%d read, %d lost", read, lost)
	}
}

// FuzzUnpack: what is unpacked has the length that was asked for, whatever the
// bytes are.
func FuzzUnpack(f *testing.F) {
	mem := disktest.NewMem()
	j, err := Open("/j", Options{Disk: mem, SegmentBytes: 1000})
	if err != nil {
		f.Fatal(err)
	}
	for i := range 30 {
		mustAppend(f, j, lines(i, 1))
	}
	for j.nextRetired() != nil {
		time.Sleep(time.Millisecond)
	}
	s := j.nextUnpacked()
	if err := j.pack(s); err != nil {
		f.Fatal(err)
	}
	b, err := mem.ReadFile(seg0)
	if err != nil {
		f.Fatal(err)
	}
	h, err := recordlog.ParseFrame(b[segmentHeaderSize:])
	if err != nil {
		f.Fatal(err)
	}
	f.Add(b[segmentHeaderSize+frameHeaderSize:], h.Codec, h.Unpacked)
	j.Close()
	f.Fuzz(func(t *testing.T, payload []byte, codec byte, unpacked int) {
		if unpacked < 0 || unpacked > 1<<24 {
			return
		}
		if out, err := unpack(nil, payload, codec, unpacked, new(columns.Block)); err == nil && len(out) != unpacked {
			t.Fatalf("%d bytes instead of %d", len(out), unpacked)
		}
	})
}

// Packing pauses for as long as it works, unless more than mostWaiting segments wait for it.
func TestPackingTakesTurns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		j := &Journal{o: Options{Pack: true}, stop: make(chan struct{})}
		for n := range mostWaiting + 3 {
			if waiting, bytes := j.waitingLocked(); waiting != n || bytes != int64(10*n) {
				t.Fatalf("%d of %d segments wait, with %d bytes", waiting, n, bytes)
			}
			rest := j.takeTurns()
			for _, took := range []time.Duration{turn - 1, turn, 3 * turn} {
				time.Sleep(took)
				want := took
				if took < turn || n > mostWaiting {
					want = 0
				}
				begin := time.Now()
				if err := rest(); err != nil || time.Since(begin) != want {
					t.Errorf("after %v with %d segments waiting it pauses %v, %v", took, n, time.Since(begin), err)
				}
				if took < turn {
					rest = j.takeTurns()
				}
			}
			j.segs = append(j.segs, &segment{retired: true, size: 10})
		}
		j.segs[0].unpackable, j.segs[1].packed = true, true
		if waiting, _ := j.waitingLocked(); waiting != mostWaiting+1 {
			t.Errorf("%d wait", waiting)
		}
		close(j.stop)
		j.segs = nil
		rest := j.takeTurns()
		time.Sleep(turn)
		if err := rest(); err != os.ErrClosed {
			t.Error(err)
		}
	})
}

// Packing rests many times for each mebibyte: before each column, and between parts of the lines.
func TestPackingRests(t *testing.T) {
	var rests atomic.Int64
	j := mustOpen(t, t.TempDir(), Options{Pack: true, SegmentBytes: 3 << 20, Rest: func() { rests.Add(1) }})
	m := &mixed{t: t, rng: rand.New(rand.NewPCG(1, 2)), tenants: []string{"", "shop"}}
	m.fillBytes(j, 7<<20)
	waitPacked(t, j)
	st := j.Stats()
	testkit.OK(t, j.Close())
	if packed, least := int64(st.PackedFrom)>>20, int64(50); st.PackedSegments < 2 || rests.Load() < least*packed {
		t.Errorf("%d segments of %d MiB are packed, with %d rests", st.PackedSegments, packed, rests.Load())
	}
}
