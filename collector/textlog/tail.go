package textlog

import (
	"bytes"
	"log/slog"
	"strings"

	"github.com/rollway/rollway/internal/jsonwalk"
	"github.com/rollway/rollway/internal/levels"
	"github.com/rollway/rollway/internal/times"
)

// maxTokens is how many parts a head may have after its time, maxGroup how long one in
// brackets may be.
const (
	maxTokens = 12
	maxGroup  = 200
)

// tail reads what follows a time up to a level, or up to what cannot be in a head.
func (p *parser) tail() {
	for range maxTokens {
		p.separators()
		if more := p.token(); !more || p.HasLevel {
			return
		}
	}
}

// token reads a part of the head, and reports whether there may be more of it.
func (p *parser) token() bool {
	switch c := p.peek(0); {
	case closing[c] != 0:
		return p.group()
	case c == '-' && p.numbers+p.names == 0 && p.at > 13 && bytes.HasPrefix(p.b[p.at-13:], []byte("7f")) && bytes.HasPrefix(p.b[p.at:], []byte("-1 ")): // Ceph, after a thread
		return p.setLevel(slog.LevelError)
	case c == '"' && (p.form == times.Access || p.form == times.Plain && p.at > 2 && p.byte(p.at-2) == ']'): // Envoy's
		p.request()
	case isLetter(c) || c == '_' || c == '@':
		return p.letter() || p.level() || p.peek(4) == ':' && p.HasTime && p.dotNet() || p.word()
	case jsonwalk.IsDigit(c) || c == '#':
		if p.names+p.numbers == 0 && times.IsCalendar(p.b[p.at:]) { // a container's, and then the program's
			if h := times.ParseHead(p.b[p.at:], p.received, p.zone); h.Len > 0 {
				p.at += h.Len
				return true
			}
		}
		return p.word()
	}
	return false
}

// closing has the bracket that ends what another begins.
var closing = [256]byte{'[': ']', '(': ')', '<': '>', '{': '}'}

func isLetter(c byte) bool { return c|0x20 >= 'a' && c|0x20 <= 'z' }

func isUpper(c byte) bool { return c >= 'A' && c <= 'Z' }

// skipBlanks passes over blanks, tabs and what colours a terminal.
func skipBlanks(b []byte, at int) int {
	for at < len(b) && (b[at] == ' ' || b[at] == '\t' || b[at] == '\x1b') {
		if b[at] != '\x1b' {
			at++
		} else if end := skipColours(b, at); end > at {
			at = end
		} else {
			break
		}
	}
	return at
}

// skipColours passes over what colours a terminal.
func skipColours(b []byte, at int) int {
	for at < len(b) && b[at] == '\x1b' {
		end := at + 1
		for end < len(b) && (b[end] == '[' || b[end] == ';' || jsonwalk.IsDigit(b[end])) {
			end++
		}
		if end == len(b) || !isLetter(b[end]) {
			break
		}
		at = end + 1
	}
	return at
}

// separators passes over what is between the parts of a head.
func (p *parser) separators() {
	for {
		p.at = skipBlanks(p.b, p.at)
		switch c := p.peek(0); {
		case c != 0 && c == p.close:
			p.close = 0
		case c == '|' || c == ',' || c == ':' || c == ';', c == '*' && isUpper(p.peek(1)): // *ERROR* of Sling
		case c == '-' && (p.peek(1) == ' ' || p.peek(1) == '-'), c == '@' && closing[p.peek(1)] != 0:
		default:
			return
		}
		p.at++
	}
}

// group reads something in brackets.
func (p *parser) group() bool {
	open, depth, end := p.b[p.at], 0, p.at
	for ; ; end++ {
		if end == len(p.b) || end > p.at+maxGroup || p.b[end] == '\n' {
			return false
		}
		if p.b[end] == '\x1b' {
			end = skipColours(p.b[:len(p.b)-1], end)
		}
		if c := p.b[end]; c == open {
			depth++
		} else if c == closing[open] {
			if depth--; depth == 0 {
				break
			}
		}
	}
	inner := p.b[min(skipBlanks(p.b, p.at+1), end):end]
	if i := bytes.IndexByte(inner, '\x1b'); i > 0 {
		inner = inner[:i]
	}
	inner = bytes.TrimRight(inner, " ")
	p.at = end + 1
	return p.levelIn(inner) || len(inner) == 0 || inner[0] != '"' && inner[0] != '{'
}

