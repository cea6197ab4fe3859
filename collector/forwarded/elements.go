package forwarded

import (
	"net/netip"
	"strings"
)

// elements goes through one line of Forwarded (RFC 7239):
//
//	element , element …          element = name=value ; name=value …
//
// where a value is a token or a quoted string, which may have commas. So the line can only
// be read from its beginning. One of another form is ignored, as nobody can tell which
// part of it a proxy has written.
func (w *walk) elements(line string) {
	var last [maxHops]node // of the line, the newest at (n-1) % maxHops
	n := 0
	for r := (reader{rest: line}); ; {
		next, more, ok := r.element()
		if !ok {
			w.over = true
			return
		}
		if !next.empty {
			last[n%maxHops] = next
			n++
		}
		if !more {
			break
		}
	}
	for i := n - 1; i >= max(0, n-maxHops) && !w.over; i-- {
		w.hop(last[i%maxHops].addr, last[i%maxHops].ok)
	}
	w.over = w.over || n > maxHops
}

// node is what an element says of its for.
type node struct {
	addr  netip.Addr
	ok    bool // it is an address
	empty bool // there is nothing in the element
}

// reader reads a line from its beginning.
type reader struct{ rest string }

// element reads an element and the comma after it; more reports whether there is one.
func (r *reader) element() (n node, more, ok bool) {
	n.empty = true
	found := false
	for {
		r.blanks()
		switch {
		case r.rest == "":
			return n, false, true
		case r.rest[0] == ',':
			r.rest = r.rest[1:]
			return n, true, true
		case r.rest[0] == ';':
			r.rest = r.rest[1:]
			continue
		}
		name := r.token()
		if name == "" || !strings.HasPrefix(r.rest, "=") {
			return n, false, false
		}
		r.rest = r.rest[1:]
		value, ok := r.value()
		if !ok {
			return n, false, false
		}
		n.empty = false
		if strings.EqualFold(name, "for") {
			if found {
				return n, false, false
			}
			found = true
			n.addr, n.ok = ParseNode(value)
		}
		if r.blanks(); r.rest != "" && r.rest[0] != ';' && r.rest[0] != ',' {
			return n, false, false
		}
	}
}

func (r *reader) blanks() { r.rest = strings.TrimLeft(r.rest, " \t") }

func (r *reader) token() string {
	n := 0
	for n < len(r.rest) && isToken(r.rest[n]) {
		n++
	}
	token := r.rest[:n]
	r.rest = r.rest[n:]
	return token
}

// value reads a token or a quoted string. Proxies are known that write an address
// with a colon or brackets without the quotes that it needs.
func (r *reader) value() (text string, ok bool) {
	if strings.HasPrefix(r.rest, `"`) {
		return r.quoted()
	}
	n := 0
	for n < len(r.rest) && (isToken(r.rest[n]) || strings.IndexByte(":[]", r.rest[n]) >= 0) {
		n++
	}
	text, r.rest = r.rest[:n], r.rest[n:]
	return text, n > 0
}

// quoted reads a quoted string. It leaves escapes, which no address has.
func (r *reader) quoted() (text string, ok bool) {
	for i := 1; i < len(r.rest); i++ {
		switch c := r.rest[i]; {
		case c == '\\':
			i++
		case c == '"':
			text, r.rest = r.rest[1:i], r.rest[i+1:]
			return text, true
		case c < ' ' && c != '\t' || c == 0x7F:
			return "", false
		}
	}
	return "", false
}

// isToken reports whether c may be in a token (RFC 9110, 5.6.2).
func isToken(c byte) bool {
	return c >= '0' && c <= '9' || c|0x20 >= 'a' && c|0x20 <= 'z' || c < 0x80 && strings.IndexByte("!#$%&'*+-.^_`|~", c) >= 0
}
