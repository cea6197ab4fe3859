package remote_test

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/rollway/rollway/line"
	"github.com/rollway/rollway/remote"
)

// flap takes a peer down and up again under four producers: in some rounds it
// is away from the beginning, in others it goes amid their work and may come
// back before they are done.
func flap(t *testing.T, w *remote.Writer, up, down func()) {
	t.Helper()
	const rounds = 10
	up()
	for round := range rounds {
		if round%3 == 1 {
			heard(t, w, down)
		}
		const lines = producers * perEach / rounds
		early, late := 1+rand.N(lines/4), lines/4+rand.N(lines/4)
		var work sync.WaitGroup
		written := newProgress()
		work.Go(func() { produceTo(t, w, round*perEach/rounds, (round+1)*perEach/rounds, written) })
		switch round % 3 {
		case 0:
			written.reaches(early)
			heard(t, w, down)
			written.reaches(late)
		case 1:
			work.Wait()
		case 2:
			written.reaches(late)
			heard(t, w, down)
			work.Wait()
		}
		up()
		work.Wait()
		if round%3 == 1 {
			flush(t, w)
		}
	}
	flush(t, w)
	s := balanced(t, w)
	t.Logf("%d connections, %d errors", s.Connects, s.Errors)
	if s.Connects < 3 {
		t.Errorf("Stats = %+v: the restarts were not seen", s)
	}
}

// Lines that are written while the peer is away arrive when it is back, before
// those that are written then.
func TestSpillAndReplay(t *testing.T) {
	t.Parallel()
	peer := newKeyedPeer(t)
	w := open(t, peer.url(), remote.Options{Spill: spillTo(t)})
	for i := range 50 {
		write(t, w, numbered(i*10, i*10+10))
	}
	eventually(t, "the peer is seen to be away", func() bool { return w.Stats().Failing })
	s := balanced(t, w)
	if s.Accepted != 500 || s.Pending != 500 || s.Spill.Lines != 500 || s.Spill.Bytes == 0 ||
		s.Spill.OldestAge <= 0 || s.Errors == 0 || !s.Failing || !strings.Contains(s.LastError.Error(), "refused") || s.Spill.LastError != nil {
		t.Fatalf("Stats while the peer is away = %+v", s)
	}
	peer.up()
	flush(t, w)
	peer.want(t, numbered(0, 500))
	if s := balanced(t, w); s.Written != 500 || s.Spill.Lines != 0 || s.Spill.OldestAge != 0 {
		t.Fatalf("Stats after Flush = %+v", s)
	}
	write(t, w, numbered(500, 510))
	if n := len(peer.seen()); n > 20 {
		t.Errorf("%d requests: small batches were not put together", n)
	}
	if err := w.Close(); err != nil {
		t.Errorf("Close = %v", err)
	}
	peer.want(t, numbered(0, 510))
	settled(t, w, 510, 510)
}

// Four producers, and a server that is taken down and up again under them, also
// amid requests: every line is stored exactly once and in its producer's order.
func TestSpillUpDownUp(t *testing.T) {
	t.Parallel()
	peer := newKeyedPeer(t)
	w := open(t, peer.url(), remote.Options{Spill: spillTo(t)})
	flap(t, w, peer.up, peer.down)
	seen := map[place]int{}
	inOrder(t, peer.bytes(), false, seen)
	if extra := wantAll(t, seen); extra > 0 {
		t.Errorf("%d lines came twice", extra)
	}
	t.Logf("%d requests were repeated", peer.repeated)
	if err := w.Close(); err != nil {
		t.Errorf("Close = %v", err)
	}
	settled(t, w, producers*perEach, producers*perEach)
}

