package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zstd"
)

// fakeCollector answers POST /api/logs as a test wants and keeps the lines.
type fakeCollector struct {
	*httptest.Server
	mu       sync.Mutex
	lines    []string // of requests answered 2xx
	requests int
	journal  string // what GET /healthz says
	// before, if set, may answer a request itself; it returns whether it did.
	before func(n int, w http.ResponseWriter, lines []string) bool // guarded by mu
}

func newFakeCollector(t *testing.T) *fakeCollector {
	f := &fakeCollector{}
	f.Server = httptest.NewServer(f)
	t.Cleanup(f.Close)
	return f
}

func (f *fakeCollector) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.URL.Path == "/healthz" {
		f.mu.Lock()
		defer f.mu.Unlock()
		fmt.Fprintf(w, `{"status":"alive","journal":%q}`, f.journal)
		return
	}
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return
	}
	lines := strings.Split(strings.TrimSuffix(string(body), "\n"), "\n")
	f.mu.Lock()
	defer f.mu.Unlock()
	f.requests++
	if f.before != nil && f.before(f.requests, w, lines) {
		return
	}
	f.lines = append(f.lines, lines...)
	fmt.Fprintf(w, `{"accepted":%d}`, len(lines))
}

func (f *fakeCollector) setBefore(before func(n int, w http.ResponseWriter, lines []string) bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.before, f.requests = before, 0
}

// messages returns the msg of each line and forgets them.
func (f *fakeCollector) messages(t *testing.T) (msgs []string) {
	t.Helper()
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, line := range f.lines {
		var e struct{ Msg string }
		if err := json.Unmarshal([]byte(line), &e); err != nil {
			t.Fatalf("%s: %v", line, err)
		}
		msgs = append(msgs, e.Msg)
	}
	f.lines = nil
	return msgs
}

func (f *fakeCollector) taken() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return len(f.lines)
}

func writeFile(t *testing.T, path, content string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
}

