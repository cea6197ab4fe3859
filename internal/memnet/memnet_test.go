package memnet

import (
	"context"
	"errors"
	"io"
	"net"
	"testing"

	"github.com/rollway/rollway/internal/testkit"
)

func TestListener(t *testing.T) {
	l := Listen()
	accepted := make(chan net.Conn, 1)
	go func() {
		c, _ := l.Accept()
		accepted <- c
	}()
	near, err := l.Dial(t.Context())
	testkit.OK(t, err)
	far := <-accepted
	go func() {
		io.WriteString(near, "hello")
		near.Close()
	}()
	if text, err := io.ReadAll(far); string(text) != "hello" || err != nil {
		t.Errorf("%q, %v", text, err)
	}
	ended, end := context.WithCancel(t.Context())
	end()
	if _, err := l.Dial(ended); !errors.Is(err, context.Canceled) {
		t.Errorf("nobody accepts: %v", err)
	}
	testkit.OK(t, l.Close())
	testkit.OK(t, l.Close())
	if _, err := l.Dial(t.Context()); !errors.Is(err, net.ErrClosed) {
		t.Errorf("closed: %v", err)
	}
	if _, err := l.Accept(); !errors.Is(err, net.ErrClosed) {
		t.Errorf("closed: %v", err)
	}
}
