package textlog

import (
	"bytes"
	"log/slog"
	"time"
	"unicode"

	"github.com/rollway/rollway/internal/jsonwalk"
)

// A Joiner tells which lines of a stream only continue the one before: those that are
// indented, and those of stack traces that are not. The zero value is at the beginning of a
// stream. What is in doubt begins an event.
//
//	Caused by: … · Suppressed: … · ... 12 more · at pkg.Type(File.java:7)   Java
//	Traceback (most recent call last):, its last line, what links two      Python
//	goroutine 1 [running]:, main.main(), created by …                      Go
//	Stack trace: · #0 /a.php(7): f() · thrown in …                         PHP
//	--- End of … stack trace … ---                                         .NET
//	} · }, · ] after what is indented                                      Node
//
// A traceback of Python, and a line that begins with the class of an error
// (java.io.IOException: closed), belong to the line before only if that states a level from
// WARN on: a program that ends has logged something else before.
//
// Of a line that a container runtime has put a time, the stream and a tag before, what the
// container has written counts, and lines of the other stream do not belong to it. After the
// tag P comes the rest of the line.
type Joiner struct {
	// Split is how long the parts are, except the last, into which the sender may have cut
	// a line without saying so; 0: it has cut none. A part has no line end.
	Split int

	state joinState
	first []byte // line of the event, which does not change; nil: there is none
	blank bool   // lines were, since the last one
	cri   criHead
	cut   int  // how long the head of the last line is
	glued bool // that line is the rest of the one before
	ended bool // it had a line end
	apart bool // the one before it had none
}

// Blank tells of a blank line. What is indented after it begins an event.
func (j *Joiner) Blank() { j.blank = true }

type joinState byte

const (
	plainText  joinState = iota
	indented             // the line before is
	traceback            // after the first line of a traceback
	traced               // after its last
	goroutines           // of Go
)

// MaxJoined is how many lines an event may have, and KeepJoined how many bytes of memory for
// their text a connection keeps.
const (
	MaxJoined  = 1000
	KeepJoined = 4 << 10
)

// Next reports whether a line continues the one before. One that is blank does so where
// traces have such lines.
func (j *Joiner) Next(line []byte) bool {
	head, ended := criHeadOf(line), bytes.HasSuffix(line, []byte("\n"))
	if j.Split > 0 && len(line) == j.Split && head.size == 0 && !ended {
		head.part = true
	}
	line = bytes.TrimRight(line[head.size:], " \t\r\n")
	if j.first == nil || head.stream != j.cri.stream || !j.cri.part && !j.continues(line) {
		*j = Joiner{Split: j.Split, first: line, cri: head, ended: ended}
		if bytes.HasPrefix(line, pythonHead) {
			j.state = traceback
		}
		return false
	}
	j.blank = len(line) == 0
	j.cut, j.glued, j.cri.part = head.size, j.cri.part, head.part
	j.apart, j.ended = !j.ended, ended
	return true
}

// Append appends to the text of an event the line that Next has said continues it.
func (j *Joiner) Append(event, line []byte) []byte {
	switch {
	case j.glued && !j.cri.part && j.cri.size > 0:
		event[j.cri.size-len("P ")] = 'F' // it is whole
	case !j.glued && j.apart:
		event = append(event, '\n')
	}
	return append(event, line[j.cut:]...)
}

// Plain reports whether the text of the event is its lines as they are, each after the end
// of the one before.
func (j *Joiner) Plain() bool { return j.cri.size == 0 }

// failed reports whether the event states a level from WARN on.
func (j *Joiner) failed() bool {
	h, _ := Parse(j.first, time.Time{}, time.UTC)
	return h.HasLevel && h.Level >= slog.LevelWarn
}

var (
	pythonHead  = []byte("Traceback (most recent call last):")
	pythonLinks = []string{"During handling of the above exception, another exception occurred:", "The above exception was the direct cause of the following exception:"}
	goHeads     = []string{"panic: ", "fatal error: "}
	links       = []string{"Caused by: ", "Suppressed: ", "Stack trace:", "stack backtrace:"}
)

