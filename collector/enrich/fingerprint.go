package enrich

import (
	"bytes"
	"encoding/binary"
	"encoding/hex"

	"github.com/rollway/rollway/collector/normalize"
	"github.com/rollway/rollway/internal/jsonwalk"
)

// hole replaces what varies in a template.
const hole = "<*>"

// maxTemplate is how many bytes of a message its template is made of.
const maxTemplate = 1024

// appendTemplate appends the template of a message, which must be valid UTF-8:
// at most maxTemplate bytes of its first line, with holes for what
// differs between events of the same kind. docs/ENRICH.md has the rules.
func appendTemplate(dst, msg []byte) []byte {
	msg = bytes.TrimLeft(msg, " \t\r\n")
	if i := bytes.IndexByte(msg, '\n'); i >= 0 {
		msg = msg[:i]
	}
	msg = msg[:min(len(msg), maxTemplate)]
	t := template{dst: dst, begin: len(dst), hole: -1}
	for i := 0; i < len(msg); {
		i += t.next(msg, i)
	}
	return append(t.dst[:t.begin], bytes.TrimRight(t.dst[t.begin:], " ")...)
}

// template is a template that is being made.
type template struct {
	dst   []byte
	begin int // of the template in dst
	hole  int // end of the last hole in dst; -1: none
}

// next takes what begins at msg[i] and returns its length.
func (t *template) next(msg []byte, i int) int {
	switch c := msg[i]; {
	case isBlank(c):
		n := i + 1
		for n < len(msg) && isBlank(msg[n]) {
			n++
		}
		t.dst = append(t.dst, ' ')
		return n - i
	case c == '"' || c == '\'' || c == '`':
		if n := quoted(msg, i); n > 0 {
			t.dst = append(t.dst, c)
			t.cut()
			t.dst = append(t.dst, c)
			return n
		}
	case isLetter(c) || jsonwalk.IsDigit(c):
		if n := uuidLen; isUUID(msg[i:]) {
			t.cut()
			return n
		}
		n := i + 1
		for n < len(msg) && (isLetter(msg[n]) || jsonwalk.IsDigit(msg[n])) {
			n++
		}
		t.word(msg[i:n])
		return n - i
	}
	t.dst = append(t.dst, msg[i])
	return 1
}

// word takes letters and digits in a row.
func (t *template) word(w []byte) {
	digits, hex, changes := 0, 0, 0
	for i, c := range w {
		if jsonwalk.IsDigit(c) {
			digits++
		}
		if jsonwalk.IsDigit(c) || 'a' <= c|0x20 && c|0x20 <= 'f' {
			hex++
		}
		if i > 0 && jsonwalk.IsDigit(c) != jsonwalk.IsDigit(w[i-1]) {
			changes++
		}
	}
	switch {
	case digits == 0 && isDateName(w):
		t.cut()
	case digits == 0:
		t.dst = append(t.dst, w...)
	case hex == len(w) && (len(w) >= 4 || digits == len(w)),
		len(w) > 2 && w[0] == '0' && w[1]|0x20 == 'x' && hex == len(w)-1,
		changes >= 3 && len(w) >= 8:
		t.cut()
	default:
		for i := 0; i < len(w); {
			if !jsonwalk.IsDigit(w[i]) {
				t.dst = append(t.dst, w[i])
				i++
				continue
			}
			t.cut()
			for i < len(w) && jsonwalk.IsDigit(w[i]) {
				i++
			}
		}
	}
}

// isDateName reports whether w is the short name of a month or a weekday.
func isDateName(w []byte) bool {
	switch string(w) {
	case "Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec",
		"Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun":
		return true
	}
	return false
}

// cut puts a hole. A sign before it belongs to it, and holes with nothing but
// what joins numbers between them are one.
func (t *template) cut() {
	d := t.dst
	if n := len(d); n > t.begin && (d[n-1] == '-' || d[n-1] == '+') && (n-1 == t.begin || !isWord(d[n-2])) {
		d = d[:n-1]
	}
	if t.hole >= 0 && joins(d[t.hole:]) {
		t.dst = d[:t.hole]
		return
	}
	t.dst = append(d, hole...)
	t.hole = len(t.dst)
}

// joins reports whether b, between two holes, makes one of them: as in dates,
// times, addresses, decimal numbers and lists.
func joins(b []byte) bool {
	if len(b) > 2 {
		return false
	}
	for _, c := range b {
		if bytes.IndexByte([]byte(" .,:;-/|+T"), c) < 0 {
			return false
		}
	}
	return true
}