// levelIn reads the level that is in brackets, alone or after what it is of.
func (p *parser) levelIn(inner []byte) bool {
	if len(inner) == 1 {
		return p.setLetter(inner[0])
	}
	level, use := levels.ParseWord(inner)
	p.sure = use == levels.Word || use == levels.SetOff && isUpper(inner[0])
	if use >= levels.SetOff || use == levels.Capital && isUpper(inner[1]) {
		return p.setLevel(level)
	}
	i := len(inner) - 1
	for i >= 0 && inner[i] != ':' && inner[i] != '/' {
		i--
	}
	if i <= 0 || i+1 == len(inner) {
		return false
	}
	level, use = levels.ParseWord(inner[i+1:])
	capital := isUpper(inner[i+1])
	return use >= levels.SetOff && // of Minecraft's thread, of Apache's module
		(inner[i] == '/' && capital || inner[i] == ':' && !capital && bytes.IndexByte(inner[:i], ' ') < 0) && p.setLevel(level)
}

// setLetter sets the level that begins with a capital.
func (p *parser) setLetter(c byte) bool {
	if c == 'C' { // critical
		c = 'F'
	}
	level, known := levels.ParseNamed([]byte{c})
	return known && isUpper(c) && p.setLevel(level)
}

// letter reads a level of one letter where a form has one: after the numbers of a process
// and a thread or before a tag (logcat), before a bar (etcd), with ! (Telegraf), before a
// component and a context (MongoDB), between brackets (GlusterFS), or, after a time in
// brackets, between blanks, two before it and three after it (WebSphere).
func (p *parser) letter() bool {
	rest := p.b[p.at+1:]
	is := false
	switch p.peek(1) {
	case ' ':
		is = p.numbers >= 2 && bytes.IndexByte(rest, ':') > 0 || isComponent(rest[1:])
		switch p.peek(2) {
		case '|':
			if is = true; p.peek(0) == 'N' {
				return p.setLevel(slog.LevelInfo + 2)
			}
		case '[':
			is = p.at > 2 && string(p.b[p.at-2:p.at]) == "] "
		case ' ':
			is = is || p.peek(3) == ' ' && p.b[0] == '[' && p.at > 2 && string(p.b[p.at-2:p.at]) == "  "
		}
	case '1', '2', '3', '4', '5': // of MongoDB's D
		is = p.peek(0) == 'D' && p.peek(2) == ' ' && isComponent(rest[2:])
	case '!':
		is = p.peek(2) == ' '
	case '/':
		is = isTag(rest[1:], p.HasTime)
	}
	return is && p.setLetter(p.b[p.at])
}

// isComponent reports whether b begins with MongoDB's component and context.
func isComponent(b []byte) bool {
	b = bytes.TrimLeft(b, " ")
	rest := bytes.TrimLeft(b, "ABCDEFGHIJKLMNOPQRSTUVWXYZ_-")
	context := bytes.TrimLeft(rest, " ")
	return len(rest) < len(b) && len(context) > 0 && context[0] == '['
}

// isTag reports whether b begins with logcat's tag and process, as in "Tag( 1234):", or, if it
// may be alone, with a tag.
func isTag(b []byte, alone bool) bool {
	tag, rest, _ := bytes.Cut(b, []byte("("))
	id, _, closed := bytes.Cut(rest, []byte("):"))
	if closed && len(tag) <= 64 && len(bytes.Trim(id, " 0123456789")) == 0 {
		return true
	}
	tag, _, closed = bytes.Cut(b, []byte(": "))
	return alone && closed && len(tag) <= 64 && bytes.IndexByte(tag, ' ') < 0
}

// isCapital reports whether there are two capitals here.
func (p *parser) isCapital() bool { return isUpper(p.peek(0)) && isUpper(p.peek(1)) }

// level reads a level that is a word.
func (p *parser) level() bool {
	end := p.at
	for isLetter(p.byte(end)) {
		end++
	}
	if jsonwalk.IsDigit(p.byte(end)) { // as in DEBUG5
		end++
	}
	word := p.b[p.at:end]
	level, use := levels.ParseWord(word)
	if use == levels.Never {
		return false
	}
	capital := p.isCapital() && isUpper(word[len(word)-2])
	if c := p.byte(end); capital && (c == '+' || c == '-' && level < slog.LevelInfo) && jsonwalk.IsDigit(p.byte(end+1)) { // as in WARN+1
		var ok bool
		end += 2
		if level, ok = levels.Parse(p.b[p.at:end]); !ok {
			return false
		}
	}
	end = skipColours(p.b, end)
	if !p.counts(end, capital, !isUpper(word[0]), use) {
		return false
	}
	p.at, p.sure = end, use == levels.Word
	return p.setLevel(level)
}

