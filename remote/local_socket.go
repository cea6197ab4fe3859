package remote

import (
	"context"
	"errors"
)

// A localSender sends to a local socket of either kind, as syslog(3) does. All fields are
// owned by the holder of the Writer's semaphore.
type localSender struct{ now, other sender }

func newLocalSender(w *Writer) *localSender {
	g, s := newDatagramSender(w), newStreamSender(w)
	g.network, s.network = "unixgram", "unix"
	if !hasUnixgram {
		return &localSender{s, g}
	}
	return &localSender{g, s}
}

func (e *localSender) send(ctx context.Context, p []byte) (outcome, error) {
	done, err := e.now.send(ctx, p)
	if errors.Is(err, errnoPrototype) {
		e.now, e.other = e.other, e.now
		done, err = e.now.send(ctx, p)
	}
	return done, err
}

func (e *localSender) confirm(ctx context.Context) error {
	return errors.Join(e.other.confirm(ctx), e.now.confirm(ctx))
}

func (e *localSender) close() {
	e.now.close()
	e.other.close()
}
