package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"
)

// systemLog makes n lines as in system logs, some of them ugly.
func systemLog(n int) (lines []string) {
	r := rand.New(rand.NewPCG(1, 2))
	programs := []string{"sshd[%d]: ", "kernel: [%d.0]", "CRON[%d]: (root) CMD ", "systemd[1]: unit-%d.service: ", "postfix/smtpd[%d]: "}
	texts := []string{
		"Failed password for invalid user admin from 192.0.2.7 port 4022 ssh2",
		`message repeated 3 times: [ "quoted" \ and 'more' ]`,
		"tab\there,  two blanks, and one at the end ",
		"grüße aus Köln ✓ 日本語 \U0001F600",
		"control \x00\x1b[31m\x7f bytes, and \u2028 a line separator",
		"{looks like: JSON} but is not",
		"#012 escaped newline, a lone \r inside",
		strings.Repeat("long ", 300),
	}
	for i := range n {
		at := time.Date(2026, 5, 28, 0, 0, 0, 0, time.UTC).Add(time.Duration(i) * 43 * time.Second)
		program := fmt.Sprintf(programs[r.IntN(len(programs))], r.IntN(100_000))
		lines = append(lines, at.Format("Jan _2 15:04:05")+" combo "+program+texts[r.IntN(len(texts))])
	}
	return lines
}

// A system log of 2,000 lines comes back byte for byte, however it was packed.
func TestRoundTrip(t *testing.T) {
	d := serveDaemon(t)
	want := systemLog(2000)
	text := strings.Join(want, "\n") + "\n"
	dir := t.TempDir()
	for name, content := range map[string]string{
		"plain.log": text, "crlf.log": strings.ReplaceAll(text, "\n", "\r\n"), "packed.log.gz": gzipped(t, text), "packed.log.zst": zstded(t, text),
	} {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(dir, name)
			writeFile(t, path, content)
			cli(t, "", "send", "-addr", d.addr, "-state", dir, path).want(t, 0, "sent 2,000 lines")
			var got []string
			for _, line := range d.query(t, "attrs.file="+name) {
				var e struct{ Msg string }
				if err := json.Unmarshal([]byte(line), &e); err != nil {
					t.Fatal(err)
				}
				got = append(got, e.Msg)
			}
			if !slices.Equal(got, want) {
				t.Errorf("%d messages came back, of %d", len(got), len(want))
				for i := range min(len(got), len(want)) {
					if got[i] != want[i] {
						t.Fatalf("line %d: got %q, want %q", i+1, got[i], want[i])
					}
				}
			}
		})
	}
}

// A request that has begun when the collector is told to stop is answered, and
// its line kept; tails are told.
func TestGracefulStop(t *testing.T) {
	data := filepath.Join(t.TempDir(), "data")
	d := serveDaemon(t, "-data", data, "-listen-tcp", "127.0.0.1:0")
	conn, err := net.Dial("tcp", strings.TrimPrefix(d.addr, "http://"))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	conn.SetDeadline(time.Now().Add(time.Minute))
	fmt.Fprintf(conn, "POST /api/logs HTTP/1.1\r\nHost: localhost\r\nContent-Length: 21\r\n\r\n{\"msg\":\"slow ")
	tcp, err := net.Dial("tcp", d.tcp)
	if err != nil {
		t.Fatal(err)
	}
	defer tcp.Close()
	fmt.Fprint(tcp, "{\"msg\":\"over tcp\"}\n{\"msg\":\"torn")
	waitFor(t, "the line over TCP", func() bool { _, body := d.get(t, "/api/query?q=tcp"); return body != "" })
	tail, err := http.Get(d.addr + "/api/tail")
	if err != nil {
		t.Fatal(err)
	}
	defer tail.Body.Close()

	sendSignal(t, d.cmd, syscall.SIGTERM)
	// The listener closes at once; then the rest of the body comes.
	waitFor(t, "the listener to close", func() bool { return !d.listens() })
	events, err := io.ReadAll(tail.Body)
	if err != nil || !strings.Contains(string(events), "event: end\ndata: {\"reason\":\"the collector is shutting down\"}") {
		t.Errorf("the tail ends with %v and\n%s", err, events)
	}
	fmt.Fprint(conn, `answer"}`)
	resp, err := http.ReadResponse(bufio.NewReader(conn), nil)
	if err != nil || resp.StatusCode != 200 {
		t.Fatalf("the request that had begun: %v, %v", resp, err)
	}
	if err := d.wait(); err != nil {
		t.Errorf("exit: %v\n%s", err, d.stderr.String())
	}
	if !strings.Contains(d.stdout.String(), "stopped: 2 lines stored") {
		t.Errorf("it says:\n%s", d.stdout.String())
	}
	again := serveDaemon(t, "-data", data)
	if !strings.Contains(again.stdout.String(), "nothing to repair") {
		t.Errorf("after a clean stop:\n%s", again.stdout.String())
	}
	if got := again.query(t, `"slow answer" or "over tcp"`); len(got) != 2 {
		t.Errorf("found %q", got)
	}
}

