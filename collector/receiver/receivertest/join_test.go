package receivertest

import (
	"context"
	"fmt"
	"io"
	"net"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rollway/rollway/collector/config"
	"github.com/rollway/rollway/collector/receiver"
	"github.com/rollway/rollway/collector/receiver/decodetest"
	"github.com/rollway/rollway/collector/receiver/forward"
	"github.com/rollway/rollway/collector/receiver/gelf"
	"github.com/rollway/rollway/collector/receiver/syslog"
	"github.com/rollway/rollway/internal/memnet"
	"github.com/rollway/rollway/internal/testkit"
)

// TestFramesJoin sends what an agent has read from a program's output, a byte at a time over a
// connection that stays open: a stack trace is one event, stored with the line after it, which
// is stored without more to come. What is left when the connection ends is stored, too.
func TestFramesJoin(t *testing.T) {
	for _, tt := range []struct {
		protocol receiver.StreamProtocol
		frame    func(text string, number int) string
	}{
		{gelf.Protocol{}, func(text string, n int) string {
			return fmt.Sprintf(`{"version":"1.1","host":"h","short_message":%q,"timestamp":177997200%d,"level":3}`+"\x00", text, n)
		}},
		{receiver.NDJSON{MaxLine: 1 << 10}, func(text string, n int) string {
			return fmt.Sprintf(`{"log":%q,"stream":"stderr","time":177997200%d}`+"\n", text, n)
		}},
		{syslog.Protocol{}, func(text string, n int) string {
			return fmt.Sprintf("<11>1 2026-05-28T12:40:0%dZ h shop 7 - - %s\n", n, text)
		}},
		{forward.Protocol{}, func(text string, n int) string {
			return fmt.Sprintf("\x93\xa3app\xce\x6a\x18\x37%c\x81\xa3log\xd9%c%s", n, len(text), text)
		}},
	} {
		t.Run(tt.protocol.Name(), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s, l := decodetest.NewServer(t, nil), memnet.Listen()
				ctx, cancel := context.WithCancel(t.Context())
				done := make(chan error, 1)
				go func() { done <- s.ServeStream(ctx, l, tt.protocol, nil) }()
				conn, err := l.Dial(ctx)
				testkit.OK(t, err)
				send := func(texts ...string) {
					for i, text := range texts {
						for part := range slices.Chunk([]byte(tt.frame(text, i)), 1) {
							conn.Write(part)
						}
					}
				}
				wants := func(messages ...string) {
					t.Helper()
					synctest.Wait()
					lines := s.Stored()
					if len(lines) != len(messages) {
						t.Fatalf("%q, want messages %q", lines, messages)
					}
					for i, m := range messages {
						if !strings.Contains(lines[i], fmt.Sprintf(`"msg":%q`, m)) {
							t.Errorf("%s, want the message %q", lines[i], m)
						}
					}
				}
				send("alone")
				wants()
				time.Sleep(time.Second) // of virtual time
				wants("alone")
				const trace = "panic: it failed\ngoroutine 1 [running]:\nmain.main()\n\t/a.go:7"
				send(append(strings.Split(trace, "\n"), "after")...)
				wants("alone", trace)
				time.Sleep(time.Second)
				wants("alone", trace, "after")
				send("last", "  of them")
				conn.Close()
				wants("alone", trace, "after", "last\n  of them")
				cancel()
				testkit.OK(t, <-done)
			})
		})
	}
}

// TestLongestAfterHeld sends the longest frame that is taken after one that may go on: that
// does not wait until the buffer has no room for the other.
func TestLongestAfterHeld(t *testing.T) {
	const most = 4 << 10
	s := Run(t, func(cfg *config.Config) {
		cfg.Limits.MaxEvent, cfg.ListenGELF, cfg.ListenTCP = most, "tcp://127.0.0.1:0", "127.0.0.1:0"
	})
	for i, tt := range []struct{ addr, name, end string }{{s.GELFAddrs()[0].String(), "short_message", "\x00"}, {s.TCPAddr().String(), "log", "\n"}} {
		conn, err := net.Dial("tcp", tt.addr)
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		object := func(text string) string { return fmt.Sprintf(`{"%s":"%s"}`, tt.name, text) }
		long := object(strings.Repeat("x", most/2)) // as a line it is longer than it came
		long += strings.Repeat(" ", most-len(long))
		for at, text := 0, object("begun")+tt.end+long+tt.end; at < len(text); at += 1000 {
			io.WriteString(conn, text[at:min(at+1000, len(text))])
		}
		lines := s.Await(t, 2*i+2)
		st := s.Stats().Receive
		if len(lines) != 2*i+2 || len(lines[2*i+1]) < most/2 || st.RejectedTotal() > 0 {
			t.Errorf("%s: %d lines, %d rejected", tt.name, len(lines), st.RejectedTotal())
		}
	}
}
