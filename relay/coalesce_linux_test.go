package relay

import (
	"crypto/tls"
	"io"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// What has gathered at the end of a stretch arrives, though nothing follows it.
func TestEndOfGathering(t *testing.T) {
	a := newAuthority(t)
	for _, rd := range []road{
		{name: "plain", listen: "tcp://127.0.0.1:0"},
		{name: "TLS", listen: "tls://127.0.0.1:0", options: Options{ServerTLS: a.config("127.0.0.1")}, clientTLS: &tls.Config{RootCAs: a.pool}},
	} {
		t.Run(rd.name, func(t *testing.T) {
			rd.options.coalesceFor = 20 * time.Millisecond // a busy machine is no reason not to gather
			w := newWay(t, rd)
			client, upstream := w.connect()
			line := strings.Repeat("x", 200)
			go func() { _, _ = io.Copy(io.Discard, upstream) }()
			eventually(t, func() bool { return len(w.relay.snapshot()) == 1 }, func() string { return "no connection" })
			mark := func() (sizeBytes int) {
				err := w.relay.snapshot()[0].client.raw.Control(func(fd uintptr) {
					sizeBytes, _ = unix.GetsockoptInt(int(fd), unix.SOL_SOCKET, unix.SO_RCVLOWAT)
				})
				if err != nil {
					t.Fatal(err)
				}
				return sizeBytes
			}
			sent := 0
			eventually(t, func() bool {
				for range 2000 {
					send(t, client, line)
					sent += len(line)
					if mark() == coalesceLowWater {
						return true
					}
				}
				return false
			}, func() string { return "small pieces do not gather" })
			eventually(t, func() bool { return mark() == 1 }, func() string {
				return "a direction waits, and nobody wakes it for a small piece"
			})
			send(t, client, line)
			w.moved(uint64(sent+len(line)), 0)
		})
	}
}
