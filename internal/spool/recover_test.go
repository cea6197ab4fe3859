package spool

import (
	"errors"
	"io/fs"
	"strings"
	"testing"

	"github.com/rollway/rollway/internal/disktest"
	"github.com/rollway/rollway/internal/recordlog"
	"github.com/rollway/rollway/internal/testkit"
)

const (
	seg0 = "/s/00000000000000000000.spool"
	seg1 = "/s/00000000000000000040.spool"
)

// twoSegments is a disk with lines 0 to 39 in ten batches of one segment and
// 40 to 79 in the next, the first ten of them settled.
func twoSegments(t testing.TB) *disktest.Mem {
	t.Helper()
	mem := disktest.NewMem()
	s := mustOpen(t, mem, Options{SegmentBytes: segmentHeader + 10*(frameHeader+80)})
	for n := range uint64(20) {
		mustAppend(t, s, texts(n*4, n*4+4))
	}
	mustAck(t, s, mustNext(t, s), len(texts(0, 10)))
	testkit.OK(t, s.Close())
	return mem
}

const frameSize = frameHeader + 80

// at is where frame i of a segment begins.
func at(i int) int { return segmentHeader + i*frameSize }

// tornFrame is the beginning of a frame that could follow in a segment of four
// lines a frame.
func tornFrame(segment []byte) []byte {
	h, err := recordlog.ParseFrame(segment[len(segment)-frameSize:])
	if err != nil {
		panic(err)
	}
	h.First = h.End()
	frame := append([]byte(nil), segment[len(segment)-frameSize:]...)
	h.Put(frame)
	return frame[:frameHeader+1]
}

func folder(t *testing.T, mem *disktest.Mem, name string) {
	t.Helper()
	testkit.OK(t, mem.MkdirAll(name, 0o750))
}