// A second signal does not wait for the request that the first one waits for.
func TestSecondSignal(t *testing.T) {
	d := serveDaemon(t)
	conn, err := net.Dial("tcp", strings.TrimPrefix(d.addr, "http://"))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	fmt.Fprintf(conn, "POST /api/logs HTTP/1.1\r\nHost: localhost\r\nContent-Length: 100\r\n\r\n{")
	if code, _ := d.get(t, "/healthz"); code != 200 { // by now the other connection is known
		t.Fatalf("/healthz: %d", code)
	}
	interrupt := func() {
		sendSignal(t, d.cmd, os.Interrupt)
	}
	interrupt()
	waitFor(t, "the listener to close", func() bool { return !d.listens() }) // or the two might become one
	interrupt()
	if err := d.wait(); d.cmd.ProcessState.ExitCode() != 1 || strings.Contains(d.stderr.String(), "cut off") {
		t.Errorf("exit: %v\n%s", err, d.stderr.String())
	}
}

// The reader of a pipe may go away: queries end quietly, the collector goes on.
func TestClosedPipe(t *testing.T) {
	d := serveDaemon(t)
	var body bytes.Buffer
	for i := range 5000 {
		fmt.Fprintf(&body, "{\"msg\":\"line %d %s\"}\n", i, strings.Repeat("x", 100))
	}
	if code, answer := d.post(t, body.String()); code != 200 {
		t.Fatalf("%d %s", code, answer)
	}
	for _, args := range [][]string{{"query"}, {"query", "-o", "text"}, {"query", "-o", "csv"}, {"query", "-o", "table"}, {"tail", "-n", "5000"}, {"tail", "-f", "-n", "5000"}} {
		cmd := exec.Command("rollway", append(args, "-addr", d.addr)...)
		r, w, err := os.Pipe()
		if err != nil {
			t.Fatal(err)
		}
		var stderr bytes.Buffer
		cmd.Stdout, cmd.Stderr = w, &stderr
		start(t, cmd)
		w.Close()
		if _, err := bufio.NewReader(r).ReadString('\n'); err != nil {
			t.Errorf("%v: first line: %v", args, err)
		}
		r.Close()
		if err := cmd.Wait(); err != nil || stderr.Len() > 0 {
			t.Errorf("%v: %v, %s", args, err, stderr.String())
		}
	}
}

// The demo finds all it logged.
func TestDemo(t *testing.T) {
	r := cli(t, "", "demo", "-for", "1s", "-rate", "500", "-producers", "4")
	r.want(t, 0)
	for _, row := range []string{"(?m)^log calls +[1-9]", "(?m)^stored by the collector +[1-9]", "(?m)^missing +0$", "(?m)^log call p99.9 +[0-9]", "(?m)^lines/s +[0-9]"} {
		if !regexp.MustCompile(row).MatchString(r.stdout) {
			t.Errorf("the table lacks %q:\n%s", row, r.stdout)
		}
	}
	cli(t, "", "demo", "-producers", "0").want(t, 2, "-producers 0: give 1 to 1000")
}

// verify sees each kind of fault.
func TestVerify(t *testing.T) {
	line := func(producer, seq int) string {
		sum := lineSum(producer, seq, "m", "c")
		return fmt.Sprintf(`{"time":"2026-05-28T12:40:00.000000000Z","level":"INFO","msg":"m","service":"payment-api","attrs":{"producer":%d,"seq":%d,"customer":"c","sum":%d}}`+"\n", producer, seq, sum)
	}
	logged := []int{3, 1}
	whole := line(0, 0) + line(1, 0) + line(0, 1) + line(0, 2)
	for _, tt := range []struct {
		name, text string
		want       verdict
	}{
		{"whole", whole, verdict{found: 4}},
		{"loss notice", whole + `{"level":"WARN","msg":"rollway: 2 lines dropped","attrs":{"reason":"buffer full","dropped":2}}` + "\n", verdict{found: 4}},
		{"missing", line(0, 0) + line(0, 2), verdict{found: 2, missing: 2}},
		{"repeated", whole + line(0, 1), verdict{found: 4, repeated: 1}},
		{"out of order", line(0, 1) + line(0, 0) + line(0, 2) + line(1, 0), verdict{found: 4, disordered: 1}},
		{"cut", whole + line(0, 0)[:50] + "\n", verdict{found: 4, torn: 1}},
		{"no end", strings.TrimSuffix(whole, "\n"), verdict{found: 3, missing: 1, torn: 1}},
		{"mixed up", strings.Replace(whole, `"seq":2`, `"seq":1`, 1), verdict{found: 3, missing: 1, torn: 1}},
		{"never logged", whole + line(1, 1) + line(2, 0), verdict{found: 4, torn: 2}},
	} {
		got, err := verify(strings.NewReader(tt.text), logged)
		got.first = ""
		if err != nil || got != tt.want {
			t.Errorf("%s: got %+v, %v; want %+v", tt.name, got, err, tt.want)
		}
	}
}
