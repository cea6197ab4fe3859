package textlog

import (
	"bytes"
	"log/slog"
	"math/bits"

	"github.com/rollway/rollway/internal/jsonwalk"
	"github.com/rollway/rollway/internal/levels"
	"github.com/rollway/rollway/internal/times"
)

// known are forms of lines that do not begin with a time. In them is
//
//	%t %l %c   a time, a level, a letter for one
//	%u %e      seconds since 1970 with a fraction; those and other units
//	%n %d      digits; four or more
//	%w %s      a word, a status of HTTP
//	%h         the rest of a head, which has a level
//
// A blank is any number of them, with what colours a terminal.
var known = [...]string{
	"%c%t %n %w:%n",           // klog, glog
	"%c, [%t",                 // Ruby's Logger
	"A, [%t",                  // the same without a level
	"[%c %t",                  // Tornado, Jupyter
	"%l[%d]",                  // logrus
	"%l |",                    // ActiveMQ
	"%l | %t",                 // likewise
	"%l | %w | %t",            // Java Service Wrapper
	"%l | %w %n | %t",         // its virtual machine
	"npm %l ",                 // npm
	"=%w REPORT==== %t",       // Erlang
	"=%l REPORT==== %t",       // the same with a level
	"[GIN-debug] %l",          // Gin
	"[GIN] %t | %s",           // its requests
	"[Nest] %n - %t %l",       // Nest
	"[%n] %t %h",              // NATS
	"[%w] %l %t",              // Cassandra's tools
	"[%w] %l %w - ",           // SLF4J's SimpleLogger
	"[%e] ",                   // Nagios
	"[%e] %l",                 // pino
	"%u ",                     // Squid, Zeek
	"%e %l",                   // zap
	"%e [%w] %l",              // Log4j's milliseconds
	"%n:%t ",                  // Zabbix
	"type=%w msg=audit(%u:%n", // auditd
}

// knownBy has the set of those forms that may begin with a byte, and whose second byte may be
// one.
var knownBy [2][256]uint32

func init() {
	for i, form := range known {
		for c := range 256 {
			first, second := mayBegin(form, byte(c))
			if first {
				knownBy[0][c] |= 1 << i
			}
			if second {
				knownBy[1][c] |= 1 << i
			}
		}
	}
}

// mayBegin reports whether the first and the second byte of a form may be c.
func mayBegin(form string, c byte) (first, second bool) {
	if form[0] != '%' {
		second, _ = mayBegin(form[1:]+" ", c)
		return c == form[0], second
	}
	switch form[1] {
	case 'l':
		return isUpper(c), isUpper(c)
	case 'c':
		second, _ = mayBegin(form[2:]+" ", c)
		return isUpper(c), second
	case 'w':
		return true, true
	}
	digit := jsonwalk.IsDigit(c)
	return digit, digit || form[1] == 'n' && c == ':' || form[1] == 'e' && c == '.'
}

// known reads the last of those forms that the line begins with.
func (p *parser) known(start int) bool {
	best := Head{}
	for set := knownBy[0][p.peek(0)] & knownBy[1][p.peek(1)]; set != 0; set &= set - 1 {
		if p.again(start) && p.matches(known[bits.TrailingZeros32(set)]) {
			best = p.Head
		}
	}
	p.Head = best
	return best.HasTime || best.HasLevel
}

// matches reports whether the line begins with a form.
func (p *parser) matches(form string) bool {
	for i := 0; i < len(form); i++ {
		at, ok := p.at, p.at < len(p.b)
		switch {
		case !ok:
		case form[i] == ' ':
			p.at = skipBlanks(p.b, at)
		case form[i] != '%':
			p.at++
			ok = p.b[at] == form[i]
		default:
			i++
			ok = p.part(form[i])
		}
		if !ok || p.at == at {
			return false
		}
	}
	return true
}

// part reads what a letter of a form says.
func (p *parser) part(letter byte) bool {
	at := p.at
	switch letter {
	case 't':
		return p.clock() && p.form != times.Dotted
	case 'l':
		return closing[p.peek(0)] != 0 && p.group() && p.HasLevel || p.level()
	case 'c':
		p.at++
		return p.setLetter(p.b[at])
	case 's':
		p.at += len("200")
		return p.status(at)
	case 'h':
		p.tail()
		return p.HasLevel
	}
	for c := p.peek(0); jsonwalk.IsDigit(c) || c > ' ' && c != ':' && c != ']' && (letter == 'w' || letter != 'n' && letter != 'd' && (c == '.' || c == 'e' || c == '+')); c = p.peek(0) {
		p.at++
	}
	switch text := p.b[at:p.at]; letter {
	case 'd':
		return len(text) >= 4
	case 'u':
		return bytes.IndexByte(text, '.') > 0 && p.since1970(text)
	case 'e':
		return (at > skipBlanks(p.b, 0) || len(text) > len("1779972000")) && p.since1970(text)
	}
	return true
}

// since1970 reads a number of seconds or smaller units that is from 2001 and not of the future.
func (p *parser) since1970(text []byte) bool {
	if len(text) < len("1.77e+09") {
		return false
	}
	sec, nsec, ok := times.Unix(text)
	return ok && sec >= 1e9 && sec <= p.received.Unix()+86400 && p.setTime(sec, nsec)
}

// special reads other such forms:
//
//	7:M 28 May 2026 12:40:00.123 # …       Redis
//	D/Tag( 1234): …                        logcat in brief
//	fail: Shop.Cart[7]                     .NET, with its message in the next line
func (p *parser) special() bool {
	switch c := p.peek(0); {
	case isUpper(c) && p.peek(1) == '/':
		return p.letter()
	case jsonwalk.IsDigit(c):
		return p.redis()
	case p.peek(4) == ':' && p.peek(5) == ' ' || p.peek(4) == '\x1b':
		return p.dotNet()
	}
	return false
}

// dotNet reads a level of four letters, and a category with the number of an event.
func (p *parser) dotNet() bool {
	word := p.b[p.at:min(p.at+4, len(p.b))]
	rest, colon := bytes.CutPrefix(p.b[skipColours(p.b, p.at+len(word)):], []byte(": "))
	category, _, _ := bytes.Cut(rest, []byte("\n"))
	if p.HasTime { // with its message in the same line
		category, _, _ = bytes.Cut(category, blank)
	}
	name, id, _ := bytes.Cut(bytes.TrimRight(category, "\r"), []byte("["))
	switch string(word) {
	case "trce", "dbug", "info", "warn", "fail", "crit":
		level, _ := levels.ParseNamed(word)
		return colon && len(name) > 0 && bytes.IndexByte(name, ' ') < 0 && len(id) > 1 && len(bytes.Trim(id, "0123456789")) == 1 && id[len(id)-1] == ']' && p.setLevel(level)
	}
	return false
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