func TestRecovery(t *testing.T) {
	change := func(name string, f func([]byte) []byte) func(*testing.T, *disktest.Mem) {
		return func(t *testing.T, mem *disktest.Mem) {
			b, err := mem.ReadFile(name)
			testkit.OK(t, err)
			testkit.OK(t, mem.WriteFile(name, f(b)))
		}
	}
	flip := func(name string, off int) func(*testing.T, *disktest.Mem) {
		return change(name, func(b []byte) []byte { b[off] ^= 1; return b })
	}
	remove := func(name string) func(*testing.T, *disktest.Mem) {
		return func(t *testing.T, mem *disktest.Mem) {
			testkit.OK(t, mem.Remove(name))
		}
	}
	flipCursor := func(latest bool) func(*testing.T, *disktest.Mem) {
		return change("/s/CURSOR", func(b []byte) []byte {
			slot, greatest := 0, uint64(0)
			for i := range 2 {
				if c, err := parseCursor(b[i*cursorSlot:], ""); err == nil && c.count > greatest {
					slot, greatest = i, c.count
				}
			}
			if !latest {
				slot = 1 - slot
			}
			b[slot*cursorSlot+20] ^= 1
			return b
		})
	}
	all := texts(10, 80)
	without := func(from, to uint64) string { return texts(10, from) + texts(to, 80) }
	for _, c := range []struct {
		name    string
		corrupt func(*testing.T, *disktest.Mem)
		want    string
		lost    uint64 // of those that Open counts
		kinds   string // of the findings, in order
		detail  string // in one of them
	}{
		{"nothing", func(*testing.T, *disktest.Mem) {}, all, 0, "", ""},
		{"foreign files", func(t *testing.T, mem *disktest.Mem) {
			for _, name := range []string{"/s/README", "/s/1.spool", "/s/0000000000000000004x.spool", "/s/00000000000000000000.spool.bad"} {
				testkit.OK(t, mem.WriteFile(name, []byte("x\n")))
			}
		}, all, 0, "", ""},
		{"torn append", change(seg1, func(b []byte) []byte { return append(b, tornFrame(b)...) }), all, 0, "torn tail cut", "4 lines"},
		{"torn header of an append", change(seg1, func(b []byte) []byte { return append(b, tornFrame(b)[:10]...) }), all, 0, "torn tail cut", "10 bytes"},
		{"last segment cut by a byte", change(seg1, func(b []byte) []byte { return b[:len(b)-1] }), texts(10, 76), 4, "damaged", "143 bytes at byte 1360, 4 lines"},
		{"last segment cut within a header", change(seg1, func(b []byte) []byte { return b[:at(9)+10] }), texts(10, 76), 4, "damaged", "10 bytes at byte 1360, 4 lines"},
		{"last segment cut to 100 bytes", change(seg1, func(b []byte) []byte { return b[:100] }), texts(10, 40), 40, "damaged", "00000000000000000040.spool: damaged, 36 bytes at byte 64, 40 lines"},
		{"last segment cut at a frame", change(seg1, func(b []byte) []byte { return b[:at(7)] }), texts(10, 68), 12, "damaged", "12 lines, lines are missing: the file was cut here"},
		{"zeros after the end", change(seg1, func(b []byte) []byte { return append(b, make([]byte, 3000)...) }), all, 0, "torn tail cut", "3000 bytes"},
		{"garbage after the end", change(seg1, func(b []byte) []byte { return append(b, strings.Repeat("garbage\n", 20)...) }), all, 20, "damaged", "about 20 lines"},
		{"body of the last frame", flip(seg1, at(9)+frameHeader), without(76, 80), 4, "damaged", "4 lines"},
		{"header of the last frame", flip(seg1, at(9)+20), without(76, 80), 4, "damaged", "about 4 lines"},
		{"body amid the last segment", flip(seg1, at(4)+frameHeader+30), without(56, 60), 4, "damaged", "144 bytes at byte 640, 4 lines"},
		{"header amid the last segment", flip(seg1, at(4)), without(56, 60), 4, "damaged", ", 4 lines"},
		{"body amid the first segment", flip(seg0, at(5)+frameHeader+30), without(20, 24), 4, "damaged", ", 4 lines"},
		{"header amid the first segment", flip(seg0, at(5)+13), without(20, 24), 4, "damaged", ", 4 lines"},
		{"three frames in a row", change(seg0, func(b []byte) []byte { clear(b[at(5):at(8)]); return b }), without(20, 32), 12, "damaged", "432 bytes at byte 784, 12 lines"},
		{"two places", change(seg0, func(b []byte) []byte { b[at(4)] = 0; b[at(8)+70] = 0; return b }), texts(10, 16) + texts(20, 32) + texts(36, 80), 8, "damaged damaged", ", 4 lines"},
		{"the frame that was being settled", flip(seg0, at(2)+60), texts(12, 80), 2, "damaged", "2 lines"},
		{"the frame before that", flip(seg0, at(1)+60), all, 0, "", ""},
		{"end of the first segment cut", change(seg0, func(b []byte) []byte { return b[:at(7)+20] }), without(28, 40), 12, "damaged", "20 bytes at byte 1072, 12 lines"},
		{"end of the first segment cut at a frame", change(seg0, func(b []byte) []byte { return b[:at(7)] }), without(28, 40), 12, "damaged", "12 lines, lines are missing"},
		{"first segment's header", flip(seg0, 20), texts(10, 80), 0, "", ""},
		{"last segment's header", flip(seg1, 20), texts(10, 80), 0, "", ""},
		{"last segment's header and first frame", change(seg1, func(b []byte) []byte { clear(b[:at(1)]); return b }), without(40, 44), 4, "damaged", ", 4 lines"},
		{"first segment gone", remove(seg0), texts(40, 80), 30, "damaged", "00000000000000000000.spool: damaged, 30 lines, the file is gone"},
		{"first segment is a folder", func(t *testing.T, mem *disktest.Mem) { remove(seg0)(t, mem); folder(t, mem, seg0) }, texts(40, 80), 30, "set aside as .bad damaged", "30 lines, the file is gone"},
		{"first segment and cursor gone", func(t *testing.T, mem *disktest.Mem) { remove(seg0)(t, mem); remove("/s/CURSOR")(t, mem) }, texts(40, 80), 0, "cursor not read", "lines below 40 are taken for settled"},
		{"all segments gone", func(t *testing.T, mem *disktest.Mem) { remove(seg0)(t, mem); remove(seg1)(t, mem) }, "", 70, "damaged", "00000000000000000000.spool: damaged, 70 lines"},
		{"last segment is a folder", func(t *testing.T, mem *disktest.Mem) { remove(seg1)(t, mem); folder(t, mem, seg1) }, texts(10, 40), 40, "set aside as .bad damaged", "00000000000000000040.spool is gone"},
		{"last segment gone", remove(seg1), texts(10, 40), 40, "damaged", "40 lines, lines are missing: the file was cut here, or 00000000000000000040.spool is gone"},
		{"last segment without content", change(seg1, func([]byte) []byte { return nil }), texts(10, 40), 40, "empty file removed damaged", ""},
		{"last segment all zero", change(seg1, func(b []byte) []byte { clear(b); return b }), texts(10, 40), 40, "empty file removed damaged", ""},
		{"last segment ends in its header", change(seg1, func(b []byte) []byte { return b[:30] }), texts(10, 40), 40, "empty file removed damaged", "30 bytes"},
		{"last segment ends behind its header", change(seg1, func(b []byte) []byte { return b[:64] }), texts(10, 40), 40, "empty file removed damaged", "64 bytes"},
		{"last segment is something else", change(seg1, func([]byte) []byte { return []byte(strings.Repeat("what is this\n", 30)) }), texts(10, 40), 40, "set aside as .bad damaged", "about 30 lines"},
		{"cursor gone", remove("/s/CURSOR"), texts(0, 80), 0, "", ""},
		{"latest cursor damaged", flipCursor(true), texts(0, 80), 0, "", ""}, // the one before says 0
		{"cursor before damaged", flipCursor(false), all, 0, "", ""},
		{"cursors damaged", change("/s/CURSOR", func(b []byte) []byte { b[9]++; b[cursorSlot+9]++; return b }), texts(0, 80), 0, "cursor not read", ""},
		{"cursor empty", change("/s/CURSOR", func([]byte) []byte { return nil }), texts(0, 80), 0, "", ""},
		{"cursor is something else", change("/s/CURSOR", func([]byte) []byte { return make([]byte, 10_000) }), texts(0, 80), 0, "cursor not read", ""},
		{"cursor beyond everything", change("/s/CURSOR", func([]byte) []byte { return (&cursor{count: 2, line: 1000}).append(nil) }), "", 0, "", ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			mem := twoSegments(t)
			c.corrupt(t, mem)
			s := mustOpen(t, mem, Options{})
			mustAppend(t, s, "new\n")
			want(t, drain(t, s), c.want+"new\n")
			st := s.Stats()
			if st.Dropped.Damaged != c.lost || st.Dropped.Total() != c.lost || st.Recovered != c.lost+uint64(strings.Count(c.want, "\n")) {
				t.Errorf("%+v, want %d lost", st, c.lost)
			}
			var kinds, details []string
			for _, f := range s.Findings() {
				kinds, details = append(kinds, string(f.Kind)), append(details, f.String())
			}
			if strings.Join(kinds, " ") != c.kinds || !strings.Contains(strings.Join(details, "\n"), c.detail) {
				t.Errorf("findings %q, want %s, %q", details, c.kinds, c.detail)
			}
			if f := s.Findings(); f != nil {
				t.Errorf("findings twice: %v", f)
			}
			testkit.OK(t, s.Close())
			s = mustOpen(t, mem, Options{}) // it is sound now
			if f := s.Findings(); f != nil || s.Stats().Lines != 0 {
				t.Errorf("after a restart: %v, %+v", f, s.Stats())
			}
		})
	}
}