// counts reports whether a word that ends at an offset is a level: one in capitals, in
// small letters, or neither.
func (p *parser) counts(end int, capital, small bool, use levels.Use) bool {
	c, after := p.byte(end), p.byte(end+1)
	setOff := p.setOff(end) || c != 0 && c == p.close || (c == ';' && capital || c == ' ' && after == ':' && p.byte(end+2) == ' ' && (capital || string(p.b[max(0, p.at-2):p.at]) == ": "))
	switch {
	case c == ':':
		return capital || p.form == times.Plain && p.numbers+p.names == 0 && p.at > 2 && string(p.b[p.at-3:p.at]) == " : " || // FreeRADIUS
			small && use == levels.Word && p.names == 0 && (after == ' ' || after == 0)
	case c == '/': // of Celery, within brackets, and Icinga
		return capital && p.close != 0 || small && p.names == 0 && isUpper(after)
	case capital && use == levels.Word:
		return setOff || closing[c] != 0 || c == 0 || c == ' ' || c == '\n' || c == ',' || c == '>' || c == '*' || p.byte(end-1) == 'm' && use == levels.Word
	case capital:
		return setOff || closing[c] != 0 || c == ' ' && closing[after] != 0
	}
	return use >= levels.SetOff && p.names == 0 && (setOff || c == ' ' && small && isProcess(p.b[end+1:]))
}

// isProcess reports whether b begins with a name, a number in brackets and more brackets, as
// VMware has them after the level.
func isProcess(b []byte) bool {
	name, rest, _ := bytes.Cut(b, []byte("["))
	id, _, closed := bytes.Cut(rest, []byte("] ["))
	return closed && len(name) > 0 && bytes.IndexByte(name, ' ') < 0 && len(id) > 0 && len(bytes.Trim(id, "0123456789")) == 0
}

// setOff reports whether a word that ends at an offset is set off from what follows it.
func (p *parser) setOff(end int) bool {
	c, after := p.byte(end), p.byte(end+1)
	return c == '|' || c == '\t' || c == ' ' && (after == ' ' || after == '|' || after == '-' && p.byte(end+2) == ' ')
}

// word passes over a word or a number that is no level, if it can be in a head.
func (p *parser) word() bool {
	end, digits := p.at, 0
	for c := p.byte(end); c > ' ' && c != '|' && c != p.close; c = p.byte(end) {
		if jsonwalk.IsDigit(c) {
			digits++
		}
		end++
	}
	token := p.b[p.at:end]
	digit := jsonwalk.IsDigit(token[0])
	switch {
	case digits == len(token):
		p.numbers++
	case string(token) == "PHP":
		return p.php()
	case string(token) == "stdout" || string(token) == "stderr":
		return p.cri(end)
	case token[len(token)-1] == ':' && p.channel(token[:len(token)-1]):
	case token[len(token)-1] == ':' && !digit:
		if p.form == times.Named && end < len(p.b) { // category: level: of BIND
			p.at = end + 1
			return p.level()
		}
		// Only a place in the source or a logger with its process is no tag of syslog.
		if c := token[max(0, len(token)-2)]; bytes.IndexByte(token, '.') <= 0 || c != ']' && !jsonwalk.IsDigit(c) {
			return false
		}
	case p.assigned(token), p.facility(token):
	case isName(token), string(token) == "root", string(token) == "main", string(token) == "pid": // the logger of Python, the thread of Java
		if !digit {
			p.names++
		}
	default:
		p.names++
		p.at = end
		if string(token) == "cluster" && p.byte(end) == ' ' && p.byte(end+1) == '[' { // of Ceph
			p.at++
			return p.group() && p.HasLevel
		}
		return p.setOff(end)
	}
	p.at = end
	return true
}

// facilities are those of syslog.
var facilities = set("kern user mail daemon auth authpriv syslog lpr news uucp cron ftp local0 local1 local2 local3 local4 local5 local6 local7")