// The same over TCP and TLS, with a peer that leaves in good order: it reads to
// the end.
func TestSpillStreamUpDownUp(t *testing.T) {
	t.Parallel()
	transports(t, func(t *testing.T, scheme string, serverTLS *tls.Config, o remote.Options) {
		addr := newKeyedPeer(t).addr
		var peers []*tcpPeer
		var leaving chan struct{}
		up := func() {
			leaving = make(chan struct{})
			leaving := leaving
			peers = append(peers, startTCPPeer(t, addr, serverTLS, func(c net.Conn, keep io.Writer) {
				if c, ok := c.(*tls.Conn); ok && c.Handshake() != nil {
					return // it could not say goodbye
				}
				var end sync.WaitGroup
				defer end.Wait()
				read := make(chan struct{})
				end.Go(func() {
					select {
					case <-leaving:
						c.(interface{ CloseWrite() error }).CloseWrite()
					case <-read:
					}
				})
				io.Copy(keep, c)
				close(read)
			}))
		}
		leave := func() {
			peers[len(peers)-1].Close()
			close(leaving)
		}
		o.Spill = spillTo(t)
		w := open(t, scheme+"://"+addr, o)
		flap(t, w, up, func() {
			// A connection that is not accepted is reset, and its lines are lost.
			eventually(t, "the connection is accepted, or none is needed", func() bool {
				accepted := uint64(0)
				for _, p := range peers {
					accepted += p.accepted()
				}
				s := w.Stats()
				return s.Connects == accepted && (s.Connected || s.Pending == 0)
			})
			leave()
		})
		if err := w.Close(); err != nil {
			t.Errorf("Close = %v", err)
		}
		leave()
		var data []byte
		for _, p := range peers {
			p.wg.Wait()
			data = append(data, p.bytes()...)
		}
		seen := map[place]int{}
		inOrder(t, data, false, seen)
		if extra := wantAll(t, seen); extra > 0 {
			t.Errorf("%d lines came twice", extra)
		}
		settled(t, w, producers*perEach, producers*perEach)
	})
}

// What Close leaves on disk is delivered by the next Writer, before its own.
func TestSpillIsDeliveredByTheNextWriter(t *testing.T) {
	t.Parallel()
	peer := newKeyedPeer(t)
	o := remote.Options{Spill: spillTo(t), CloseTimeout: 50 * time.Millisecond}
	for i := range 3 {
		w := open(t, peer.url(), o)
		if s := balanced(t, w); s.Recovered != uint64(i*100) || s.Accepted != s.Recovered || s.Spill.Lines != s.Recovered {
			t.Fatalf("Stats after Open = %+v", s)
		}
		write(t, w, numbered(i*100, i*100+100))
		err := w.Close()
		if !errors.Is(err, line.ErrPending) || !errors.Is(err, context.DeadlineExceeded) ||
			!strings.Contains(err.Error(), fmt.Sprintf("%d lines wait in %s", i*100+100, o.Spill.Dir)) {
			t.Fatalf("Close = %v", err)
		}
		over, cancel := context.WithCancel(t.Context())
		cancel()
		for range 20 { // what both are ready for is chosen at random
			if again := w.Shutdown(over); again != err {
				t.Fatalf("Shutdown after Close = %v", again)
			}
		}
		if s := balanced(t, w); s.Pending != uint64(i*100+100) || s.Spill.Lines != s.Pending || s.Dropped.Total() != 0 || s.Returned != 0 {
			t.Fatalf("Stats after Close = %+v", s)
		}
		if _, err := w.Write([]byte("x\n")); !errors.Is(err, os.ErrClosed) {
			t.Errorf("Write after Close = %v", err)
		}
		if err := w.Flush(t.Context()); !errors.Is(err, line.ErrPending) {
			t.Errorf("Flush after Close = %v", err)
		}
	}
	w := open(t, peer.url(), remote.Options{Spill: o.Spill})
	write(t, w, numbered(300, 310)) // while the peer is still away
	peer.up()
	write(t, w, numbered(310, 320))
	flush(t, w)
	peer.want(t, numbered(0, 320))
	if s := balanced(t, w); s.Recovered != 300 || s.Accepted != 320 || s.Written != 320 {
		t.Fatalf("Stats = %+v", s)
	}
	if err := w.Close(); err != nil {
		t.Errorf("Close = %v", err)
	}
}

// Flush waits for what is on disk and says what is still there.
func TestSpillFlush(t *testing.T) {
	t.Parallel()
	peer := newKeyedPeer(t)
	spill := spillTo(t)
	spill.Sync = true
	w := open(t, peer.url(), remote.Options{Spill: spill})
	write(t, w, numbered(0, 7))
	eventually(t, "the peer is seen to be away", func() bool { return w.Stats().Failing })
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	if err := w.Flush(ctx); !errors.Is(err, line.ErrPending) || !errors.Is(err, context.DeadlineExceeded) || !strings.Contains(err.Error(), "7 lines wait in") || !strings.Contains(err.Error(), "refused") {
		t.Errorf("Flush = %v", err)
	}
	peer.up()
	flush(t, w)
	if err := w.SyncContext(t.Context()); err != nil {
		t.Fatal(err)
	}
	peer.want(t, numbered(0, 7))
}

