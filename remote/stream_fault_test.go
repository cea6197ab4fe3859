package remote_test

import (
	"bufio"
	"context"
	"crypto/tls"
	"errors"
	"io"
	"net"
	"os"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/rollway/rollway/remote"
)

// reset closes c so that the peer gets an RST.
func reset(c net.Conn) {
	if t, ok := c.(*tls.Conn); ok {
		c = t.NetConn()
	}
	c.(*net.TCPConn).SetLinger(0)
	c.Close()
}

func TestReset(t *testing.T) {
	t.Parallel()
	transports(t, func(t *testing.T, scheme string, serverTLS *tls.Config, o remote.Options) {
		resets := func(c net.Conn, keep io.Writer) {
			line, _ := bufio.NewReader(c).ReadString('\n')
			io.WriteString(keep, line)
			reset(c)
		}
		var told []error
		o.OnError = func(err error) { told = append(told, err) }

		peer := startTCPPeer(t, "127.0.0.1:0", serverTLS, resets)
		w := open(t, scheme+"://"+peer.Addr().String(), o)
		write(t, w, numbered(0, 3))
		eventually(t, "the reset is noticed", func() bool { return peerGone(w) })
		if err := w.Sync(); err == nil || !strings.Contains(err.Error(), "after 3 lines") {
			t.Errorf("Sync after a reset = %v, want an error with 3 lines", err)
		}
		if err := w.Sync(); err != nil {
			t.Errorf("second Sync = %v, want nil: told once", err)
		}
		w.Told()
		if len(told) != 1 || !strings.Contains(told[0].Error(), "3 lines") {
			t.Errorf("OnError was told %v", told)
		}
		// The next line gets a new connection, and Close says what became of it.
		write(t, w, numbered(3, 4))
		eventually(t, "the second reset is noticed", func() bool { return peerGone(w) })
		err := w.Close()
		if err == nil || !strings.Contains(err.Error(), "broke, after 1 lines") {
			t.Errorf("Close after a reset = %v", err)
		}
		if again := w.Close(); again != err {
			t.Errorf("second Close = %v", again)
		}
		settled(t, w, 4, 4)
	})
}

// With Options.Retries one Write waits for a peer that is away.
func TestReconnectWithinOneWrite(t *testing.T) {
	t.Parallel()
	streams(t, func(t *testing.T, scheme string, serverTLS *tls.Config, o remote.Options) {
		gone := startTCPPeer(t, anywhere(t, scheme), serverTLS, nil)
		addr := gone.Addr().String()
		gone.stop()
		o.Retries = 1000
		w := open(t, scheme+"://"+addr, o)
		result := make(chan error, 1)
		go func() {
			_, err := w.Write([]byte(numbered(0, 10)))
			result <- err
		}()
		eventually(t, "two attempts have failed", func() bool { return w.Stats().Failures >= 2 })
		peer := startTCPPeer(t, addr, serverTLS, nil)
		if err := <-result; err != nil {
			t.Errorf("Write = %v", err)
		}
		if err := w.Close(); err != nil {
			t.Errorf("Close = %v", err)
		}
		peer.want(t, numbered(0, 10))
		settled(t, w, 10, 10)
		if s := w.Stats(); s.Retries < 2 || s.Failures != 0 || s.Connects != 1 {
			t.Errorf("Stats = %+v", s)
		}
	})
}

// Whatever a Write that fails midway returns, it is a line end, and what it
// counts as written is what it returned.
func TestResetMidway(t *testing.T) {
	t.Parallel()
	transports(t, func(t *testing.T, scheme string, serverTLS *tls.Config, o remote.Options) {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		served := make(chan struct{})
		go func() {
			defer close(served)
			c, err := l.Accept()
			if err != nil {
				t.Error(err)
				return
			}
			l.Close() // so that there is no second connection
			if serverTLS != nil {
				c = tls.Server(c, serverTLS)
			}
			io.CopyN(io.Discard, c, 1<<20)
			reset(c)
		}()
		defer func() { <-served }()
		w := open(t, scheme+"://"+l.Addr().String(), o)
		p := []byte(wide(20_000))
		n, err := w.Write(p)
		if err == nil || n == 0 || n == len(p) || p[n-1] != '\n' {
			t.Fatalf("Write = %d of %d, %v, want an error at a line end", n, len(p), err)
		}
		done := strings.Count(string(p[:n]), "\n")
		settled(t, w, done, done)
		if s := w.Stats(); s.Returned != uint64(20_000-done) {
			t.Errorf("Stats = %+v", s)
		}
	})
}

