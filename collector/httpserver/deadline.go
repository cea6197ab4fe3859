package httpserver

import (
	"net"
	"net/http"
	"time"

	"github.com/rollway/rollway/collector/admission"
)

// net/http sets some ten deadlines for each request, and a request rarely reaches one.
// So a conn only notes them, and sweep looks at all connections now and then. Deadlines
// are late by Options.sweepEvery at most.
//
//   - A deadline in the future is noted. One in the past takes effect at once.
//   - Once a deadline took effect, the next one that is set takes it back.

// A deadline is that of reading or of writing.
type deadline struct {
	at     time.Time // zero: none
	passed bool      // it is set on the connection below
}

// set notes t and has below act on it if it must act now.
func (d *deadline) set(t time.Time, below func(time.Time) error) error {
	d.at = t
	if !t.IsZero() && time.Until(t) <= 0 {
		d.passed = true
		return below(t)
	}
	if d.passed {
		d.passed = false
		return below(time.Time{})
	}
	return nil
}

// check has below act on a deadline that has passed.
func (d *deadline) check(now time.Time, below func(time.Time) error) {
	if !d.passed && !d.at.IsZero() && !now.Before(d.at) {
		d.passed = true
		below(d.at) // fails if the connection is closed
	}
}

// SetDeadline implements net.Conn.
func (c *conn) SetDeadline(t time.Time) error {
	if err := c.SetReadDeadline(t); err != nil {
		return err
	}
	return c.SetWriteDeadline(t)
}

// SetReadDeadline implements net.Conn.
func (c *conn) SetReadDeadline(t time.Time) error {
	c.deadlines.Lock()
	defer c.deadlines.Unlock()
	if c.answering.Load() && !t.IsZero() && t.Unix() < longAgo {
		c.deadlines.read.at = t // net/http ends a read that Read has not begun
		return nil
	}
	return c.deadlines.read.set(t, c.Conn.SetReadDeadline)
}

// longAgo is after the time by which net/http ends its read in the background.
const longAgo = 1e9

// SetWriteDeadline implements net.Conn.
func (c *conn) SetWriteDeadline(t time.Time) error {
	c.deadlines.Lock()
	defer c.deadlines.Unlock()
	return c.deadlines.write.set(t, c.Conn.SetWriteDeadline)
}

// sweepEvery is how often deadlines are looked at.
func (o *Options) sweepEvery() time.Duration {
	least := min(o.ReadHeaderTimeout, o.ReadTimeout, o.WriteTimeout, o.IdleTimeout)
	return min(max(least/8, time.Millisecond), 500*time.Millisecond)
}

// setDate sets the Date of answers, which net/http would format for each of them.
func (s *Server) setDate(now time.Time) {
	s.date.Store(&[]string{now.UTC().Format(http.TimeFormat)})
}

// sweep looks at the deadlines of all connections, and sets the date, until s.ended is
// closed.
func (s *Server) sweep() {
	tick := time.NewTicker(s.o.sweepEvery())
	defer tick.Stop()
	var conns []*conn
	for {
		var now time.Time
		select {
		case <-s.ended:
			return
		case now = <-tick.C:
		}
		s.setDate(now)
		s.mu.Lock()
		for c := range s.conns {
			conns = append(conns, c)
		}
		s.mu.Unlock()
		for _, c := range conns {
			c.deadlines.Lock()
			c.deadlines.read.check(now, c.Conn.SetReadDeadline)
			c.deadlines.write.check(now, c.Conn.SetWriteDeadline)
			c.deadlines.Unlock()
		}
		clear(conns)
		conns = conns[:0]
	}
}

// accepted returns the conn for a connection that was accepted.
func (s *Server) accepted(inner net.Conn) *conn {
	c := &conn{Conn: inner, admitted: inner.(*admission.Conn), s: s, plain: s.o.TLS == nil}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.conns[c] = struct{}{}
	return c
}

// Close implements net.Conn.
func (c *conn) Close() error {
	c.s.mu.Lock()
	delete(c.s.conns, c)
	c.s.mu.Unlock()
	c.endTurn(true)
	return c.Conn.Close()
}
