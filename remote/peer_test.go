package remote_test

import (
	"context"
	"errors"
	"io"
	"log"
	"net"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/rollway/rollway/remote"
	"github.com/rollway/rollway/rollwaytest"
)

var discardLog = log.New(io.Discard, "", 0)

// open returns a Writer that has time to connect, to write, to sync and to close
// on a busy machine too, and which the end of the test does not wait for.
func open(t testing.TB, url string, o remote.Options) *remote.Writer {
	t.Helper()
	if o.CloseTimeout == 0 {
		o.CloseTimeout = time.Minute
	}
	if o.Timeout == 0 {
		o.Timeout = 3 * time.Minute
	}
	w, err := remote.Open(url, o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), time.Second)
		defer cancel()
		w.Shutdown(ctx)
	})
	return w
}

func ledger(w *remote.Writer) rollwaytest.Ledger {
	s := w.Stats()
	return rollwaytest.Ledger{Ledger: s.Ledger}
}

// settled wants accepted = written + dropped and nothing pending.
func settled(t testing.TB, w *remote.Writer, accepted, written int) {
	t.Helper()
	ledger(w).CheckSettled(t, accepted, written)
}

func write(t testing.TB, w io.Writer, p string) {
	t.Helper()
	if n, err := w.Write([]byte(p)); n != len(p) || err != nil {
		t.Fatalf("Write of %d bytes = %d, %v, want all and nil", len(p), n, err)
	}
}

// numbered returns lines from to to-1.
func numbered(from, to int) string {
	var b []byte
	for i := from; i < to; i++ {
		b = append(b, `{"msg":"line","attrs":{"seq":`...)
		b = strconv.AppendInt(b, int64(i), 10)
		b = append(b, "}}\n"...)
	}
	return string(b)
}

// wide returns n lines of a thousand bytes and some: more than the buffers of
// a loopback connection hold, if n is 20,000.
func wide(n int) string {
	line := `{"msg":"` + strings.Repeat("x", 1000) + "\"}\n"
	return strings.Repeat(line, n)
}

// listenAt is net.Listen at an address that was listened at before. A child that the
// test has begun keeps the socket from then for a moment, until it is another program.
func listenAt(network, addr string) (l net.Listener, err error) {
	for end := time.Now().Add(time.Minute); ; time.Sleep(time.Millisecond) {
		if l, err = net.Listen(network, addr); err == nil || !errors.Is(err, syscall.EADDRINUSE) || time.Now().After(end) {
			return l, err
		}
	}
}

// eventually waits until ok, which is never further away than a loopback.
func eventually(t testing.TB, what string, ok func() bool) {
	t.Helper()
	for end := time.Now().Add(time.Minute); !ok(); time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("not after a minute: %s", what)
		}
	}
}
