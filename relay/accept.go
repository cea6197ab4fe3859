package relay

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"time"
)

// accept takes connections until the listener is closed.
func (r *Relay) accept(ctx context.Context, l net.Listener) error {
	const longest = time.Second
	pause := time.Duration(0)
	for {
		socket, err := l.Accept()
		switch {
		case err == nil:
			pause = 0
			r.accepted(socket)
		case ctx.Err() != nil, r.isClosing():
			return ErrClosed
		case errors.Is(err, net.ErrClosed):
			return err
		default: // out of descriptors or memory, most likely
			r.counts.acceptErrors.Add(1)
			pause = min(max(2*pause, 5*time.Millisecond), longest)
			r.notices.accept.say(r.options.Log, slog.LevelError, "cannot accept a connection", slog.Any("error", err))
			select {
			case <-time.After(pause):
			case <-r.stopped.Done():
			}
		}
	}
}

func (r *Relay) isClosing() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.closing
}

// accepted sets a connection up in a goroutine of its own: its stack grows with
// the dial, and is not what the connection keeps.
func (r *Relay) accepted(socket net.Conn) {
	if !r.beginSetup() {
		socket.Close()
		return
	}
	r.counts.accepted.Add(1)
	start := time.Now()
	go func() {
		defer r.endSetup()
		r.setUp(socket, start)
	}()
}

// setUp connects an upstream and starts to copy.
func (r *Relay) setUp(socket net.Conn, start time.Time) {
	client := newSide(socket)
	upstream, release, err := r.dial(r.stopped)
	if err != nil {
		client.close(true)
		r.counts.closed[ReasonDial].Add(1)
		r.notices.dial.say(r.options.Log, slog.LevelError, "no upstream can be reached", slog.Any("error", err), slog.String("client", socket.RemoteAddr().String()))
		return
	}
	c := r.join(client, upstream, start, release)
	r.countMode(c)
	c.run()
}

func (r *Relay) countMode(c *conn) {
	if c.up.spliceable() {
		r.counts.spliced.Add(1)
	} else {
		r.counts.buffered.Add(1)
	}
}
