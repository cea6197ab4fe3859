package main

import (
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/rollway/rollway/internal/framed"
)

// mill is a program that makes framed segments, for the stories:
//
//	mill whole FILE GENERATION   three batches of canonical lines and the end
//	mill open FILE GENERATION    the same without the end
//	mill moved A B               the second batch torn in A, whole in B
//	mill flip FILE OFFSET        turns a bit over
//	mill log FILE PROCESS MODE   logs until it is killed, see runKilled
func mill() {
	if err := runMill(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func runMill(args []string) error {
	n := 0
	if args[0] != "moved" {
		if _, err := fmt.Sscan(args[2], &n); err != nil {
			return err
		}
	}
	switch args[0] {
	case "log":
		return runKilled(args[1], args[3], n)
	case "whole", "open":
		m, err := newMiller(args[1], uint64(n))
		if err != nil {
			return err
		}
		for i := range 3 {
			m.batch(orders(n*100+i*10, 5), 1<<20)
		}
		if args[0] == "whole" {
			m.batch(nil, 1<<20)
		}
		return m.file.Close()
	case "moved":
		a, err := newMiller(args[1], 8)
		if err != nil {
			return err
		}
		a.batch(orders(0, 5), 1<<20)
		torn := a.batch(orders(10, 20), 512)
		b, err := newMiller(args[2], 9)
		if err != nil {
			return err
		}
		b.write(torn, 20, a.number, 1<<20)
		b.batch(nil, 1<<20)
		return b.file.Close()
	}
	f, err := os.OpenFile(args[1], os.O_RDWR, 0)
	if err != nil {
		return err
	}
	b := make([]byte, 1)
	if _, err := f.ReadAt(b, int64(n)); err != nil {
		return err
	}
	b[0] ^= 4
	_, err = f.WriteAt(b, int64(n))
	return err
}

// miller writes a segment.
type miller struct {
	file    *os.File
	seg     framed.Segment
	numbers *framed.Numbers
	number  uint64 // of the last batch
}

func newMiller(name string, generation uint64) (*miller, error) {
	f, err := os.Create(name)
	if err != nil {
		return nil, err
	}
	m := &miller{file: f, numbers: framed.NewNumbers()}
	if m.seg, err = framed.NewSegment(512, generation); err != nil {
		return nil, err
	}
	head := make([]byte, framed.SegmentHeaderSize)
	m.seg.PutHeader(head)
	_, err = f.Write(head)
	return m, err
}

// batch writes at most so many bytes of a batch of records and returns it.
func (m *miller) batch(records []string, most int) []byte {
	m.number = m.numbers.Next()
	seed, buf := framed.SeedOf(m.number), make([]byte, framed.BatchHeaderSize)
	for _, s := range records {
		slot := make([]byte, framed.RecordSize(len(s)))
		seed.PutRecord(slot, []byte(s))
		buf = append(buf, slot...)
	}
	m.write(buf, len(records), m.number, most)
	return buf
}

func (m *miller) write(buf []byte, records int, number uint64, most int) {
	room := append(buf[:len(buf):len(buf)], make([]byte, 512)...)
	at := m.seg.Next
	b := m.seg.Seal(room, len(buf), records, number)
	if _, err := m.file.WriteAt(b[:min(most, len(b))], at); err != nil {
		panic(err)
	}
}

// orders are n canonical lines without their line ends, one a second.
func orders(first, n int) []string {
	all := make([]string, n)
	for i := range all {
		when := time.Date(2026, 5, 28, 12, 0, first+i, 0, time.UTC)
		all[i] = fmt.Sprintf(`{"time":%q,"level":"INFO","msg":"order %d"}`, when.Format("2006-01-02T15:04:05.000000000Z"), first+i)
	}
	return all
}

// A line too long to be looked into is counted, and so are the bytes 0 in it.
func TestVerifyLongLines(t *testing.T) {
	name := t.TempDir() + "/long.log"
	f, err := os.Create(name)
	if err != nil {
		t.Fatal(err)
	}
	fmt.Fprintln(f, "first")
	if err := f.Truncate(wholeLine + 2000); err != nil { // a hole
		t.Fatal(err)
	}
	if _, err := f.WriteAt([]byte("x\nlast"), wholeLine+2000); err != nil {
		t.Fatal(err)
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	r := cli(t, "", "verify", name)
	r.want(t, exitFailed)
	for _, text := range []string{
		"text, 2 lines, 67.1 MB, the longest 67.1 MB: damaged\n",
		"67,110,858 bytes of value 0, the first in line 2, byte 6\n",
		"1 line is longer than 67.1 MB and not looked into, the first is line 2, byte 6\n",
		"the last line has no end: 4 bytes from byte 67110866 on\n",
	} {
		if !strings.Contains(r.stdout, text) {
			t.Errorf("%q is not in:\n%s", text, r.stdout)
		}
	}
	r = cli(t, "", "cat", name)
	r.want(t, exitFailed, "line 2 is left out: it is 67.1 MB long", "the last line has no end")
	if r.stdout != "first\nlast\n" {
		t.Errorf("cat printed %q", r.stdout)
	}
}
