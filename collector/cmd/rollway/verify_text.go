package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"unicode/utf8"
)

// wholeLine is up to what length in bytes a line is looked into as a whole.
const wholeLine = 64 << 20

// place is where something was first seen.
type place struct {
	offset int64 // of the line, in unpacked bytes
	line   int   // from 1
}

func (p place) String() string { return fmt.Sprintf("line %s, byte %d", count(p.line), p.offset) }

// seen counts one thing that lines may have.
type seen struct {
	n     int
	first place
}

func (t *seen) add(n int, at place) {
	if t.n == 0 {
		t.first = at
	}
	t.n += n
}

// textCheck is what a text is made of. It is used by one goroutine.
type textCheck struct {
	json    bool
	maxLine int // bytes without the line end; 0: no limit

	lines, bytes int64
	longest      int64 // line, without its end, bytes
	longestAt    place
	nul          seen  // bytes 0
	blank        seen  // lines with nothing but spaces
	spaces       int64 // before line ends, and in blank lines; with the blank lines' ends
	notUTF8      seen  // lines
	notJSON      seen  // lines
	whyNot       string
	tooLong      seen  // lines longer than maxLine
	unseen       seen  // lines longer than wholeLine
	tail         int64 // bytes behind the last line end
	long         []byte
}

// scan reads r to its end.
func (c *textCheck) scan(r *bufio.Reader) error {
	at := place{0, 1}
	for {
		c.long = c.long[:0]
		part, err := r.ReadSlice('\n')
		size := int64(len(part))
		c.zeros(part, at)
		for errors.Is(err, bufio.ErrBufferFull) {
			if size <= wholeLine {
				c.long = append(c.long, part...)
			}
			part, err = r.ReadSlice('\n')
			size += int64(len(part))
			c.zeros(part, at)
		}
		switch {
		case size > wholeLine:
			part = nil
		case len(c.long) > 0:
			c.long = append(c.long, part...)
			part = c.long
		}
		if size > 0 {
			c.line(part, size, at, err == nil)
		}
		switch {
		case errors.Is(err, io.EOF):
			return nil
		case err != nil:
			return fmt.Errorf("line %s, byte %d: %w", count(at.line), at.offset, err)
		}
		at = place{at.offset + size, at.line + 1}
	}
}

func (c *textCheck) zeros(b []byte, at place) {
	if n := bytes.Count(b, []byte{0}); n > 0 {
		c.nul.add(n, at)
	}
}

// line books one line of size bytes; ended tells whether it has a line end. b is
// nil if it is longer than wholeLine.
func (c *textCheck) line(b []byte, size int64, at place, ended bool) {
	c.bytes += size
	length := size
	if ended {
		c.lines++
		length--
	} else {
		c.tail = size
	}
	if length > c.longest {
		c.longest, c.longestAt = length, at
	}
	if c.maxLine > 0 && length > int64(c.maxLine) {
		c.tooLong.add(1, at)
	}
	if b == nil {
		c.unseen.add(1, at)
		return
	}
	b = b[:length]
	text := bytes.TrimRight(b, " \t\r")
	if ended {
		c.spaces += int64(len(b) - len(text))
	}
	if len(text) == 0 {
		if ended {
			c.spaces++
			c.blank.add(1, at)
		}
		return
	}
	sound := utf8.Valid(b)
	if !sound {
		c.notUTF8.add(1, at)
	}
	if c.json && ended {
		c.checkJSON(text, sound, at)
	}
}

func (c *textCheck) checkJSON(text []byte, isUTF8 bool, at place) {
	switch {
	case !isUTF8:
	case bytes.TrimLeft(text, " \t")[0] != '{':
		c.notJSON.add(1, at)
	case json.Valid(text):
		return
	default:
		c.notJSON.add(1, at)
		if c.whyNot == "" {
			c.whyNot = json.Unmarshal(text, new(json.RawMessage)).Error()
		}
	}
}

// report tells what was found; closed says that nothing more will be written.
func (c *textCheck) report(closed bool) report {
	r := report{what: fmt.Sprintf("text, %s, %s", lines(int(c.lines)), byteCount(c.bytes))}
	if c.lines > 0 {
		r.what += fmt.Sprintf(", the longest %s", byteCount(c.longest))
	}
	r.add(c.nul.n > 0, true, "%s of value 0, the first in %v", plural(c.nul.n, "byte"), c.nul.first)
	r.add(c.notUTF8.n > 0, c.json, "%s not UTF-8, the first is %v", areLines(c.notUTF8.n), c.notUTF8.first)
	why := ""
	if c.whyNot != "" {
		why = ": " + c.whyNot
	}
	r.add(c.notJSON.n > 0, true, "%s no JSON object, the first is %v%s", areLines(c.notJSON.n), c.notJSON.first, why)
	r.add(c.tooLong.n > 0, true, "%s longer than %s, the first is %v", areLines(c.tooLong.n), byteCount(int64(c.maxLine)), c.tooLong.first)
	r.add(c.unseen.n > 0, false, "%s longer than %s and not looked into, the first is %v", areLines(c.unseen.n), byteCount(wholeLine), c.unseen.first)
	r.add(c.spaces > 0, false, "padding: %s in %s and before line ends, %.2g%% of the text",
		plural(int(c.spaces), "byte"), plural(c.blank.n, "blank line"), 100*float64(c.spaces)/float64(max(c.bytes, 1)))
	r.add(c.tail > 0, closed, "the last line has no end: %s from byte %d on", plural(int(c.tail), "byte"), c.bytes-c.tail)
	return r
}

// areLines is n lines and the verb for them.
func areLines(n int) string {
	if n == 1 {
		return "1 line is"
	}
	return lines(n) + " are"
}
