package main

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"unicode/utf8"
)

// wholeLine is the length in bytes up to which a line is checked as a whole.
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
	if t.n == 0 { // n may be 0 too
		t.first = at
	}
	t.n += n
}

func (t *seen) addIf(is bool, at place) {
	if is {
		t.add(1, at)
	}
}

// A textCheck reads a text. It is used by one goroutine.
type textCheck struct {
	*verifyFlags
	at place // of the line being read

	lines, bytes int64
	longest      int64 // line, without its end, bytes
	nul          seen  // bytes 0
	blank        seen  // lines with only spaces
	spaces       int64 // before line ends, and in blank lines; with the blank lines' ends
	notUTF8      seen  // lines
	notJSON      seen  // lines
	whyNot       string
	tooLong      seen  // lines longer than maxLine
	unseen       seen  // lines longer than wholeLine
	tail         int64 // bytes after the last line end
}

func (v *verifyFlags) checkText(name string) (report, error) {
	text, err := openLog(name)
	if err != nil {
		return report{}, err
	}
	defer text.Close()
	c := textCheck{verifyFlags: v}
	text.part = func(part []byte) { c.nul.add(bytes.Count(part, []byte{0}), c.at) }
	for err == nil {
		c.at = place{text.offset, text.lines + 1}
		var line textLine
		if line, err = text.next(wholeLine); err == nil {
			c.line(line, text.offset-c.at.offset, text.tailStart < 0)
		}
	}
	if errors.Is(err, io.EOF) {
		err = nil
	}
	if err != nil && text.unpacker == nil {
		return report{}, err
	}
	r := c.report()
	r.add(err != nil, true, "cannot be unpacked any further: %v", err)
	return r, nil
}

// line books one line of size bytes; ended tells whether it has a line end.
func (c *textCheck) line(line textLine, size int64, ended bool) {
	c.bytes += size
	length := size
	if ended {
		c.lines++
		length--
	} else {
		c.tail = size
	}
	c.longest = max(c.longest, length)
	c.tooLong.addIf(c.maxLine > 0 && length > c.maxLine, c.at)
	if line.tooLong > 0 {
		c.unseen.add(1, c.at)
		return
	}
	text := bytes.TrimRight(line.text, " \t\r")
	blank := ended && len(text) == 0
	c.blank.addIf(blank, c.at)
	if ended {
		c.spaces += length - int64(len(text))
	}
	if blank {
		c.spaces++
	}
	if len(text) == 0 {
		return
	}
	sound := utf8.Valid(line.text)
	c.notUTF8.addIf(!sound, c.at)
	if c.json && ended && sound && (text[0] != '{' && bytes.TrimLeft(text, " \t")[0] != '{' || !json.Valid(text)) {
		c.notJSON.add(1, c.at)
		if err := json.Unmarshal(text, new(json.RawMessage)); err != nil {
			c.whyNot = cmp.Or(c.whyNot, ": "+err.Error())
		}
	}
}

// report tells what was found.
func (c *textCheck) report() report {
	r := report{what: fmt.Sprintf("text, %s, %s", lines(int(c.lines)), byteCount(c.bytes))}
	if c.lines > 0 {
		r.what += fmt.Sprintf(", the longest %s", byteCount(c.longest))
	}
	r.add(c.nul.n > 0, true, "%s of value 0, the first in %v", plural(c.nul.n, "byte"), c.nul.first)
	r.add(c.notUTF8.n > 0, c.json, "%s not UTF-8, the first is %v", areMany(c.notUTF8.n, "line"), c.notUTF8.first)
	r.add(c.notJSON.n > 0, true, "%s no JSON object, the first is %v%s", areMany(c.notJSON.n, "line"), c.notJSON.first, c.whyNot)
	r.add(c.tooLong.n > 0, true, "%s longer than %s, the first is %v", areMany(c.tooLong.n, "line"), byteCount(c.maxLine), c.tooLong.first)
	r.add(c.unseen.n > 0, false, "%s longer than %s and not looked into, the first is %v", areMany(c.unseen.n, "line"), byteCount(wholeLine), c.unseen.first)
	r.add(c.spaces > 0, false, "padding: %s in %s and before line ends, %.2g%% of the text",
		plural(int(c.spaces), "byte"), plural(c.blank.n, "blank line"), 100*float64(c.spaces)/float64(max(c.bytes, 1)))
	r.add(c.tail > 0, c.closed, "the last line has no end: %s from byte %d on", plural(int(c.tail), "byte"), c.bytes-c.tail)
	return r
}
