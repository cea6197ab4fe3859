package spool

import (
	"bytes"
	"encoding/hex"
	"errors"
	"flag"
	"os"
	"testing"
	"time"

	"github.com/rollway/rollway/internal/disktest"
	"github.com/rollway/rollway/internal/recordlog"
	"github.com/rollway/rollway/internal/recordlog/recordlogtest"
	"github.com/rollway/rollway/internal/testkit"
)

var update = flag.Bool("update", false, "rewrite the golden file")

// goldenSegment is a segment of two batches.
func goldenSegment() []byte {
	when := time.Date(2026, 5, 28, 12, 40, 0, 0, time.UTC).UnixNano()
	h := recordlog.Header{Kind: recordlog.SpoolSegment, ID: 0xdeadbeef01020304, First: 5, Created: when, Prev: 5}
	b := h.Append(nil)
	for i := range 2 {
		body := texts(uint64(5+2*i), uint64(7+2*i))
		frame := append(make([]byte, frameHeader), body...)
		f := recordlog.Frame{
			ID: 0xdeadbeef01020304, First: uint64(5 + 2*i), Records: 2, Unpacked: len(body),
			MinTime: when + int64(i), MaxTime: when + int64(i),
		}
		f.Put(frame)
		b = append(b, frame...)
	}
	return b
}

var goldenCursor = cursor{count: 4, line: 6, next: 9, file: 5, ends: [8]uint64{7, 9}}

// The bytes are those of the golden file, and are read.
func TestGolden(t *testing.T) {
	b, c := goldenSegment(), goldenCursor.append(nil)
	got := hex.Dump(b) + "\n" + hex.Dump(c)
	const golden = "testdata/format.hex"
	if *update {
		testkit.OK(t, os.WriteFile(golden, []byte(got), 0o644))
	}
	wanted, err := os.ReadFile(golden)
	testkit.OK(t, err)
	if got != string(wanted) {
		t.Errorf("the format has changed; a new one needs a new version:\n%s", got)
	}
	mem := disktest.NewMem()
	testkit.OK(t, mem.MkdirAll("/s", 0o750))
	for name, b := range map[string][]byte{"/s/00000000000000000005.spool": b, "/s/CURSOR": c} {
		testkit.OK(t, mem.WriteFile(name, b))
	}
	s := mustOpen(t, mem, Options{})
	if st := s.Stats(); st.Recovered != 3 || st.Next != 9 {
		t.Fatalf("%+v", st)
	}
	p := mustNext(t, s)
	want(t, string(p.Data), texts(6, 7))
	if key := p.Key(1); key != "deadbeef01020304-6-1" {
		t.Errorf("key %s", key)
	}
	mustAck(t, s, p, len(p.Data))
	p = mustNext(t, s)
	want(t, string(p.Data), texts(7, 9))
}

// FuzzSegment opens and reads a folder in which one segment, the last or the
// one before, holds any bytes: nothing panics, reading comes to an end, what
// is returned is whole lines with rising numbers, the ledger is balanced, and
// the spool goes on.
func FuzzSegment(f *testing.F) {
	golden := goldenSegment()
	for _, seed := range [][]byte{golden, golden[:64], golden[:100], golden[64:], append(bytes.Clone(golden), golden[64:]...), append(bytes.Clone(golden), "x\ny\n"...), nil, make([]byte, 500)} {
		for n := range 4 {
			f.Add(seed, n&1 != 0, n&2 != 0)
		}
	}
	f.Fuzz(func(t *testing.T, data []byte, last, sums bool) {
		if sums {
			data = recordlogtest.WithChecksums(data)
		}
		mem := disktest.NewMem()
		testkit.OK(t, mem.MkdirAll("/s", 0o750))
		testkit.OK(t, mem.WriteFile("/s/00000000000000000005.spool", data))
		if !last {
			after := bytes.ReplaceAll(golden, []byte{5, 0, 0, 0, 0, 0, 0, 0}, []byte{20, 0, 0, 0, 0, 0, 0, 0})
			after = bytes.ReplaceAll(after, []byte{7, 0, 0, 0, 0, 0, 0, 0}, []byte{22, 0, 0, 0, 0, 0, 0, 0})
			testkit.OK(t, mem.WriteFile("/s/00000000000000000020.spool", recordlogtest.WithChecksums(after)))
		}
		s, err := Open("/s", Options{Disk: mem})
		if err != nil {
			var newer *UnsupportedError
			if !errors.As(err, &newer) {
				t.Fatal(err)
			}
			return
		}
		defer s.Close()
		balanced(t, s)
		if s.next >= recordlog.MaxNumber-10 {
			return // no number is left for what is appended
		}
		mustAppend(t, s, "new\n")
		next, end := uint64(0), ""
		for steps := 0; ; steps++ {
			if steps > len(data)+100 {
				t.Fatal("reading does not come to an end")
			}
			b := mustNext(t, s)
			if b == nil {
				break
			}
			if b.Line < next || len(b.Data) == 0 || b.Data[len(b.Data)-1] != '\n' {
				t.Fatalf("line %d after %d: %q", b.Line, next, b.Data)
			}
			next = b.Line + uint64(recordlog.LineCount(b.Data))
			end = string(b.Data)
			mustAck(t, s, b, len(b.Data))
		}
		if len(end) < 4 || end[len(end)-4:] != "new\n" {
			t.Fatalf("the last lines are %q; %+v %v", end, s.Stats(), s.Findings())
		}
	})
}

// FuzzCursor: what parses encodes to the same bytes.
func FuzzCursor(f *testing.F) {
	f.Add(goldenCursor.append(nil))
	f.Add([]byte{})
	f.Fuzz(func(t *testing.T, b []byte) {
		b = recordlogtest.WithChecksums(b)
		c, err := parseCursor(b, "")
		if err == nil && !bytes.Equal(c.append(nil)[:12], b[:12]) {
			t.Fatalf("%+v", c)
		}
		if again, err2 := parseCursor(c.append(nil), ""); err == nil && (err2 != nil || again != c) {
			t.Fatalf("%+v became %+v: %v", c, again, err2)
		}
	})
}
