package collector

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/rollway/rollway/collector/config"
	"github.com/rollway/rollway/collector/deadletter"
)

// longText is more than the strict collector takes.
var longText = strings.Repeat("long ", 100)

// rejectedRequests are requests of one event each that is too long, by each door.
var rejectedRequests = []struct{ path, contentType, body string }{
	{"/v1/logs", "application/json", `{"resourceLogs":[{"scopeLogs":[{"logRecords":[{"timeUnixNano":"1779972000000000001","severityNumber":13,"traceId":"0102030405060708090a0b0c0d0e0f10","body":{"stringValue":"` + longText + `"},"attributes":[{"key":"a","value":{"intValue":"1"}}]}]}]}]}`},
	{"/services/collector/event", "", `{"time":1779972000,"host":"h","event":{"severity":"warn","message":"` + longText + `"},"fields":{"n":1}}`},
	{"/services/collector/raw", "", longText},
	{"/logs-app/_bulk", "", "{\"create\":{}}\n{\"@timestamp\":\"2026-05-28T12:40:00Z\",\"log\":{\"level\":\"warn\"},\"message\":\"" + longText + "\"}\n"},
	{"/api/7/store/", "", `{"timestamp":1779972000,"level":"warning","logentry":{"message":"` + longText + `"}}`},
	{"/api/7/envelope/", "", "{}\n{\"type\":\"event\"}\n{\"timestamp\":1779972000,\"exception\":{\"values\":[{\"type\":\"T\",\"value\":\"" + longText + "\"}]}}\n"},
	{"/api/7/envelope/", "", "{}\n{\"type\":\"log\"}\n{\"items\":[{\"timestamp\":1779972000,\"body\":\"" + longText + "\",\"attributes\":{\"a\":{\"value\":5,\"type\":\"integer\"}}}]}\n"},
	{"/loki/api/v1/push", "application/json", `{"streams":[{"stream":{},"values":[["1779972000000000000","{\"time\":\"2026-05-28T12:40:00Z\",\"msg\":\"` + longText + `\"}"]]}]}`},
	{"/api/logs", "", `{"time":1779972000,"metadata":{"a":1},"msg":"` + longText + `"}`},
}

// What a strict collector rejects, by whatever door, is read from its dead
// letters as a lenient one stores it.
func TestLettersOfDoors(t *testing.T) {
	strict, lenient := sendRejected(t, 400), sendRejected(t, config.MiB)
	want := storedLines(t, lenient)
	if n := len(rejectedRequests) + 3; len(want) != n {
		t.Fatalf("%d lines are stored, want %d:\n%s", len(want), n, strings.Join(want, "\n"))
	}
	b, err := os.ReadFile(filepath.Join(strict.config.Data, "rejected", deadletter.Name))
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for line := range strings.Lines(string(b)) {
		var l deadletter.Letter
		if err := json.Unmarshal([]byte(line), &l); err != nil {
			t.Fatal(err)
		}
		text := []byte(l.Event)
		if l.Base64 != "" {
			if text, err = base64.StdEncoding.DecodeString(l.Base64); err != nil {
				t.Fatal(err)
			}
		}
		if len(text) == 0 || l.Door == "" || l.Cut {
			t.Errorf("a letter of %q holds %q", l.Door, text)
		}
		lines := string(ReadRejected(l.Door, text, l.Time))
		if l.Door == "/loki/api/v1/push" || l.Door == "/api/logs" { // they are sent as they are
			if lines != "" || !json.Valid(text) {
				t.Errorf("a letter of %s is %q, read as %s", l.Door, text, lines)
			}
			_, _, answer := lenient.do(t, "POST", "/api/logs", string(text))
			if !strings.Contains(answer, `"accepted":1`) {
				t.Error(answer)
			}
			continue
		}
		got = append(got, masked(strings.TrimSuffix(lines, "\n")))
	}
	for _, line := range want {
		switch {
		case slices.Contains(got, line):
		case strings.Contains(line, `"metadata"`), strings.HasPrefix(line, `{"time":"2026-05-28T12:40:00.000000000Z","level":"INFO","msg":"`+longText) && !strings.Contains(line, "project") && !strings.Contains(line, "tag"):
			// Of the two doors above, whose lines are there twice.
			if n := len(storedLines(t, lenient)); n != len(want)+2 {
				t.Errorf("%d lines, want %d", n, len(want)+2)
			}
		default:
			t.Errorf("not in the letters: %s\nthey are\n%s", line, strings.Join(got, "\n"))
		}
	}
	if len(got) != len(want)-2 {
		t.Errorf("%d letters are read, want %d", len(got), len(want)-2)
	}
}

