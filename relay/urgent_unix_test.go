//go:build unix

package relay

import (
	"io"
	"net"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// An urgent byte of TCP goes through at its place in the stream, among bytes
// that are copied by splice and by buffers, and what follows it does too.
func TestUrgentByte(t *testing.T) {
	plainRoads(t, func(t *testing.T, w *way) {
		client, upstream := w.connect()
		socket, ok := client.(*net.TCPConn)
		if !ok {
			return // the client's side of this road is no TCP
		}
		raw, err := socket.SyscallConn()
		if err != nil {
			t.Fatal(err)
		}
		sent := uint64(0)
		urgent := func() {
			t.Helper()
			var err error
			if err2 := raw.Control(func(fd uintptr) { err = unix.Sendto(int(fd), []byte("!"), unix.MSG_OOB, nil) }); err2 != nil || err != nil {
				t.Fatal(err, err2)
			}
			sent++
		}
		bulk := strings.Repeat("0123456789abcdef", 128<<10) // enough for splice
		for _, text := range []string{"abc", bulk, "ab" + bulk} {
			got := make([]byte, len(text)+1)
			read := make(chan error, 1)
			go func() {
				_, err := io.ReadFull(upstream, got)
				read <- err
			}()
			send(t, client, text)
			sent += uint64(len(text))
			urgent()
			// All arrives, though no end follows.
			if err := <-read; err != nil || string(got) != text+"!" {
				t.Fatalf("received %q, %v, want %q", short(got), err, short([]byte(text+"!")))
			}
		}
		send(t, client, "abc")
		urgent()
		rest := strings.Repeat("z", 3000)
		send(t, client, rest)
		if err := client.CloseWrite(); err != nil {
			t.Fatal(err)
		}
		receiveEnd(t, upstream, "abc!"+rest)
		w.moved(sent+uint64(len("abc"+rest)), 0)
		upstream.Close()
		w.closed(ReasonDone, 1)
	})
}
