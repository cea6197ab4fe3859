package framed

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"
)

// file is a segment in memory with what was written to it.
type file struct {
	bytes   []byte
	seg     Segment
	numbers *Numbers
	records []string // of all batches
	ends    []int    // of records, after each batch
}

// begin starts a segment over what old holds.
func begin(t testing.TB, old []byte, block int, generation uint64) *file {
	t.Helper()
	seg, err := NewSegment(block, generation)
	if err != nil {
		t.Fatal(err)
	}
	f := &file{bytes: bytes.Clone(old), seg: seg, numbers: NewNumbers()}
	f.put(f.header(), 0)
	return f
}

func (f *file) header() []byte {
	b := make([]byte, SegmentHeaderSize)
	f.seg.PutHeader(b)
	return b
}

func (f *file) put(b []byte, at int64) {
	if need := int(at) + len(b); need > len(f.bytes) {
		f.bytes = append(f.bytes, make([]byte, need-len(f.bytes))...)
	}
	copy(f.bytes[at:], b)
}

// fill returns a buffer with a batch of records that is not sealed.
func fill(number uint64, records []string) (buf []byte, used int) {
	used = BatchHeaderSize
	for _, s := range records {
		used += RecordSize(len(s))
	}
	buf = bytes.Repeat([]byte{0xAA}, int(roundUp(int64(used), MaxBlock))) // what a buffer held before does not matter
	seed, at := SeedOf(number), BatchHeaderSize
	for _, s := range records {
		n := RecordSize(len(s))
		seed.PutRecord(buf[at:at+n], []byte(s))
		at += n
	}
	return buf, used
}

// batch appends a batch.
func (f *file) batch(records ...string) {
	number := f.numbers.Next()
	buf, used := fill(number, records)
	at := f.seg.Next
	f.put(f.seg.Seal(buf, used, len(records), number), at)
	f.records = append(f.records, records...)
	f.ends = append(f.ends, len(f.records))
}

// end appends the mark that the segment is complete.
func (f *file) end() { f.batch() }

type result struct {
	records  []string
	findings []Finding
	Summary
}

// read reads all of b.
func read(t testing.TB, b []byte, o Options) (result, error) {
	t.Helper()
	r, err := NewReader(bytes.NewReader(b), int64(len(b)), o)
	if err != nil {
		return result{}, err
	}
	var got result
	for {
		rec, err := r.Next()
		if err != nil {
			if _, again := r.Next(); again != err {
				t.Fatalf("%v, then %v", err, again)
			}
			got.findings, got.Summary = r.Findings(), r.Summary()
			if err == io.EOF {
				err = nil
			}
			return got, err
		}
		got.records = append(got.records, string(rec.Data))
	}
}

func mustRead(t testing.TB, b []byte) result {
	t.Helper()
	got, err := read(t, b, Options{})
	if err != nil {
		t.Fatal(err)
	}
	return got
}

func equal(t testing.TB, got, want []string) {
	t.Helper()
	if !slices.Equal(got, want) {
		t.Fatalf("%d records %.300q, want %d: %.300q", len(got), got, len(want), want)
	}
}

// texts are n records that differ from all others of another prefix.
func texts(prefix string, n int) []string {
	all := make([]string, n)
	for i := range all {
		all[i] = fmt.Sprintf("%s-%03d", prefix, i)
	}
	return all
}

// What was put in comes out, for every block size and records of many lengths,
// sealed or not.
func TestRoundTrip(t *testing.T) {
	long := []string{"", "a", strings.Repeat("b", pieceSize), strings.Repeat("c", pieceSize+1), strings.Repeat("d", 5*pieceSize-3),
		strings.Repeat("e", windowSize-RecordHeaderSize), strings.Repeat("f", windowSize-4), strings.Repeat("g", windowSize), strings.Repeat("h", 3*windowSize+17), "i\nj\x00\n", ""}
	for _, block := range []int{512, 1024, 2048, 4096} {
		f := begin(t, nil, block, 7)
		f.batch(texts("first", 100)...)
		f.batch("one")
		f.batch(long...)
		f.batch("")
		f.batch(texts("last", 3)...)
		for _, complete := range []bool{false, true} {
			batches := 5
			if complete {
				f.end()
				batches++
			}
			got := mustRead(t, f.bytes)
			equal(t, got.records, f.records)
			if len(got.findings) != 0 || got.Lost != 0 || got.Batches != batches || got.Complete != complete ||
				got.Records != uint64(len(f.records)) || got.End != int64(len(f.bytes)) || got.Header.ID != f.seg.ID || got.Generation != 7 || got.Block != block {
				t.Errorf("%+v", got)
			}
			if len(f.bytes)%block != 0 {
				t.Errorf("the file ends at %d", len(f.bytes))
			}
		}
	}
}

