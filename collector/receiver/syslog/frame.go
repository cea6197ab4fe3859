package syslog

import (
	"bytes"
	"fmt"

	"github.com/rollway/rollway/collector/normalize"
	"github.com/rollway/rollway/collector/receiver"
	"github.com/rollway/rollway/internal/jsonwalk"
)

// maxDigits is how long the number of octets may be.
const maxDigits = 9

// MaxFrame is the longest message with its number of octets, or one byte more
// than it, which shows that it is too long.
func (Protocol) MaxFrame(maxEvent, _ int) int { return maxEvent + maxDigits + 1 }

// Open begins a connection.
func (p Protocol) Open() receiver.Session {
	if p.MaxMessage <= 0 {
		p.MaxMessage = 1 << 20
	}
	return &session{Protocol: p}
}

// session is one connection.
type session struct {
	Protocol
	octets   bool // a frame was by octet counting
	ends     byte // '\n' or 0, what the last frame ended with
	ended    bool // there was one
	skip     int  // octets to come of a message that is too long
	skipping bool // to the end of a line that is too long
	joined   []byte
}

// Decode takes whole frames.
func (s *session) Decode(c *receiver.Chunk) (taken int, err error) {
	for taken < len(c.Data) && !c.Full(0) {
		data := c.Data[taken:]
		n := 0
		switch {
		case s.skip > 0:
			n = min(s.skip, len(data))
			s.skip -= n
		case s.skipping:
			n = s.pass(data, c.End)
		case data[0] == '\n' || data[0] == 0 || data[0] == '\r':
			n = 1 // between frames
		default:
			n = s.frame(c, data)
		}
		if n == 0 {
			break
		}
		taken += n
	}
	return taken, nil
}

// frame takes one frame and returns its length, 0 if more of it has to come.
func (s *session) frame(c *receiver.Chunk, data []byte) int {
	head, size, counted := s.count(data)
	switch {
	case counted && head == 0: // undecided
		return 0
	case counted && size > s.MaxMessage:
		s.octets = true
		s.skip = size
		s.tooLong(c, data[head:min(len(data), head+size)])
		return head
	case counted && len(data) < head+size:
		return 0
	case counted:
		s.octets = true
		return s.join(c, data, head, head+size, head+size)
	}
	end := s.end(data)
	switch {
	case end > s.MaxMessage || end < 0 && len(data) > s.MaxMessage:
		message := data
		if end >= 0 {
			message = data[:end]
		}
		s.tooLong(c, message)
		if s.skipping = end < 0; s.skipping {
			return s.pass(data, c.End)
		}
	case end < 0 && c.End:
		s.event(c, data, data[len(data)-1] != '\n')
		return len(data)
	case end < 0:
		return 0
	}
	s.ends, s.ended = data[end], true
	if end > s.MaxMessage {
		return end + 1
	}
	return s.join(c, data, 0, end, end+1)
}

// pass returns how much of data belongs to the line that is skipped, with what
// ends it, and whether it has ended is in skipping then. It may be 0: an LF
// before a message that is yet to come would end it.
func (s *session) pass(data []byte, last bool) int {
	end := bytes.IndexAny(data, "\n\x00")
	if s.ended {
		end = s.end(data)
	}
	n := len(data)
	if s.skipping = end < 0; !s.skipping {
		return end + 1
	}
	if !last && data[n-1] == '\n' {
		n--
	}
	return n
}

// tooLong rejects the message at the beginning of data, which may hold more of it
// or less.
func (s *session) tooLong(c *receiver.Chunk, data []byte) {
	c.RejectRaw(normalize.ReasonTooLarge, fmt.Sprintf("a message is longer than %d bytes", s.MaxMessage), data)
}

// count reads the number of octets of a frame that has one; head is the offset
// after it, or 0 if more bytes are needed to know.
func (s *session) count(data []byte) (head, size int, counted bool) {
	i := 0
	for ; i < len(data) && i < maxDigits && jsonwalk.IsDigit(data[i]); i++ {
		size = size*10 + int(data[i]-'0')
	}
	switch {
	case i == 0 || data[0] == '0':
		return 0, 0, false
	case i == len(data):
		return 0, 0, true
	case data[i] != ' ':
		return 0, 0, false
	case s.octets:
		return i + 1, size, true
	case i+1 == len(data):
		return 0, 0, true
	}
	return i + 1, size, data[i+1] == '<'
}

// end returns the offset of the LF or NUL that ends the message at the
// beginning of data, or -1. If the sender ends messages with NUL, an LF that no
// message follows belongs to the message. Whether it does shows, at its first
// message, in a NUL before the next.
func (s *session) end(data []byte) int {
	if s.ended && s.ends == 0 { // so that what follows the message is not searched
		if nul := bytes.IndexByte(data, 0); nul >= 0 {
			data = data[:nul+1]
		}
	}
	lf := bytes.IndexByte(data, '\n')
	if lf < 0 {
		return bytes.IndexByte(data, 0)
	}
	if nul := bytes.IndexByte(data[:lf], 0); nul >= 0 {
		return nul
	}
	if s.ended && s.ends == '\n' {
		return lf
	}
	for at := lf; ; {
		if at+1 < len(data) && data[at+1] == '<' {
			if s.ended {
				return at
			}
			return lf
		}
		next := bytes.IndexByte(data[at+1:], '\n')
		part := data[at+1:]
		if next >= 0 {
			part = part[:next]
		}
		if nul := bytes.IndexByte(part, 0); nul >= 0 {
			return at + 1 + nul
		}
		if next < 0 && s.ended {
			return -1
		}
		if next < 0 {
			return lf
		}
		at += 1 + next
	}
}
