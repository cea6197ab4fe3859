package stacktrace

import "bytes"

// A Frame is a call in a stack. A part is nil where the text does not name it.
type Frame struct {
	Func, File []byte
	Again      bool // those before it were of a cause
	golang     bool // of the form that Go prints
}

// InnermostLast reports whether the innermost frame of a text comes last, as Python has it.
func InnermostLast(text []byte) bool { return bytes.Contains(text, pythonHeader) }

// Each calls take for each frame of a text, those of causes left out.
func Each(text []byte, take func(Frame)) {
	if at := bytes.LastIndex(text, pythonHeader); at >= 0 {
		text = text[at:]
	}
	var before []byte // the line before, if a line after it may be its file
	some, again := false, false
	for len(text) > 0 {
		var line []byte
		line, text, _ = bytes.Cut(text, newline)
		line = bytes.TrimRight(line, "\r")
		if some && (bytes.HasPrefix(line, []byte("Caused by: ")) || bytes.HasPrefix(line, []byte("Wrapped by: ")) || bytes.HasPrefix(line, previousPHP)) {
			break
		}
		again = again || bytes.Contains(line, innerEnd)
		if f, is := frame(line, before); is {
			f.Again = again
			again, some = false, true
			take(f)
		}
		before = line
	}
}

// frame reads a line.
func frame(line, before []byte) (f Frame, is bool) {
	s := bytes.TrimLeft(line, " \t")
	indented := len(s) < len(line)
	switch {
	case indented && bytes.HasPrefix(s, []byte("at ")):
		if name, is := numbered(before); is { // Rust
			return Frame{Func: name, File: withoutLine(s[len("at "):])}, true
		}
		return call(s[len("at "):]), true
	case indented && bytes.HasPrefix(s, []byte(`File "`)):
		return python(s)
	case indented && isElixir(s):
		at := bytes.Index(s, []byte(": "))
		name := s[at+len(": "):]
		if i := bytes.LastIndexByte(name, '/'); i > 0 { // the number of arguments
			name = name[:i]
		}
		return Frame{Func: name, File: withoutLine(s[:at])}, true
	case len(line) > 0 && line[0] == '\t' && bytes.Contains(s, []byte(".go:")):
		name := bytes.TrimSpace(before)
		if i := bytes.LastIndexByte(name, '('); i > 0 && name[len(name)-1] == ')' {
			name = name[:i]
		}
		file, _, _ := bytes.Cut(s, []byte(" +0x"))
		file = withoutLine(file)
		return Frame{Func: name, File: file, golang: true}, bytes.HasSuffix(file, []byte(".go")) && len(name) > 0 && name[0] != '/' &&
			(bytes.IndexByte(name, ' ') < 0 || bytes.HasPrefix(name, []byte("created by ")))
	case len(s) > 2 && s[0] == '#' && isDigit(s[1]):
		return php(s)
	case bytes.Contains(s, inTick), bytes.Contains(s, inQuote):
		return ruby(bytes.TrimPrefix(s, []byte("from ")))
	case len(s) > 0 && isDigit(s[len(s)-1]) && bytes.IndexByte(s, '@') >= 0 && bytes.IndexByte(s, ' ') < 0:
		i := bytes.IndexByte(s, '@') // Firefox, Safari
		return Frame{Func: s[:i], File: withoutLine(s[i+1:])}, bytes.Count(s[i:], []byte(":")) >= 2
	}
	return f, false
}

// python reads `File "x.py", line 3, in pay`.
func python(s []byte) (f Frame, is bool) {
	f.File, s, is = bytes.Cut(s[len(`File "`):], []byte(`", line `))
	_, f.Func, _ = bytes.Cut(s, []byte(", in "))
	return f, is
}

// php reads "#0 /app/x.php(12): Cart->pay()".
func php(s []byte) (f Frame, is bool) {
	_, s, is = bytes.Cut(s, []byte(" "))
	if open := bytes.LastIndex(s, []byte(" (")); open >= 0 && bytes.Contains(s[open:], []byte(".dart:")) { // Dart
		return Frame{Func: bytes.TrimSpace(s[:open]), File: withoutLine(bytes.TrimSuffix(s[open+len(" ("):], []byte(")")))}, true
	}
	file, name, called := bytes.Cut(s, []byte("): "))
	if !called {
		return Frame{Func: s}, is && bytes.HasPrefix(s, []byte("{main}"))
	}
	if i := bytes.LastIndexByte(file, '('); i > 0 {
		file = file[:i]
	}
	name, _, _ = bytes.Cut(name, []byte("("))
	return Frame{Func: name, File: file}, true
}

