package jsonwalk

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"strconv"
)

const (
	maxKept    = 4 << 10 // bytes of a string that a Stream keeps
	maxLiteral = 64      // bytes of a number or word
)

// A Stream reads JSON from an io.Reader in a few KiB of memory, whatever the text
// holds: of a string it keeps the first 4 KiB. It accepts the JSON of a [Checker].
// Each method reads one value; an error means that the text is not valid, longer than
// the limit, or could not be read, and is io.ErrUnexpectedEOF where the text ends
// within a value.
type Stream struct {
	r               *bufio.Reader
	left, limit     int64
	depth, maxDepth int
	buf             []byte // the latest string, raw and without quotes, or literal
}

// NewStream returns a Stream that reads at most limit bytes of r, and objects and
// arrays of at most maxDepth levels.
func NewStream(r io.Reader, limit int64, maxDepth int) *Stream {
	return &Stream{r: bufio.NewReader(r), left: limit, limit: limit, maxDepth: maxDepth}
}

// byte returns the next byte. At the end of the text its error is io.EOF.
func (s *Stream) byte() (byte, error) {
	c, err := s.r.ReadByte()
	if err == nil && s.left == 0 {
		return 0, fmt.Errorf("it is longer than %d bytes", s.limit)
	}
	s.left--
	return c, err
}

func (s *Stream) unread() {
	s.r.UnreadByte()
	s.left++
}

// within returns err for a value that is not complete yet.
func within(c byte, err error) (byte, error) {
	if err == io.EOF {
		err = io.ErrUnexpectedEOF
	}
	return c, err
}

// next returns the next byte that is not white space.
func (s *Stream) next() (byte, error) {
	for {
		if c, err := s.byte(); err != nil || !IsSpace(c) {
			return c, err
		}
	}
}

// token is next for a value that is not complete yet.
func (s *Stream) token() (byte, error) { return within(s.next()) }

// Peek returns the first byte of the next value, and leaves it there.
func (s *Stream) Peek() (byte, error) {
	c, err := s.token()
	if err == nil {
		s.unread()
	}
	return c, err
}

func (s *Stream) expect(want byte) error {
	c, err := s.token()
	if err == nil && c != want {
		err = fmt.Errorf("it has %q instead of %q at byte %d", c, want, s.limit-s.left)
	}
	return err
}

// Object reads an object. It calls member for each member, to read the value.
func (s *Stream) Object(member func(name string) error) error {
	return s.nested('{', '}', func() error {
		if err := s.string(); err != nil {
			return err
		}
		name := string(s.buf)
		if err := s.expect(':'); err != nil {
			return err
		}
		return member(name)
	})
}

// Array reads an array. It calls element for each element, to read it.
func (s *Stream) Array(element func() error) error { return s.nested('[', ']', element) }

func (s *Stream) nested(open, end byte, element func() error) error {
	if err := s.expect(open); err != nil {
		return err
	}
	if s.depth++; s.depth > s.maxDepth {
		return errors.New("it is nested too deep")
	}
	defer func() { s.depth-- }()
	c, err := s.Peek()
	if err == nil && c == end {
		return s.expect(end)
	}
	for err == nil {
		if err = element(); err != nil {
			break
		}
		if c, err = s.token(); err != nil || c == end {
			break
		}
		if c != ',' {
			err = fmt.Errorf("it has %q after a value, at byte %d", c, s.limit-s.left)
		}
	}
	return err
}

// string reads a string into buf.
func (s *Stream) string() error {
	if err := s.expect('"'); err != nil {
		return err
	}
	s.buf = s.buf[:0]
	for {
		c, err := within(s.byte())
		if err != nil {
			return err
		}
		keep := len(s.buf) < maxKept // not a part of an escape sequence
		switch {
		case c == '"':
			return nil
		case c < ' ':
			return fmt.Errorf("it has the control character %q in a string", c)
		case c != '\\':
			if keep {
				s.buf = append(s.buf, c)
			}
			continue
		}
		quoted := [8]byte{'"', c} // the escape sequence as a string
		sequence := quoted[1:2]
		for want := 2; len(sequence) < want; {
			if c, err = within(s.byte()); err != nil {
				return err
			}
			if sequence = append(sequence, c); len(sequence) == 2 && c == 'u' {
				want = len(`\u0000`)
			}
		}
		if text := append(quoted[:1+len(sequence)], '"'); CheckString(text, 0) != len(text) {
			return fmt.Errorf("it has %q in a string", string(sequence))
		}
		if keep {
			s.buf = append(s.buf, sequence...)
		}
	}
}

// literal reads a number, true, false or null into buf.
func (s *Stream) literal() error {
	if _, err := s.Peek(); err != nil {
		return err
	}
	s.buf = s.buf[:0]
	for {
		c, err := s.byte()
		if err != nil && err != io.EOF {
			return err
		}
		if err == nil && (c == '+' || c == '-' || c == '.' || IsDigit(c) || 'a' <= c|0x20 && c|0x20 <= 'z') {
			if s.buf = append(s.buf, c); len(s.buf) > maxLiteral {
				return fmt.Errorf("a number or word in it is longer than %d bytes", maxLiteral)
			}
			continue
		}
		if err == nil {
			s.unread()
		}
		if !Valid(s.buf, 0) {
			return fmt.Errorf("it has %q for a value at byte %d", s.buf, s.limit-s.left)
		}
		return nil
	}
}

// Skip reads a value of any kind.
func (s *Stream) Skip() error {
	c, err := s.Peek()
	switch {
	case err != nil:
		return err
	case c == '{':
		return s.Object(func(string) error { return s.Skip() })
	case c == '[':
		return s.Array(s.Skip)
	case c == '"':
		return s.string()
	}
	return s.literal()
}

// Uint reads a value of any kind; ok says that it is a whole number, not negative,
// of at most 64 bits.
func (s *Stream) Uint() (n uint64, ok bool, err error) {
	c, err := s.Peek()
	if err == nil {
		err = s.Skip()
	}
	if err != nil || !IsDigit(c) {
		return 0, false, err
	}
	n, err = strconv.ParseUint(string(s.buf), 10, 64)
	return n, err == nil, nil
}

// Bool reads a number, true, false or null, and reports whether it is not false.
func (s *Stream) Bool() (bool, error) {
	err := s.literal()
	return string(s.buf) != "false", err
}

// Text reads a value of any kind. It is "" unless that is a string; bytes that are not
// valid UTF-8 become U+FFFD.
func (s *Stream) Text() (string, error) {
	c, err := s.Peek()
	if err == nil {
		err = s.Skip()
	}
	if err != nil || c != '"' {
		return "", err
	}
	return string([]rune(string(AppendText(nil, s.buf)))), nil
}

// End reads the values that follow, and the end of the text.
func (s *Stream) End() error {
	for {
		switch _, err := s.next(); {
		case err == io.EOF:
			return nil
		case err != nil:
			return err
		}
		s.unread()
		if err := s.Skip(); err != nil {
			return err
		}
	}
}
