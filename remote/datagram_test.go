package remote_test

import (
	"context"
	"errors"
	"os"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/rollway/rollway/line"
	"github.com/rollway/rollway/remote"
)

func TestOneDatagramPerLine(t *testing.T) {
	t.Parallel()
	datagrams(t, func(t *testing.T, url string, listen func() *gramPeer) {
		peer := listen()
		peer.start()
		w := open(t, url, remote.Options{})
		all := numbered(0, 100)
		write(t, w, all[:20])
		write(t, w, strings.TrimSuffix(numbered(0, 100), "\n"))
		if err := w.Close(); err != nil {
			t.Errorf("Close = %v", err)
		}
		eventually(t, "all datagrams are there", func() bool { return len(peer.each()) == 101 })
		for i, g := range peer.each()[1:] {
			if g != numbered(i, i+1) {
				t.Errorf("datagram %d is %q", i, g)
			}
		}
		settled(t, w, 101, 101)
		if s := w.Stats(); s.Connects != 1 || s.Requests != 101 || s.Peer == "" {
			t.Errorf("Stats = %+v", s)
		}
	})
}

func TestPackedDatagrams(t *testing.T) {
	t.Parallel()
	datagrams(t, func(t *testing.T, url string, listen func() *gramPeer) {
		peer := listen()
		peer.start()
		w := open(t, url, remote.Options{PackDatagram: 1400})
		long := `{"msg":"` + strings.Repeat("x", 3000) + "\"}\n"
		all := numbered(0, 1000) + long + numbered(1000, 1010)
		write(t, w, all)
		eventually(t, "all is there", func() bool { return len(peer.bytes()) == len(all) })
		if got := string(peer.bytes()); got != all {
			t.Errorf("the peer has other bytes")
		}
		for _, g := range peer.each() {
			if !strings.HasSuffix(g, "\n") || len(g) > 1400 && g != long {
				t.Errorf("datagram of %d bytes, %q", len(g), g[max(0, len(g)-10):])
			}
		}
		if n := len(peer.each()); n > 50 {
			t.Errorf("%d datagrams: not packed", n)
		}
		settled(t, w, 1011, 1011)
	})
}

// A line that is too long by the options or by the system's measure is lost by
// itself, with the reason.
func TestTooLongForADatagram(t *testing.T) {
	t.Parallel()
	datagrams(t, func(t *testing.T, url string, listen func() *gramPeer) {
		for _, c := range []struct {
			name string
			size int
			o    remote.Options
			why  string
		}{
			{"by the option", 2000, remote.Options{MaxDatagram: 1000}, "Options.MaxDatagram"},
			{"by the default", 70_000, remote.Options{}, "Options.MaxDatagram"},
			{"by the system", 8 << 20, remote.Options{MaxDatagram: 16 << 20}, "the system"},
			{"by the system, packed", 8 << 20, remote.Options{MaxDatagram: 16 << 20, PackDatagram: 16 << 20}, "the system"},
		} {
			t.Run(c.name, func(t *testing.T) {
				peer := listen()
				peer.start()
				defer peer.stop()
				var told []error
				c.o.OnError = func(err error) { told = append(told, err) }
				w := open(t, url, c.o)
				write(t, w, numbered(0, 2)+strings.Repeat("x", c.size)+"\n"+numbered(2, 4))
				eventually(t, "the short lines are there", func() bool { return string(peer.bytes()) == numbered(0, 4) })
				settled(t, w, 5, 4)
				if d := w.Stats().Dropped; d != (line.Drops{TooLarge: 1}) {
					t.Errorf("Dropped = %+v", d)
				}
				w.Told()
				if len(told) != 1 || !strings.Contains(told[0].Error(), c.why) {
					t.Errorf("OnError was told %v", told)
				}
			})
		}
	})
}

