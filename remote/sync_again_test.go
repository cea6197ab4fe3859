package remote_test

import (
	"context"
	"crypto/tls"
	"errors"
	"io"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/rollway/rollway/remote"
)

// hurried is a Sync that has too little time to hear of the peer.
func hurried(w *remote.Writer) error {
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Millisecond)
	defer cancel()
	return w.SyncContext(ctx)
}

// startHeldPeer accepts, and reads nothing before release is closed.
func startHeldPeer(t *testing.T, addr string, config *tls.Config) (peer *tcpPeer, release chan struct{}) {
	release = make(chan struct{})
	peer = startTCPPeer(t, addr, config, func(c net.Conn, keep io.Writer) {
		if shaken(c) {
			<-release
			io.Copy(keep, c)
		}
	})
	return peer, release
}

// A Sync whose time was up has not confirmed its lines, and nor has any that
// follows it, before the peer has read them.
func TestSyncAgainBeforeThePeerHasRead(t *testing.T) {
	t.Parallel()
	streams(t, func(t *testing.T, scheme string, serverTLS *tls.Config, o remote.Options) {
		peer, release := startHeldPeer(t, anywhere(t, scheme), serverTLS)
		w := open(t, scheme+"://"+peer.Addr().String(), o)
		write(t, w, numbered(0, 100))
		ended, cancel := context.WithCancel(t.Context())
		cancel()
		for i, sync := range []func() error{
			func() error { return w.SyncContext(ended) }, // before anything was asked of the peer
			func() error { return hurried(w) },
			func() error { return hurried(w) },
			func() error { return w.SyncContext(ended) },
		} {
			if err := sync(); !errors.Is(err, context.Canceled) && !errors.Is(err, context.DeadlineExceeded) || !strings.Contains(err.Error(), "has not read") {
				t.Fatalf("Sync %d = %v, and the peer has read nothing", i, err)
			}
		}
		if n := len(peer.bytes()); n != 0 {
			t.Fatalf("the peer has read %d bytes: this tests nothing", n)
		}
		close(release)
		if err := w.Sync(); err != nil {
			t.Fatalf("Sync = %v", err)
		}
		peer.want(t, numbered(0, 100)) // no waiting: Sync is the proof
		if err := w.SyncContext(ended); err != nil {
			t.Errorf("Sync with nothing to ask = %v", err)
		}
		settled(t, w, 100, 100)
		if s := w.Stats(); s.Connects != 1 {
			t.Errorf("Stats = %+v", s)
		}
	})
}

// A peer that dies while lines that no Sync has confirmed are on the way: the
// next Sync says so, once.
func TestSyncAgainOfAPeerThatDies(t *testing.T) {
	t.Parallel()
	transports(t, func(t *testing.T, scheme string, serverTLS *tls.Config, o remote.Options) {
		die := make(chan struct{})
		peer := startTCPPeer(t, "127.0.0.1:0", serverTLS, func(c net.Conn, keep io.Writer) {
			if shaken(c) {
				<-die
			}
			reset(c)
		})
		w := open(t, scheme+"://"+peer.Addr().String(), o)
		write(t, w, numbered(0, 3))
		if err := hurried(w); !errors.Is(err, context.DeadlineExceeded) {
			t.Fatalf("Sync = %v", err)
		}
		close(die)
		if err := w.Sync(); err == nil || !strings.Contains(err.Error(), "after 3 lines") {
			t.Errorf("Sync = %v, and nobody has read the lines", err)
		}
		if err := w.Sync(); err != nil {
			t.Errorf("another Sync = %v, want nil: told once", err)
		}
		settled(t, w, 3, 3)
	})
}

// Lines that follow those of such a Sync do not overtake them.
func TestWriteBehindAHurriedSync(t *testing.T) {
	t.Parallel()
	streams(t, func(t *testing.T, scheme string, serverTLS *tls.Config, o remote.Options) {
		o.Timeout = 3 * time.Minute
		peer, release := startHeldPeer(t, anywhere(t, scheme), serverTLS)
		w := open(t, scheme+"://"+peer.Addr().String(), o)
		write(t, w, numbered(0, 3))
		if err := hurried(w); !errors.Is(err, context.DeadlineExceeded) {
			t.Fatalf("Sync = %v", err)
		}
		result := make(chan error, 1)
		go func() {
			_, err := w.Write([]byte(numbered(3, 6)))
			result <- err
		}()
		eventually(t, "the Write is under way", func() bool { return w.Stats().Pending == 3 })
		if s := w.Stats(); s.Connects != 1 {
			t.Errorf("Stats = %+v: the lines go out before the peer has read what was first", s)
		}
		close(release)
		if err := <-result; err != nil {
			t.Errorf("Write = %v", err)
		}
		if err := w.Close(); err != nil {
			t.Errorf("Close = %v", err)
		}
		peer.want(t, numbered(0, 3), numbered(3, 6))
		settled(t, w, 6, 6)
	})
}

