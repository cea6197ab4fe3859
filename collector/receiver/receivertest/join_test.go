package receivertest

import (
	"fmt"
	"io"
	"net"
	"strconv"
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
