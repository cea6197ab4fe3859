package gelf

import (
	"bytes"

	"github.com/rollway/rollway/collector/normalize"
	"github.com/rollway/rollway/collector/receiver"
	"github.com/rollway/rollway/collector/receiver/wire"
)

// MaxFrame is one more than the longest message, which shows that it is too long.
func (Protocol) MaxFrame(maxEvent, _ int) int { return maxEvent + 1 }

// Open begins a connection.
func (p Protocol) Open() receiver.Session {
	return &session{Protocol: p.withDefaults(), joined: receiver.Joined{Joiner: wire.Joiner{Names: messageNames}, Add: event}}
}

// session is one connection.
type session struct {
	Protocol
	decided  bool // by the first message: whether LF ends messages
	lines    bool // it does
	skipping bool // inside a message that is too long
	joined   receiver.Joined
}

// Decode takes whole messages. The last waits for what may belong to it.
func (s *session) Decode(c *receiver.Chunk) (taken int, err error) {
	s.joined.Begin(c)
	for taken < len(c.Data) && !c.Full(0) {
		n := s.frame(c, c.Data[taken:])
		if n == 0 {
			break
		}
		taken += n
	}
	if left := s.joined.Hold(c); left > 0 {
		return len(c.Data) - left, nil
	}
	return taken, nil
}

// frame takes what is between messages, or one of them, and returns its length; 0 if more
// of it has to come.
func (s *session) frame(c *receiver.Chunk, data []byte) int {
	if between := len(data) - len(bytes.TrimLeft(data, "\x00\r\n\t ")); between > 0 && !s.skipping {
		return between
	}
	end := s.end(data)
	length := end
	if end < 0 {
		length = len(data)
	}
	switch {
	case s.skipping:
		s.skipping = end < 0
	case length > s.MaxMessage:
		s.joined.Flush(c)
		c.RejectRaw(normalize.ReasonTooLarge, s.tooLarge(), data[:length])
		s.skipping = end < 0
	case end >= 0 || c.End && wire.IsWholeObject(data):
		s.joined.Take(c, data[:length], len(data))
	case c.End:
		s.joined.Flush(c)
		c.RejectRaw(normalize.ReasonTorn, "the connection ended inside of a message", data)
	default:
		return 0
	}
	return min(length+1, len(data))
}

// end returns the offset of what ends the message at the beginning of data, or -1. As long
// as nothing is decided, which a first message that is too long and has a LF leaves so,
// either may.
func (s *session) end(data []byte) int {
	if s.decided && !s.lines {
		return bytes.IndexByte(data, 0)
	}
	first := bytes.IndexAny(data, "\n\x00")
	if s.decided || s.skipping || first < 0 || first > s.MaxMessage {
		s.decided = s.decided || first >= 0 && data[first] == 0
		return first
	}
	s.decided = true
	if s.lines = data[first] == '\n' && wire.IsWholeObject(data[:first]); s.lines {
		return first
	}
	return bytes.IndexByte(data, 0)
}
