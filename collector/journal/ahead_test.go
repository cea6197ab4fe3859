package journal

import (
	"fmt"
	"os"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/rollway/rollway/collector/columns"
	"github.com/rollway/rollway/collector/filters"
	"github.com/rollway/rollway/internal/disktest"
	"github.com/rollway/rollway/internal/recordlog"
	"github.com/rollway/rollway/internal/testkit"
)

// aheadOf returns the offset up to which the segment that is being written is packed; due: it is so large
// that it has to be.
func aheadOf(j *Journal) (end uint64, due bool) {
	const least = 2*packBytes + 300_000 // one is gathered, one is waited for
	j.mu.Lock()
	defer j.mu.Unlock()
	s := j.segs[len(j.segs)-1]
	if s.ahead != nil {
		end = s.ahead.end
	}
	return end, s.size > least
}

// fillBytes appends about so many bytes to j, and returns the batches.
func (m *mixed) fillBytes(j *Journal, n int) (list []Batch) {
	m.t.Helper()
	for size := 0; size < n; {
		b := m.batch()
		for range 100 {
			more := m.batch()
			b.Lines, b.Records = append(b.Lines, more.Lines...), b.Records+more.Records
		}
		mustAppend(m.t, j, b)
		list, size = append(list, b), size+len(b.Lines)
	}
	return list
}

// checkSome reads all records, and those from some offsets on, also of one tenant.
func (m *mixed) checkSome(j *Journal) {
	m.t.Helper()
	m.check(j, 0, nil)
	for range 3 {
		from := m.rng.Uint64N(uint64(len(m.model)))
		m.check(j, from, nil)
		m.check(j, from, &m.tenants[m.rng.IntN(len(m.tenants))])
	}
}

// What is packed of the segment that is being written is read by those who take blocks, from any offset
// and of any tenant, in one piece with what is not packed. Others, and those who want whole lines, read the file. Once the segment is
// sealed, its packed file is what it would be without.
func TestAhead(t *testing.T) {
	for _, tenants := range [][]string{{""}, {"", "shop", "bank"}} {
		mem, other := disktest.NewMem(), disktest.NewMem()
		o := Options{Disk: mem, SegmentBytes: 3 << 20, MaxGroupBytes: 100_000, Pack: true}
		m := newMixed(t, 7, tenants...)
		j, err := Open("/j", o)
		testkit.OK(t, err)
		var block columns.Block
		blocks := 0
		unpack := func(dst, packed []byte, size int, _ columns.Range) ([]byte, error) {
			blocks++
			return block.AppendLines(dst, packed, size)
		}
		var batches []Batch
		for round := range 2 {
			batches = append(batches, m.fillBytes(j, 2_700_000)...)
			waitUntil(t, func() bool { end, due := aheadOf(j); return end > 0 || !due })
			m.check(j, 0, nil)
			blocks, m.unpack = 0, unpack
			m.checkSome(j)
			if blocks == 0 {
				t.Errorf("round %d: no block is read", round)
			}
			m.whole, blocks = true, 0
			if m.checkSome(j); round == 0 && blocks > 0 {
				t.Errorf("%d blocks are read by who wants whole lines", blocks)
			}
			m.whole, m.unpack = false, nil
			m.checkExcluded(j)
		}
		waitPacked(t, j)
		testkit.OK(t, j.Close())
		m.checkSpans(j)
		m.checkFolder(mem)

		o.Disk, o.Pack = other, false
		j, err = Open("/j", o)
		testkit.OK(t, err)
		for _, b := range batches {
			mustAppend(t, j, b)
		}
		testkit.OK(t, j.Close())
		o.Pack = true
		j, err = Open("/j", o)
		testkit.OK(t, err)
		waitPacked(t, j)
		testkit.OK(t, j.Close())
		got, want := packedFrames(t, mem), packedFrames(t, other)
		for name := range want {
			if got[name] != want[name] || len(want[name]) < 100_000 {
				t.Errorf("%s differs from one that was packed as a whole: %d bytes of %d", name, len(got[name]), len(want[name]))
			}
		}
		if len(want) == 0 || len(got) != len(want) {
			t.Errorf("%d packed segments, want %d", len(got), len(want))
		}
	}
}

// noTurn is a turn that others do not wait for.
type noTurn struct{}

func (noTurn) Begin() {}
func (noTurn) End()   {}

