package normalize

import (
	"bytes"
	byteorder "encoding/binary"
	"fmt"
	"strconv"
	"unicode/utf8"

	"github.com/rollway/rollway/internal/jsonwalk"
)

// A SyntaxError says where a body or a line stops being JSON.
type SyntaxError struct {
	Line    int    // from 1; 0 if not known
	Column  int    // in bytes from 1
	Offset  int64  // bytes from the start of the body
	Problem string // what was found and what was expected
}

func (e *SyntaxError) Error() string {
	b := []byte("not valid JSON at ")
	if e.Line > 0 {
		b = strconv.AppendInt(append(b, "line "...), int64(e.Line), 10)
		b = strconv.AppendInt(append(b, ", column "...), int64(e.Column), 10)
		b = append(b, " ("...)
	}
	b = strconv.AppendInt(append(b, "offset "...), e.Offset, 10)
	if e.Line > 0 {
		b = append(b, ')')
	}
	return string(append(append(b, ": "...), e.Problem...))
}

// undescribed is the error of text whose rejection is not listed: to find out where it
// stops to be JSON costs many times what it takes to read it.
var undescribed = &SyntaxError{Problem: "not described, as many events are rejected"}

// rejectSyntax counts the text just read as one rejected event and returns
// the error that says why.
func (n *Normalizer) rejectSyntax(dst *Batch) *SyntaxError {
	if !n.describes(dst) && len(n.body.text) <= maxNested { // otherwise it may be too deep
		n.add(dst, syntax, 0, "", withoutEnd(n.body.text))
		return undescribed
	}
	r := syntax
	at, why := jsonwalk.Fault(n.body.text, maxNested)
	switch why {
	case "":
		at, why = len(bytes.TrimRight(n.body.text, " \r\n\t")), "the text ends inside a value" // not on the line after
	case jsonwalk.TooDeep:
		r, why = tooDeep, "objects and arrays are nested more than 10,000 deep"
	}
	offset := n.body.base + at
	column := offset - bytes.LastIndexByte(n.body.all[:offset], '\n')
	se := &SyntaxError{Line: n.lineOf(at), Column: column, Offset: int64(offset), Problem: why}
	detail := ""
	if n.describes(dst) {
		detail = se.Error()
	}
	n.add(dst, r, at, detail, withoutEnd(n.body.text))
	return se
}

// describes reports whether a rejection made now would be listed.
func (n *Normalizer) describes(dst *Batch) bool {
	return len(dst.Rejected) < n.limits.MaxRejections
}

// add counts one rejected event; raw is its text, at an offset in body.text.
func (n *Normalizer) add(dst *Batch, r reason, at int, detail string, raw []byte) {
	n.pace(dst)
	n.work += uint(len(raw) + len(n.attrs))
	dst.AddDeadLetter(reasonNames[r], detail, raw)
	if n.describes(dst) {
		dst.Rejected = append(dst.Rejected, Rejection{
			Index:  dst.Events(),
			Line:   n.lineOf(at),
			Offset: int64(n.body.base + at),
			Reason: reasonNames[r],
			Detail: detail,
		})
	}
	dst.RejectedTotal++
	dst.byReason[r]++
}

// withoutEnd is text without the end of its line.
func withoutEnd(text []byte) []byte { return bytes.TrimRight(text, "\r\n") }

// lineOf returns the line of an offset in body.text, 0 if it is not known.
// Lines are counted on from the place asked for last, so that many rejections
// cost one scan of the body.
func (n *Normalizer) lineOf(at int) int {
	if n.body.line == 0 {
		return 0
	}
	at += n.body.base
	s := &n.body.seen
	if s.offset < n.body.base || at < s.offset {
		s.offset, s.line = n.body.base, n.body.line
	}
	s.line += bytes.Count(n.body.all[s.offset:at], newline)
	s.offset = at
	return s.line
}

var newline = []byte{'\n'}

// explain tells a human why the event being read is rejected.
func (n *Normalizer) explain(dst *Batch, r reason) string {
	if !n.describes(dst) {
		return ""
	}
	index, got := dst.Events()-n.body.first, n.ev.got
	switch r {
	case binary:
		return fmt.Sprintf("event %d is binary data where a message of text is expected", index)
	case tooLarge:
		return fmt.Sprintf("event %d is larger than %d bytes as a canonical line", index, n.limits.MaxEventBytes)
	case tooDeep:
		return fmt.Sprintf("event %d nests objects and arrays deeper than %d levels as a canonical line", index, n.limits.MaxDepth)
	case tooManyFields:
		return fmt.Sprintf("event %d has more than %d fields", index, n.limits.MaxFields)
	case keyTooLong:
		return fmt.Sprintf("event %d has a key of %d bytes, at most %d are allowed", index, got, n.limits.MaxKeyBytes)
	case valueTooLong:
		return fmt.Sprintf("event %d has a value of %d bytes, at most %d are allowed", index, got, n.limits.MaxValueBytes)
	case tooManyEvents:
		return fmt.Sprintf("event %d is over the limit of %d events in one request", index, n.limits.MaxEvents)
	}
	return ""
}

// firstInvalid returns the offset of the first byte of b that is not UTF-8.
func firstInvalid(b []byte) int {
	for i := 0; i < len(b); {
		switch rest := b[i:]; {
		case len(rest) >= 8 && byteorder.LittleEndian.Uint64(rest)&0x8080808080808080 == 0:
			i += 8
			continue
		case rest[0] < utf8.RuneSelf:
			i++
			continue
		}
		r, size := utf8.DecodeRune(b[i:])
		if r == utf8.RuneError && size == 1 {
			return i
		}
		i += size
	}
	return -1
}