// quoted returns the length of the quoted text that begins at msg[i]: a quote
// that does not follow a word, text without blanks, and the same quote before
// something that is no word. It returns 0 if there is no such text.
func quoted(msg []byte, i int) int {
	if i > 0 && isWord(msg[i-1]) {
		return 0
	}
	for n := i + 1; n < len(msg); n++ {
		switch {
		case msg[n] == msg[i] && n > i+1 && (n+1 == len(msg) || !isWord(msg[n+1])):
			return n + 1 - i
		case isBlank(msg[n]) || msg[n] == msg[i]:
			return 0
		}
	}
	return 0
}

const uuidLen = len("38101a0b-2096-447d-96ea-a692162415ae")

// isUUID reports whether b begins with a UUID.
func isUUID(b []byte) bool {
	if len(b) < uuidLen || len(b) > uuidLen && isWord(b[uuidLen]) {
		return false
	}
	for i, c := range b[:uuidLen] {
		switch i {
		case 8, 13, 18, 23:
			if c != '-' {
				return false
			}
		default:
			if !jsonwalk.IsDigit(c) && ('a' > c|0x20 || c|0x20 > 'f') {
				return false
			}
		}
	}
	return true
}

func isBlank(c byte) bool  { return c == ' ' || c == '\t' || c == '\r' }
func isLetter(c byte) bool { return 'a' <= c|0x20 && c|0x20 <= 'z' || c >= 0x80 }
func isWord(c byte) bool   { return isLetter(c) || jsonwalk.IsDigit(c) }

// sum is the FNV-1a hash of 64 bits of a template and, after a zero byte, the type of an
// exception, if there is one.
func sum(template, exception []byte) uint64 {
	h := fnv1a(14695981039346656037, template)
	if len(exception) > 0 {
		h = fnv1a(fnv1a(h, []byte{0}), exception)
	}
	return h
}

func fnv1a(h uint64, b []byte) uint64 {
	for _, c := range b {
		h = (h ^ uint64(c)) * 1099511628211
	}
	return h
}

// appendHex appends h in 16 digits.
func appendHex(dst []byte, h uint64) []byte {
	var b [8]byte
	return hex.AppendEncode(dst, binary.BigEndian.AppendUint64(b[:0], h))
}

// appendFingerprint adds the fingerprint of a line to its attrs, unless it has
// one or there is nothing to make it of.
func appendFingerprint(line []byte, s *normalize.Scratch) []byte {
	s.Template = s.Template[:0] // the template, then the exception
	exception := 0
	attrs := false
	for m := (members{line: line, top: true}); m.next(); {
		switch string(m.name) {
		case `"msg"`:
			s.Template = appendTemplate(s.Template, plain(m.raw(), &s.Text))
			exception = len(s.Template)
		case `"error"`:
			s.Template = appendException(s.Template, m.raw(), &s.Text)
		case `"attrs"`:
			attrs = true
			for a := (members{line: line, at: m.value}); a.next(); {
				switch string(plain(a.name, &s.Text)) {
				case Fingerprint:
					return line
				case "exception.type":
					if line[a.value] == '"' && len(s.Template) == exception {
						s.Template = appendTemplate(s.Template, plain(a.raw(), &s.Text))
					}
				case "exception":
					if line[a.value] == '{' && len(s.Template) == exception {
						s.Template = appendException(s.Template, a.raw(), &s.Text)
					}
				}
			}
		}
	}
	if len(s.Template) == 0 {
		return line
	}
	line = append(openAttrs(line, attrs), `"fingerprint":"`...)
	line = appendHex(line, sum(s.Template[:exception], s.Template[exception:]))
	return append(line, `"}}`...)
}

// exceptionKeys are where errors that are objects have their type.
var exceptionKeys = [...]string{"type", "kind", "name"}

// appendException appends the type of an error: what an object says under one of
// exceptionKeys, or what is before the first colon of a text, if it is one word.
func appendException(dst, value []byte, buf *[]byte) []byte {
	switch value[0] {
	case '"':
		text := plain(value, buf)
		if i := bytes.IndexByte(text, ':'); i > 0 && bytes.IndexByte(text[:i], ' ') < 0 {
			return appendTemplate(dst, text[:i])
		}
	case '{':
		for _, key := range exceptionKeys {
			for k := (members{line: value}); k.next(); {
				if value[k.value] == '"' && jsonwalk.Equal(k.name, key) {
					return appendTemplate(dst, plain(k.raw(), buf))
				}
			}
		}
	}
	return dst
}
