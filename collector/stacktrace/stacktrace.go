// Package stacktrace reads what runtimes print of an error and its stack: Python, Java,
// .NET, JavaScript, Go, Ruby, PHP, Rust, Elixir and Dart. Nothing is allocated; what it returns is part of
// the text.
package stacktrace

import "bytes"

// A Trace is what a text tells of an error: the outermost one, if it has causes.
type Trace struct {
	Type, Message []byte // nil: it does not say
	Traced        bool   // there are frames
}

// Parse reads a text. What is not certainly a trace has no frames; its type is told if it is
// the word before a colon and ends with Error or Exception.
func Parse(text []byte) (t Trace) {
	text = bytes.TrimSpace(text)
	if head := pythonHead(text); head != nil {
		t.head(head)
		t.Traced = true
		return t
	}
	golang := false // the first frame is Go's
	Each(text, func(f Frame) { golang, t.Traced = golang || f.golang && !t.Traced, true })
	line, _, _ := bytes.Cut(text, newline)
	switch {
	case !t.Traced:
		if kind, message := cutHead(text); isError(kind) {
			t.Type, t.Message = kind, message
		}
	case bytes.HasPrefix(text, panicPrefix):
		t.Message = bytes.TrimSpace(between(text, panicPrefix, []byte("\n\ngoroutine ")))
	case golang:
	case bytes.HasPrefix(text, threadPrefix) && bytes.Contains(line, panicked):
		t.Message = rustMessage(text)
	case bytes.HasSuffix(line, []byte(")")) && (bytes.Contains(line, inTick) || bytes.Contains(line, inQuote)):
		t.ruby(line)
	default:
		t.head(text[:headEnd(text)])
	}
	return t
}

// Find returns the part of a text that is a trace, up to its end, and what that tells; it has
// no frames if there is none. It begins with the first line of a traceback, or a line
// with the type of an error, before the first frame; or with Go's panic.
func Find(text []byte) ([]byte, Trace) {
	start := -1
	var before []byte // the line before
	goroutine, numbered := later{[]byte("\ngoroutine ")}, later{[]byte("\n#0 ")}
	for at := 0; at < len(text); {
		line, _, _ := bytes.Cut(text[at:], newline)
		s := bytes.TrimLeft(line, " \t")
		switch {
		case bytes.HasPrefix(s, pythonHeader), bytes.HasPrefix(line, panicPrefix) && goroutine.in(text[at:]):
			return text[at:], Parse(text[at:])
		case len(s) < len(line) && bytes.HasPrefix(s, []byte("at ")) && bytes.IndexAny(s, "(:") > 0:
			if kind, _ := cutHead(before); start < 0 && bytes.IndexByte(kind, '.') > 0 {
				start = at - len(before) - 1
			}
			if start < 0 {
				return nil, Trace{}
			}
			return text[start:], Parse(text[start:])
		case start >= 0 && (len(s) < len(line) && isElixir(s) || bytes.HasPrefix(line, []byte("#0 ")) && bytes.Contains(line, []byte(".dart:"))):
			return text[start:], Parse(text[start:])
		case bytes.HasPrefix(line, threadPrefix) && bytes.Contains(line, panicked):
			return text[at:], Parse(text[at:])
		case bytes.Contains(line, monologHead) && numbered.in(text[at:]):
			at += bytes.Index(line, monologHead)
			return text[at:], Parse(text[at:])
		case start < 0 && isErrorHead(s):
			start = at + len(line) - len(s)
		}
		before = line
		at += len(line) + 1
	}
	return nil, Trace{}
}

// A later looks for a part in ends of a text, each shorter than the one before: what is not in
// one is not in the next, and many ends cost no more than one.
type later struct{ part []byte }

func (l *later) in(end []byte) bool {
	if l.part == nil || bytes.Contains(end, l.part) {
		return l.part != nil
	}
	l.part = nil
	return false
}

