package normalize

import (
	"bytes"

	"github.com/rollway/rollway/internal/jsonwalk"
)

// ByteOrderMark may be before a body in UTF-8, and means nothing.
var ByteOrderMark = []byte("\xef\xbb\xbf")

// readBody finds the form of the body, as the package comment tells it, and
// reads it.
func (n *Normalizer) readBody(dst *Batch) error {
	all := n.body.all
	start := 0
	if bytes.HasPrefix(all, ByteOrderMark) {
		start = len(ByteOrderMark)
	}
	line := 1
	for ; start < len(all) && jsonwalk.IsSpace(all[start]); start++ {
		if all[start] == '\n' {
			line++
		}
	}
	if start == len(all) {
		return ErrEmpty
	}

	// The first line is read as NDJSON. In nearly every body that is right,
	// and the work is not done twice.
	end := lineEnd(all, start)
	before := dst.mark()
	if n.readValues(dst, start, end, line) {
		n.readLines(dst, end, line+1)
		return nil
	}
	dst.rollback(&before)
	switch whole := isBlank(all[end:]); {
	case whole: // there is no other way to read it
		return n.rejectSyntax(dst)
	case all[start] == '[':
		return n.readWhole(dst, start, len(all), line)
	case n.isBroken(all[start:end]):
		n.rejectSyntax(dst) // the error is in dst
		n.readLines(dst, end, line+1)
		return nil
	}
	if n.readValues(dst, start, len(all), line) {
		return nil
	}
	dst.rollback(&before)
	if !n.hasWholeLine(end) {
		return n.rejectSyntax(dst)
	}
	n.setText(start, end, line)
	n.rejectSyntax(dst)
	n.readLines(dst, end, line+1)
	return nil
}

// isBroken reports whether a line that was not read is not the beginning of a value in
// several lines either.
func (n *Normalizer) isBroken(line []byte) bool {
	_, why := jsonwalk.Fault(line, maxNested)
	return why != "" || inString(line)
}

// readLines reads the rest of the body line by line. Lines over the limit of
// events are only counted, one event each, so that a body of a million bad
// lines costs no more than reading it.
func (n *Normalizer) readLines(dst *Batch, start, line int) {
	for start < len(n.body.all) && !dst.overflow {
		end := lineEnd(n.body.all, start)
		if dst.Events()-n.body.first < n.limits.MaxEvents {
			n.readWhole(dst, start, end, line) // the error is in dst
		} else if text := n.body.all[start:end]; !isBlank(text) {
			n.setText(start, end, line)
			n.add(dst, tooManyEvents, 0, n.explain(dst, tooManyEvents), withoutEnd(text))
		}
		start = end
		line++
	}
}

// readWhole reads all[start:end], a line or the rest of the body, and accepts or
// rejects it whole as far as its syntax goes. The line number is 0 if it is not known.
func (n *Normalizer) readWhole(dst *Batch, start, end, line int) error {
	before := dst.mark()
	if n.readValues(dst, start, end, line) {
		return nil
	}
	dst.rollback(&before)
	return n.rejectSyntax(dst)
}

// readValues reads all[start:end] as values in a row: objects, and arrays of
// objects. It returns false if they are no JSON: the caller takes the batch back.
func (n *Normalizer) readValues(dst *Batch, start, end, line int) bool {
	text := n.setText(start, end, line)
	for i := jsonwalk.SkipSpace(text, 0); i < len(text); i = jsonwalk.SkipSpace(text, i) {
		if text[i] == '[' {
			i = n.readArray(dst, i)
		} else {
			i = n.readEvent(dst, i, 0)
		}
		if i < 0 {
			return false
		}
	}
	return true
}

// readArray reads the array that begins at body.text[i] and returns its end, or -1.
func (n *Normalizer) readArray(dst *Batch, i int) int {
	text := n.body.text
	if i = jsonwalk.SkipSpace(text, i+1); i < len(text) && text[i] == ']' {
		return i + 1
	}
	for i < len(text) {
		if i = n.readEvent(dst, i, 1); i < 0 {
			return -1
		}
		i = jsonwalk.SkipSpace(text, i)
		switch {
		case i < len(text) && text[i] == ']':
			return i + 1
		case i == len(text) || text[i] != ',':
			return -1
		}
		i = jsonwalk.SkipSpace(text, i+1)
	}
	return -1
}

// hasWholeLine reports whether a line after start begins with '{' in its first
// column and is a value by itself.
func (n *Normalizer) hasWholeLine(start int) bool {
	all := n.body.all
	for start < len(all) {
		end := lineEnd(all, start)
		if all[start] == '{' {
			check := jsonwalk.Checker{MaxDepth: maxNested}
			if check.Value(all[:end], start) >= 0 {
				return true
			}
		}
		start = end
	}
	return false
}

// inString reports whether text, read from outside any string, ends in one.
func inString(text []byte) bool {
	in := false
	for i := 0; i < len(text); i++ {
		switch {
		case text[i] == '"':
			in = !in
		case text[i] == '\\' && in:
			i++
		}
	}
	return in
}

// lineEnd returns the offset after the line that holds b[start].
func lineEnd(b []byte, start int) int {
	if i := bytes.IndexByte(b[start:], '\n'); i >= 0 {
		return start + i + 1
	}
	return len(b)
}

func isBlank(b []byte) bool {
	return jsonwalk.SkipSpace(b, 0) == len(b)
}
