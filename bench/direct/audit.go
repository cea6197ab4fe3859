package direct

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
)

// An Audit reads what a logger left behind. It is not safe for concurrent use.
type Audit struct {
	Found     int   // different records
	Torn      int   // lines that nobody wrote
	Repeated  int   // records that are there again
	Reordered int   // records behind a later one of the same producer
	NULs      int64 // bytes
	Padding   int64 // bytes of white space around lines
	Bytes     int64 // of the files

	parse func(line []byte) (producer, number int, ok bool)
	seen  []numbers // of each producer
}

type numbers struct {
	bits []uint64
	last int // the greatest so far
}

// NewAudit returns one for so many producers. parse takes a line with its
// newline.
func NewAudit(producers int, parse func(line []byte) (producer, number int, ok bool)) *Audit {
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
	if bytes.IndexByte(line, 0) >= 0 {
		all := len(line)
		a.NULs += int64(bytes.Count(line, []byte{0}))
		if line = bytes.TrimLeft(line, "\x00"); len(line) == 0 {
			return
		}
		if len(line) < all && line[0] == '\n' {
			return
		}
	}
	body := bytes.TrimRight(line, "\n")
	if trimmed := bytes.Trim(body, " "); len(trimmed) < len(body) || len(body) == 0 {
		a.Padding += int64(len(line) - len(trimmed))
		if len(trimmed) == 0 {
			return
		}
		if len(line) > len(body) { // its newline is no padding
			a.Padding--
			trimmed = append(trimmed, '\n') // over a space
		}
		line = trimmed
	}
	producer, number, ok := a.parse(line)
	if !ok || producer < 0 || producer >= len(a.seen) || number < 0 {
		a.Torn++
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

// Has reports whether the record was found.
func (a *Audit) Has(producer, number int) bool {
	bits := a.seen[producer].bits
	return number/64 < len(bits) && bits[number/64]&(1<<(number%64)) != 0
}

// A verdict is what became of records that were accepted.
type verdict struct {
	accepted, lost int
	unasked        int // refused, and found
}

// against holds what was found against what was accepted: taken[p][i] is
// whether the logger took record i of producer p.
func (a *Audit) against(taken [][]bool) verdict {
	var v verdict
	for p, records := range taken {
		for i, accepted := range records {
			switch found := a.Has(p, i); {
			case accepted && !found:
				v.accepted++
				v.lost++
			case accepted:
				v.accepted++
			case found:
				v.unasked++
			}
		}
	}
	return v
}

// extra is the outcome as figures of a sample. It is an error if a logger that
// is not lossy has lost, torn or repeated a record, or changed the order of a
// producer's, or if there are records that nobody asked for.
func (a *Audit) extra(v verdict, payload int64, lossy bool) (map[string]float64, error) {
	if broken := v.lost + a.Torn + a.Repeated + a.Reordered; !lossy && broken > 0 || v.unasked > 0 || a.Found != v.accepted-v.lost {
		return nil, fmt.Errorf("accepted %d records, found %d, lost %d, torn %d, repeated %d, out of order %d, refused and found %d",
			v.accepted, a.Found, v.lost, a.Torn, a.Repeated, a.Reordered, v.unasked)
	}
	extra := map[string]float64{
		"accepted": float64(v.accepted), "lost": float64(v.lost), "torn": float64(a.Torn),
		"repeated": float64(a.Repeated), "reordered": float64(a.Reordered),
		"nul_bytes": float64(a.NULs), "padding_bytes": float64(a.Padding),
	}
	if payload > 0 {
		extra["file_per_payload"] = float64(a.Bytes) / float64(payload)
	}
	return extra, nil
}
