package remote

import (
	"context"
	"errors"
	"io"
	"net"
	"runtime"
	"strings"
	"testing"
)

// A gone is a connection that died unseen.
type gone struct{ net.Conn }

func (gone) Write([]byte) (int, error) { return 0, errors.New("died unseen") }

// A line that is too long is told once, also when the lines after it take two
// connections.
func TestTooLongIsToldOnceAfterARedial(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go func() {
				io.Copy(io.Discard, c)
				c.Close()
			}()
		}
	}()
	var told []string
	w, err := Open("syslog+tcp://"+l.Addr().String(), Options{
		Syslog:  Syslog{MaxMessage: 500},
		OnError: func(err error) { told = append(told, err.Error()) },
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range []string{"first\n", strings.Repeat("x", 1000) + "\nsecond\n"} {
		if n, err := w.Write([]byte(p)); n != len(p) || err != nil {
			t.Fatalf("Write = %d, %v", n, err)
		}
		if s := w.out.(*streamSender); p == "first\n" {
			s.link = &link{conn: gone{}, raw: s.link.raw, gone: s.link.gone}
		}
	}
	w.Close()
	w.Told()
	if s := w.Stats(); s.Dropped.TooLarge != 1 || s.Written != 2 || s.Retries != 1 || s.Connects != 2 {
		t.Errorf("Stats = %+v", s)
	}
	if len(told) != 1 || !strings.Contains(told[0], ": 1 lines refused or too large") {
		t.Errorf("OnError was told %q", told)
	}
}

// A Sync may come between the reason of a loss and its count.
func TestLossKeepsItsReason(t *testing.T) {
	w, err := Open("udp://127.0.0.1:9", Options{OnError: func(error) {}})
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	w.noteRefused(1, "no colour")
	w.count(func(s *Stats) { s.Dropped.Damaged++ })
	if err := w.newLosses(); err == nil {
		t.Error("a loss is not told")
	}
	w.count(func(s *Stats) { s.Dropped.Refused++ })
	if err := w.newLosses(); err == nil || !strings.HasSuffix(err.Error(), "the first: no colour") {
		t.Errorf("newLosses = %v, want the reason", err)
	}
}

// A refusal that has come is heard, however little time there is.
func TestRefusalIsHeardWithoutTime(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("only Linux tells without waiting")
	}
	w, err := Open("udp://127.0.0.1:9", Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	g := w.out.(*datagramSender)
	if err := g.dial(t.Context()); err != nil {
		t.Fatal(err)
	}
	if _, err := g.link.conn.Write([]byte("x\n")); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := g.awaitRefusal(ctx); !errors.Is(err, errnoRefused) {
		t.Errorf("hear = %v, and nobody listens", err)
	}
}
