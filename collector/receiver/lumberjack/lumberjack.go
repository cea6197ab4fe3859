// Package lumberjack takes events by the Lumberjack protocol, version 2: those of Beats,
// Elastic Agent and Logstash. Each frame begins with '2', numbers are big-endian:
//
//	W count            a window: so many events follow
//	J number size …    an event, one object of JSON
//	C size …           frames, packed by zlib
//	A number           the answer: the events up to that one are stored
//
// Numbers begin with 1 in each window. An answer is sent once events are stored, also in
// the middle of a window, and A 0, which clients wait on for, as long as nothing can be
// stored. An event that is rejected is acknowledged all the same, as sending it again would
// change nothing. Bytes that are not such a frame close the connection: what follows them
// cannot be found.
//
// An event is read like a line of JSON. One whose message only continues that of the event
// before belongs to it, if they arrive together and differ in nothing else but time and
// offset. A window takes no memory, whatever its size.
package lumberjack

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"

	"github.com/rollway/rollway/collector/normalize"
	"github.com/rollway/rollway/collector/receiver"
	"github.com/rollway/rollway/collector/receiver/wire"
)

// Protocol is a receiver.StreamProtocol.
type Protocol struct {
	// MaxEvent is how many bytes an event may have; longer ones are passed over and count
	// as too large. Default 1 MiB.
	MaxEvent int
	// MaxUnpacked is how many bytes the frames in a packed one may have. Default 64 MiB.
	MaxUnpacked int
}

// Name is for the log.
func (Protocol) Name() string { return "Lumberjack" }

// MaxFrame is the longest packed frame, or the longest event with its head.
func (Protocol) MaxFrame(maxEvent, maxBody int) int { return max(maxBody, maxEvent+eventHead) }

// Open begins a connection.
func (p Protocol) Open() receiver.Session {
	if p.MaxEvent <= 0 {
		p.MaxEvent = 1 << 20
	}
	if p.MaxUnpacked <= 0 {
		p.MaxUnpacked = 64 << 20
	}
	return &session{Protocol: p, joined: receiver.Joined{Joiner: wire.Joiner{Names: messageNames}, Add: add}}
}

// session is one connection.
type session struct {
	Protocol
	inflater receiver.Inflater
	left     uint32 // events to come in the window
	number   uint32 // of the last event
	owed     bool   // that event is not acknowledged yet
	skip     int64  // bytes to come of an event that is too long
	joined   receiver.Joined
}

var messageNames = wire.Names("message")

const version = '2'

// Kinds of frames, and how long their heads are.
const (
	window, windowHead = 'W', 6
	event, eventHead   = 'J', 10
	packed, packedHead = 'C', 6
	ack                = 'A'
)

var inZlib = []byte("zlib")

var errTorn = errors.New("the frames in a packed one end within one")

// Decode takes whole frames.
func (s *session) Decode(c *receiver.Chunk) (taken int, err error) {
	s.joined.Begin(c)
	defer s.joined.Flush(c) // its sender waits for the answer, not for more
	for n := 1; n > 0 && taken < len(c.Data); taken += n {
		if n, err = s.frame(c, c.Data[taken:], false); err == nil {
			continue
		}
		reason := normalize.ReasonSyntax
		switch {
		case errors.Is(err, receiver.ErrInflateMemory): // it will be sent again
			return taken, err
		case errors.Is(err, receiver.ErrInflateLarge):
			reason = normalize.ReasonTooLarge
		}
		c.RejectRaw(reason, err.Error(), c.Data[taken:])
		return taken, err
	}
	if s.owed {
		s.answer(c)
	}
	return taken, nil
}

// frame takes the frame at the beginning of data, which is within a packed one or not, and
// returns its length; 0 if more of it has to come, or what was taken is to be stored first.
func (s *session) frame(c *receiver.Chunk, data []byte, within bool) (n int, err error) {
	if s.skip > 0 {
		n = int(min(s.skip, int64(len(data))))
		if s.skip -= int64(n); s.skip == 0 {
			s.took(c)
		}
		return n, nil
	}
	if data[0] != version || len(data) > 1 && bytes.IndexByte([]byte{window, event, packed}, data[1]) < 0 || within && len(data) > 1 && data[1] == packed {
		return 0, fmt.Errorf("not a frame of Lumberjack, version 2: it begins with %q", data[:min(2, len(data))])
	}
	if len(data) < windowHead || data[1] == event && len(data) < eventHead {
		return 0, nil
	}
	switch data[1] {
	case event:
		return s.event(c, data, within)
	case packed:
		return s.packed(c, data)
	}
	s.left = binary.BigEndian.Uint32(data[2:])
	return windowHead, nil
}

func (s *session) event(c *receiver.Chunk, data []byte, within bool) (n int, err error) {
	size := int64(binary.BigEndian.Uint32(data[6:]))
	have := int(min(eventHead+size, int64(len(data))))
	switch {
	case size > int64(s.MaxEvent):
		s.joined.Flush(c)
		c.RejectRaw(normalize.ReasonTooLarge, fmt.Sprintf("an event of %d bytes is longer than %d", size, s.MaxEvent), data[eventHead:have])
		s.skip = eventHead + size - int64(have)
	case int64(have) < eventHead+size || !within && c.Full(have):
		return 0, nil
	default:
		s.joined.Take(c, data[eventHead:have], 0)
	}
	s.number = binary.BigEndian.Uint32(data[2:])
	if s.skip == 0 {
		s.took(c)
	}
	return have, nil
}

func (s *session) packed(c *receiver.Chunk, data []byte) (n int, err error) {
	size := packedHead + int64(binary.BigEndian.Uint32(data[2:]))
	if int64(len(data)) < size || c.Full(int(size)) {
		return 0, nil
	}
	n = int(size)
	frames, err := s.inflater.Unpack(c, inZlib, data[packedHead:n], s.MaxUnpacked)
	if err != nil {
		return 0, fmt.Errorf("a packed frame: %w", err)
	}
	defer s.inflater.Overwrite()
	defer s.joined.Flush(c) // before that
	for len(frames) > 0 {
		taken, err := s.frame(c, frames, true)
		switch {
		case err != nil:
			return 0, err
		case c.Batch.Overflowed():
			return 0, receiver.ErrInflateMemory
		case taken == 0 || s.skip > 0:
			s.skip = 0
			return 0, errTorn
		}
		frames = frames[taken:]
	}
	if s.joined.Flush(c); c.Batch.Overflowed() {
		return 0, receiver.ErrInflateMemory
	}
	return n, nil
}

func add(c *receiver.Chunk, event []byte) {
	c.Norm.Line(c.Batch, event, c.Received) // the error is in the batch
}

// took notes that an event was taken, and acknowledges the last of a window.
func (s *session) took(c *receiver.Chunk) {
	if s.left > 0 {
		s.left--
	}
	if s.owed = true; s.left == 0 {
		s.answer(c)
	}
}

// answer acknowledges all events that were taken.
func (s *session) answer(c *receiver.Chunk) {
	s.owed = false
	c.Reply = binary.BigEndian.AppendUint32(append(c.Reply, version, ack), s.number)
}

// Wait implements receiver.Waiter.
func (s *session) Wait(dst []byte) []byte { return append(dst, version, ack, 0, 0, 0, 0) }
