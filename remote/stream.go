package remote

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"strconv"
	"time"

	"github.com/rollway/rollway/line"
)

// streamPiece is the largest write to a connection in bytes, unless a single line is
// longer. A third of Options.Timeout bounds it.
const streamPiece = 256 << 10

// A streamSender sends newline-delimited lines over one connection at a time: TCP,
// TLS or a local socket. All fields are owned by the holder of the Writer's semaphore.
type streamSender struct {
	w        *Writer
	network  string
	tls      *tls.Config   // nil without TLS
	form     frames        // nil form: lines as they are
	link     *link         // nil without a connection
	ending   *link         // half-closed by a confirm that could not wait for the peer's end; or nil
	listens  time.Duration // how long awaitEarlyEnd waits at least
	unproven bool          // nothing was sent yet, or the latest attempt or connection failed
	lost     report        // links that broke with lines on the way; told by the next confirm
}

func newStreamSender(w *Writer) *streamSender {
	s := &streamSender{w: w, network: w.addr.network, form: newFrames(w), listens: listenTime, unproven: true}
	if w.addr.tls {
		s.tls = w.opt.TLSConfig
		if s.tls.ServerName == "" {
			s.tls.ServerName = w.addr.host
		}
	}
	return s
}

func (s *streamSender) send(ctx context.Context, p []byte) (outcome, error) {
	done, err := s.sendPiece(ctx, firstPiece(p, streamPiece))
	if done.oversized > 0 {
		s.w.noteRefused(done.oversized, fmt.Sprintf("a message is longer than Options.Syslog.MaxMessage, %d bytes", s.form.max))
	}
	return done, err
}

func (s *streamSender) sendPiece(ctx context.Context, piece []byte) (outcome, error) {
	wire := s.form.encode(piece)
	if len(wire) == 0 {
		return s.form.settle(piece, 0), nil
	}
	for {
		kept, err := s.checkLink(ctx)
		if err != nil {
			return outcome{}, err
		}
		if !kept {
			if err := s.awaitPrevious(ctx); err != nil {
				return outcome{}, err
			}
			if err := s.dial(ctx); err != nil {
				s.unproven = true
				return outcome{}, err
			}
		}
		n, err := s.write(ctx, wire)
		if err == nil {
			n = len(wire)
		}
		if s.link.left {
			if err == nil {
				err = s.link.awaitAcks(ctx)
			}
			if errors.Is(err, errUnread) {
				err = nil // a later call finds out
			} else if err != nil {
				n, err = 0, errEndsEarly(err)
			}
		}
		done := s.form.settle(piece, n)
		s.link.lines += done.written
		if err == nil {
			return done, nil
		}
		s.abandon(ctx, err)
		if n == 0 && kept && ctx.Err() == nil && !isTimeout(err) {
			s.w.countError(err)
			s.w.countRetry()
			continue // the connection died unseen while it was idle
		}
		return done, err
	}
}

// checkLink reports whether there is a connection that the peer has not left.
func (s *streamSender) checkLink(ctx context.Context) (bool, error) {
	if s.link == nil {
		return false, nil
	}
	select {
	case <-s.link.gone:
		if s.link.err != nil {
			s.w.countError(s.link.err)
		}
		return false, s.abandon(ctx, s.link.err)
	default:
		return true, nil
	}
}

func (s *streamSender) dial(ctx context.Context) error {
	ctx, cancel := withTimeout(ctx, s.w.opt.dial, "connection")
	defer cancel()
	begin := time.Now()
	c, err := s.w.dialer.dial(ctx, s.network, s.w.addr.dial)
	if err != nil {
		return withCause(ctx, err) // its text begins with "dial"
	}
	raw := c.(*countedConn)
	l := &link{conn: raw, raw: raw, gone: make(chan struct{})}
	if s.tls != nil {
		c := tls.Client(raw, s.tls)
		if err := c.HandshakeContext(ctx); err != nil {
			raw.Close()
			return fmt.Errorf("TLS handshake: %w", withCause(ctx, err))
		}
		l.conn = c
	}
	go l.watch()
	if s.unproven {
		if err := s.awaitEarlyEnd(ctx, l, time.Since(begin)); err != nil {
			raw.Close()
			return err
		}
	}
	s.link = l
	return nil
}

// awaitEarlyEnd waits a moment for the end of l before anything is sent on it: a load
// balancer whose servers are down may accept every connection and close it at once. took
// is how long the dial was.
func (s *streamSender) awaitEarlyEnd(ctx context.Context, l *link, took time.Duration) error {
	select {
	case <-l.gone:
		if l.err != nil {
			return errEndsEarly(l.err)
		}
		l.left = true
	case <-time.After(max(s.listens, min(2*took, ackWait))): // two round trips
		s.unproven = false
	case <-ctx.Done():
	}
	return nil
}

func errEndsEarly(err error) error {
	return fmt.Errorf("the peer ends connections before lines come (is it a load balancer without servers?): %w", err)
}

// withTimeout is context.WithTimeout whose cause says that there was no such thing in time.
func withTimeout(ctx context.Context, d time.Duration, thing string) (context.Context, context.CancelFunc) {
	return context.WithTimeoutCause(ctx, d, fmt.Errorf("no %s within %v: %w", thing, d, context.DeadlineExceeded))
}

// isTimeout reports whether err is that of a deadline on a connection.
func isTimeout(err error) bool {
	var ne net.Error
	return errors.As(err, &ne) && ne.Timeout()
}

// withCause adds to err why ctx ended, if it did.
func withCause(ctx context.Context, err error) error {
	if cause := context.Cause(ctx); cause != nil && !errors.Is(err, cause) {
		return fmt.Errorf("%w: %w", cause, err)
	}
	return err
}

// write writes wire and returns how many bytes the system accepted.
func (s *streamSender) write(ctx context.Context, wire []byte) (int, error) {
	l := s.link
	l.raw.SetWriteDeadline(time.Now().Add(s.w.opt.attempt)) // fails only on a closed connection, as the Write will
	defer expireWith(ctx, l.raw.SetWriteDeadline)()
	s.w.countRequest()
	n, err := l.conn.Write(wire)
	if err != nil {
		err = withCause(ctx, err)
	}
	return n, err
}

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