// isFirst reports whether a line is the first frame of PHP or Dart.
func isFirst(line []byte) bool {
	if !bytes.HasPrefix(line, []byte("#0 ")) {
		return false
	}
	_, is := php(line)
	return is || bytes.HasPrefix(line, []byte("#0 [internal function]: "))
}

// isElixir reports whether a line is "(shop 0.1.0) lib/shop.ex:12: Shop.pay/1".
func isElixir(s []byte) bool {
	at := bytes.Index(s, []byte(": "))
	name := bytes.TrimRight(s, "0123456789\r")
	return at > 0 && isDigit(s[at-1]) && (bytes.HasSuffix(name, []byte("/")) || bytes.HasSuffix(name, []byte(")"))) && (bytes.Contains(s[:at], []byte(".ex:")) || bytes.Contains(s[:at], []byte(".erl:")) || bytes.Contains(s[:at], []byte(".exs:")))
}

// ruby reads "cart.rb:3:in `pay'", with what may follow it.
func ruby(s []byte) (f Frame, is bool) {
	i := max(bytes.Index(s, inTick), bytes.Index(s, inQuote))
	name, _, is := bytes.Cut(s[i+len(inTick):], []byte("'"))
	return Frame{Func: name, File: withoutLine(s[:i])}, is
}

// numbered returns the function of "  3: shop::pay", as Rust prints it.
func numbered(line []byte) (name []byte, is bool) {
	number, name, is := bytes.Cut(bytes.TrimLeft(line, " "), []byte(": "))
	return name, is && len(number) > 0 && len(bytes.TrimLeft(number, "0123456789")) == 0
}

// call reads what follows "at" in Java, .NET and JavaScript:
//
//	com.shop.Cart.pay(Cart.java:12)
//	Shop.Cart.Pay(Int32 a) in /app/Cart.cs:line 12
//	async Cart.pay (/app/cart.js:3:5)
//	/app/cart.js:3:5
func call(s []byte) (f Frame) {
	s = bytes.TrimPrefix(s, []byte("async "))
	if end := bytes.Index(s, []byte(") in ")); end >= 0 {
		name, _, _ := bytes.Cut(s, []byte("("))
		file, _, _ := bytes.Cut(s[end+len(") in "):], []byte(":line "))
		return Frame{Func: name, File: file}
	}
	if open := bytes.Index(s, []byte(" (")); open >= 0 {
		return Frame{Func: s[:open], File: withoutLine(bytes.TrimRight(s[open+2:], ")"))}
	}
	if open := bytes.IndexByte(s, '('); open >= 0 {
		name, place := s[:open], bytes.TrimRight(s[open+1:], ")")
		if i := bytes.LastIndexByte(name, '/'); i >= 0 { // a module
			name = name[i+1:]
		}
		if bytes.IndexByte(place, '.') < 0 { // the arguments of .NET, or Java's Unknown Source
			place = nil
		}
		return Frame{Func: name, File: withoutLine(place)}
	}
	return Frame{File: withoutLine(s)}
}

// withoutLine takes the line and the column from a file's name.
func withoutLine(file []byte) []byte {
	for {
		short := bytes.TrimRight(file, "0123456789")
		if len(short) == len(file) || len(short) == 0 || short[len(short)-1] != ':' {
			return file
		}
		file = short[:len(short)-1]
	}
}

func isDigit(c byte) bool { return '0' <= c && c <= '9' }

// Line reads a frame of a list, without the JSON string's quotes, and reports whether the
// innermost comes last there. A text of no known form is a file, or none if it may be the error.
func Line(text []byte) (f Frame, innermostLast bool) {
	s := bytes.TrimLeft(text, " \t")
	switch {
	case bytes.HasPrefix(s, []byte("at ")):
		return call(s[len("at "):]), false
	case bytes.HasPrefix(s, []byte(`File \"`)):
		name, rest, _ := bytes.Cut(s[len(`File \"`):], []byte(`\", line `))
		_, f.Func, _ = bytes.Cut(rest, []byte(", in "))
		if i := bytes.IndexByte(f.Func, '\\'); i >= 0 { // the line of code
			f.Func = f.Func[:i]
		}
		return Frame{Func: f.Func, File: name}, true
	}
	if f, is := frame(s, nil); is {
		return f, false
	}
	if bytes.Contains(s, []byte(": ")) {
		return Frame{}, false
	}
	return Frame{File: withoutLine(s)}, false
}
