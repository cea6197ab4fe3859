package textlog

import (
	"bytes"
	"log/slog"

	"github.com/rollway/rollway/internal/jsonwalk"
	"github.com/rollway/rollway/internal/levels"
	"github.com/rollway/rollway/internal/times"
)

// special reads the forms that begin with neither a time nor a word:
//
//	E0528 12:40:00.123456 7 main.go:3] …   klog, glog
//	[E 260528 12:40:00 web:7] …            Tornado, Jupyter
//	E, [2026-05-28T12:40:00.123 #7] …      Ruby's Logger
//	7:M 28 May 2026 12:40:00.123 # …       Redis
//	D/Tag( 1234): …                        logcat in brief
//	[1779972000] …                         Nagios
//	1779972000.123 …                       Squid, Zeek
//	fail: Shop.Cart[7]                     .NET, with its message in the next line
func (p *parser) special() bool {
	c, second := p.peek(0), p.peek(1)
	switch {
	case isUpper(c) && jsonwalk.IsDigit(second):
		p.at++
		return p.clock() && p.isPlace() && p.setLetter(c)
	case isUpper(c) && second == '/':
		return p.letter()
	case isUpper(c) && second == ',' && p.peek(2) == ' ' && p.peek(3) == '[':
		p.at += 3
		return p.clock() && p.setLetter(c)
	case c == '[' && isUpper(second) && p.peek(2) == ' ':
		p.at += 3
		return p.clock() && p.form != times.Dotted && p.setLetter(second)
	case c == '[' && jsonwalk.IsDigit(second):
		p.at++
		return p.unix(']')
	case jsonwalk.IsDigit(c):
		return p.unix(' ') || p.redis()
	case p.peek(4) == ':' && p.peek(5) == ' ':
		return p.dotNet()
	}
	return false
}

// dotNet reads a level of four letters, and a category with the number of an event.
func (p *parser) dotNet() bool {
	word, rest, _ := bytes.Cut(p.b[p.at:], []byte(": "))
	category, _, _ := bytes.Cut(rest, []byte("\n"))
	name, id, _ := bytes.Cut(bytes.TrimRight(category, "\r"), []byte("["))
	switch string(word) {
	case "trce", "dbug", "info", "warn", "fail", "crit":
		level, _ := levels.ParseNamed(word)
		return len(name) > 0 && bytes.IndexByte(name, ' ') < 0 && len(id) > 1 && len(bytes.Trim(id, "0123456789")) == 1 && id[len(id)-1] == ']' && p.setLevel(level)
	}
	return false
}

// isPlace reports whether a thread and a place in the source follow, and then a bracket.
func (p *parser) isPlace() bool {
	head, _, found := bytes.Cut(p.b[p.at:], []byte("]"))
	_, place, two := bytes.Cut(bytes.TrimLeft(head, " "), blank)
	return found && two && bytes.IndexByte(place, ':') > 0 && jsonwalk.IsDigit(place[len(place)-1])
}

// redis reads a process, a role, a time and a sign for the level.
func (p *parser) redis() bool {
	process, _, found := bytes.Cut(p.b[p.at:], []byte(":"))
	role := p.peek(len(process) + 1)
	if p.at += len(process) + 3; !found || len(process) > 10 || bytes.IndexByte([]byte("MSCX"), role) < 0 || p.byte(p.at-1) != ' ' ||
		!p.clock() || p.peek(0) != ' ' || p.peek(2) != ' ' {
		return false
	}
	i := bytes.IndexByte([]byte(".-*#"), p.peek(1))
	return i >= 0 && p.setLevel([...]slog.Level{slog.LevelDebug, slog.LevelDebug, slog.LevelInfo + 2, slog.LevelWarn}[i])
}

// unix reads seconds since 1970 before an end: ten digits, and a fraction unless they are
// in brackets.
func (p *parser) unix(end byte) bool {
	const digits = len("1779972000")
	n := digits
	if p.peek(n) == '.' {
		for n++; n < digits+8 && jsonwalk.IsDigit(p.peek(n)); n++ {
		}
	}
	if c := p.peek(n); c != end && (c != '\t' || end != ' ') || n == digits && end == ' ' {
		return false
	}
	return p.seconds(p.b[p.at : p.at+n])
}

// seconds takes seconds since 1970 in ten digits and perhaps a fraction.
func (p *parser) seconds(text []byte) bool {
	sec, nsec, ok := times.Unix(text)
	return ok && len(bytes.Trim(text, "0123456789.")) == 0 && text[0] > '0' && p.setTime(sec, nsec)
}

// bgl reads what follows the first word of a line of Blue Gene/L and of the clusters that
// log like it: seconds since 1970, the day, the node, and of the former the time again, the
// node again, a type, a component, and the level.
func (p *parser) bgl(rest []byte) bool {
	const digits = len("1117838570")
	if day := digits + 1; len(rest) <= day+len("2005.06.03") || rest[digits] != ' ' || rest[day+4] != '.' || rest[day+7] != '.' || rest[day+10] != ' ' {
		return false
	}
	var fields [8][]byte
	for i := range fields {
		fields[i], rest, _ = bytes.Cut(rest, blank)
	}
	second, again := fields[0], fields[3]
	var buf [32]byte
	if i := len("2005-06-03-15.42.50"); len(again) == i+len(".675872") && again[i] == '.' {
		second = append(append(buf[:0], second...), again[i:]...)
		if level, use := levels.ParseWord(fields[7]); use > levels.Never && isUpper(fields[7][0]) {
			p.setLevel(level)
		}
	}
	return p.seconds(second)
}

// proxifier reads what follows the time, [10.30 16:49:06], of Proxifier: a program and a
// dash.
func (p *parser) proxifier() bool {
	_, rest, found := bytes.Cut(p.b[p.at:], []byte("] "))
	program, _, dash := bytes.Cut(rest, []byte(" - "))
	return p.close == ']' && found && dash && len(program) <= 64
}
