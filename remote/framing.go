package remote

import (
	"bytes"
	"strconv"

	"github.com/rollway/rollway/line"
)

// A messageEncoder makes messages of lines.
type messageEncoder interface {
	// appendMessage appends to dst the message that carries line, which has no
	// line end.
	appendMessage(dst, line []byte) []byte
}

// A truncater is a messageEncoder that can shorten its latest message.
type truncater interface {
	cut(msg []byte, limit int) (shorter []byte, ok bool)
}

// frames delimits messages on a stream.
type frames struct {
	messageEncoder        // nil: lines are sent as they are
	octets         bool   // the length before each message, otherwise a line end after it
	max            int    // of a message; 0: no limit
	msg            []byte // the message being framed
	wire           []byte // the frames of the latest piece
	marks          []mark // its lines
}

// A mark is a line: where it ends in the piece and in the frames.
type mark struct {
	line, frame int
	lost        bool // too long, no frame
	cut         bool // the message is not all of it
}

func newFrames(w *Writer) frames {
	o := w.opt.Syslog
	return frames{messageEncoder: w.newEncoder(), octets: o.Framing == byOctets, max: o.MaxMessage}
}

// encode returns the frames of piece, which ends in a line end. They are valid until the
// next call.
func (f *frames) encode(piece []byte) []byte {
	if f.messageEncoder == nil {
		return piece
	}
	f.wire, f.marks = f.wire[:0], f.marks[:0]
	for at := 0; at < len(piece); {
		end := at + bytes.IndexByte(piece[at:], '\n')
		f.msg = f.appendMessage(f.msg[:0], piece[at:end])
		lost, cut := f.max > 0 && len(f.msg) > f.max, false
		if c, ok := f.messageEncoder.(truncater); ok && lost {
			f.msg, cut = c.cut(f.msg, f.max)
			lost = !cut
		}
		switch {
		case lost:
		case f.octets:
			f.wire = strconv.AppendInt(f.wire, int64(len(f.msg)), 10)
			f.wire = append(append(f.wire, ' '), f.msg...)
		default:
			f.wire = append(append(f.wire, f.msg...), '\n')
		}
		at = end + 1
		f.marks = append(f.marks, mark{at, len(f.wire), lost, cut})
	}
	return f.wire
}

// settle returns the outcome of the piece given to encode when the system has accepted
// n bytes of its frames.
func (f *frames) settle(piece []byte, n int) (s outcome) {
	if f.messageEncoder == nil {
		s.n = wholeLines(piece[:n])
		s.written = line.Count(piece[:s.n])
		return s
	}
	for _, m := range f.marks {
		if m.frame > n {
			break
		}
		s.n = m.line
		if m.lost {
			s.oversized++
		} else {
			s.written++
		}
		if m.cut {
			s.cut++
		}
	}
	return s
}

// wholeLines is the length of p up to and with its last line end.
func wholeLines(p []byte) int { return bytes.LastIndexByte(p, '\n') + 1 }

// firstPiece returns the beginning of p, which ends in a line end: as many
// whole lines as fit in limit bytes, and at least one.
func firstPiece(p []byte, limit int) []byte {
	if len(p) <= limit {
		return p
	}
	if n := wholeLines(p[:limit]); n > 0 {
		return p[:n]
	}
	return p[:bytes.IndexByte(p, '\n')+1]
}
