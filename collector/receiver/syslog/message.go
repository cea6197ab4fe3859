package syslog

import (
	"bytes"
	"time"

	"github.com/rollway/rollway/collector/normalize"
	"github.com/rollway/rollway/internal/jsonwalk"
	"github.com/rollway/rollway/internal/times"
)

// message is the parts of a message. Those that are missing are nil; all point
// into the message.
type message struct {
	priority int    // facility * 8 + severity; -1: none
	time     []byte // as it was sent
	unix     bool   // it is sec and nsec
	sec      int64  // since 1970
	nsec     int
	hostname []byte
	app      []byte
	procID   []byte
	msgID    []byte
	data     []byte // structured data, checked
	text     []byte
}

// parse takes a message apart; zone is that of times without one.
func (m *message) parse(msg []byte, received time.Time, zone *time.Location) {
	m.priority = -1
	m.text = bytes.TrimPrefix(msg, normalize.ByteOrderMark)
	priority, rest := priority(m.text)
	if rest == nil {
		return
	}
	m.priority, m.text = priority, rest
	if !m.parse5424(rest) {
		m.parse3164(rest, received, zone)
	}
	m.text = bytes.TrimPrefix(m.text, normalize.ByteOrderMark)
}

// priority reads <n>; rest is nil without one.
func priority(msg []byte) (n int, rest []byte) {
	if len(msg) < 3 || msg[0] != '<' {
		return 0, nil
	}
	i := 1
	for ; i < len(msg) && i < 5 && jsonwalk.IsDigit(msg[i]); i++ {
		n = n*10 + int(msg[i]-'0')
	}
	if i == 1 || i > 4 || i == len(msg) || msg[i] != '>' || n > 191 {
		return 0, nil
	}
	return n, msg[i+1:]
}

// parse5424 reads what follows the priority by RFC 5424, section 6, and
// reports whether it is that. A message that has no structured data, though
// there is a place for it, is taken all the same.
func (m *message) parse5424(rest []byte) bool {
	if len(rest) < 2 || rest[0] != '1' || rest[1] != ' ' {
		return false
	}
	var fields [5][]byte
	rest = rest[2:]
	for i := range fields {
		var found bool
		if fields[i], rest, found = bytes.Cut(rest, space); len(fields[i]) == 0 || !found && i < 4 {
			return false
		}
		if string(fields[i]) == "-" {
			fields[i] = nil
		}
		if i == 0 && fields[0] != nil && !times.IsCalendar(fields[0]) {
			return false
		}
	}
	m.time, m.hostname, m.app, m.procID, m.msgID = fields[0], fields[1], fields[2], fields[3], fields[4]
	m.text = rest
	switch n := dataEnd(rest); {
	case len(rest) > 0 && rest[0] == '-' && (len(rest) == 1 || rest[1] == ' '):
		m.text = rest[1:]
	case n > 0 && (n == len(rest) || rest[n] == ' '):
		m.data, m.text = rest[:n], rest[n:]
	default:
		return true
	}
	m.text = bytes.TrimPrefix(m.text, space)
	return true
}

var space = []byte(" ")

// dataEnd returns the end of the elements of structured data at the beginning
// of b, 0 if there are none or they are not whole.
func dataEnd(b []byte) int {
	end := 0
	for end < len(b) && b[end] == '[' {
		i := element(b, end+1, nil)
		if i < 0 {
			return 0
		}
		end = i
	}
	return end
}

// structured adds the elements of data.
func structured(b *normalize.Builder, data []byte) {
	for at := 0; at < len(data) && !b.Failed(); {
		at = element(data, at+1, b)
	}
}