// masked is a line without what differs from one time to another.
func masked(line string) string {
	var l struct{ Time time.Time }
	if json.Unmarshal([]byte(line), &l) == nil && time.Since(l.Time) < time.Hour && time.Until(l.Time) < time.Minute {
		_, rest, _ := strings.Cut(line, `Z"`)
		line = `{"time":"now"` + rest
	}
	return strings.Replace(strings.Replace(line, `"peer":"127.0.0.1",`, "", 1), `,"peer":"127.0.0.1"`, "", 1)
}

func storedLines(t *testing.T, r *running) (lines []string) {
	t.Helper()
	_, _, all := r.do(t, "GET", "/api/query?last=1000", "")
	for line := range strings.Lines(all) {
		lines = append(lines, masked(strings.TrimSuffix(line, "\n")))
	}
	return lines
}

// sendRejected sends all of rejectedRequests and the like to a new collector.
func sendRejected(t *testing.T, maxEvent config.Size) *running {
	t.Helper()
	cfg := testConfig(t)
	cfg.Limits.MaxEvent, cfg.Limits.MaxPast, cfg.Limits.MaxFuture = maxEvent, 0, 0
	cfg.ListenForward, cfg.ListenSyslog = "tcp://127.0.0.1:0", "udp://127.0.0.1:0"
	r := run(t, cfg)
	for i, req := range rejectedRequests {
		resp, err := http.Post(r.url+req.path, req.contentType, strings.NewReader(req.body))
		if err != nil {
			t.Fatal(err)
		}
		io.Copy(io.Discard, resp.Body)
		resp.Body.Close()
		if s := r.Stats().Receive; s.Received != uint64(i+1) {
			t.Errorf("%s: %d events received, want %d", req.path, s.Received, i+1)
		}
	}
	str := func(s string) string { return "\xda" + string([]byte{byte(len(s) >> 8), byte(len(s))}) + s }
	record := "\xce\x6a\x18\x39\xa0\x82" + str("log") + str(longText) + str("n") + "\x05"
	for _, message := range []string{"\x93\xa0" + record, "\x92\xa0\x91\x92" + record} {
		conn := dialEntrance(t, r.ForwardAddrs()[0])
		if _, err := io.WriteString(conn, message); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := fmt.Fprintf(dialEntrance(t, r.SyslogAddrs()[0]), "<12>1 2026-05-28T12:40:00Z host app 7 - - %s", longText[:380]); err != nil {
		t.Fatal(err)
	}
	want := uint64(len(rejectedRequests) + 3)
	for end := time.Now().Add(time.Minute); r.Stats().Receive.Received < want && time.Now().Before(end); {
		time.Sleep(10 * time.Millisecond)
	}
	if s := r.Stats(); s.Receive.Received != want || maxEvent < config.MiB && (s.Rejected.Kept != want || s.Rejected.Lost != 0) {
		t.Errorf("%+v", s)
	}
	return r
}

func dialEntrance(t *testing.T, addr net.Addr) net.Conn {
	t.Helper()
	conn, err := net.Dial(addr.Network(), addr.String())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	return conn
}