// A Write whose own time is up hands its lines back. A peer that never closes its
// side does not hold up more than one attempt may take, and no Sync believes it.
func TestPeerThatNeverCloses(t *testing.T) {
	t.Parallel()
	streams(t, func(t *testing.T, scheme string, serverTLS *tls.Config, o remote.Options) {
		peer, release := startHeldPeer(t, anywhere(t, scheme), serverTLS)
		defer close(release)
		url := scheme + "://" + peer.Addr().String()

		o.Timeout = 50 * time.Millisecond
		if serverTLS == nil { // a handshake may take longer
			w := open(t, url, o)
			w.SetAttempt(time.Minute)
			eventually(t, "a Write in time", func() bool {
				_, err := w.Write([]byte(numbered(0, 3)))
				return err == nil
			})
			hurried(w)
			if n, err := w.Write([]byte(numbered(3, 6))); n != 0 || !errors.Is(err, context.DeadlineExceeded) || !strings.Contains(err.Error(), "has not read") {
				t.Errorf("Write = %d, %v", n, err)
			}
			settled(t, w, 3, 3)
		}

		o.Timeout = 0
		var told []string
		o.OnError = func(err error) { told = append(told, err.Error()) }
		w := open(t, url, o)
		w.SetAttempt(300 * time.Millisecond)
		for i := range 5 {
			write(t, w, numbered(i, i+1))
			if err := hurried(w); !errors.Is(err, context.DeadlineExceeded) {
				t.Fatalf("Sync %d = %v", i, err)
			}
		}
		if s := w.Stats(); s.Connects != 2 {
			t.Errorf("Stats = %+v, want one connection whose end is awaited and one that is used", s)
		}
		settled(t, w, 5, 5)
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
		defer cancel()
		if err := w.Shutdown(ctx); !errors.Is(err, context.DeadlineExceeded) || !strings.Contains(err.Error(), "has not read") {
			t.Errorf("Shutdown = %v", err)
		}
		w.Told()
		if len(told) != 1 || !strings.Contains(told[0], "2 connections broke, after 5 lines") {
			t.Errorf("OnError was told %q", told)
		}
		if s := w.Stats(); s.Connected {
			t.Errorf("Stats = %+v after Shutdown", s)
		}
	})
}

// Over UDP nothing but a refusal is heard, for which there must be time.
func TestHurriedSyncOverUDP(t *testing.T) {
	t.Parallel()
	addr := reserveUDP(t)
	peer := startGramPeer(t, "udp", addr)
	w := open(t, "udp://"+addr, remote.Options{})
	write(t, w, numbered(0, 3))
	for i := range 2 {
		if err := hurried(w); !errors.Is(err, context.DeadlineExceeded) || !strings.Contains(err.Error(), "too little time") {
			t.Fatalf("Sync %d = %v", i, err)
		}
	}
	cancelled, cancel := context.WithCancel(t.Context())
	cancel()
	if err := w.SyncContext(cancelled); !errors.Is(err, context.Canceled) || !strings.Contains(err.Error(), "too little time") {
		t.Fatalf("Sync with a cancelled context = %v", err)
	}
	if err := w.Sync(); err != nil {
		t.Errorf("Sync = %v", err)
	}
	eventually(t, "the lines are there", func() bool { return string(peer.bytes()) == numbered(0, 3) })
	settled(t, w, 3, 3)
}

// A Sync without any time loses nothing, and returns nil only if the lines are
// there.
func TestSyncWithoutTime(t *testing.T) {
	t.Parallel()
	eachPeer(t, func(t *testing.T, peer *anyPeer) {
		peer.up()
		w := open(t, peer.url, peer.options)
		cancelled, cancel := context.WithCancel(t.Context())
		cancel()
		for i := range 30 {
			write(t, w, numbered(i, i+1))
			err := w.SyncContext(cancelled)
			if err != nil && !errors.Is(err, context.Canceled) {
				t.Errorf("Sync %d = %v, want nil or context.Canceled", i, err)
			}
			if got := string(peer.lines()); err == nil && got != numbered(0, i+1) {
				t.Errorf("Sync %d = nil, and the peer has %q", i, got)
			}
		}
		if err := w.Sync(); err != nil {
			t.Errorf("Sync = %v", err)
		}
		eventually(t, "the lines are there", func() bool { return string(peer.lines()) == numbered(0, 30) })
		settled(t, w, 30, 30)
	})
}
