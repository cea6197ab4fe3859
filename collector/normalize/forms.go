package normalize

import (
	"bytes"
	"errors"
	"io"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/rollway/rollway/internal/jsonwalk"
)

var byteOrderMark = []byte("\xef\xbb\xbf")

// readBody finds the form of the body, as the package comment tells it, and
// reads it.
func (n *Normalizer) readBody(dst *Batch) error {
	all := n.body.all
	start := 0
	if bytes.HasPrefix(all, byteOrderMark) {
		start = len(byteOrderMark)
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
	err := n.readValues(dst, &before, start, end, line)
	if err == nil {
		n.readLines(dst, end, line+1)
		return nil
	}
	dst.rollback(&before)
	if isBlank(all[end:]) || all[start] == '[' {
		return n.readDocument(dst, start, line)
	}
	broken := !errors.Is(err, io.ErrUnexpectedEOF) || inString(all[start:end])
	if err := n.readValues(dst, &before, start, len(all), line); err == nil {
		return nil
	}
	dst.rollback(&before)
	if broken || n.hasWholeLine(end) {
		n.readLines(dst, start, line)
		return nil
	}
	return n.readDocument(dst, start, line)
}

// readDocument reads the rest of the body as one piece that is accepted or
// rejected whole.
func (n *Normalizer) readDocument(dst *Batch, start, line int) error {
	before := dst.mark()
	err := n.readValues(dst, &before, start, len(n.body.all), line)
	if err != nil {
		dst.rollback(&before)
		err = n.rejectSyntax(dst, err)
	}
	return err
}

// readLines reads the rest of the body line by line. Lines over the limit of
// events are only counted, one event each, so that a body of a million bad
// lines costs no more than reading it.
func (n *Normalizer) readLines(dst *Batch, start, line int) {
	for start < len(n.body.all) && !dst.overflow {
		end := lineEnd(n.body.all, start)
		if dst.events()-n.body.first < n.limits.MaxEvents {
			n.readLine(dst, start, end, line) // the error is in dst
		} else if text := n.body.all[start:end]; !isBlank(text) {
			n.body.text, n.body.base, n.body.line = text, start, line
			n.add(dst, tooManyEvents, 0, n.explain(dst, tooManyEvents), withoutEnd(text))
		}
		start = end
		line++
	}
}

// readLine reads the values of one line, which is accepted or rejected whole
// as far as its syntax goes. The line number is 0 if it is not known.
func (n *Normalizer) readLine(dst *Batch, start, end, line int) error {
	before := dst.mark()
	err := n.readValues(dst, &before, start, end, line)
	if err != nil {
		dst.rollback(&before)
		err = n.rejectSyntax(dst, err)
	}
	return err
}

// readValues reads all[start:end] as values in a row: objects, and arrays of
// objects. before is dst as it is. The error is one of syntax; the caller takes
// the batch back.
func (n *Normalizer) readValues(dst *Batch, before *mark, start, end, line int) error {
	n.text(start, end, line)
	if !n.body.dirty && !n.strict {
		if n.quickValues(dst) {
			return nil
		}
		dst.rollback(before)
	}
	n.decode()
	for {
		switch n.dec.PeekKind() {
		case jsontext.KindBeginArray:
			if err := n.readArray(dst); err != nil {
				return err
			}
		case jsontext.KindInvalid:
			if _, err := n.dec.ReadToken(); err != io.EOF {
				return err
			}
			return nil
		default:
			if err := n.readEvent(dst); err != nil {
				return err
			}
		}
	}
}

func (n *Normalizer) readArray(dst *Batch) error {
	if _, err := n.dec.ReadToken(); err != nil {
		return err
	}
	for {
		switch n.dec.PeekKind() {
		case jsontext.KindEndArray, jsontext.KindInvalid:
			_, err := n.dec.ReadToken()
			return noEOF(err)
		default:
			if err := n.readEvent(dst); err != nil {
				return err
			}
		}
	}
}

// noEOF is for places where the end of the input is a syntax error.
func noEOF(err error) error {
	if err == io.EOF {
		return io.ErrUnexpectedEOF
	}
	return err
}

// hasWholeLine reports whether a line after start begins with '{' in its first
// column and is a value by itself.
func (n *Normalizer) hasWholeLine(start int) bool {
	all := n.body.all
	for start < len(all) {
		end := lineEnd(all, start)
		if all[start] == '{' {
			n.text(start, end, 0)
			n.decode()
			if n.dec.SkipValue() == nil {
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
