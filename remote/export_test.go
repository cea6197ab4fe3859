package remote

import (
	"context"
	"net"
	"syscall"
	"time"
)

// Told waits until OnError has returned from all that it is to be told now.
func (w *Writer) Told() { <-w.teller.Idle() }

// SyncContext is Sync with a context.
func (w *Writer) SyncContext(ctx context.Context) error { return w.sync(ctx) }

// SetAttempt bounds a request, a piece of a stream or a datagram, apart from Options.Timeout.
func (w *Writer) SetAttempt(d time.Duration) { w.opt.attempt = d }

// SetSilence says how long a TCP peer may be silent.
func (w *Writer) SetSilence(d time.Duration) { w.dialer.ackTimeout = d }

// SetHears says how long a stream listens on a new connection.
func (w *Writer) SetHears(d time.Duration) {
	w.sem <- struct{}{}
	defer w.unlock()
	w.out.(*streamSender).listens = d
}

// SetResolver says who is asked for the addresses of the peer, and over UDP how
// often.
func (w *Writer) SetResolver(r *net.Resolver, every time.Duration) {
	w.dialer.net.Resolver = r
	if g, ok := w.out.(*datagramSender); ok {
		g.name.every = every
	}
}

// SetBeforeConnect lets f be called between the making of each socket and its
// connection to the peer.
func (w *Writer) SetBeforeConnect(f func()) {
	w.dialer.net.Control = func(string, string, syscall.RawConn) error {
		f()
		return nil
	}
}
