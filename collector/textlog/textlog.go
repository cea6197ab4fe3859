// Package textlog reads the head of a line of plain text: when it was logged, and at
// which level.
//
// A time is taken if the line begins with one (package times has the layouts), and where
// a form below defines its place. A level is a word of the head, never of the message. The
// head is the time, and after it what is no prose: groups in brackets, numbers, names of
// loggers, places in the source. A word in it is a level
//
//   - in brackets of its own: [error], <Info>, [core:warn], [Server thread/INFO];
//   - in capitals: ERROR, INFO:, and FINE or ALERT where it is set off;
//   - in any letters if it is set off by bars, dashes, tabs or more than one blank, or in
//     small ones before a colon;
//   - as a letter where a form defines it: klog, logcat, MongoDB, etcd, Telegraf, Tornado,
//     GlusterFS, WebSphere;
//   - after level=, lvl= or severity=, and after a facility of syslog: daemon.err.
//
// After the host of syslog only daemon.err counts, and what Dovecot writes: "pop3: Error:".
// Access logs have the level of their status. Before the time may be a level, or a name that
// no prose has if a level follows the time. Without a time only [ERROR], ERROR:, a level that
// is coloured by itself, and special.go's forms count.
//
// What is in doubt is left out: a date that means several days, a zone with several
// meanings, the time of day alone. Its line may still have a level.
package textlog

import (
	"bytes"
	"log/slog"
	"time"

	"github.com/rollway/rollway/internal/jsonwalk"
	"github.com/rollway/rollway/internal/times"
)

// A Head is what a line of text says of itself before its message.
type Head struct {
	Sec      int64 // since 1970, if HasTime
	Nsec     int
	Level    slog.Level // if HasLevel
	HasTime  bool
	HasLevel bool
	Request  int // where the quoted request of an access log begins, for ParseRequest; 0: there is none
}

// maxHead is how much of a line may be its head, except for that of an access log.
const maxHead = 512

// Parse reads the head of a line, and reports whether it has a time or a level. Times
// without a zone are in zone, those without a year in the one that brings them nearest to
// received.
func Parse(line []byte, received time.Time, zone *time.Location) (Head, bool) {
	p := parser{line: line, b: line[:min(len(line), maxHead)], received: received, zone: zone}
	p.at = skipBlanks(p.b, 0)
	if bytes.HasPrefix(p.b[p.at:], []byte("####<")) { // WebLogic's
		p.at += len("####")
	}
	start := p.at
	if p.clock() {
		if !p.afterTime() {
			p.Head = Head{}
		}
		return p.Head, p.HasTime || p.HasLevel
	}
	if p.access() || p.again(start) && p.known(start) || p.again(start) && p.special() || p.again(start) && p.levelFirst() || p.again(start) && p.prefixed() {
		return p.Head, true
	}
	return Head{}, false
}

// parser reads a head from b, the beginning of a line.
type parser struct {
	line, b  []byte
	at       int // in b
	received time.Time
	zone     *time.Location
	Head
	form    times.Form // of the time
	close   byte       // the bracket that ends what the time began in; 0: none
	names   int        // of loggers and the like, that were passed over
	numbers int        // likewise
	sure    bool       // the level's word is hardly anything else
}

// again goes back to start, for another form, and returns true.
func (p *parser) again(start int) bool {
	p.at, p.close, p.names, p.numbers, p.Head = start, 0, 0, 0, Head{}
	return true
}

// byte returns the byte at an offset; 0: there is none.
func (p *parser) byte(at int) byte {
	if at >= len(p.b) {
		return 0
	}
	return p.b[at]
}

// peek returns the byte n bytes from here.
func (p *parser) peek(n int) byte { return p.byte(p.at + n) }

