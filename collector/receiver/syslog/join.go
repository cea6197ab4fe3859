package syslog

import (
	"bytes"

	"github.com/rollway/rollway/collector/receiver"
	"github.com/rollway/rollway/collector/textlog"
)

// join adds the event of the message data[start:end], whose frame ends at n, and of those
// after it that only continue it. It returns where the last of their frames ends; 0: what
// continues it may be yet to come.
func (s *session) join(c *receiver.Chunk, data []byte, start, end, n int) int {
	var m message
	msg := trim(data[start:end])
	m.parse(msg, c.Received, s.zone())
	joiner, most, count := textlog.Joiner{}, c.Norm.MostJoined(), 1
	if most == 0 || len(bytes.TrimSpace(m.text)) == 0 {
		s.add(c, &m, msg, false)
		return n
	}
	joiner.Next(m.text)
	for s.joined = s.joined[:0]; count < textlog.MaxJoined; count++ {
		next, size := s.next(data[n:])
		if next == nil {
			if c.Hold(len(data)) {
				return 0
			}
			break
		}
		var more message
		more.parse(trim(next), c.Received, s.zone())
		if len(m.text)+len(more.text) >= most || !m.isOf(&more) || !joiner.Next(more.text) {
			break
		}
		if count == 1 {
			s.joined = append(s.joined, m.text...)
		}
		s.joined = joiner.Append(s.joined, more.text)
		m.text = s.joined
		n += size
	}
	if count > 1 {
		msg = data[start:n]
	}
	s.add(c, &m, msg, false)
	if cap(s.joined) > textlog.KeepJoined {
		s.joined = nil
	}
	return n
}

// isOf reports whether two messages are of one program.
func (m *message) isOf(o *message) bool {
	return m.priority == o.priority && bytes.Equal(m.hostname, o.hostname) && bytes.Equal(m.app, o.app) && bytes.Equal(m.procID, o.procID) && bytes.Equal(m.data, o.data)
}

// next returns the message of the frame that data begins with, and how long that is; nil:
// it is not whole.
func (s *session) next(data []byte) (msg []byte, n int) {
	for n < len(data) && (data[n] == '\n' || data[n] == 0 || data[n] == '\r') {
		n++
	}
	if data = data[n:]; len(data) == 0 {
		return nil, 0
	}
	head, size, counted := s.count(data)
	switch {
	case counted && (head == 0 || size > s.MaxMessage || len(data) < head+size):
		return nil, 0
	case counted:
		return data[head : head+size], n + head + size
	}
	end := s.end(data)
	if end < 0 || end > s.MaxMessage {
		return nil, 0
	}
	return data[:end], n + end + 1
}
