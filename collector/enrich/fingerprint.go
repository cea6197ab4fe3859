package enrich

import (
	"bytes"

	"github.com/rollway/rollway/collector/fingerprint"
	"github.com/rollway/rollway/collector/normalize"
	"github.com/rollway/rollway/internal/jsonwalk"
)

var emptyText = []byte(`""`)

// appendFingerprint adds to the attrs of a line what package fingerprint makes of its message
// and the type of its error, unless it has a fingerprint or neither of them.
func appendFingerprint(line []byte, s *normalize.Scratch) []byte {
	msg, failed, attrs := emptyText, emptyText, false
	for m := (members{line: line, top: true}); m.next(); {
		switch string(m.name) {
		case `"msg"`:
			msg = m.raw()
		case `"error"`:
			failed = m.raw()
		case `"attrs"`:
			attrs = true
			for a := (members{line: line, at: m.value}); a.next(); {
				if string(plain(a.name, &s.Text)) == Fingerprint {
					return line
				}
			}
		}
	}
	var h fingerprint.Hash
	h.Type(typeOf(failed, &s.Text))
	s.Template = h.Message(plain(msg, &s.Text), s.Template)
	var buf [fingerprint.Size]byte
	sum := h.Append(buf[:0])
	if len(sum) == 0 {
		return line
	}
	line = append(openAttrs(line, attrs), `"`+Fingerprint+`":"`...)
	return append(append(line, sum...), `"}}`...)
}

// typeOf returns the type of an error: that of an object, or the one word before the first
// colon of a text.
func typeOf(value []byte, buf *[]byte) []byte {
	switch value[0] {
	case '"':
		if name, _, found := bytes.Cut(plain(value, buf), []byte(":")); found && bytes.IndexByte(name, ' ') < 0 {
			return name
		}
	case '{':
		for m := (members{line: value}); m.next(); {
			if value[m.value] == '"' && jsonwalk.Equal(m.name, "type") {
				return plain(m.raw(), buf)
			}
		}
	}
	return nil
}
