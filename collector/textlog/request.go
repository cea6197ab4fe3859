package textlog

import (
	"bytes"
	"log/slog"

	"github.com/rollway/rollway/internal/jsonline"
	"github.com/rollway/rollway/internal/jsonwalk"
	"github.com/rollway/rollway/internal/times"
)

// RequestNames are the names of what an access log tells of a request; those from
// firstNumber on are numbers.
var RequestNames = [...]string{"remote", "user", "method", "path", "query", "referer", "user_agent", "status", "bytes"}

// firstNumber is an index in RequestNames.
const firstNumber = 7

// A Request has a part of the line for each of RequestNames; nil: it is missing, or a dash.
type Request [len(RequestNames)][]byte

// maxWords is how many words may come before the time of an access log: the host that was
// asked, the client's addresses, identity and user.
const maxWords = 8

// access reads a line whose time follows some words, in brackets: the common and the
// combined format.
func (p *parser) access() bool {
	start := p.at
	if bytes.IndexByte(p.b[start:], '[') < 0 {
		return false
	}
	for { // the slash of [28/May/2026 is looked for, as JSON may be all brackets
		i := bytes.IndexByte(p.b[p.at:], '/')
		if i < 0 {
			return false
		}
		if p.at += i; p.at-3 >= start && p.peek(-3) == '[' && p.peek(4) == '/' {
			p.at -= 3
			break
		}
		p.at++
	}
	if bytes.Count(p.b[:p.at], blank) > maxWords || !p.clock() || p.form != times.Access || !p.HasTime || p.peek(0) != ']' {
		return false
	}
	if p.at += 2; p.peek(0) == '"' {
		p.request()
	}
	return true
}

// request reads the request in quotes that begins here, and takes the level from the
// status after it: from 500 ERROR, from 400 WARN, below INFO.
func (p *parser) request() {
	if text, end := quoted(p.line, p.at); (p.form == times.Access || bytes.Contains(text, []byte(" HTTP/"))) && p.status(end) {
		p.Request = p.at
	}
}

// status takes the level from the status at an offset.
func (p *parser) status(at int) bool {
	status, _ := number(p.line, at)
	return len(status) == 3 && status[0] >= '1' && status[0] <= '5' &&
		p.setLevel([...]slog.Level{slog.LevelInfo, slog.LevelInfo, slog.LevelInfo, slog.LevelWarn, slog.LevelError}[status[0]-'1'])
}

// quoted returns what is between the quote at an offset and the next, and the offset
// after that and a blank; -1: it does not end.
func quoted(line []byte, at int) (text []byte, end int) {
	if at < 0 || at >= len(line) || line[at] != '"' {
		return nil, -1
	}
	for i := at + 1; i < len(line); i++ {
		switch line[i] {
		case '\\':
			i++
		case '"':
			return line[at+1 : i], i + 2
		}
	}
	return nil, -1
}

// number returns the digits at an offset, before a blank or the end, and the offset after
// them and the blank; nil: there is something else.
func number(line []byte, at int) (digits []byte, end int) {
	if at < 0 || at >= len(line) {
		return nil, -1
	}
	word, _, _ := bytes.Cut(line[at:], blank)
	end = at + len(word) + 1
	for _, c := range word {
		if !jsonwalk.IsDigit(c) {
			return nil, end
		}
	}
	return given(word), end
}

// ParseRequest reads the request of an access log that begins at Head.Request.
func ParseRequest(line []byte, at int) Request {
	before, user := cutLast(line[:max(0, bytes.LastIndexByte(line[:at], '['))])
	before, _ = cutLast(before) // the identity
	_, remote := cutLast(before)
	request, end := quoted(line, at)
	method, rest, _ := bytes.Cut(request, blank)
	target, version, _ := bytes.Cut(rest, blank)
	if !bytes.HasPrefix(version, []byte("HTTP/")) {
		method, target = nil, nil
	}
	path, query, _ := bytes.Cut(target, []byte("?"))
	status, end := number(line, end)
	size, end := number(line, end)
	referer, end := quoted(line, end)
	agent, _ := quoted(line, end)
	return Request{given(remote), given(user), given(method), given(path), given(query), given(referer), given(agent), status, size}
}

// AppendPart appends the part of a Request with an index as JSON.
func AppendPart(dst []byte, i int, part []byte) []byte {
	if i < firstNumber {
		return jsonline.AppendStringBytes(dst, part)
	}
	dst = append(dst, bytes.TrimLeft(part[:len(part)-1], "0")...) // as JSON has numbers
	return append(dst, part[len(part)-1])
}

// cutLast cuts the last word off.
func cutLast(line []byte) (before, word []byte) {
	line = bytes.TrimRight(line, " ")
	i := bytes.LastIndexByte(line, ' ') + 1
	return line[:i], line[i:]
}

// given returns v unless it is a dash.
func given(v []byte) []byte {
	if len(v) == 0 || string(v) == "-" {
		return nil
	}
	return v
}
