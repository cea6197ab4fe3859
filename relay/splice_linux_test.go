package relay

import (
	"fmt"
	"io"
	"log/slog"
	"slices"
	"strings"
	"testing"

	"github.com/rollway/rollway/internal/testkit"
)

// Small messages take no pipe, before bulk and after it; bulk does.
func TestBulkAloneIsSpliced(t *testing.T) {
	w := newWay(t, road{listen: "tcp://127.0.0.1:0"})
	client, upstream := w.connect()
	up := uint64(0)
	chat := func() {
		t.Helper()
		for range 4 * spliceRounds {
			send(t, client, "a small message")
			receive(t, upstream, "a small message")
			up += uint64(len("a small message"))
		}
		w.moved(up, 0)
	}
	pipes := func() int { return w.relay.Stats().Pipes }
	chat()
	if n := pipes(); n != 0 {
		t.Errorf("small messages took %d pipes", n)
	}
	const size = 16 << 20
	read := make(chan error, 1)
	go func() {
		_, err := io.CopyN(io.Discard, upstream, size)
		read <- err
	}()
	if _, err := client.Write(make([]byte, size)); err != nil {
		t.Fatal(err)
	}
	if err := <-read; err != nil {
		t.Fatal(err)
	}
	up += size
	w.moved(up, 0)
	if pipes() == 0 {
		t.Error("bulk was not spliced")
	}
	chat() // ends the splicing
	eventually(t, func() bool { w.relay.pipes.trim(); return pipes() == 0 }, func() string { return fmt.Sprintf("%d pipes are left", pipes()) })
	chat()
	if n := pipes(); n != 0 {
		t.Errorf("small messages after bulk took %d pipes", n)
	}
}

// The record of a connection says how its bytes went.
func TestRecordOfCopy(t *testing.T) {
	for _, c := range []struct {
		size int
		copy string
	}{{100, "buffers"}, {64 << 20, "splice"}} {
		for _, up := range []bool{true, false} {
			t.Run(fmt.Sprintf("%d bytes, up %v", c.size, up), func(t *testing.T) {
				var log testkit.Buffer
				w := newWay(t, road{listen: "tcp://127.0.0.1:0", options: Options{Access: slog.New(slog.NewTextHandler(&log, nil))}})
				from, to := w.connect()
				if !up {
					from, to = to, from
				}
				wrote := make(chan error, 1)
				go func() {
					_, err := from.Write(make([]byte, c.size))
					wrote <- err
				}()
				if c.copy == "splice" { // with full sockets before and behind the relay, reads are full
					eventually(t, func() bool { return w.relay.Stats().Waiting == 1 }, func() string { return "nothing waits" })
				}
				if _, err := io.CopyN(io.Discard, to, int64(c.size)); err != nil {
					t.Fatal(err)
				}
				if err := <-wrote; err != nil {
					t.Fatal(err)
				}
				from.Close()
				to.Close()
				eventually(t, func() bool { return slices.Contains(strings.Fields(log.String()), "copy="+c.copy) }, log.String)
			})
		}
	}
}