// isErrorHead reports whether a line begins with the type of an error.
func isErrorHead(line []byte) bool {
	for _, before := range headsBefore {
		line = bytes.TrimPrefix(line, []byte(before))
	}
	if bytes.HasPrefix(line, []byte(threadHead)) {
		_, line, _ = bytes.Cut(line[len(threadHead):], []byte(`" `))
	}
	kind, _ := cutHead(line)
	return isError(kind)
}

// What may be before the type of an error.
const threadHead = `Exception in thread "`

var headsBefore = [...]string{"Unhandled exception. ", "Uncaught "}

var (
	newline         = []byte("\n")
	errorSuffix     = []byte("Error")
	exceptionSuffix = []byte("Exception")
	panicPrefix     = []byte("panic: ")
	threadPrefix    = []byte("thread '")
	panicked        = []byte("panicked at ")
	monologHead     = []byte("[object] (")
	elixirHead      = []byte("** (")
	pythonHeader    = []byte("Traceback (most recent call last):")
	inTick, inQuote = []byte(":in `"), []byte(":in '")
	innerEnd        = []byte("--- End of inner exception stack trace ---")
)

// pythonHead returns what follows the frames of Python's last traceback.
func pythonHead(text []byte) []byte {
	at := bytes.LastIndex(text, pythonHeader)
	if at < 0 {
		return nil
	}
	rest := text[at+len(pythonHeader):]
	for len(rest) > 0 && (rest[0] == '\n' || rest[0] == '\r' || rest[0] == ' ' || rest[0] == '\t' || rest[0] == '>') {
		if rest[0] == ' ' || rest[0] == '\t' || rest[0] == '>' { // a frame
			_, after, more := bytes.Cut(rest, newline)
			if !more {
				return nil
			}
			rest = after
			continue
		}
		rest = rest[1:]
	}
	return rest
}

// headEnd is where the first frame of a text begins, or what tells of a cause or a stack.
func headEnd(text []byte) int {
	for at := 0; at < len(text); {
		line, _, _ := bytes.Cut(text[at:], newline)
		trimmed := bytes.TrimLeft(line, " \t")
		if at > 0 && (bytes.HasPrefix(trimmed, []byte("at ")) && len(trimmed) < len(line) || bytes.HasPrefix(line, []byte("Stack trace:")) ||
			causeIn(line) > 0 || bytes.HasPrefix(trimmed, []byte("[cause]: ")) || bytes.HasPrefix(trimmed, []byte("---> ")) || bytes.HasPrefix(trimmed, []byte("... ")) ||
			bytes.HasPrefix(line, []byte("[stacktrace]")) || isFirst(line) || len(trimmed) < len(line) && isElixir(trimmed)) {
			return at
		}
		at += len(line) + 1
	}
	return len(text)
}

// head reads "Type: message".
func (t *Trace) head(head []byte) {
	line, _, _ := bytes.Cut(head, newline)
	if i := bytes.Index(line, monologHead); i >= 0 { // [object] (a\B(code: 0): message at /app/x.php:12)
		kind, rest, _ := bytes.Cut(head[i+len(monologHead):], []byte("(code: "))
		if _, message, is := bytes.Cut(rest, []byte("): ")); is && isType(kind) {
			t.Type, t.Message = kind, bytes.TrimSuffix(bytes.TrimRight(message, " \r\n"), []byte(")"))
			if at := bytes.LastIndex(t.Message, []byte(" at ")); at >= 0 {
				if file := withoutLine(t.Message[at:]); bytes.IndexByte(file, '.') > 0 && len(file) < len(t.Message)-at {
					t.Message = t.Message[:at]
				}
			}
			return
		}
	}
	for _, before := range headsBefore {
		if i := bytes.Index(line, []byte(before)); i >= 0 {
			head = head[i+len(before):]
		}
	}
	if i := bytes.Index(line, []byte(threadHead)); i >= 0 {
		_, head, _ = bytes.Cut(head[i+len(threadHead):], []byte(`" `))
	}
	t.Type, t.Message = cutHead(head)
	for rest := bytes.TrimSpace(head); t.Type == nil; { // there may be a message before it
		_, rest, _ = bytes.Cut(rest, newline)
		if rest = bytes.TrimSpace(rest); len(rest) == 0 { // else cutHead skips it for each line
			break
		}
		if kind, message := cutHead(rest); isError(kind) {
			t.Type, t.Message = kind, message
		}
	}
	if i := bytes.Index(t.Message, []byte(" ---> ")); i >= 0 { // .NET's cause
		t.Message = bytes.TrimSpace(t.Message[:i])
	}
	if i := bytes.LastIndex(t.Message, []byte(" in /")); i >= 0 && bytes.Contains(t.Message[i:], []byte(".php:")) {
		t.Message = t.Message[:i]
	}
}

