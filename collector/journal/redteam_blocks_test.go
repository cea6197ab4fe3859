package journal

import (
	"bytes"
	"errors"
	"fmt"
	"math/rand/v2"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/rollway/rollway/internal/disktest"
	"github.com/rollway/rollway/internal/recordlog"
	"github.com/rollway/rollway/internal/testkit"
)

// mostForBlocks is how many bytes may be allocated to open, read and audit the folder of
// TestRedteamBlocks, over all its steps.
const mostForBlocks = 64 << 20

// A place is a block in a packed segment: its frame, and where its bytes are.
type place struct {
	frame    int64
	h        recordlog.Frame
	pos, len int
}

// placesOf returns the blocks of a packed segment.
func placesOf(t *testing.T, b []byte) (list []place) {
	t.Helper()
	foot, err := recordlog.ReadFooter(bytes.NewReader(b), "seg", int64(len(b)))
	testkit.OK(t, err)
	for pos := int64(segmentHeaderSize); pos < foot.FramesEnd(); {
		h, err := recordlog.ParseFrame(b[pos:])
		testkit.OK(t, err)
		body := b[pos+frameHeaderSize:][:h.BodyLen]
		if h.Flags != recordlog.FlagBlocks {
			list = append(list, place{pos, h, int(pos) + frameHeaderSize + h.KeysLen, h.BodyLen - h.KeysLen})
		} else {
			blocks, _, err := recordlog.ParseBlocks(&h, body)
			testkit.OK(t, err)
			for _, k := range blocks {
				list = append(list, place{pos, h, int(pos) + frameHeaderSize + k.Pos, k.Len})
			}
		}
		pos += h.Size()
	}
	return list
}

