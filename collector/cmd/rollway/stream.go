package main

import (
	"fmt"
	"os"
	"sync"
	"unicode/utf8"

	"golang.org/x/term"

	"github.com/rollway/rollway/internal/encode"
	"github.com/rollway/rollway/internal/terminal"
)

// A stream is standard output or standard error. Into a file or a pipe bytes go as they
// are. On a terminal, whatever is written, it escapes what would control it or reorder
// text: control characters except newlines and tabs, C1 also as single bytes, and
// bidirectional controls. In JSON the escapes mean the same. It is safe for concurrent use.
type stream struct {
	file     *os.File
	terminal bool
	colors   bool // SGR sequences pass

	mu        sync.Mutex
	text, out []byte // guarded by mu; text: begin of a character that was written in part
}

func newStream(f *os.File) *stream { return &stream{file: f, terminal: terminal.Is(f)} }

// colored returns a stream of the same file that lets the colors of a writer pass which
// escapes all text itself, if colors are wanted there.
func (s *stream) colored() (c *stream, color bool) {
	color = s.terminal && colorWanted()
	return &stream{file: s.file, terminal: s.terminal, colors: color}, color
}

// width returns the columns of the terminal; 0: unknown.
func (s *stream) width() int {
	width, _, _ := term.GetSize(int(s.file.Fd()))
	return width
}

// Write implements io.Writer.
func (s *stream) Write(p []byte) (int, error) {
	if !s.terminal {
		return s.file.Write(p)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.text = append(s.text, p...)
	n := 0
	s.out, n = appendEscaped(s.out[:0], s.text, s.colors)
	s.text = s.text[:copy(s.text, s.text[n:])]
	if _, err := s.file.Write(s.out); err != nil {
		return 0, err
	}
	return len(p), nil
}

// appendEscaped appends p as a terminal may get it. It returns how many bytes of p it has
// appended: an incomplete character or color at the end of p is left.
func appendEscaped(dst, p []byte, colors bool) (_ []byte, n int) {
	for n < len(p) {
		r, size := utf8.DecodeRune(p[n:])
		switch {
		case r == '\x1b' && colors:
			length, whole := sgr(p[n:])
			if length == 0 {
				dst = append(dst, `\u001b`...)
				break
			}
			if !whole {
				return dst, n
			}
			dst, size = append(dst, p[n:n+length]...), length
		case r == utf8.RuneError && size == 1 && !utf8.FullRune(p[n:]):
			return dst, n
		case r == utf8.RuneError && size == 1 && p[n] < 0xa0:
			dst = fmt.Appendf(dst, `\x%02x`, p[n])
		case controls(r):
			dst = fmt.Appendf(dst, `\u%04x`, r)
		default:
			dst = append(dst, p[n:n+size]...)
		}
		n += size
	}
	return dst, n
}

// controls reports whether a terminal acts on r, or shows text in another order for it.
func controls(r rune) bool {
	switch {
	case r < ' ':
		return r != '\n' && r != '\t'
	case r < 0x7f:
		return false
	}
	return r <= 0x9f || r == 0x61c || r == 0x200e || r == 0x200f || r >= 0x202a && r <= 0x202e || r >= 0x2066 && r <= 0x2069
}

// sgr returns the length of the SGR sequence that p begins with, or may begin with if it is
// not whole; 0: it begins with none.
func sgr(p []byte) (length int, whole bool) {
	const longest = len(encode.ColorAlarm)
	for i, b := range p[:min(len(p), longest)] {
		switch {
		case i == 0, i == 1 && b == '[', i > 1 && (b == ';' || '0' <= b && b <= '9'):
		case i > 1 && b == 'm':
			return i + 1, true
		default:
			return 0, false
		}
	}
	if len(p) >= longest {
		return 0, false
	}
	return len(p), false
}
