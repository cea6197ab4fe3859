package stacktrace

import "bytes"

// Causes calls take for each cause that a text tells of, the nearest first:
//
//	Caused by: a.B: text · caused by: B: text     Java, pino
//	 ---> A.B: text, also within a line           .NET
//	[cause]: B: text                              Node.js
//	[previous exception] [object] (B(code: 0): text at file)   PHP's Monolog
//	a traceback before "The above exception …"    Python
//	Caused by:, and lines of causes               Rust's anyhow
//
// Their type is nil where it is not told.
func Causes(text []byte, take func(Trace)) {
	if last := bytes.LastIndex(text, pythonHeader); last >= 0 {
		pythonCauses(text[:last], take)
		return
	}
	dotNetCauses(text, take)
	for rest := text; len(rest) > 0; {
		line, after, _ := bytes.Cut(rest, newline)
		line = bytes.TrimRight(line, "\r")
		if string(line) == "Caused by:" {
			listedCauses(after, take)
			return
		}
		if at := causeIn(line); at > 0 {
			head := rest[at:]
			takeHead(head[:headEnd(head)], take)
		}
		rest = after
	}
}

// causeIn returns where a cause begins in a line that has one; 0: it has none.
func causeIn(line []byte) int {
	if bytes.HasPrefix(line, []byte("Caused by: ")) || bytes.HasPrefix(line, []byte("caused by: ")) {
		return len("Caused by: ")
	}
	if bytes.HasPrefix(line, previousPHP) {
		return len(previousPHP)
	}
	const node = "[cause]: "
	if s := bytes.TrimLeft(line, " "); len(s) < len(line) && bytes.HasPrefix(s, []byte(node)) {
		return len(line) - len(s) + len(node)
	}
	return 0
}

// takeHead takes a cause, a type and a message.
func takeHead(head []byte, take func(Trace)) {
	var t Trace
	if t.head(head); t.Type == nil {
		t.Message = bytes.TrimSpace(head)
	}
	take(t)
}

var (
	previousPHP = []byte("[previous exception] ")
	arrow       = []byte(" ---> ")
	frameOfAt   = []byte("\n   at ")
)

// dotNetCauses takes what follows arrows before the first frame.
func dotNetCauses(text []byte, take func(Trace)) {
	end := bytes.Index(text, frameOfAt)
	if end < 0 {
		return
	}
	_, heads, found := bytes.Cut(text[:end], arrow)
	for found {
		var head []byte
		head, heads, found = bytes.Cut(heads, arrow)
		takeHead(head, take)
	}
}

// pythonLinks are what is between a cause and the traceback after it.
var pythonLinks = [][]byte{[]byte("\n\nThe above exception was the direct cause of "), []byte("\n\nDuring handling of the above exception, another ")}

// pythonCauses takes the tracebacks in a text, the last first, up to one that no link follows.
func pythonCauses(text []byte, take func(Trace)) {
	for {
		at := bytes.LastIndex(text, pythonHeader)
		if at < 0 {
			return
		}
		end := -1
		for _, link := range pythonLinks {
			end = max(end, bytes.LastIndex(text[at:], link))
		}
		if end < 0 {
			return
		}
		if head := pythonHead(text[at:][:end]); head != nil {
			takeHead(head, take)
		}
		text = text[:at]
	}
}

// listedCauses takes the indented lines that a text begins with, which may be numbered.
func listedCauses(text []byte, take func(Trace)) {
	for len(text) > 0 && (text[0] == ' ' || text[0] == '\t') {
		var line []byte
		line, text, _ = bytes.Cut(text, newline)
		if line = bytes.TrimSpace(line); len(line) == 0 {
			return
		}
		if message, is := numbered(line); is {
			line = message
		}
		take(Trace{Message: line})
	}
}
