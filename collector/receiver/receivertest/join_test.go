package receivertest

import (
	"io"
	"net"
	"strings"
	"testing"
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