// Damage that is found before it is read, and a restart in between.
func TestDamageOutlivesARestart(t *testing.T) {
	mem := twoSegments(t)
	b, err := mem.ReadFile(seg1)
	testkit.OK(t, err)
	b[at(9)+70] ^= 1
	testkit.OK(t, mem.WriteFile(seg1, b))
	for n := range uint64(3) {
		s := mustOpen(t, mem, Options{})
		if st := s.Stats(); st.Lines != 70+n {
			t.Fatalf("%+v", st)
		}
		mustAppend(t, s, text(80+n, 20))
		s.Close()
	}
	s := mustOpen(t, mem, Options{})
	want(t, drain(t, s), texts(10, 76)+texts(80, 83))
	if st := s.Stats(); st.Dropped.Damaged != 4 {
		t.Fatalf("%+v", st)
	}
}

func TestNewerVersionIsRefused(t *testing.T) {
	segment := recordlog.Header{Kind: recordlog.SpoolSegment, Version: 2, First: 40}
	cursor := recordlog.Header{Kind: recordlog.SpoolCursor, Version: 2, ID: 2}
	for name, b := range map[string][]byte{
		seg1:        segment.Append(nil),
		"/s/CURSOR": append(cursor.Append(nil), make([]byte, cursorSize)...),
	} {
		mem := twoSegments(t)
		testkit.OK(t, mem.WriteFile(name, b))
		var newer *UnsupportedError
		if _, err := Open("/s", Options{Disk: mem}); !errors.As(err, &newer) || newer.File != name || !strings.Contains(err.Error(), "version 2") {
			t.Errorf("%s: %v", name, err)
		}
		testkit.OK(t, mem.Remove(name))
		mustOpen(t, mem, Options{}) // the lock was given back
	}
}

// A file that is set aside keeps its bytes.
func TestSetAside(t *testing.T) {
	mem := twoSegments(t)
	testkit.OK(t, mem.WriteFile(seg1, []byte("what is this\n")))
	long := strings.Repeat("what is this\n", 10)
	testkit.OK(t, mem.WriteFile(seg1, []byte(long)))
	mustOpen(t, mem, Options{})
	if b, err := mem.ReadFile(seg1 + recordlog.ExtBad); err != nil || string(b) != long {
		t.Errorf("%q, %v", b, err)
	}
	if _, err := mem.ReadFile(seg1); !errors.Is(err, fs.ErrNotExist) {
		t.Error(err)
	}
}
