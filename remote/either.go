package remote

import (
	"context"
	"errors"
)

// An either sends to a local socket of the kind that it finds there, as
// syslog(3) does. All fields are owned by the holder of the Writer's turn.
type either struct{ now, other sender }

func newEither(w *Writer) *either {
	g, s := newGram(w), newStream(w)
	g.network, s.network = "unixgram", "unix"
	if !hasUnixgram {
		return &either{s, g}
	}
	return &either{g, s}
}

func (e *either) send(ctx context.Context, p []byte) (settled, error) {
	done, err := e.now.send(ctx, p)
	if errors.Is(err, errnoPrototype) {
		e.now, e.other = e.other, e.now
		done, err = e.now.send(ctx, p)
	}
	return done, err
}

func (e *either) confirm(ctx context.Context) error {
	return errors.Join(e.other.confirm(ctx), e.now.confirm(ctx))
}

func (e *either) close() {
	e.now.close()
	e.other.close()
}