// Nobody listens: the lines stay with the caller, however often it tries, and
// get through when somebody does.
func TestNobodyListens(t *testing.T) {
	t.Parallel()
	datagrams(t, func(t *testing.T, url string, listen func() *gramPeer) {
		w := open(t, url, remote.Options{})
		for i := range 3 {
			n, err := w.Write([]byte(numbered(0, 10)))
			if n != 0 || !errors.Is(err, syscall.ECONNREFUSED) && !errors.Is(err, syscall.ENOENT) {
				t.Fatalf("Write %d without a peer = %d, %v", i, n, err)
			}
		}
		settled(t, w, 0, 0)
		if s := w.Stats(); s.Failures != 3 || s.Returned != 30 {
			t.Errorf("Stats = %+v", s)
		}
		peer := listen()
		peer.start()
		write(t, w, numbered(0, 10))
		eventually(t, "the lines are there", func() bool { return string(peer.bytes()) == numbered(0, 10) })
		if err := w.Close(); err != nil {
			t.Errorf("Close = %v", err)
		}
		settled(t, w, 10, 10)
	})
}

// A peer that goes away is told to OnError and by the next Sync, and one that
// comes back is found again.
func TestDatagramPeerRestarts(t *testing.T) {
	t.Parallel()
	datagrams(t, func(t *testing.T, url string, listen func() *gramPeer) {
		peer := listen()
		peer.start()
		var told []error
		w := open(t, url, remote.Options{OnError: func(err error) { told = append(told, err) }})
		write(t, w, numbered(0, 5))
		eventually(t, "the lines are there", func() bool { return len(peer.each()) == 5 })
		peer.stop()
		sent := 5
		eventually(t, "Write notices", func() bool {
			n, err := w.Write([]byte(numbered(sent, sent+1)))
			if err != nil {
				return n == 0
			}
			sent++ // UDP: this one is lost, and the next Write hears of it
			return false
		})
		if sent > 6 {
			t.Errorf("%d lines were sent to a peer that was not there", sent-5)
		}
		if err := w.Sync(); err == nil || !strings.Contains(err.Error(), "connections broke") {
			t.Errorf("Sync = %v, want that a connection broke", err)
		}
		w.Told()
		if len(told) != 1 || !strings.Contains(told[0].Error(), "may be lost") {
			t.Errorf("OnError was told %v", told)
		}
		again := listen()
		again.start()
		write(t, w, numbered(sent, sent+3))
		eventually(t, "the lines are there", func() bool { return string(again.bytes()) == numbered(sent, sent+3) })
		if err := w.Close(); err != nil {
			t.Errorf("Close = %v", err)
		}
		settled(t, w, sent+3, sent+3)
	})
}

// fill writes lines until a peer that hangs takes no more: a write that takes some may have lacked time.
// It returns the bytes that it has taken, and how many lines were given back.
func fill(t *testing.T, w *remote.Writer, all string) (n int, returned uint64) {
	t.Helper()
	for full := 0; full < 2; {
		m, err := w.Write([]byte(all[n:]))
		if !errors.Is(err, os.ErrDeadlineExceeded) {
			t.Fatalf("Write to a peer that hangs = %d, %v, want the deadline exceeded", m, err)
		}
		n += m
		returned += uint64(strings.Count(all[n:], "\n"))
		if full++; m > 0 {
			full = 0
		}
	}
	if n == 0 || n == len(all) || all[n-1] != '\n' {
		t.Fatalf("a peer that hangs has taken %d of %d bytes, want some, up to a line end", n, len(all))
	}
	return n, returned
}

// The queue of a local socket is short. A Write waits for its reader, not for
// ever, and Sync says what was not read.
func TestSlowLocalReader(t *testing.T) {
	t.Parallel()
	if runtime.GOOS != "linux" {
		t.Skip("only Linux tells what a local peer has read")
	}
	path := socketPath(t)
	peer := listenGram(t, "unixgram", path)
	w := open(t, "unixgram://"+path, remote.Options{CloseTimeout: 50 * time.Millisecond})
	w.SetAttempt(100 * time.Millisecond)
	all := numbered(0, 5000)
	n, _ := fill(t, w, all)
	done := strings.Count(all[:n], "\n")
	settled(t, w, done, done)
	peer.start()
	for rest := all[n:]; rest != ""; {
		n, _ := w.Write([]byte(rest))
		rest = rest[n:]
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	if err := w.SyncContext(ctx); err != nil {
		t.Errorf("Sync = %v", err)
	}
	eventually(t, "all is there", func() bool { return string(peer.bytes()) == all })
	settled(t, w, 5000, 5000)
}

func TestSyncSaysWhatALocalPeerHasNotRead(t *testing.T) {
	t.Parallel()
	if runtime.GOOS != "linux" {
		t.Skip("only Linux tells what a local peer has read")
	}
	path := socketPath(t)
	listenGram(t, "unixgram", path)
	w := open(t, "unixgram://"+path, remote.Options{CloseTimeout: 50 * time.Millisecond})
	write(t, w, numbered(0, 1))
	if err := w.Sync(); !errors.Is(err, context.DeadlineExceeded) || !strings.Contains(err.Error(), "has not read") {
		t.Errorf("Sync = %v, want that the peer has not read", err)
	}
	write(t, w, numbered(1, 2))
	if err := w.Close(); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("Close = %v, want that the peer has not read", err)
	}
	settled(t, w, 2, 2)
}

