package remote

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math"
	"net"
	"os"
	"time"

	"github.com/rollway/rollway/line"
)

// A datagramSender sends lines as datagrams, over UDP or to a local socket. All fields
// are owned by the holder of the Writer's semaphore.
type datagramSender struct {
	w        *Writer
	network  string
	form     messageEncoder               // nil: lines as they are, with their line ends
	max      int                          // bytes of a datagram
	file     func(net.Conn, []byte) error // sends what the system finds too large; nil if there is no way
	link     *datagramSocket              // nil without a socket
	unread   []*datagramSocket            // given up with lines that the peer has in its queue and has not read
	listens  time.Duration                // how long hear listens
	unproven bool                         // nothing was sent on link yet, or the peer was away a moment ago
	lost     report                       // datagrams refused with others on the way; told by the next confirm
	buf      []byte                       // the message being sent
	name     peerName                     // over UDP
}

// listenTime is how long a new socket is listened on: over UDP for "port unreachable"
// after the first datagram, on a stream for its end before the first line.
const listenTime = 50 * time.Millisecond

func newDatagramSender(w *Writer) *datagramSender {
	g := &datagramSender{w: w, form: w.newEncoder(), network: w.addr.network, max: w.opt.MaxDatagram, listens: listenTime, name: newPeerName(w)}
	if m := w.opt.Syslog.MaxMessage; m > 0 {
		g.max = min(g.max, m)
	}
	if w.addr.dialect == journaldEntries {
		g.max, g.file = math.MaxInt, sendMemfd
	}
	return g
}

func (g *datagramSender) send(ctx context.Context, p []byte) (s outcome, err error) {
	if g.link != nil {
		g.followName(ctx)
	}
	if g.link == nil {
		if err := g.dial(ctx); err != nil {
			return s, err
		}
	}
	piece := firstPiece(p, streamPiece)
	conn := g.link.conn
	defer expireWith(ctx, conn.SetWriteDeadline)()
	pack := g.w.opt.PackDatagram
	for s.n < len(piece) {
		data, size := g.next(piece[s.n:], pack)
		lines, cut := line.Count(piece[s.n:s.n+size]), false
		if c, ok := g.form.(truncater); ok && len(data) > g.max {
			data, cut = c.cut(data, g.max)
		}
		err := error(errnoTooLong)
		if len(data) <= g.max {
			err = g.put(ctx, data)
		}
		if g.file != nil && errors.Is(err, errnoTooLong) {
			err = g.file(conn.Conn, data)
		}
		switch {
		case err == nil:
			s.n += size
			s.written += lines
			if cut {
				s.cut++
			}
			g.link.lines += lines
		case errors.Is(err, errLocal):
			return s, err
		case !errors.Is(err, errnoTooLong):
			g.abandon(err)
			return s, err
		case lines > 1:
			pack = 0 // the system takes less than was thought
		default:
			s.n += size
			s.oversized++
			g.w.noteRefused(1, fmt.Sprintf("one line makes a datagram of %d bytes, more than %s allows", len(data), g.allowance(len(data))))
		}
	}
	return s, nil
}

// errLocal is an error that the peer did not cause.
var errLocal = errors.New("this process lacks something")

// allowance names the limit that a datagram of n bytes exceeds.
func (g *datagramSender) allowance(n int) string {
	switch {
	case n <= g.max:
		return "the system"
	case n > g.w.opt.MaxDatagram:
		return "Options.MaxDatagram"
	default:
		return "Options.Syslog.MaxMessage"
	}
}

// next returns the first datagram for p and how many bytes of p it holds.
func (g *datagramSender) next(p []byte, pack int) (data []byte, size int) {
	if g.form == nil {
		piece := firstPiece(p, pack)
		return piece, len(piece)
	}
	size = bytes.IndexByte(p, '\n') + 1
	g.buf = g.form.appendMessage(g.buf[:0], p[:size-1])
	return g.buf, size
}

// put sends one datagram. After the first one on a socket it waits for a refusal.
func (g *datagramSender) put(ctx context.Context, data []byte) error {
	g.w.countRequest()
	end := time.Now().Add(g.w.opt.attempt)
	for wait := time.Millisecond; ; wait *= 2 {
		g.link.conn.SetWriteDeadline(end)
		if ctx.Err() != nil { // its own deadline was overwritten
			return withCause(ctx, ctx.Err())
		}
		_, err := g.link.conn.Write(data)
		switch {
		case err == nil && g.unproven:
			err := g.awaitRefusal(ctx)
			if g.unproven = errors.Is(err, errListenCut); err == nil || g.unproven {
				return nil
			}
			return err
		case err == nil:
			return nil
		case !errors.Is(err, errnoNoBuffers) || time.Until(end) <= wait || !pause(ctx, wait):
			return withCause(ctx, err)
		}
		// A queue of the system is full and Write does not wait for it.
		g.w.countRetry()
	}
}

// errListenCut is returned by awaitRefusal when it had too little time.
var errListenCut = errors.New("too little time to hear whether the peer refuses it")

// awaitRefusal waits a moment for the report that nobody listens at the peer's port, which
// a local socket gives at once.
func (g *datagramSender) awaitRefusal(ctx context.Context) error {
	if g.w.addr.local() {
		return nil
	}
	end, short := time.Now().Add(g.listens), error(nil)
	if d, ok := ctx.Deadline(); ok && d.Before(end) {
		end, short = d, context.DeadlineExceeded
	}
	if ctx.Err() != nil { // a refusal may have come already
		end, short = past, ctx.Err()
	}
	g.link.conn.SetReadDeadline(end)
	var err error
	for answer := make([]byte, 1); err == nil; { // what the peer sends back is discarded
		_, err = g.link.conn.Read(answer)
	}
	if errors.Is(err, os.ErrDeadlineExceeded) {
		// On a busy machine the time may end before the socket was read.
		_, err = unacked(g.link.conn.Conn)
	}
	switch {
	case refuses(err):
		return err
	case short != nil:
		return fmt.Errorf("%w: %w", errListenCut, short)
	}
	return nil
}

// refuses reports whether err says that nobody listens at the peer's port.
func refuses(err error) bool { return errors.Is(err, errnoRefused) || errors.Is(err, errnoReset) }

// abandon gives up the socket. Lines that it carried before may be lost.
func (g *datagramSender) abandon(err error) {
	l := g.link
	g.link = nil
	// The peer is slow, or Shutdown cancels: the lines are in the peer's queue.
	if isTimeout(err) || errors.Is(err, errnoNoBuffers) || errors.Is(err, context.Canceled) {
		g.keepUnread(l)
		return
	}
	l.conn.Close()
	g.name.failures++
	g.w.noteBroken(&g.lost, l.lines, err)
}

// confirm waits until a local peer has read its queue, if the system tells (Linux). Over
// UDP it listens a moment for a refusal.
func (g *datagramSender) confirm(ctx context.Context) error {
	unread := g.confirmUnread(ctx)
	if l := g.link; unread == nil && l != nil && l.lines > 0 {
		err := g.awaitRead(ctx, l)
		if err == nil {
			err = g.awaitRefusal(ctx)
		}
		switch {
		case errors.Is(err, errUnread), errors.Is(err, errListenCut):
			unread = err
		case err != nil:
			g.abandon(err)
		default:
			l.lines = 0
		}
	}
	return errors.Join(g.w.takeBroken(&g.lost), unread)
}

func (g *datagramSender) close() {
	g.name.close()
	for _, l := range g.unread {
		l.conn.Close()
	}
	g.unread = nil
	if g.link != nil {
		g.link.conn.Close()
		g.link = nil
	}
}