// mutateBlocks returns a packed segment that was changed at random, and how. forged says that
// its checksums are right, and its lines may be any.
func mutateBlocks(t *testing.T, rng *rand.Rand, whole []byte) (b []byte, what string, forged bool) {
	t.Helper()
	b = bytes.Clone(whole)
	places := placesOf(t, b)
	p, q := places[rng.IntN(len(places))], places[rng.IntN(len(places))]
	foot, err := recordlog.ReadFooter(bytes.NewReader(b), "seg", int64(len(b)))
	testkit.OK(t, err)
	frame := func(change func(h *recordlog.Frame, body []byte) []byte) []byte {
		h := p.h
		body := change(&h, bytes.Clone(b[p.frame+frameHeaderSize:][:h.BodyLen]))
		out := append(make([]byte, frameHeaderSize), body...)
		h.Put(out)
		return slices.Concat(b[:p.frame], out, b[p.frame+p.h.Size():])
	}
	switch rng.IntN(11) {
	case 0, 1:
		b[p.pos+rng.IntN(p.len)] ^= 1 << rng.IntN(8)
		return b, fmt.Sprintf("a bit of the block at byte %d is flipped", p.pos), false
	case 2:
		return b[:p.pos+rng.IntN(p.len)], fmt.Sprintf("cut within the block at byte %d", p.pos), false
	case 3:
		n := min(p.len, q.len)
		one, other := bytes.Clone(b[p.pos:p.pos+n]), bytes.Clone(b[q.pos:q.pos+n])
		copy(b[p.pos:], other)
		copy(b[q.pos:], one)
		return b, fmt.Sprintf("the blocks at bytes %d and %d are swapped", p.pos, q.pos), false
	case 4:
		return slices.Concat(b[:p.frame], b[q.frame:q.frame+q.h.Size()], b[p.frame+p.h.Size():]), fmt.Sprintf("the frame at byte %d is that at byte %d", p.frame, q.frame), false
	case 5:
		return slices.Concat(b[:p.frame], b[p.frame+p.h.Size():]), fmt.Sprintf("without the frame at byte %d", p.frame), false
	case 6: // a length or a number of the directory, below a right checksum
		return frame(func(h *recordlog.Frame, body []byte) []byte {
			n := p.pos - int(p.frame) - frameHeaderSize // at most the directory, at least the keys
			body[h.KeysLen+rng.IntN(max(1, min(n, len(body))-h.KeysLen))] = byte(rng.IntN(256))
			return body
		}), fmt.Sprintf("the directory of the frame at byte %d is forged", p.frame), true
	case 7:
		return frame(func(h *recordlog.Frame, body []byte) []byte {
			n := []int{0, 1, h.Records + 1, 1 << 20, recordlog.MaxBody}[rng.IntN(5)]
			*[]*int{&h.Records, &h.Unpacked, &h.Records}[rng.IntN(3)] = max(1, n)
			h.Unpacked = max(h.Unpacked, h.Records)
			return body
		}), fmt.Sprintf("the lengths of the frame at byte %d are forged", p.frame), true
	case 8: // the bytes of a block, below right checksums
		return frame(func(h *recordlog.Frame, body []byte) []byte {
			at := p.pos - int(p.frame) - frameHeaderSize
			data := body[at:][:p.len]
			for range 1 + rng.IntN(3) {
				data[rng.IntN(min(len(data), 200))] ^= byte(1 + rng.IntN(255))
			}
			if h.Flags == recordlog.FlagBlocks {
				blocks, runs, err := recordlog.ParseBlocks(h, body)
				testkit.OK(t, err)
				for i := range blocks {
					blocks[i].Sum = recordlog.Checksum(body[blocks[i].Pos:][:blocks[i].Len])
				}
				return append(recordlog.AppendBlocks(body[:h.KeysLen:h.KeysLen], blocks, runs), body[blocks[0].Pos:]...)
			}
			return body
		}), fmt.Sprintf("the block at byte %d is forged", p.pos), true
	case 9: // the footer, with a right checksum
		any := []int64{0, -1, 1, 63, 64, int64(rng.Uint32()), 1 << 40, 1 << 62}
		v := any[rng.IntN(len(any))]
		m := &foot.Marks[rng.IntN(len(foot.Marks))]
		s := &foot.Sections[rng.IntN(len(foot.Sections))]
		switch rng.IntN(9) {
		case 0:
			m.Pos = v
		case 1:
			m.First = uint64(v)
		case 2:
			s.Pos = v
		case 3:
			s.Len = v
		case 4:
			foot.Records, m.Records = uint64(v), uint32(v)
		case 5:
			foot.End = uint64(v)
		case 6:
			foot.MinTime, foot.MaxTime = v, -v
		case 7:
			foot.Step = v
		case 8:
			foot.Tenants = append(foot.Tenants, recordlog.Tenant{Name: strings.Repeat("x", rng.IntN(3000)), Records: uint64(v), Bytes: v})
		}
		return foot.Append(b[:int64(len(b))-foot.Size]), "the footer is forged", false
	}
	clear(b[int64(len(b))-foot.Size:][:rng.IntN(int(foot.Size))])
	return b, "the footer is zeroed in part", false
}

