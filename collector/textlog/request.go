package textlog

import (
	"bytes"
	"log/slog"

	"github.com/rollway/rollway/internal/jsonwalk"
	"github.com/rollway/rollway/internal/times"
)

// A Request is what an access log tells of a request. What is missing, or a dash, is nil
// or -1; all texts point into the line.
type Request struct {
	Remote, User, Method, Path, Query, Referer, Agent []byte
	Status, Bytes                                     int64
}

// maxWords is how many words may come before the time of an access log: the host that was
// asked, the client's addresses, identity and user.
const maxWords = 8

// access reads a line whose time follows some words, in brackets: the common and the
// combined format.
func (p *parser) access() bool {
	for {
		i := bytes.IndexByte(p.b[p.at:], '[')
		if i < 0 {
			return false
		}
		if p.at += i; p.peek(3) == '/' && p.peek(7) == '/' { // as in [28/May/2026
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
	_, end := quoted(p.line, p.at)
	status := number(p.line, end)
	switch {
	case status < 100 || status > 599:
		return
	case status >= 500:
		p.setLevel(slog.LevelError)
	case status >= 400:
		p.setLevel(slog.LevelWarn)
	default:
		p.setLevel(slog.LevelInfo)
	}
	p.Request = p.at
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

// number returns the number at an offset, before a blank or the end; -1: there is none.
func number(line []byte, at int) int64 {
	if at < 0 || at >= len(line) {
		return -1
	}
	v, i := int64(0), at
	for ; i < len(line) && jsonwalk.IsDigit(line[i]) && i < at+18; i++ {
		v = v*10 + int64(line[i]-'0')
	}
	if i == at || i < len(line) && line[i] != ' ' {
		return -1
	}
	return v
}

// ParseRequest reads the request of an access log that begins at Head.Request.
func ParseRequest(line []byte, at int) (r Request) {
	before, user := cutLast(line[:max(0, bytes.LastIndexByte(line[:at], '['))])
	before, _ = cutLast(before) // the identity
	_, remote := cutLast(before)
	r.Remote, r.User = given(remote), given(user)
	request, end := quoted(line, at)
	method, rest, _ := bytes.Cut(request, blank)
	if target, version, found := bytes.Cut(rest, blank); found && bytes.HasPrefix(version, []byte("HTTP/")) {
		r.Method = method
		r.Path, r.Query, _ = bytes.Cut(target, []byte("?"))
	}
	r.Status = number(line, end)
	end += len("200 ")
	if r.Bytes = number(line, end); end < len(line) {
		word, _, _ := bytes.Cut(line[end:], blank)
		end += len(word) + 1
	}
	r.Referer, end = quoted(line, end)
	r.Agent, _ = quoted(line, end)
	r.Referer, r.Agent = given(r.Referer), given(r.Agent)
	return r
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