// A local peer that is replaced while the Writer dials: its lines are sent to the
// new one, and no loss is told. One that is replaced each time is an error, before
// anything is sent.
func TestReplacedWhileDialled(t *testing.T) {
	t.Parallel()
	if runtime.GOOS == "windows" {
		t.Skip("Windows has no local datagram sockets")
	}
	for _, c := range []struct {
		name  string
		times int
	}{{"once", 1}, {"twice", 2}} {
		t.Run(c.name, func(t *testing.T) {
			path := socketPath(t)
			peer := startGramPeer(t, "unixgram", path)
			w := open(t, "unixgram://"+path, remote.Options{})
			dials := 0
			w.SetBeforeConnect(func() {
				if dials++; dials > c.times {
					return
				}
				again := startGramPeer(t, "unixgram", path+".new")
				if err := os.Rename(path+".new", path); err != nil { // the name has another file now
					t.Error(err)
				}
				peer.stop()
				peer = again
			})
			if c.times == 2 {
				if n, err := w.Write([]byte(numbered(0, 3))); n != 0 || err == nil || !strings.Contains(err.Error(), "another socket is in its place") {
					t.Errorf("Write = %d, %v", n, err)
				}
				settled(t, w, 0, 0)
			}
			write(t, w, numbered(0, 3))
			if err := w.Sync(); err != nil {
				t.Errorf("Sync = %v", err)
			}
			eventually(t, "the lines are there", func() bool { return string(peer.bytes()) == numbered(0, 3) })
			settled(t, w, 3, 3)
		})
	}
}

func TestShutdownBreaksOffDatagrams(t *testing.T) {
	t.Parallel()
	if runtime.GOOS == "windows" {
		t.Skip("Windows has no local datagram sockets")
	}
	path := socketPath(t)
	listenGram(t, "unixgram", path)
	w := open(t, "unixgram://"+path, remote.Options{})
	result := make(chan error, 1)
	go func() {
		_, err := w.Write([]byte(numbered(0, 5000)))
		result <- err
	}()
	eventually(t, "the Write, for which the queue has no room, is under way", func() bool { return w.Stats().Requests > 0 })
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	if err := w.Shutdown(ctx); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("Shutdown = %v, want deadline exceeded", err)
	}
	if err := <-result; !errors.Is(err, os.ErrClosed) {
		t.Errorf("broken off Write = %v, want os.ErrClosed", err)
	}
	s := w.Stats()
	settled(t, w, int(5000-s.Returned), int(s.Written))
}

// A Write that Shutdown breaks off between two datagrams says nothing of the peer:
// what was sent before is on its way.
func TestShutdownBetweenDatagrams(t *testing.T) {
	t.Parallel()
	addr := reserveUDP(t)
	startGramPeer(t, "udp", addr)
	var told told
	w := open(t, "udp://"+addr, remote.Options{OnError: told.note})
	result := make(chan error, 1)
	go func() {
		_, err := w.Write([]byte(numbered(0, 1_000_000)))
		result <- err
	}()
	eventually(t, "datagrams are sent", func() bool { return w.Stats().Requests > 10 })
	if err := w.Shutdown(ended(t)); err == nil || strings.Contains(err.Error(), "connections broke") {
		t.Errorf("Shutdown = %v", err)
	}
	if err := <-result; !errors.Is(err, os.ErrClosed) {
		t.Errorf("the Write broken off = %v, want os.ErrClosed", err)
	}
	w.Told()
	if text := told.text(); strings.Contains(text, "broke") {
		t.Errorf("OnError was told %q, and no connection broke", text)
	}
	s := w.Stats()
	settled(t, w, int(1_000_000-s.Returned), int(s.Written))
}