// TestRedteamBlocks changes packed segments at random, below their checksums too: a reader has
// the right lines or a gap that names the place, nothing panics or takes much memory, and the
// audit names what is lost.
func TestRedteamBlocks(t *testing.T) {
	rounds, held := testkit.Rounds(t, testkit.Redteam, 60, 200), 0
	defer func() {
		testkit.Attack{
			Attack: "blocks of packed segments: bits, cuts, swaps, lengths, footers with right checksums", Times: rounds,
			Promised: "the right lines, or a gap and the audit that name the block; no panic, bounded memory",
			Measured: fmt.Sprintf("so in %d of %d segments", held, rounds),
		}.Report(t)
	}()
	m := newMixed(t, 19, "", "shop", "bank", "zoo")
	mem := disktest.NewMem()
	j, err := Open("/j", Options{Disk: mem, SegmentBytes: 150_000, MaxGroupBytes: 6000, Pack: true})
	testkit.OK(t, err)
	m.fill(j, 2500)
	waitPacked(t, j)
	testkit.OK(t, j.Close())
	whole, err := mem.ReadFile(seg0)
	testkit.OK(t, err)
	columns := 0
	for _, p := range placesOf(t, whole) {
		if p.h.Codec == recordlog.CodecColumns && whole[p.pos] == 1 {
			columns++
		}
	}
	if columns < 3 {
		t.Fatalf("only %d blocks have columns", columns)
	}
	for round := range rounds {
		rng := rand.New(rand.NewPCG(20, uint64(round)))
		b, what, forged := mutateBlocks(t, rng, whole)
		name := fmt.Sprintf("round %d: %s", round, what)
		testkit.OK(t, mem.WriteFile(seg0, b))
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		j, err := Open("/j", Options{Disk: mem})
		testkit.OK(t, err)
		lost := m.readDamaged(t, name, j, forged)
		for _, tenant := range m.tenants {
			r := j.NewReader(0)
			r.SetTenant(tenant)
			for ok, err := true, error(nil); ok || err != nil; _, ok, err = r.TryNext() {
			}
			testkit.OK(t, r.Close())
		}
		testkit.OK(t, j.Close())
		rep, err := audit(mem, "/j", AuditOptions{})
		if err != nil {
			t.Errorf("%s: audit: %v", name, err)
		}
		if damage := rep.Damage(0); lost > 0 && !forged && len(damage) == 0 {
			t.Errorf("%s: %d lines are lost, and the audit finds nothing", name, lost)
		}
		read := 0
		found, err := eachFrame(mem, "/j", 0, func(f Frame) error { read += f.Records; return nil })
		if err != nil || !forged && read != len(m.model)-lost || lost > 0 && !forged && !slices.ContainsFunc(found, func(f Finding) bool { return !f.Harmless() }) {
			t.Errorf("%s: EachFrame has %d of %d lines, a reader lost %d; %v, %v", name, read, len(m.model), lost, found, err)
		}
		runtime.ReadMemStats(&after)
		if took := after.TotalAlloc - before.TotalAlloc; took > mostForBlocks {
			t.Errorf("%s: %d MiB were allocated", name, took>>20)
		}
		if t.Failed() {
			return
		}
		held++
	}
}

// readDamaged reads all and returns how many lines are in gaps. Those that are not must be
// right, unless they are forged.
func (m *mixed) readDamaged(t *testing.T, name string, j *Journal, forged bool) (lost int) {
	t.Helper()
	r := j.NewReader(0)
	defer r.Close()
	next := uint64(0)
	for {
		f, ok, err := r.TryNext()
		if gap := (*Gap)(nil); errors.As(err, &gap) {
			if gap.From != next || !strings.Contains(gap.Reason, segmentName(0, extSealed)) {
				t.Errorf("%s: at %d a gap from %d to %d: %s", name, next, gap.From, gap.To, gap.Reason)
			}
			lost += int(gap.Missed())
			next = gap.To
			continue
		}
		if err != nil {
			t.Fatalf("%s: at %d: %v", name, next, err)
		}
		if !ok {
			break
		}
		if f.First != next || f.Records != bytes.Count(f.Lines, []byte("\n")) {
			t.Fatalf("%s: at %d a frame at %d of %d records with %d lines", name, next, f.First, f.Records, bytes.Count(f.Lines, []byte("\n")))
		}
		if want := strings.Join(m.model[f.First:f.end()], ""); !forged && want != string(f.Lines) {
			t.Fatalf("%s: at %d %.300q, want %.300q", name, f.First, f.Lines, want)
		}
		next = f.end()
	}
	if next != uint64(len(m.model)) {
		t.Errorf("%s: the reader ends at %d of %d", name, next, len(m.model))
	}
	return lost
}
