package remote

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"strconv"
)

// An answerReader reads the JSON of an answer, as far as encoding/json accepts
// it, from a stream. It takes some KiB whatever the answer holds: of a string
// only the first maxQuote bytes are kept, and after limit bytes it gives up. An
// io.EOF from a method means that the JSON is not whole.
type answerReader struct {
	r           *bufio.Reader
	left, limit int64
	depth       int
	buf         []byte // the latest string, raw and without quotes, or word
}

// maxWord is the longest number in bytes.
const maxWord = 64

func newAnswerReader(r io.Reader, limit int64) *answerReader {
	return &answerReader{r: bufio.NewReader(r), left: limit, limit: limit}
}

func (a *answerReader) byte() (byte, error) {
	c, err := a.r.ReadByte()
	if err == nil && a.left == 0 {
		return 0, fmt.Errorf("it is longer than %d bytes", a.limit)
	}
	a.left--
	return c, err
}

// unread takes the latest byte back.
func (a *answerReader) unread() {
	a.r.UnreadByte()
	a.left++
}

// next returns the next byte that is not white space.
func (a *answerReader) next() (byte, error) {
	for {
		c, err := a.byte()
		if err != nil || c != ' ' && c != '\t' && c != '\r' && c != '\n' {
			return c, err
		}
	}
}

// peek returns the first byte of the next value, and leaves it there.
func (a *answerReader) peek() (byte, error) {
	c, err := a.next()
	if err == nil {
		a.unread()
	}
	return c, err
}

// expect reads the byte want.
func (a *answerReader) expect(want byte) error {
	c, err := a.next()
	if err == nil && c != want {
		err = fmt.Errorf("it has %q instead of %q at byte %d", c, want, a.limit-a.left)
	}
	return err
}

// object reads an object and calls member for each of its members, which reads
// the value.
func (a *answerReader) object(member func(name string) error) error {
	return a.nested('{', '}', func() error {
		if err := a.string(); err != nil {
			return err
		}
		name := string(a.buf)
		if err := a.expect(':'); err != nil {
			return err
		}
		return member(name)
	})
}

// list reads a list and calls element for each of its elements, which reads it.
func (a *answerReader) list(element func() error) error {
	return a.nested('[', ']', element)
}

func (a *answerReader) nested(open, end byte, element func() error) error {
	if err := a.expect(open); err != nil {
		return err
	}
	if a.depth++; a.depth > maxDepth {
		return errors.New("it is nested too deep")
	}
	defer func() { a.depth-- }()
	switch c, err := a.peek(); {
	case err != nil:
		return err
	case c == end:
		return a.expect(end)
	}
	for {
		if err := element(); err != nil {
			return err
		}
		c, err := a.next()
		if err != nil || c == end {
			return err
		}
		if c != ',' {
			return fmt.Errorf("it has %q after a value, at byte %d", c, a.limit-a.left)
		}
	}
}

// string reads a string into buf.
func (a *answerReader) string() error {
	if err := a.expect('"'); err != nil {
		return err
	}
	a.buf = a.buf[:0]
	for {
		c, err := a.byte()
		if err != nil {
			return err
		}
		keep := len(a.buf) < maxQuote // not a part of an escape sequence
		switch {
		case c == '"':
			return nil
		case c < ' ':
			return fmt.Errorf("it has the control character %q in a string", c)
		case c != '\\':
			if keep {
				a.buf = append(a.buf, c)
			}
			continue
		}
		b := [8]byte{'"', c} // the escape sequence as a string
		sequence := b[1:2]
		for want := 2; len(sequence) < want; {
			if c, err = a.byte(); err != nil {
				return err
			}
			if sequence = append(sequence, c); len(sequence) == 2 && c == 'u' {
				want = 6
			}
		}
		if s := (scanner{p: append(b[:1+len(sequence)], '"')}); !s.str() || s.i != len(s.p) {
			return fmt.Errorf("it has %q in a string", string(sequence))
		}
		if keep {
			a.buf = append(a.buf, sequence...)
		}
	}
}

// word reads a number, true, false or null into buf.
func (a *answerReader) word() error {
	if _, err := a.peek(); err != nil {
		return err
	}
	a.buf = a.buf[:0]
	for {
		c, err := a.byte()
		if err != nil && err != io.EOF {
			return err
		}
		if err == nil && (c == '+' || c == '-' || c == '.' || '0' <= c && c <= '9' || 'A' <= c && c <= 'Z' || 'a' <= c && c <= 'z') {
			if a.buf = append(a.buf, c); len(a.buf) > maxWord {
				return fmt.Errorf("a number or word in it is longer than %d bytes", maxWord)
			}
			continue
		}
		if err == nil {
			a.unread()
		}
		if s := (scanner{p: a.buf}); !s.value(1) || s.i != len(s.p) {
			return fmt.Errorf("it has %q for a value at byte %d", a.buf, a.limit-a.left)
		}
		return nil
	}
}

// skip reads a value of any kind. Only after a string or word is buf of use.
func (a *answerReader) skip() error {
	c, err := a.peek()
	switch {
	case err != nil:
		return err
	case c == '{':
		return a.object(func(string) error { return a.skip() })
	case c == '[':
		return a.list(a.skip)
	case c == '"':
		return a.string()
	default:
		return a.word()
	}
}

// number reads a value; ok says that it is a whole number, not negative.
func (a *answerReader) number() (n uint64, ok bool, err error) {
	c, err := a.peek()
	if err == nil {
		err = a.skip()
	}
	if err != nil || c < '0' || c > '9' {
		return 0, false, err
	}
	n, err = strconv.ParseUint(string(a.buf), 10, 64)
	return n, err == nil, nil
}

// text reads a value; it is "" unless that is a string.
func (a *answerReader) text() (string, error) {
	c, err := a.peek()
	if err == nil {
		err = a.skip()
	}
	if err != nil || c != '"' {
		return "", err
	}
	return string(appendText(nil, a.buf, true)), nil
}

// end reads what follows a value: others, and the end of the answer.
func (a *answerReader) end() error {
	for {
		if _, err := a.peek(); err == io.EOF {
			return nil
		}
		if err := a.skip(); err != nil {
			return err
		}
	}
}

// unexpected is the error of JSON that is not whole.
func unexpected(err error) error {
	if errors.Is(err, io.EOF) {
		return io.ErrUnexpectedEOF
	}
	return err
}