// checkExcluded asks the filters of what is packed ahead for a value that one line has, and for one that none has.
func (m *mixed) checkExcluded(j *Journal) {
	m.t.Helper()
	packed, _ := aheadOf(j)
	if packed == 0 {
		return
	}
	at := packed - 1
	for _, row := range []struct {
		value string
		has   bool
	}{{fmt.Sprint(at), true}, {"nobody's", false}} {
		first, end, parts, err := j.Exclude(at, -1, 2, filters.Value(row.value), noTurn{}, nil)
		testkit.OK(m.t, err)
		out := uint64(0)
		for _, p := range parts {
			if out += p.To - p.From; row.has && p.From <= at && at < p.To {
				m.t.Errorf("record %d is excluded", at)
			}
		}
		if end < packed || !row.has && out != end-first {
			m.t.Errorf("%s: %d of the records from %d to %d are excluded", row.value, out, first, end)
		}
		if first, _, parts, err := j.Exclude(end, -1, 2, filters.Value(row.value), noTurn{}, nil); err != nil || first < end || len(parts) > 0 {
			m.t.Errorf("what is not packed: %d, %v, %v", first, parts, err)
		}
	}
}

// checkSpans checks that spans follow each other, and that each is one from wherever in it.
func (m *mixed) checkSpans(j *Journal) {
	m.t.Helper()
	for at, last := uint64(0), j.Next(); at < last; {
		first, end := j.Span(at, -1, 2)
		if first != at || end <= at {
			m.t.Fatalf("span at %d: %d to %d", at, first, end)
		}
		inside := at + m.rng.Uint64N(min(end, last)-at)
		if f, e := j.Span(inside, -1, 2); f != first || e != end {
			m.t.Fatalf("span at %d: %d to %d, at %d: %d to %d", at, first, end, inside, f, e)
		}
		at = end
	}
}

// packedFrames returns what the packed segments of a journal have, by their names, without their IDs.
func packedFrames(t *testing.T, mem *disktest.Mem) map[string]string {
	t.Helper()
	files := make(map[string]string)
	entries, err := mem.List("/j")
	testkit.OK(t, err)
	for _, e := range entries {
		if _, ext, _ := parseName(e.Name); ext != extSealed {
			continue
		}
		f, err := mem.OpenFile("/j/"+e.Name, os.O_RDONLY, 0)
		testkit.OK(t, err)
		end, err := framesEnd(f, e.Name)
		testkit.OK(t, err)
		section, err := filtersOf(f, e.Name)
		testkit.OK(t, err)
		text := string(section)
		var w walker
		w.Open(f, e.Name, end)
		testkit.OK(t, w.each(func(h *recordlog.Frame, frame []byte) error {
			text += fmt.Sprintln(h.First, h.Records, h.MinTime, h.MaxTime, h.Codec, h.Flags, h.Unpacked) + string(frame[frameHeaderSize:])
			return nil
		}, nil))
		testkit.OK(t, f.Close())
		files[e.Name] = text
	}
	return files
}

// What cannot be packed ahead is packed as a whole, and nothing of it is shown before.
func TestAheadFails(t *testing.T) {
	var fail atomic.Bool
	faulty := &disktest.Faulty{FS: disktest.NewMem(), Hook: func(op disktest.Op) disktest.Fault {
		if fail.Load() && op.Kind == disktest.Open && strings.HasSuffix(op.Name, extOpen) {
			return disktest.Fault{Err: os.ErrPermission}
		}
		return disktest.Fault{}
	}}
	m := newMixed(t, 8, "")
	j, err := Open("/j", Options{Disk: faulty, SegmentBytes: 5 << 20, MaxGroupBytes: 100_000, Pack: true})
	testkit.OK(t, err)
	m.fillBytes(j, 2_700_000)
	waitUntil(t, func() bool { end, _ := aheadOf(j); return end > 0 })
	fail.Store(true)
	m.fillBytes(j, 1_300_000)
	waitUntil(t, func() bool { end, _ := aheadOf(j); return end == 0 })
	fail.Store(false)
	m.checkSome(j)
	m.fillBytes(j, 2_000_000)
	waitPacked(t, j)
	if st := j.Stats(); st.PackedSegments != 1 || st.LastError != nil {
		t.Errorf("%+v", st)
	}
	m.checkSome(j)
	testkit.OK(t, j.Close())
}