// element walks through one element from after its '[' and returns the offset after
// its ']', or -1 if it has none. Unless b is nil it adds the element to
// it, and changes the escaped values in place.
func element(data []byte, at int, b *normalize.Builder) int {
	start := at
	for at < len(data) && isName(data[at]) {
		at++
	}
	if at == start {
		return -1
	}
	if b != nil {
		if id, _, _ := bytes.Cut(data[start:at], []byte("@")); string(id) == "mdc" { // Log4j's thread context
			b.Field(id)
		} else {
			b.Attr(data[start:at])
		}
		b.BeginObject()
	}
	for at < len(data) && data[at] == ' ' {
		for at < len(data) && data[at] == ' ' { // more than one is seen
			at++
		}
		if at < len(data) && data[at] == ']' {
			break
		}
		name := at
		for at < len(data) && isName(data[at]) {
			at++
		}
		if at == name || at+1 >= len(data) || data[at] != '=' || data[at+1] != '"' {
			return -1
		}
		value := at + 2
		end := valueEnd(data, value)
		if end < 0 {
			return -1
		}
		if b != nil {
			b.Name(data[name:at])
			b.String(unescape(data[value:end]))
		}
		at = end + 1
	}
	if at >= len(data) || data[at] != ']' {
		return -1
	}
	if b != nil {
		b.EndObject()
	}
	return at + 1
}

func isName(c byte) bool { return c > ' ' && c < 0x7f && c != '=' && c != ']' && c != '"' }

// valueEnd returns the offset of the quote that ends a value, or -1.
func valueEnd(data []byte, at int) int {
	for ; at < len(data); at++ {
		switch data[at] {
		case '\\':
			at++
		case '"':
			return at
		}
	}
	return -1
}

// unescape takes the backslashes before ", \ and ] out of v, in place.
func unescape(v []byte) []byte {
	i := bytes.IndexByte(v, '\\')
	if i < 0 {
		return v
	}
	out := v[:i]
	for ; i < len(v); i++ {
		if v[i] == '\\' && i+1 < len(v) && (v[i+1] == '"' || v[i+1] == '\\' || v[i+1] == ']') {
			i++
		}
		out = append(out, v[i])
	}
	return out
}

// parse3164 reads what follows the priority by RFC 3164, section 4.1, and what
// senders make of it.
func (m *message) parse3164(rest []byte, received time.Time, zone *time.Location) {
	n, unix := 0, false
	if n = times.CalendarEnd(rest); n == 0 {
		n, m.sec, m.nsec, unix = times.ParseStamp(rest, received, zone)
	}
	if n == 0 {
		// Without a time there is no host either, and a word with a colon may
		// be anything.
		if app, id, after := tag(rest); id != nil {
			m.app, m.procID, m.text = app, id, after
		}
		return
	}
	m.time, m.unix = rest[:n], unix
	rest = rest[n:]
	if len(rest) > 0 && rest[0] == ':' { // of network devices; no host follows
		m.text = bytes.TrimLeft(rest[1:], " ")
		return
	}
	rest = bytes.TrimLeft(rest, " ")
	m.text = rest
	app, id, after := tag(rest)
	if app == nil {
		host, behind, _ := bytes.Cut(rest, space)
		if !isHost(host) {
			return
		}
		m.hostname, m.text = host, behind
		app, id, after = tag(behind)
	}
	if app != nil {
		m.app, m.procID, m.text = app, id, after
	}
}

const maxTag = 128

// tag reads "name: ", "name[id]: " or "name[id] "; app is nil without one.
func tag(b []byte) (app, id, after []byte) {
	i := 0
	for i < len(b) && i < maxTag && b[i] > ' ' && b[i] != ':' && b[i] != '[' && b[i] < 0x7f {
		i++
	}
	if i == 0 || i == len(b) || b[i] <= ' ' || b[i] >= 0x7f {
		return nil, nil, nil
	}
	app = b[:i]
	if b[i] == '[' {
		end := bytes.IndexByte(b[i:min(len(b), i+maxTag)], ']')
		if end < 2 || bytes.IndexByte(b[i:i+end], ' ') >= 0 {
			return nil, nil, nil
		}
		id = b[i+1 : i+end]
		i += end + 1
	}
	colon := i < len(b) && b[i] == ':'
	if colon {
		i++
	}
	if id == nil && !colon || i < len(b) && b[i] != ' ' { // as in a host's fe80::1
		return nil, nil, nil
	}
	return app, id, bytes.TrimPrefix(b[i:], space)
}

// isHost reports whether b can be a name or an address.
func isHost(b []byte) bool {
	for _, c := range b {
		if !jsonwalk.IsDigit(c) && (c|0x20 < 'a' || c|0x20 > 'z') && c != '.' && c != '-' && c != '_' && c != ':' {
			return false
		}
	}
	return len(b) > 0 && len(b) <= 255
}