// cutHead returns the type before a colon or on a line of its own, and the message.
func cutHead(head []byte) (kind, message []byte) {
	head = bytes.TrimSpace(head)
	line, _, _ := bytes.Cut(head, newline)
	if name, is := bytes.CutPrefix(line, elixirHead); is {
		if name, _, is = bytes.Cut(name, []byte(") ")); is && isType(name) {
			return name, bytes.TrimSpace(head[len(elixirHead)+len(name)+len(") "):])
		}
	}
	kind, message = bytes.TrimRight(line, "\r"), head[len(line):]
	if i := bytes.Index(line, []byte(": ")); i >= 0 {
		kind, message = line[:i], head[i+2:]
	} else if bytes.HasSuffix(kind, []byte(":")) {
		kind = kind[:len(kind)-1]
	}
	if i := bytes.Index(kind, []byte(" [")); i > 0 && kind[len(kind)-1] == ']' { // Node's code
		kind = kind[:i]
	}
	if !isType(kind) {
		return nil, nil
	}
	return kind, bytes.TrimSpace(message)
}

// isError reports whether a type is called as errors are.
func isError(kind []byte) bool {
	return bytes.HasSuffix(kind, errorSuffix) || bytes.HasSuffix(kind, exceptionSuffix)
}

// maxType is how long the name of a type is at most.
const maxType = 256

// isType reports whether b can be the name of a type.
func isType(b []byte) bool {
	if len(b) == 0 || len(b) > maxType || !isLetter(b[0]) {
		return false
	}
	for _, c := range b {
		if !isLetter(c) && (c < '0' || c > '9') && bytes.IndexByte([]byte(".$\\:+`/<>"), c) < 0 {
			return false
		}
	}
	return true
}

func isLetter(c byte) bool { return 'a' <= c|0x20 && c|0x20 <= 'z' || c == '_' || c >= 0x80 }

// between returns what follows a prefix, up to end or the text's end.
func between(text, prefix, end []byte) []byte {
	text, _, _ = bytes.Cut(text[len(prefix):], end)
	return bytes.TrimSuffix(text, []byte(" [recovered]"))
}

// rustMessage returns the message of a panic: on the next line, or of old in quotes.
func rustMessage(text []byte) []byte {
	line, rest, _ := bytes.Cut(text, newline)
	_, where, _ := bytes.Cut(line, panicked)
	if len(where) > 0 && where[0] == '\'' {
		if end := bytes.LastIndex(where, []byte("', ")); end > 0 {
			return where[1:end]
		}
	}
	message, _, _ := bytes.Cut(rest, newline)
	return bytes.TrimSpace(message)
}

// ruby reads "file.rb:3:in `pay': message (Type)".
func (t *Trace) ruby(line []byte) {
	open := bytes.LastIndex(line, []byte(" ("))
	start := bytes.Index(line, []byte("': "))
	if start < 0 || open < start || !isType(line[open+2:len(line)-1]) {
		return
	}
	t.Type, t.Message = line[open+2:len(line)-1], line[min(start+3, open):open]
}
