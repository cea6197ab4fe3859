// Package fingerprint makes one text of failures that are the same, whichever library has
// logged them and at whichever release.
//
// Version 1 is "1-" and 16 hexadecimal digits: the hash FNV-1a of 64 bits of these texts,
// each followed by a zero byte:
//
//   - The type, without what is before its last point, colon, backslash or slash: an
//     ArithmeticException is one with its package or without.
//   - The first line of the message, at most MaxMessage bytes of it, as package template makes
//     it, with '<str>' for what is in single quotes or backquotes.
//   - Of at most three frames, the innermost first, the function and the file. Those of the
//     application are chosen; if there are none, all count. A function is the last part of its
//     name, a file the name up to its first point; digits, and what follows a hyphen and has
//     digits, are left out: lines, versions and the names of bundles change with releases.
//
// A library that logs no stack makes another fingerprint than one that does. What has made
// fingerprints of a version stays as it is: a change has the next number.
package fingerprint

import (
	"bytes"
	"encoding/binary"
	"encoding/hex"

	"github.com/rollway/rollway/collector/stacktrace"
	"github.com/rollway/rollway/collector/template"
)

// Size is the length of a fingerprint.
const Size = len(version) + 16

const version = "1-"

// MaxMessage is how many bytes of a message count.
const MaxMessage = 1 << 10

// top is how many frames count.
const top = 3

// A Hash makes the fingerprint of one error: Type, Message and then its frames, each as far as
// it is known. Its zero value is one of nothing.
type Hash struct {
	sum    uint64
	frames [2][top]stacktrace.Frame // of the application, of all
	n      [2]int
	last   bool // the innermost frame comes last
	some   bool
}

func (h *Hash) add(b []byte) {
	if h.sum == 0 {
		h.sum = 14695981039346656037
	}
	for _, c := range b {
		h.sum = (h.sum ^ uint64(c)) * 1099511628211
	}
}

func (h *Hash) end() { h.add(zero) }

var zero = []byte{0}

// Type adds the type.
func (h *Hash) Type(name []byte) {
	h.add(name[bytes.LastIndexAny(name, `.:\/`)+1:])
	h.end()
	h.some = h.some || len(name) > 0
}

// Message adds the message, for which it uses scratch.
func (h *Hash) Message(text []byte, scratch []byte) []byte {
	text = bytes.TrimSpace(text)
	text, _, _ = bytes.Cut(text, []byte("\n"))
	scratch = template.Append(scratch[:0], text[:min(len(text), MaxMessage)])
	for rest := bytes.TrimSpace(scratch); len(rest) > 0; {
		at := bytes.IndexAny(rest, "'`")
		if at < 0 {
			h.add(rest)
			break
		}
		end := bytes.IndexAny(rest[at+1:], "'`") + 1
		if word := at > 0 && isLetter(rest[at-1]); word || end <= 0 {
			h.add(rest[:at+1])
			rest = rest[at+1:]
			continue
		}
		h.add(rest[:at])
		h.add([]byte("'<str>'"))
		rest = rest[at+end+1:]
	}
	h.end()
	h.some = h.some || len(text) > 0
	return scratch
}

func isLetter(c byte) bool { return 'a' <= c|0x20 && c|0x20 <= 'z' || c >= 0x80 }

// Stack adds the frames of a text.
func (h *Hash) Stack(text []byte) {
	h.last = stacktrace.InnermostLast(text)
	stacktrace.Each(text, func(f stacktrace.Frame) { h.Frame(f, IsApp(f)) })
}

// Last says that the innermost frame comes last.
func (h *Hash) Last() { h.last = true }

// Frame adds a frame, which must stay as it is until Append.
func (h *Hash) Frame(f stacktrace.Frame, app bool) {
	if f.Again {
		h.n = [2]int{}
	}
	h.keep(1, f)
	if app {
		h.keep(0, f)
	}
}

// keep keeps the first frames, or the last ones, in the order in which they come.
func (h *Hash) keep(of int, f stacktrace.Frame) {
	list := &h.frames[of]
	if h.n[of] < top {
		list[h.n[of]] = f
	} else if h.last {
		copy(list[:], list[1:])
		list[top-1] = f
	}
	h.n[of]++
}

// Append appends the fingerprint; nothing, if nothing was added.
func (h *Hash) Append(dst []byte) []byte {
	of := 0
	if h.n[0] == 0 {
		of = 1
	}
	n := min(h.n[of], top)
	if !h.some && n == 0 {
		return dst
	}
	for i := range n {
		f := h.frames[of][i]
		if h.last {
			f = h.frames[of][n-1-i]
		}
		name, _, _ := bytes.Cut(f.Func, []byte(" [as "))
		h.stable(name[bytes.LastIndexAny(name, `.:\/>#`)+1:])
		name = f.File[bytes.LastIndexAny(f.File, `\/`)+1:]
		if i := bytes.IndexByte(name, '.'); i > 0 {
			name = name[:i]
		}
		h.stable(name)
	}
	var b [8]byte
	return hex.AppendEncode(append(dst, version...), binary.BigEndian.AppendUint64(b[:0], h.sum))
}

// stable adds a name without what changes with releases.
func (h *Hash) stable(name []byte) {
	if i := bytes.LastIndexByte(name, '-'); i > 0 && bytes.ContainsAny(name[i:], "0123456789") {
		name = name[:i]
	}
	for i, c := range name {
		if c < '0' || c > '9' {
			h.add(name[i : i+1])
		}
	}
	h.end()
}

// IsApp reports whether a frame is of the application, and of no library or runtime.
func IsApp(f stacktrace.Frame) bool {
	for _, part := range libraryFiles {
		if bytes.Contains(f.File, part) {
			return false
		}
	}
	for _, prefix := range libraryFuncs {
		if bytes.HasPrefix(f.Func, prefix) {
			return false
		}
	}
	return len(f.Func)+len(f.File) > 0
}

// libraryFiles are parts of paths, libraryFuncs beginnings of functions' names, of code that
// is not the application's.
var (
	libraryFiles = split("/site-packages/ /dist-packages/ /lib/python /lib64/python <frozen <string> node_modules/ node: internal/modules/ internal/process/ internal/main/ <anonymous> /usr/local/go/src/ /usr/lib/go /go/pkg/mod/ /vendor/ /gems/ /lib/ruby/ /rustc/ /.cargo/ /usr/share/dotnet/ dart: package:flutter/ (stdlib (kernel (elixir (phoenix (plug (ecto (cowboy")
	libraryFuncs = split("java. javax. jakarta. jdk. sun. com.sun. kotlin. kotlinx. scala. groovy. akka. reactor. io.netty. io.undertow. io.micronaut. io.quarkus. org.springframework. org.apache. org.hibernate. org.eclipse. org.junit. org.jboss. com.fasterxml. com.zaxxer. feign. okhttp3. System. Microsoft. runtime. net/http. reflect. core:: std:: alloc:: tokio:: rust_begin_unwind {main} process.processTicksAndRejections")
)

func split(words string) [][]byte { return bytes.Fields([]byte(words)) }
