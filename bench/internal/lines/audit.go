package lines

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
)

// A Parse tells the producer and the number of a line with its newline; ok is
// false for a line that nobody wrote.
type Parse func(line []byte) (producer, number int, ok bool)

// An Audit reads what a writer has written. It is not safe for concurrent use.
type Audit struct {
	Found     int   // different lines
	Torn      int   // lines that nobody wrote
	Repeated  int   // lines that are there again
	Reordered int   // lines after a later one of the same producer
	NULs      int64 // bytes
	Padding   int64 // bytes of white space around lines
	Bytes     int64 // read

	Padded bool                   // lines may have NULs and white space around them
	Skip   func(line []byte) bool // if set, reports lines that Parse refuses and that are not torn

	parse Parse
	seen  []numbers // of each producer
}

type numbers struct {
	bits []uint64
	last int // the greatest so far
}

// NewAudit returns one for so many producers.
func NewAudit(producers int, parse Parse) *Audit {
	a := &Audit{parse: parse, seen: make([]numbers, producers)}
	for i := range a.seen {
		a.seen[i].last = -1
	}
	return a
}

// Read goes through one file, or one after another of a log's.
func (a *Audit) Read(r io.Reader) error {
	in := bufio.NewReaderSize(r, 1<<20)
	long := false // the line at hand is longer than the buffer
	for {
		line, err := in.ReadSlice('\n')
		a.Bytes += int64(len(line))
		switch {
		case err == bufio.ErrBufferFull:
			a.NULs += int64(bytes.Count(line, []byte{0}))
			long = true
			continue
		case err != nil && err != io.EOF:
			return err
		case long:
			a.NULs += int64(bytes.Count(line, []byte{0}))
			a.Torn++
		case len(line) > 0:
			a.line(line)
		}
		long = false
		if err == io.EOF {
			return nil
		}
	}
}

// line looks at one line; it may change it.
func (a *Audit) line(line []byte) {
	if a.Padded {
		if line = a.unpad(line); line == nil {
			return
		}
	}
	producer, number, ok := a.parse(line)
	if !ok || producer < 0 || producer >= len(a.seen) || number < 0 {
		if a.Skip == nil || !a.Skip(line) {
			a.Torn++
		}
		return
	}
	n := &a.seen[producer]
	for number/64 >= len(n.bits) {
		n.bits = append(n.bits, 0)
	}
	switch bit := uint64(1) << (number % 64); {
	case n.bits[number/64]&bit != 0:
		a.Repeated++
		return
	case number < n.last:
		a.Reordered++
		fallthrough
	default:
		n.bits[number/64] |= bit
		a.Found++
		n.last = max(n.last, number)
	}
}

// unpad takes NULs before a line and white space around it away, and returns
// nil if nothing is left.
func (a *Audit) unpad(line []byte) []byte {
	if bytes.IndexByte(line, 0) >= 0 {
		all := len(line)
		a.NULs += int64(bytes.Count(line, []byte{0}))
		line = bytes.TrimLeft(line, "\x00")
		if len(line) == 0 || len(line) < all && line[0] == '\n' {
			return nil
		}
	}
	body := bytes.TrimRight(line, "\n")
	trimmed := bytes.Trim(body, " ")
	if len(trimmed) == len(body) && len(body) > 0 {
		return line
	}
	a.Padding += int64(len(line) - len(trimmed))
	if len(trimmed) == 0 {
		return nil
	}
	if len(line) > len(body) { // its newline is no padding
		a.Padding--
		trimmed = append(trimmed, '\n') // over a space
	}
	return trimmed
}

// Has reports whether the line was found.
func (a *Audit) Has(producer, number int) bool {
	bits := a.seen[producer].bits
	return number/64 < len(bits) && bits[number/64]&(1<<(number%64)) != 0
}

// Bits has a bit for each line of a producer that was found.
func (a *Audit) Bits(producer int) []uint64 { return a.seen[producer].bits }

// Lost counts the lines of a producer below n that were not found.
func (a *Audit) Lost(producer, n int) (lost int) {
	for i := range n {
		if !a.Has(producer, i) {
			lost++
		}
	}
	return lost
}

// LostPct is the share of the lines that did not arrive, as a figure of a sample;
// each producer wrote each lines. It is an error if lines are broken, or lost
// where the writer is not lossy by design.
func (a *Audit) LostPct(each int, lossy bool) (map[string]float64, error) {
	lost := 0
	for p := range a.seen {
		lost += a.Lost(p, each)
	}
	if a.Torn+a.Repeated+a.Reordered > 0 || lost > 0 && !lossy || a.Found+lost != each*len(a.seen) {
		return nil, fmt.Errorf("of %d lines %d lost, %d torn, %d repeated, %d out of order", each*len(a.seen), lost, a.Torn, a.Repeated, a.Reordered)
	}
	return map[string]float64{"lost_pct": 100 * float64(lost) / float64(each*len(a.seen))}, nil
}