// continues is Next for a line that is not the first.
func (j *Joiner) continues(line []byte) bool {
	if len(line) == 0 {
		return j.state == traced || j.state == goroutines || hasAny(j.first, goHeads)
	}
	switch c := line[0]; {
	case c == ' ' || c == '\t':
		if j.state == plainText {
			j.state = indented
		}
		return !j.blank
	case j.state == traceback:
		j.state = traced
		return isException(line)
	case c == 'T' && bytes.HasPrefix(line, pythonHead) && (j.state == traced || j.failed()):
		j.state = traceback
		return true
	case j.state == traced && hasAny(line, pythonLinks):
		return true
	case isHeader(line):
		return j.failed()
	case c == 'g' && bytes.HasPrefix(line, []byte("goroutine ")) && bytes.HasSuffix(line, []byte("]:")):
		j.state = goroutines
		return true
	case j.state == goroutines:
		return bytes.HasPrefix(line, []byte("created by ")) || isCall(line)
	case c == '}' || c == ']':
		closes := j.state == indented && len(bytes.Trim(line, "}]),;")) == 0
		j.state = plainText
		return closes
	}
	return hasAny(line, links) || isFrame(line)
}

func hasAny(line []byte, beginnings []string) bool {
	for _, b := range beginnings {
		if len(line) >= len(b) && string(line[:len(b)]) == b {
			return true
		}
	}
	return false
}

// isFrame reports whether a line is a frame of a stack that has lost its indent.
func isFrame(line []byte) bool {
	switch line[0] {
	case 'a': // at a.b.C(D.java:7)
		open := bytes.IndexByte(line, '(')
		return bytes.HasPrefix(line, []byte("at ")) && open > 0 && line[len(line)-1] == ')' && bytes.IndexByte(line[3:open], ' ') < 0
	case '.': // ... 12 more
		return bytes.HasPrefix(line, []byte("... ")) && (bytes.HasSuffix(line, []byte(" more")) || bytes.HasSuffix(line, []byte(" common frames omitted")))
	case '#': // #0 /a.php(7): f()
		digits := bytes.TrimLeft(line[1:], "0123456789")
		return len(digits) < len(line)-1 && len(digits) > 1 && digits[0] == ' ' && (bytes.Contains(digits, []byte("): ")) || bytes.HasPrefix(digits, []byte(" {main}")))
	case '-':
		return bytes.HasPrefix(line, []byte("--- End of ")) && bytes.HasSuffix(line, []byte(" ---"))
	}
	return false
}

// isException reports whether a line is the last of a traceback: a class, and perhaps a
// colon and a text.
func isException(line []byte) bool {
	class, _, _ := bytes.Cut(line, []byte(":"))
	for _, c := range class {
		if !isLetter(c) && c != '.' && c != '_' && !jsonwalk.IsDigit(c) && c < 0x80 {
			return false
		}
	}
	return len(class) > 0
}

// isHeader reports whether a line begins with the class of an error, after which is a colon
// or nothing.
func isHeader(line []byte) bool {
	class, _, found := bytes.Cut(line, []byte(": "))
	if !found {
		class = bytes.TrimSuffix(class, []byte(":"))
	}
	for _, suffix := range []string{"Exception", "Error", "Throwable"} {
		if len(class) < len(suffix) || string(class[len(class)-len(suffix):]) != suffix {
			continue
		}
		name := class[bytes.LastIndexAny(class, `.\`)+1:]
		if n := len(name) - len(suffix); n >= 0 {
			return isUpper(name[0]) && (n > 0 || len(name) < len(class)) && bytes.IndexFunc(class, notInClass) < 0
		}
	}
	return false
}

// notInClass reports whether c cannot be in the name of a class with its packages.
func notInClass(c rune) bool {
	return !unicode.IsLetter(c) && !unicode.IsDigit(c) && c != '.' && c != '_' && c != '$' && c != '\\'
}

// isCall reports whether a line is a function and its arguments, as in "main.f(0x1, ...)".
func isCall(line []byte) bool {
	open := bytes.IndexByte(line, '(')
	return open > 0 && line[len(line)-1] == ')' && bytes.IndexByte(line[:open], ' ') < 0 && bytes.IndexByte(line[:open], '.') > 0
}