func TestStalledReader(t *testing.T) {
	t.Parallel()
	streams(t, func(t *testing.T, scheme string, serverTLS *tls.Config, o remote.Options) {
		release := make(chan struct{})
		peer := startTCPPeer(t, anywhere(t, scheme), serverTLS, func(c net.Conn, keep io.Writer) {
			if c, ok := c.(*tls.Conn); ok {
				c.Handshake()
			}
			<-release
		})
		defer close(release)
		url := scheme + "://" + peer.Addr().String()
		all := []byte(wide(20_000)) // more than loopback buffers hold

		w := open(t, url, o)
		w.SetAttempt(100 * time.Millisecond)
		n, err := w.Write(all)
		if !errors.Is(err, os.ErrDeadlineExceeded) || n > 0 && all[n-1] != '\n' {
			t.Errorf("Write = %d, %v, want a deadline exceeded", n, err)
		}
		done := strings.Count(string(all[:n]), "\n")
		settled(t, w, done, done)

		o.Timeout = 3 * time.Minute
		w = open(t, url, o)
		result := make(chan error, 1)
		go func() {
			_, err := w.Write(all)
			result <- err
		}()
		eventually(t, "lines are pending", func() bool {
			// A local socket holds less than a piece of 256 KiB.
			s := w.Stats()
			return s.Pending > 0 && (s.Written > 0 || scheme == "unix" && s.Requests > 0)
		})
		ctx, cancel := context.WithTimeout(context.Background(), 50*time.Millisecond)
		defer cancel()
		begin := time.Now()
		if err := w.Shutdown(ctx); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("Shutdown = %v, want deadline exceeded", err)
		}
		if d := time.Since(begin); d > 30*time.Second {
			t.Errorf("Shutdown took %v", d)
		}
		if err := <-result; !errors.Is(err, os.ErrClosed) {
			t.Errorf("broken off Write = %v, want os.ErrClosed", err)
		}
		s := w.Stats()
		settled(t, w, int(20_000-s.Returned), int(s.Written))

		// Close does not claim that the peer has read what it has not.
		o.CloseTimeout = 50 * time.Millisecond
		w = open(t, url, o)
		write(t, w, numbered(0, 1))
		if err := w.Close(); !errors.Is(err, context.DeadlineExceeded) || !strings.Contains(err.Error(), "has not read") {
			t.Errorf("Close = %v, want that the peer has not read", err)
		}
	})
}

// A Sync that waits for its peer does not hold up Shutdown.
func TestShutdownBreaksOffSync(t *testing.T) {
	t.Parallel()
	asked, release := make(chan struct{}), make(chan struct{})
	peer := startTCPPeer(t, "127.0.0.1:0", nil, func(c net.Conn, _ io.Writer) {
		io.Copy(io.Discard, c)
		close(asked) // Sync has ended the connection, and waits
		<-release
	})
	defer close(release)
	w := open(t, "tcp://"+peer.Addr().String(), remote.Options{})
	write(t, w, numbered(0, 1))
	result := make(chan error, 1)
	go func() { result <- w.SyncContext(context.Background()) }()
	<-asked
	ctx, cancel := context.WithTimeout(context.Background(), 50*time.Millisecond)
	defer cancel()
	if err := w.Shutdown(ctx); err == nil {
		t.Error("Shutdown = nil, but the peer has not closed its side")
	}
	if err := <-result; err == nil {
		t.Error("Sync = nil, but the peer has not closed its side")
	}
	settled(t, w, 1, 1)
}

// A line written just as the peer closes goes to a peer that is not there any
// more. It counts as written, but then Sync does not return nil.
func TestWriteAsThePeerCloses(t *testing.T) {
	t.Parallel()
	if runtime.GOOS != "linux" {
		t.Skip("only Linux tells whether the peer has taken everything")
	}
	streams(t, func(t *testing.T, scheme string, serverTLS *tls.Config, o remote.Options) {
		conns := make(chan net.Conn, 10)
		peer := startTCPPeer(t, anywhere(t, scheme), serverTLS, func(c net.Conn, keep io.Writer) {
			conns <- c
			io.Copy(keep, c)
		})
		w := open(t, scheme+"://"+peer.Addr().String(), o)
		failed, sent := 0, 0
		for range 100 {
			write(t, w, numbered(sent, sent+1))
			sent++
			eventually(t, "the line is there", func() bool { return strings.HasSuffix(string(peer.bytes()), numbered(sent-1, sent)) })
			(<-conns).Close()
			write(t, w, numbered(sent, sent+1))
			sent++
			have := strings.Count(string(peer.bytes()), "\n")
			err := w.Sync()
			got := strings.Count(string(peer.bytes()), "\n")
			switch lost := sent - got; {
			case err == nil && lost > 0:
				t.Fatalf("Sync = nil, but the peer has %d of %d lines (%d before Sync)", got, sent, have)
			case err != nil:
				failed++
			}
			for len(conns) > 0 {
				<-conns
			}
			sent = got
			if err := w.Sync(); err != nil {
				t.Fatalf("a second Sync = %v", err)
			}
		}
		t.Logf("%d of 100 lines met a closed connection", failed)
		if failed == 0 {
			t.Error("no line met a closed connection: this tests nothing")
		}
	})
}