// clock reads a time, which may be in brackets or, as Cisco's, after a star.
func (p *parser) clock() bool {
	at, c := p.at, p.peek(0)
	end := closing[c]
	if end != 0 || c == '*' {
		at = skipColours(p.b, at+1)
	}
	h := times.ParseHead(p.b[at:], p.received, p.zone)
	if h.Len == 0 {
		return false
	}
	p.at, p.close, p.form = at+h.Len, end, h.Form
	if h.Sure {
		p.setTime(h.Sec, h.Nsec)
	}
	return true
}

func (p *parser) setTime(sec int64, nsec int) bool {
	p.Sec, p.Nsec, p.HasTime = sec, nsec, true
	return true
}

func (p *parser) setLevel(level slog.Level) bool {
	p.Level, p.HasLevel = level, true
	return true
}

// afterTime reads what follows a time, and reports whether it was one.
func (p *parser) afterTime() bool {
	switch {
	case p.form == times.Stamp && p.close == 0: // what follows is a host, unless it is a level
		if p.separators(); p.peek(0) == '[' {
			p.group()
		} else if !p.isCapital() || !p.level() {
			p.afterStamp()
		}
	case p.form == times.Dotted:
		return p.proxifier()
	default:
		p.tail()
	}
	switch p.form {
	case times.Java:
		if !p.HasLevel {
			p.nextLine()
		}
	case times.Short:
		return p.HasLevel
	case times.Slashed:
		return p.HasLevel && p.loggerFollows()
	}
	return true
}

// loggerFollows reports whether a name and a colon follow the level, as Spark and Hadoop
// write them: otherwise the year may be the last of the three parts of the day.
func (p *parser) loggerFollows() bool {
	rest := bytes.TrimLeft(p.b[p.at:], " ")
	end := bytes.IndexByte(rest, ' ')
	return end > 1 && rest[end-1] == ':'
}

// nextLine reads the level that java.util.logging writes at the beginning of the second
// line.
func (p *parser) nextLine() {
	if i := bytes.IndexByte(p.b[p.at:], '\n'); i >= 0 {
		p.at += i + 1
		if p.level(); p.peek(0) != ':' {
			p.HasLevel = false
		}
	}
}

// levelFirst reads a level with a time after it, or in brackets or before a colon.
func (p *parser) levelFirst() bool {
	alone := p.peek(0) == '['
	switch {
	case closing[p.peek(0)] != 0:
		p.group()
	case isLetter(p.peek(0)):
		coloured := p.at > 0 && p.b[p.at-1] == 'm'
		if (coloured || p.isCapital()) && p.level() {
			alone = p.peek(0) == ':' || coloured && p.b[p.at-1] == 'm'
		}
	}
	if !p.HasLevel {
		return false
	}
	alone = alone && p.sure
	for range 3 {
		if p.separators(); p.clock() {
			return p.form != times.Dotted
		}
		level := p.Level
		if closing[p.peek(0)] == 0 || !p.group() {
			break
		}
		p.Level = level
	}
	return alone
}

// prefixed reads a name that no prose has, a time and a level.
func (p *parser) prefixed() bool {
	name, rest, found := bytes.Cut(p.b[p.at:], blank)
	if !found || len(rest) == 0 {
		return false
	}
	if p.bgl(rest) {
		return true
	}
	if !isName(name) {
		return false
	}
	p.at += len(name)
	if p.separators(); !jsonwalk.IsDigit(p.peek(0)) || !p.clock() || p.form != times.Plain {
		return false
	}
	p.tail()
	return p.HasLevel
}

var blank = []byte(" ")

// inNames is what prose has only beside other words.
var inNames = [256]bool{'.': true, '_': true, '-': true, '$': true, '/': true, '[': true, ']': true, ':': true, '#': true, '@': true, '=': true, '%': true}

// isName reports whether a word is rather a name of something than prose.
func isName(word []byte) bool {
	special := false
	for i, c := range word {
		switch {
		case isLetter(c), c == ',':
		case c == '/' && i > 0 && word[i-1] == '/': // of an address
			return false
		case jsonwalk.IsDigit(c), inNames[c]:
			special = true
		default:
			return false
		}
	}
	return special && len(word) <= 128
}