func TestSpillOptions(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		spill remote.Spill
		want  string
	}{
		{remote.Spill{MaxBytes: 1}, "no Dir"},
		{remote.Spill{Dir: dir, MaxBytes: -1}, "MaxBytes is -1"},
		{remote.Spill{Dir: dir, MaxAge: -1}, "MaxAge is -1"},
		{remote.Spill{Dir: dir, Window: 9}, "Window is 9: give 1 to 8"},
		{remote.Spill{Dir: filepath.Join(file, "x")}, "create folder"},
	} {
		w, err := remote.Open("http://127.0.0.1:1/", remote.Options{Spill: c.spill})
		if err == nil {
			w.Close()
		}
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%+v: %v, want %q", c.spill, err, c.want)
		}
	}
}

func TestSpillHasOneOwner(t *testing.T) {
	o := remote.Options{Spill: spillTo(t), CloseTimeout: 10 * time.Millisecond}
	first := open(t, "http://127.0.0.1:1/", o)
	if _, err := remote.Open("http://127.0.0.1:1/", o); err == nil || !strings.Contains(err.Error(), "one owner") || !strings.Contains(err.Error(), o.Spill.Dir) {
		t.Errorf("second Open = %v", err)
	}
	if err := first.Close(); err != nil {
		t.Fatal(err)
	}
	open(t, "http://127.0.0.1:1/", o)
}

// A request that failed is repeated as it was, with its key, before all others, also
// after a restart.
func TestSpillKeys(t *testing.T) {
	t.Parallel()
	peer := newKeyedPeer(t)
	peer.up()
	peer.fail()
	o := remote.Options{Spill: spillTo(t), CloseTimeout: 10 * time.Millisecond}
	w := open(t, peer.url(), o)
	write(t, w, numbered(0, 3))
	eventually(t, "the first attempt", func() bool { return len(peer.seen()) >= 1 })
	for i := 3; i < 30; i++ {
		write(t, w, numbered(i, i+1))
	}
	eventually(t, "some attempts", func() bool { return len(peer.seen()) >= 3 })
	w.Close()
	w = open(t, peer.url(), o)
	n := len(peer.seen())
	eventually(t, "some attempts of the next", func() bool { return len(peer.seen()) >= n+2 })
	first := peer.seen()[0]
	for _, r := range peer.seen() { // others only show whether the peer accepts those
		if r.body == numbered(0, 3) != (r.key == first.key) {
			t.Fatalf("request %+v, the first was %+v", r, first)
		}
	}
	peer.heal()
	flush(t, w)
	peer.want(t, numbered(0, 30))
	all := peer.seen()
	if last := all[len(all)-1]; last.body != numbered(3, 30) || last.key == all[0].key || last.key == "" {
		t.Errorf("the last request is %+v", last)
	}
}

// What the peer refuses for what it holds is lost as it is without a disk.
func TestSpillRefusedByPeer(t *testing.T) {
	t.Parallel()
	peer := newKeyedPeer(t)
	var told told
	w := open(t, peer.url(), remote.Options{Spill: spillTo(t), OnError: told.note})
	write(t, w, numbered(0, 10))
	eventually(t, "OnError is told", func() bool { return told.text() != "<nil>" })
	if text := told.text(); !strings.Contains(text, "lines wait on disk") || !strings.Contains(text, "refused") {
		t.Errorf("OnError was told %q", text)
	}
	peer.answer(status(http.StatusOK, `{"accepted":7,"rejected":[{"index":1,"line":2,"reason":"bad"}],"rejected_total":3}`))
	peer.up()
	flush(t, w)
	if s := balanced(t, w); s.Written != 7 || s.Dropped.Refused != 3 || s.Pending != 0 {
		t.Errorf("Stats = %+v", s)
	}
	wantLoss(t, "Close", w.Close(), 3, "line 2 of its request: bad")
	w.Told()
	if text := told.text(); !strings.Contains(text, "3 lines refused") {
		t.Errorf("OnError was told %q", text)
	}
}

// The peer's wish to be left alone is honoured, also when somebody waits.
func TestSpillRetryAfter(t *testing.T) {
	t.Parallel()
	peer := newKeyedPeer(t)
	peer.answer(status(http.StatusTooManyRequests, "", "Retry-After", "1"))
	peer.up()
	w := open(t, peer.url(), remote.Options{Spill: spillTo(t)})
	write(t, w, numbered(0, 3))
	eventually(t, "the first attempt", func() bool { return len(peer.seen()) >= 1 })
	for range 5 {
		ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
		w.Flush(ctx)
		cancel()
	}
	eventually(t, "the second attempt", func() bool { return len(peer.seen()) >= 2 })
	if r := peer.seen(); r[1].when.Sub(r[0].when) < 900*time.Millisecond {
		t.Errorf("came again after %v", r[1].when.Sub(r[0].when))
	}
	peer.answer(nil)
	flush(t, w)
	peer.want(t, numbered(0, 3))
}
