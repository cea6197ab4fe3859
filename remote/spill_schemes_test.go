package remote_test

import (
	"bytes"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/rollway/rollway/line"
	"github.com/rollway/rollway/remote"
)

// Over every scheme: a peer that goes away, lines that wait on disk, a process
// that ends and another that goes on, and the peer that comes back. Each line
// arrives once and in order, and the accounts of both Writers say so.
func TestSpillOverEveryScheme(t *testing.T) {
	t.Parallel()
	eachPeer(t, func(t *testing.T, peer *anyPeer) {
		o := peer.options
		o.Spill = spillTo(t)
		var told told
		o.OnError = told.note
		sent := 0
		put := func(w *remote.Writer, lines int) {
			t.Helper()
			write(t, w, numbered(sent, sent+lines))
			sent += lines
		}

		peer.up()
		o.CloseTimeout = 100 * time.Millisecond
		w := open(t, peer.url, o)
		put(w, 10)
		flush(t, w)
		if err := w.SyncContext(t.Context()); err != nil {
			t.Fatalf("Sync = %v", err)
		}
		eventually(t, "the first lines are there", func() bool { return bytes.Count(peer.lines(), []byte("\n")) == 10 })
		peer.down()
		for range 5 {
			put(w, 10)
		}
		eventually(t, "the peer is seen to be away", func() bool { return w.Stats().Failing })
		s := balanced(t, w)
		lost := s.Written - 10 // in flight when it was heard that the peer is away
		if s.Accepted != 60 || s.Spill.Lines+s.Written != 60 || s.Spill.Lines != s.Pending || s.Dropped.Total() != 0 {
			t.Fatalf("Stats while the peer is away = %+v", s)
		}
		if peer.deaf != (lost > 0) || lost > 10 {
			t.Fatalf("%d lines were given to a peer that was away", lost)
		}
		err := w.Close()
		if !errors.Is(err, line.ErrPending) || !strings.Contains(err.Error(), fmt.Sprintf("%d lines wait in", 60-10-lost)) {
			t.Fatalf("Close = %v", err)
		}
		w.Told()
		if text := told.text(); !strings.Contains(text, "lines wait on disk") || peer.deaf != strings.Contains(text, fmt.Sprintf("broke, after %d lines", lost)) {
			t.Errorf("OnError was told %q, with %d lines lost", text, lost)
		}

		o.CloseTimeout = 0
		w = open(t, peer.url, o)
		put(w, 10)
		put(w, 10)
		if s := balanced(t, w); s.Recovered != 50-lost || s.Accepted != 70-lost || s.Spill.Lines != s.Accepted || s.Written != 0 {
			t.Fatalf("Stats of the second Writer = %+v", s)
		}
		peer.up()
		flush(t, w)
		put(w, 10)
		if err := w.Close(); err != nil {
			t.Errorf("Close = %v", err)
		}
		settled(t, w, int(80-lost), int(80-lost))
		want := numbered(0, 10) + numbered(10+int(lost), 90)
		eventually(t, "all lines are there", func() bool { return len(peer.lines()) >= len(want) })
		if got := string(peer.lines()); got != want {
			t.Errorf("the peer has %d lines, want %d, each once and in order: %.2000q", strings.Count(got, "\n"), strings.Count(want, "\n"), got)
		}
	})
}

// told keeps what OnError was told.
type told struct {
	mu   sync.Mutex
	errs []error // guarded by mu
}

func (t *told) note(err error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.errs = append(t.errs, err)
}

func (t *told) text() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return fmt.Sprint(errors.Join(t.errs...))
}