// A record longer than the limit is reported and not delivered; a check needs
// no memory for it.
func TestTooLong(t *testing.T) {
	f := begin(t, nil, 512, 1)
	f.batch("a", strings.Repeat("b", 3*windowSize), "c")
	got, err := read(t, f.bytes, Options{MaxRecord: windowSize})
	if err != nil {
		t.Fatal(err)
	}
	equal(t, got.records, []string{"a", "c"})
	if len(got.findings) != 1 || got.findings[0].Kind != TooLong || got.findings[0].Bytes != 3*windowSize || got.Lost != 0 || got.Records != 3 {
		t.Errorf("%+v", got)
	}
	got, err = read(t, f.bytes, Options{MaxRecord: 1, CheckOnly: true})
	if err != nil || len(got.findings) != 0 || got.Records != 3 || got.RecordBytes != 3*windowSize+2 {
		t.Errorf("%+v %v", got, err)
	}
}

// Neither framing nor sealing allocates.
func TestAllocations(t *testing.T) {
	seg, err := NewSegment(4096, 1)
	if err != nil {
		t.Fatal(err)
	}
	numbers, record, buf := NewNumbers(), []byte(strings.Repeat("x", 40000)), make([]byte, 1<<17)
	if n := testing.AllocsPerRun(100, func() {
		number := numbers.Next()
		seed, n := SeedOf(number), RecordSize(len(record))
		seed.PutRecord(buf[BatchHeaderSize:BatchHeaderSize+n], record)
		seg.Seal(buf, BatchHeaderSize+n, 1, number)
	}); n != 0 {
		t.Errorf("%v allocations a batch", n)
	}
}

// A file of something else is refused, one of a newer version too.
func TestNotSegment(t *testing.T) {
	for _, b := range []string{"", "x", "{\"msg\":\"hello\"}\n", strings.Repeat("line\n", 3000), string(make([]byte, 20000))} {
		if _, err := read(t, []byte(b), Options{}); !errors.Is(err, ErrNotSegment) {
			t.Errorf("%.20q: %v", b, err)
		}
	}
	f := begin(t, nil, 512, 1)
	f.bytes[8] = 2
	fixSums(f.bytes)
	var newer *UnsupportedError
	if _, err := read(t, f.bytes, Options{}); !errors.As(err, &newer) || newer.Version != 2 {
		t.Errorf("version 2: %v", err)
	}
	for _, block := range []int{0, 1, 256, 513, 768, 8192, -512} {
		if _, err := NewSegment(block, 1); err == nil {
			t.Errorf("block size %d is allowed", block)
		}
	}
}

// An error of the file is returned, by every later call too.
func TestReadError(t *testing.T) {
	f := begin(t, nil, 512, 1)
	f.batch(texts("a", 10)...)
	bad := errors.New("bad sector")
	for _, at := range []int64{0, 4096, 4200} {
		r, err := NewReader(failing{bytes.NewReader(f.bytes[:at]), bad}, int64(len(f.bytes)), Options{})
		for err == nil {
			_, err = r.Next()
		}
		if !errors.Is(err, bad) {
			t.Errorf("at %d: %v", at, err)
		}
	}
}

type failing struct {
	io.ReaderAt
	err error
}

func (f failing) ReadAt(p []byte, off int64) (int, error) {
	n, err := f.ReaderAt.ReadAt(p, off)
	if err == io.EOF {
		err = f.err
	}
	return n, err
}