func appendFile(t *testing.T, path, content string) {
	t.Helper()
	f, err := os.OpenFile(path, os.O_APPEND|os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := f.WriteString(content); err != nil {
		t.Fatal(err)
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
}

func gzipped(t *testing.T, text string) string {
	t.Helper()
	var b bytes.Buffer
	z := gzip.NewWriter(&b)
	if _, err := io.WriteString(z, text); err != nil {
		t.Fatal(err)
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

func zstded(t *testing.T, text string) string {
	t.Helper()
	var b bytes.Buffer
	z, err := zstd.NewWriter(&b)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := io.WriteString(z, text); err != nil {
		t.Fatal(err)
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

func numbered(from, to int) (text string, lines []string) {
	for i := from; i < to; i++ {
		lines = append(lines, fmt.Sprintf("line %d", i))
	}
	return strings.Join(lines, "\n") + "\n", lines
}

func TestSendEvents(t *testing.T) {
	for _, tt := range []struct {
		name, text string
		flags      []string
		want       []string
		code       int
		stderr     []string
	}{
		{"text", "a\tb \nc\n", nil, []string{`{"msg":"a\tb ","attrs":{"file":"in.log"}}`, `{"msg":"c","attrs":{"file":"in.log"}}`}, 0, []string{"sent 2 lines"}},
		{"a stack trace", "ERROR x\njava.io.IOException: y\n\tat a.B(C.java:7)\n\n\tz\n{\"a\":1}\n  {\"b\":2}\n c\n", nil, []string{`{"msg":"ERROR x","attrs":{"file":"in.log"}}`,
			`{"msg":"java.io.IOException: y\n\tat a.B(C.java:7)","attrs":{"file":"in.log"}}`, `{"msg":"\tz","attrs":{"file":"in.log"}}`, `{"a":1}`, `{"b":2}`, `{"msg":" c","attrs":{"file":"in.log"}}`}, 0,
			[]string{"sent 6 lines", "1 line joined to those before", "1 empty line skipped"}},
		{"lines apart", "ERROR: x\n\tat a.B(C.java:7)\n", []string{"-apart"}, []string{`{"msg":"ERROR: x","attrs":{"file":"in.log"}}`, `{"msg":"\tat a.B(C.java:7)","attrs":{"file":"in.log"}}`}, 0, []string{"sent 2 lines"}},
		{"line ends", "a\r\nb\rc\r\r\nd", []string{"-eof"}, []string{`{"msg":"a","attrs":{"file":"in.log"}}`, `{"msg":"b\rc\r","attrs":{"file":"in.log"}}`, `{"msg":"d","attrs":{"file":"in.log"}}`}, 0, nil},
		{"empty lines", "\na\n\r\n\n", nil, []string{`{"msg":"a","attrs":{"file":"in.log"}}`}, 0, []string{"3 empty lines skipped"}},
		{"object as it is", `{"msg" : "x", "n":1.50}` + "\n", nil, []string{`{"msg" : "x", "n":1.50}`}, 0, nil},
		{"nearly an object", `{"msg":"x"` + "\n" + `{x}` + "\n[1]\n", nil, []string{
			`{"msg":"{\"msg\":\"x\"","attrs":{"file":"in.log"}}`, `{"msg":"{x}","attrs":{"file":"in.log"}}`, `{"msg":"[1]","attrs":{"file":"in.log"}}`}, 0, nil},
		{"invalid UTF-8", "a\xffb\n{\"msg\":\"c\xff\xfe\"}\n", nil, []string{`{"msg":"a` + "\uFFFD" + `b","attrs":{"file":"in.log"}}`, `{"msg":"c` + "\uFFFD\uFFFD" + `"}`}, 0, []string{"invalid UTF-8 replaced in 2 lines"}},
		{"service and attributes", "a\n{\"msg\":\"b\"}\n{\"app\":\"own\",\"attrs\":{\"x\":1}}\n{}\n", []string{"-service", "pay", "-attr", "k=v=w", "-attr", "l="}, []string{
			`{"msg":"a","service":"pay","attrs":{"file":"in.log","k":"v=w","l":""}}`,
			`{"msg":"b","service":"pay","attrs":{"k":"v=w","l":""}}`,
			`{"app":"own","attrs":{"x":1},"attributes":{"k":"v=w","l":""}}`,
			`{"service":"pay","attrs":{"k":"v=w","l":""}}`}, 0, nil},
		{"services under other names", "{\"service_name\":\"own\"}\n{\"SYSLOG_IDENTIFIER\":\"own\"}\n{\"name\":\"n\"}\n", []string{"-service", "pay"}, []string{
			`{"service_name":"own"}`, `{"SYSLOG_IDENTIFIER":"own"}`, `{"name":"n","service":"pay"}`}, 0, nil},
		{"half a surrogate pair", `{"msg":"\ud800"}` + "\n", []string{"-service", "pay", "-attr", "k=v"}, []string{`{"msg":"\ud800","service":"pay","attrs":{"k":"v"}}`}, 0, nil},
		{"too long", "aaaaaaaaaa\naaaaaaaaaaa\nb\n", []string{"-max-line", "10"}, []string{`{"msg":"aaaaaaaaaa","attrs":{"file":"in.log"}}`, `{"msg":"b","attrs":{"file":"in.log"}}`}, 1,
			[]string{"in.log:2: the line has 11 B, more than -max-line", "1 NOT ACCEPTED", "1 line not accepted"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			f, dir := newFakeCollector(t), t.TempDir()
			path := filepath.Join(dir, "in.log")
			writeFile(t, path, tt.text)
			args := append([]string{"send", "-addr", f.URL, "-state", dir, path}, tt.flags...)
			cli(t, "", args...).want(t, tt.code, tt.stderr...)
			if !slices.Equal(f.lines, tt.want) {
				t.Errorf("got\n%s\nwant\n%s", strings.Join(f.lines, "\n"), strings.Join(tt.want, "\n"))
			}
		})
	}
}

func TestSendLongLines(t *testing.T) {
	f, dir := newFakeCollector(t), t.TempDir()
	path := filepath.Join(dir, "long.log")
	fits, over := strings.Repeat("x", 1<<20), strings.Repeat("y", 3<<20)
	writeFile(t, path, "a\n"+over+"\r\n"+fits+"\r\nb\n"+over)
	cli(t, "", "send", "-eof", "-addr", f.URL, "-state", dir, path).want(t, 1, "long.log:2: the line has 3.1 MB", "long.log:5: the line has 3.1 MB", "2 NOT ACCEPTED")
	if got := f.messages(t); !slices.Equal(got, []string{"a", fits, "b"}) {
		t.Errorf("got %d messages", len(got))
	}
	cli(t, "", "send", "-addr", f.URL, "-state", dir, path).want(t, 0, "nothing new after line 5")
}

func TestSendCompressed(t *testing.T) {
	text, want := numbered(0, 2500)
	for name, pack := range map[string]func(*testing.T, string) string{
		"plain":        func(_ *testing.T, s string) string { return s },
		"gzip":         gzipped,
		"zstd":         zstded,
		"gzip members": func(t *testing.T, s string) string { return gzipped(t, s[:5000]) + gzipped(t, s[5000:]) },
	} {
		t.Run(name, func(t *testing.T) {
			f, dir := newFakeCollector(t), t.TempDir()
			path := filepath.Join(dir, "in")
			writeFile(t, path, pack(t, text))
			// The third request is refused for good: a second run goes on there.
			f.setBefore(func(n int, w http.ResponseWriter, _ []string) bool {
				if n == 3 {
					http.Error(w, `{"error":"no such thing here"}`, http.StatusNotFound)
				}
				return n == 3
			})
			args := []string{"send", "-addr", f.URL, "-state", dir, path}
			cli(t, "", args...).want(t, 1, "the collector answers 404 Not Found: no such thing here")
			cli(t, "", args...).want(t, 0, "in: continuing at line 2,001", "in: sent 500 lines")
			if got := f.messages(t); !slices.Equal(got, want) {
				t.Errorf("got %d messages, want %d", len(got), len(want))
			}
			cli(t, "", args...).want(t, 0, "nothing new after line 2,500; -again")
			cli(t, "", append(args, "-again")...).want(t, 0, "sent 2,500 lines")
			if got := f.messages(t); !slices.Equal(got, want) {
				t.Errorf("again: got %d messages, want %d", len(got), len(want))
			}
			// Standard input knows by its first bytes, too.
			cli(t, pack(t, text), "send", "-addr", f.URL).want(t, 0, "standard input: sent 2,500 lines")
			if got := f.messages(t); !slices.Equal(got, want) {
				t.Errorf("standard input: got %d messages, want %d", len(got), len(want))
			}
		})
	}
}

func TestSendDamagedGzip(t *testing.T) {
	text, want := numbered(0, 5000)
	f, dir := newFakeCollector(t), t.TempDir()
	path := filepath.Join(dir, "cut.gz")
	packed := gzipped(t, text)
	writeFile(t, path, packed[:len(packed)*2/3])
	cli(t, "", "send", "-addr", f.URL, "-state", dir, path).want(t, 1, "read line ", "is truncated or still being written", "unexpected EOF")
	got := f.messages(t)
	if len(got) == 0 || !slices.Equal(got, want[:len(got)]) {
		t.Errorf("got %d messages, which are not the first whole lines", len(got))
	}
}

// A file that cannot be read does not keep the others back.
func TestSendUnreadableAmongOthers(t *testing.T) {
	f, dir := newFakeCollector(t), t.TempDir()
	a, b, none, cut := filepath.Join(dir, "a"), filepath.Join(dir, "b"), filepath.Join(dir, "none"), filepath.Join(dir, "cut.gz")
	writeFile(t, a, "from a\n")
	writeFile(t, b, "from b\n")
	writeFile(t, cut, gzipped(t, "from cut\n")[:12])
	r := cli(t, "", "send", "-addr", f.URL, "-state", dir, a, none, cut, b)
	r.want(t, 1, "together: sent 2 lines", "none: no such file", "cut.gz: read line 1: the compressed file is truncated")
	if got := f.messages(t); !slices.Equal(got, []string{"from a", "from b"}) {
		t.Errorf("got %q", got)
	}
}

func TestSendFollowsTheFile(t *testing.T) {
	f, dir := newFakeCollector(t), t.TempDir()
	path := filepath.Join(dir, "app.log")
	send := func(want ...string) {
		t.Helper()
		cli(t, "", "send", "-eof", "-addr", f.URL, "-state", dir, path).want(t, 0, want...)
	}
	expect := func(want ...string) {
		t.Helper()
		if got := f.messages(t); !slices.Equal(got, want) {
			t.Fatalf("got %q, want %q", got, want)
		}
	}
	writeFile(t, path, "a\nb\n")
	send("sent 2 lines")
	expect("a", "b")
	appendFile(t, path, "c\nd")
	send("continuing at line 3", "sent 2 lines")
	expect("c", "d")
	send("nothing new after line 4")
	expect()
	appendFile(t, path, "\n")
	send("nothing new after line 4")
	expect()
	appendFile(t, path, "e")
	send("continuing at line 5")
	expect("e")
	appendFile(t, path, "\r\nf\n")
	send("continuing at line 6")
	expect("f")
	appendFile(t, path, "g")
	send("continuing at line 7")
	expect("g")
	appendFile(t, path, "h\ni\n") // line 7 has grown: it is sent again, whole
	send("continuing at line 7, which had no end when it was sent and has grown")
	expect("gh", "i")

	writeFile(t, path, "a\nb\nc\n") // the same file, shorter
	send("it was truncated or replaced", "sending it from its start", "sent 3 lines")
	expect("a", "b", "c")
	if err := os.Rename(path, path+".1"); err != nil {
		t.Fatal(err)
	}
	writeFile(t, path, "a\nb\nc\nd\n") // another file that begins alike
	send("it was replaced by another file", "sent 4 lines")
	expect("a", "b", "c", "d")
	writeFile(t, path, "x\nb\nc\nd\ne\n") // the same file, written anew
	send("its beginning has changed", "sent 5 lines")
	expect("x", "b", "c", "d", "e")

	banner := strings.Repeat("=", 2000) + "\n"
	writeFile(t, path, banner+"a\n")
	send("its beginning has changed")
	expect(banner[:2000], "a")
	writeFile(t, path, banner+"b\nc\n") // as after copytruncate
	send("the part that was sent has changed", "sent 3 lines")
	expect(banner[:2000], "b", "c")

	states, err := filepath.Glob(filepath.Join(dir, "*.json"))
	if err != nil || len(states) != 2 { // one is of what was renamed
		t.Fatalf("state files: %v, %v", states, err)
	}
	for _, state := range states {
		writeFile(t, state, "{")
	}
	send("the saved position cannot be read", "sent 3 lines")
}

// A line that somebody still writes is left until it is whole.
func TestSendLeavesUnfinishedLine(t *testing.T) {
	f, dir := newFakeCollector(t), t.TempDir()
	path := filepath.Join(dir, "app.log")
	send := func(want []string, said ...string) {
		t.Helper()
		cli(t, "", "send", "-addr", f.URL, "-state", dir, path).want(t, 0, said...)
		if got := f.messages(t); !slices.Equal(got, want) {
			t.Fatalf("got %q, want %q", got, want)
		}
	}
	writeFile(t, path, "a\nbc")
	send([]string{"a"}, "sent 1 line", "2 B without a line end not sent (use -eof)")
	send(nil, "sent 0 lines", "2 B without a line end not sent")
	appendFile(t, path, "d\ne")
	send([]string{"bcd"}, "continuing at line 2", "sent 1 line", "1 B without a line end not sent")
	cli(t, "", "send", "-eof", "-addr", f.URL, "-state", dir, path).want(t, 0, "sent 1 line")
	if got := f.messages(t); !slices.Equal(got, []string{"e"}) {
		t.Errorf("-eof: got %q", got)
	}
	path += ".gz"
	writeFile(t, path, gzipped(t, "a\nb"))
	send([]string{"a", "b"}, "sent 2 lines")
}

// A binary file is refused, plain or packed, and keeps no others back.
func TestSendBinary(t *testing.T) {
	f, dir := newFakeCollector(t), t.TempDir()
	program, packed, log := filepath.Join(dir, "program"), filepath.Join(dir, "program.gz"), filepath.Join(dir, "log")
	binary := "\x7fELF\x02\x01\x00\x00\n\x00\n"
	writeFile(t, program, binary)
	writeFile(t, packed, gzipped(t, binary))
	writeFile(t, log, "a\n")
	cli(t, "", "send", "-addr", f.URL, "-state", dir, program, packed, log).want(t, 1, program+" has many NUL bytes", packed+" has many NUL bytes", "together: sent 1 line")
	if got := f.messages(t); !slices.Equal(got, []string{"a"}) {
		t.Errorf("got %q", got)
	}
	cli(t, binary, "send", "-addr", f.URL, "-").want(t, 0, "sent 2 lines")
}

func TestSendAnswers(t *testing.T) {
	text, want := numbered(0, 10)
	for _, tt := range []struct {
		name   string
		before func(n int, w http.ResponseWriter, lines []string) bool
		flags  []string
		code   int
		stderr []string
		stored int
	}{
		{"full for a moment", func(n int, w http.ResponseWriter, _ []string) bool {
			if n < 3 {
				w.Header().Set("Retry-After", "0")
				w.WriteHeader([]int{503, 429}[n-1])
				io.WriteString(w, `{"error":"the journal is full"}`)
			}
			return n < 3
		}, nil, 0, []string{"503 Service Unavailable: the journal is full; retrying"}, 10},
		{"full for too long", func(_ int, w http.ResponseWriter, _ []string) bool {
			w.WriteHeader(503)
			io.WriteString(w, `{"error":"the journal is full"}`)
			return true
		}, []string{"-retry", "300ms"}, 1, []string{"gave up after", "503 Service Unavailable: the journal is full"}, 0},
		{"connection cut", func(n int, w http.ResponseWriter, _ []string) bool {
			if n == 1 {
				panic(http.ErrAbortHandler)
			}
			return false
		}, nil, 0, []string{"retrying", "sent 10 lines"}, 10},
		{"too large for one request", func(_ int, w http.ResponseWriter, lines []string) bool {
			if len(lines) > 3 {
				w.WriteHeader(413)
				io.WriteString(w, `{"error":"too large"}`)
			}
			return len(lines) > 3
		}, nil, 0, []string{"sent 10 lines"}, 10},
		{"one is too large", func(_ int, w http.ResponseWriter, lines []string) bool {
			if slices.ContainsFunc(lines, func(s string) bool { return strings.Contains(s, "line 7") }) {
				w.WriteHeader(413)
				io.WriteString(w, `{"error":"too large"}`)
				return true
			}
			return false
		}, nil, 1, []string{"in.log:8 to 8: too large", "sent 9 lines", "1 line not accepted"}, 9},
		{"some rejected", func(_ int, w http.ResponseWriter, lines []string) bool {
			io.WriteString(w, `{"accepted":8,"rejected":[{"index":2,"reason":"too deep"},{"index":5,"reason":"bad time","detail":"year \u001b[31m"}]}`)
			return true
		}, nil, 1, []string{"not accepted: in.log:3: too deep", `not accepted: in.log:6: bad time: year \x1b[31m`, "sent 8 lines", "2 lines not accepted"}, 0},
		{"all rejected", func(_ int, w http.ResponseWriter, lines []string) bool {
			w.WriteHeader(400)
			io.WriteString(w, `{"accepted":0,"rejected":[{"index":0,"reason":"too deep"}],"rejected_total":10,"error":"no event was accepted"}`)
			return true
		}, nil, 1, []string{"in.log:1: too deep", "9 more", "10 lines not accepted"}, 0},
		{"none taken, without a list", func(_ int, w http.ResponseWriter, _ []string) bool {
			w.WriteHeader(400)
			io.WriteString(w, `{"error":"this is no list of events","accepted":0}`)
			return true
		}, nil, 1, []string{"not accepted: in.log:1 to 10: this is no list of events\nrollway send: 10 lines not accepted"}, 0},
		{"another server refuses", func(_ int, w http.ResponseWriter, _ []string) bool {
			w.WriteHeader(400)
			io.WriteString(w, "Client sent an HTTP request to an HTTPS server.")
			return true
		}, nil, 1, []string{"answers 400, but not as a collector does: Client sent", "10 lines read but not accepted"}, 0},
		{"an answer that does not say", func(_ int, w http.ResponseWriter, _ []string) bool {
			io.WriteString(w, `{"ok":true}`)
			return true
		}, nil, 1, []string{`not as a collector does: {"ok":true}`}, 0},
		{"another server", func(_ int, w http.ResponseWriter, _ []string) bool {
			io.WriteString(w, "<html>\x1b[2J")
			return true
		}, nil, 1, []string{`not as a collector does: <html>\x1b[2J`}, 0},
		{"claims too much", func(_ int, w http.ResponseWriter, _ []string) bool {
			io.WriteString(w, `{"accepted":11}`)
			return true
		}, nil, 1, []string{"accepted 11 and rejected 0 of 10 lines"}, 0},
		{"claims too little", func(_ int, w http.ResponseWriter, _ []string) bool {
			io.WriteString(w, `{"accepted":8,"rejected":[{"index":2,"reason":"too deep"}],"rejected_total":1}`)
			return true
		}, nil, 1, []string{"accepted 8 and rejected 1 of 10 lines"}, 0},
	} {
		t.Run(tt.name, func(t *testing.T) {
			f, dir := newFakeCollector(t), t.TempDir()
			f.setBefore(tt.before)
			path := filepath.Join(dir, "in.log")
			writeFile(t, path, text)
			cli(t, "", append([]string{"send", "-addr", f.URL, "-state", dir, path}, tt.flags...)...).want(t, tt.code, tt.stderr...)
			got := f.messages(t)
			if tt.stored == 10 && !slices.Equal(got, want) || len(got) != tt.stored {
				t.Errorf("stored %q", got)
			}
		})
	}
}

func TestSendUnreachable(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	addr := l.Addr().String()
	l.Close()
	r := cli(t, "a\n", "send", "-addr", addr, "-retry", "0")
	r.want(t, 1, "no collector listens at http://"+addr, "connection refused", "'rollway serve -listen "+addr+"'")
	cli(t, "", "query", "-addr", addr).want(t, 1, "no collector listens at http://"+addr)
	cli(t, "", "send", "-addr", "ftp://x").want(t, 2, "not a collector's address")
	cli(t, "", "send", "-addr", addr+"/api/logs").want(t, 2, "address alone, without /api/logs")
	cli(t, "", "send", t.TempDir()).want(t, 1, "is a folder")
	cli(t, "", "send", filepath.Join(t.TempDir(), "none")).want(t, 1, "no such file")
	cli(t, "", "send", "-attr", "x").want(t, 2, "is not KEY=VALUE")
}

func TestSendDryRun(t *testing.T) {
	f, dir := newFakeCollector(t), t.TempDir()
	path := filepath.Join(dir, "in.log")
	writeFile(t, path, "a\n\nb\n")
	cli(t, "", "send", "-dry-run", "-addr", f.URL, "-state", dir, path).want(t, 0, "would send 2 lines", "1 empty line skipped")
	if f.taken() != 0 {
		t.Error("something was sent")
	}
	cli(t, "", "send", "-quiet", "-addr", f.URL, "-state", dir, path).want(t, 0)
	if r := cli(t, "", "send", "-quiet", "-addr", f.URL, "-state", dir, path); r.stderr != "" || r.stdout != "" {
		t.Errorf("-quiet printed %q", r.stdout+r.stderr)
	}
}

// A line written to a pipe that stays open is sent at once, and Ctrl-C ends the
// wait for the next.
func TestSendStream(t *testing.T) {
	f := newFakeCollector(t)
	cmd := exec.Command("rollway", "send", "-addr", f.URL)
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	start(t, cmd)
	for i := range 3 {
		fmt.Fprintf(in, "line %d\nhalf", i)
		waitFor(t, "the line", func() bool { return f.taken() == i+1 })
		io.WriteString(in, "\b")
	}
	sendSignal(t, cmd, os.Interrupt)
	if err := cmd.Wait(); cmd.ProcessState.ExitCode() != 1 || !strings.Contains(stderr.String(), "interrupted after 3 lines") {
		t.Errorf("%v\n%s", err, stderr.String())
	}
}

// Ctrl-C lets the running batch end and keeps its place. Nobody can tell when the
// signal has arrived: until then there is always more to send.
func TestSendInterrupted(t *testing.T) {
	f, dir := newFakeCollector(t), t.TempDir()
	text, want := numbered(0, 3500)
	path := filepath.Join(dir, "in.log")
	writeFile(t, path, text)
	second, goOn := make(chan struct{}), make(chan struct{})
	f.setBefore(func(n int, _ http.ResponseWriter, _ []string) bool {
		if n == 2 {
			close(second)
			<-goOn
		}
		if n > 2 {
			more, lines := numbered(len(want), len(want)+1000)
			appendFile(t, path, more)
			want = append(want, lines...)
		}
		return false
	})
	cmd := exec.Command("rollway", "send", "-addr", f.URL, "-state", dir, path)
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	start(t, cmd)
	<-second
	sendSignal(t, cmd, os.Interrupt)
	close(goOn)
	err := cmd.Wait()
	f.setBefore(nil)
	sent := f.taken()
	if cmd.ProcessState.ExitCode() != 1 || sent%1000 != 0 || !strings.Contains(stderr.String(), fmt.Sprintf("interrupted after %s lines; the same command continues there", count(sent))) {
		t.Fatalf("%v after %d lines\n%s", err, sent, stderr.String())
	}
	cli(t, "", "send", "-addr", f.URL, "-state", dir, path).want(t, 0, "continuing at line "+count(sent+1), fmt.Sprintf("sent %s lines", count(len(want)-sent)))
	if got := f.messages(t); !slices.Equal(got, want) {
		t.Errorf("got %d messages, want %d", len(got), len(want))
	}
}

// waitFor waits until ok, which what describes, for a minute at most.
func waitFor(t *testing.T, what string, ok func() bool) {
	t.Helper()
	for end := time.Now().Add(time.Minute); !ok(); time.Sleep(2 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("waited a minute for %s", what)
		}
	}
}
