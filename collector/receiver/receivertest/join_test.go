package receivertest

import (
	"fmt"
	"io"
	"net"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/rollway/rollway/collector/config"
)

// TestSyslogJoins sends a stack trace over a connection that stays open, message by message
// and one byte at a time: it is one event, and is stored without more to come.
func TestSyslogJoins(t *testing.T) {
	s := startSyslog(t)
	conn, err := net.Dial("tcp", s.at("tcp"))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	const head = "<11>1 2026-05-28T12:40:00Z h shop 7 - - "
	io.WriteString(conn, head+"alone\n")
	lines := s.Await(t, 1)
	if len(lines) != 1 || !strings.Contains(lines[0], `"msg":"alone"`) {
		t.Fatal(lines)
	}
	for _, c := range head + "it failed\n" + head + "\tat a.B(C.java:7)\n" + head + "Caused by: x\n" + head + "after\n" {
		io.WriteString(conn, string(c))
	}
	lines = s.Await(t, 3)
	if len(lines) != 3 || !strings.Contains(lines[1], `"msg":"it failed\n\tat a.B(C.java:7)\nCaused by: x"`) || !strings.Contains(lines[2], `"msg":"after"`) {
		t.Errorf("%q", lines)
	}
}

// TestFramesJoin sends what an agent has read from a program's output, record by record over
// a connection that stays open: a stack trace is one event, and the last is stored without
// more to come. What is left when the connection ends is stored, too.
func TestFramesJoin(t *testing.T) {
	s := Run(t, func(cfg *config.Config) {
		cfg.ListenGELF, cfg.ListenTCP = "tcp://127.0.0.1:0", "127.0.0.1:0"
	})
	stored := 0
	for _, tt := range []struct{ addr, record, end string }{
		{s.GELFAddrs()[0].String(), `{"version":"1.1","host":"h","short_message":"TEXT","timestamp":177997200I,"level":3}`, "\x00"},
		{s.TCPAddr().String(), `{"log":"TEXT","stream":"stderr","time":177997200I}`, "\n"},
	} {
		conn, err := net.Dial("tcp", tt.addr)
		if err != nil {
			t.Fatal(err)
		}
		send := func(texts ...string) {
			for i, text := range texts {
				record := strings.NewReplacer("TEXT", text, "I", strconv.Itoa(i)).Replace(tt.record) + tt.end
				for part := range slices.Chunk([]byte(record), 16) {
					conn.Write(part)
				}
			}
		}
		send("alone")
		s.Await(t, stored+1)
		send("panic: it failed", "goroutine 1 [running]:", "main.main()", `\t/a.go:7`, "after")
		lines := s.Await(t, stored+3)[stored:]
		if len(lines) != 3 || !strings.Contains(lines[0], `"msg":"alone"`) || !strings.Contains(lines[1], `"msg":"panic: it failed\ngoroutine 1 [running]:\nmain.main()\n\t/a.go:7"`) || !strings.Contains(lines[2], `"msg":"after"`) {
			t.Errorf("%q", lines)
		}
		send("last", "  of them")
		conn.Close()
		if lines = s.Await(t, stored+4)[stored:]; len(lines) != 4 || !strings.Contains(lines[3], `"msg":"last\n  of them"`) {
			t.Errorf("%q", lines)
		}
		stored += 4
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

// TestForwardJoins sends entries one by one over a connection that stays open, one byte at a
// time: a stack trace is one event, so is a line in two parts, and both are stored without
// more to come.
func TestForwardJoins(t *testing.T) {
	s := startForward(t)
	conn, err := net.Dial("tcp", net.JoinHostPort(s.host, strconv.Itoa(s.port)))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	str := func(s string) string { return fmt.Sprintf("\xd9%c%s", len(s), s) }
	part := str("partial_message") + str("true") + str("partial_id") + str("a") + str("partial_last")
	send := func(text, more string, members byte) {
		for _, c := range []byte("\x93\xa3app\xce\x6a\x18\x37\xa7" + string([]byte{0x80 | members}) + str("log") + str(text) + more) {
			conn.Write([]byte{c})
		}
	}
	send("ERROR: it failed", "", 1)
	send("java.io.IOException: x", "", 1)
	send("\tat a.B(C.java:7)", "", 1)
	send("done", "", 1)
	send(`{"msg":`, part+str("false"), 4)
	send(`"whole"}`, part+str("true"), 4)
	lines := s.Await(t, 3)
	if len(lines) != 3 || !strings.Contains(lines[0], `"msg":"ERROR: it failed\njava.io.IOException: x\n\tat a.B(C.java:7)"`) || !strings.Contains(lines[1], `"msg":"done"`) || !strings.Contains(lines[2], `"msg":"whole","attrs":{"tag":"app"}`) {
		t.Errorf("%q", lines)
	}
}