func set(words string) map[string]bool {
	m := map[string]bool{}
	for _, w := range strings.Fields(words) {
		m[w] = true
	}
	return m
}

// assigned reads a level as in level=error.
func (p *parser) assigned(token []byte) bool {
	name, value, is := bytes.Cut(token, []byte("="))
	switch string(name) {
	case "level", "lvl", "severity":
		level, use := levels.ParseWord(bytes.Trim(value, `"`))
		return is && use > levels.Never && p.setLevel(level)
	}
	return false
}

// severities are those of syslog, as programs name them.
var severities = set("emerg alert crit err warning warn notice info debug")

// facility reads a facility of syslog and a severity, as in daemon.err of BusyBox and OpenWrt.
func (p *parser) facility(token []byte) bool {
	name, severity, _ := bytes.Cut(token, []byte("."))
	level, _ := levels.ParseNamed(severity)
	return facilities[string(name)] && severities[string(severity)] && p.setLevel(level)
}

// afterStamp reads a facility and a severity after the host, of BusyBox, or a level after a
// program alone, of Dovecot's own files.
func (p *parser) afterStamp() {
	host, rest, _ := bytes.Cut(p.b[p.at:], blank)
	token, _, _ := bytes.Cut(rest, blank)
	if len(token) < 2 || p.facility(token) || len(host) < 2 || host[len(host)-1] != ':' || host[len(host)-2] == ']' || token[len(token)-1] != ':' || !isUpper(token[0]) {
		return
	}
	if level, use := levels.ParseWord(token[:len(token)-1]); use == levels.Word {
		p.setLevel(level)
	}
}

// channel reads Monolog's "channel.LEVEL", and what ends so in a prefix of PostgreSQL.
func (p *parser) channel(token []byte) bool {
	name := token[bytes.LastIndexByte(token, '.')+1:]
	if i := bytes.LastIndex(token, []byte("]:")); i >= 0 {
		name = token[i+len("]:"):]
	}
	level, use := levels.ParseWord(name)
	return use > levels.Never && len(name) < len(token) && isUpper(name[0]) && isUpper(name[1]) && p.setLevel(level)
}

// php reads what PHP calls an error, as in "PHP Fatal error:".
func (p *parser) php() bool {
	phrase, _, found := bytes.Cut(p.b[p.at+len("PHP"):], []byte(":"))
	first, _, _ := bytes.Cut(bytes.TrimLeft(phrase, " "), blank)
	level, use := levels.ParseWord(first)
	if use == levels.Never && bytes.HasSuffix(phrase, []byte("error")) {
		level, use = slog.LevelError, levels.Word
	}
	return found && len(phrase) < 32 && use == levels.Word && p.setLevel(level)
}

// CRI returns where what a container has written begins in a line that its runtime has put
// a time, the stream and the tag of a whole line before; 0: the line does not begin so.
func CRI(line []byte) int {
	if head := criHeadOf(line); !head.part && head.size < len(line) {
		return head.size
	}
	return 0
}

// criHead is what a container runtime puts before a line.
type criHead struct {
	size   int
	stream byte // 'o' or 'e'; 0: there is no head
	part   bool // the line goes on in the next one
}

// criHeadOf returns the head of a line.
func criHeadOf(line []byte) (head criHead) {
	if len(line) == 0 || !jsonwalk.IsDigit(line[0]) {
		return head
	}
	time, rest, _ := bytes.Cut(line, blank)
	stream, rest, _ := bytes.Cut(rest, blank)
	if string(stream) != "stdout" && string(stream) != "stderr" || len(rest) < len("F ") || rest[0] != 'F' && rest[0] != 'P' || rest[1] != ' ' || !times.IsCalendar(time) {
		return head
	}
	return criHead{size: len(line) - len(rest) + len("F "), stream: stream[len("std")], part: rest[0] == 'P'}
}

// cri reads the level of the line that a container has written, after its stream and tag.
func (p *parser) cri(at int) bool {
	const tag = " F "
	if len(p.line) < at+len(tag) || p.line[at] != ' ' || p.line[at+2] != ' ' {
		return false
	}
	at += len(tag)
	h, _ := Parse(p.line[at:], p.received, p.zone)
	if h.Request > 0 {
		p.Request = at + h.Request
	}
	return h.HasLevel && p.setLevel(h.Level)
}
