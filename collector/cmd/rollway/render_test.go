package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"os"
	"regexp"
	"strings"
	"testing"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/rollway/rollway/internal/encode"
)

func TestRender(t *testing.T) {
	for _, tt := range []struct{ line, want string }{
		{`{"time":"2026-05-28T12:40:00.123456789Z","level":"ERROR","msg":"failed","service":"pay","attrs":{"a":1,"b":{"c":"x y","d":{}},"e":[1,"z"],"f":""}}`,
			`2026-05-28 12:40:00.123Z ERROR pay: failed  a=1 b.c="x y" b.d={} e=[1,"z"] f=""`},
		{`{"level":"WARN+1","msg":"m","logger":"l","source":"f.go:1","trace_id":"t","error":{"msg":"e"}}`, `WARN+1 m  logger=l source=f.go:1 trace_id=t error.msg=e`},
		{`{"level":"INFO","msg":"two\nlines\ttab \\ and \u001b[31mred\u001b[0m \u0085 \u2028 \u202e \u00ad"}`, "INFO  two\n      lines    tab \\ and \\x1b[31mred\\x1b[0m \\u0085 \\u2028 \\u202e \\u00ad"},
		{`{"msg":"m","attrs":{"k=1 level":"v","x":"a=b","y":"\"","z":"grün ✓"}}`, `      m  "k=1 level"=v x="a=b" y="\"" z=grün✓`},
		{`{"msg":{"not":"text"},"time":5}`, `        msg.not=text time=5`},
		{"not JSON \x1b[2J\xff", "not JSON \\x1b[2J\uFFFD"},
		{`{"msg":"cut`, `{"msg":"cut`},
		{``, ``},
	} {
		r := &renderer{utc: true}
		want := strings.Replace(tt.want, "z=grün✓", `z="grün ✓"`, 1)
		if got := string(r.appendLine(nil, []byte(tt.line))); got != want+"\n" {
			t.Errorf("%s\ngot  %s\nwant %s", tt.line, got, want)
		}
	}
}

func TestRenderColor(t *testing.T) {
	r := &renderer{color: true, utc: true}
	got := string(r.appendLine(nil, []byte(`{"time":"2026-05-28T12:40:00Z","level":"WARN","msg":"m","service":"s","attrs":{"k":"v"}}`)))
	want := "\x1b[2m2026-05-28 12:40:00.000Z\x1b[0m \x1b[33mWARN \x1b[0m \x1b[36ms\x1b[0m: m  \x1b[2mk=\x1b[0mv\n"
	if got != want {
		t.Errorf("got  %q\nwant %q", got, want)
	}
	for level, color := range map[string]string{"FATAL": encode.ColorAlarm, "PANIC": encode.ColorAlarm, "ERROR+1": encode.ColorRed, "INFO": encode.ColorGreen, "DEBUG": encode.ColorCyan, "TRACE": encode.ColorCyan} {
		line := r.appendLine(nil, []byte(`{"level":"`+level+`"}`))
		if !strings.Contains(string(line), color+level) {
			t.Errorf("%s is %q", level, line)
		}
	}
}

func TestLocalTime(t *testing.T) {
	r := renderer{zone: time.FixedZone("test", 2*60*60)}
	if got := string(r.appendLine(nil, []byte(`{"time":"2026-05-28T23:40:00.5Z","level":"INFO","msg":"m"}`))); got != "2026-05-29 01:40:00.500 INFO  m\n" {
		t.Errorf("got %q", got)
	}
}

// What a line holds neither looks like a second line nor reaches the terminal as a control
// code.
func FuzzRender(f *testing.F) {
	f.Add([]byte(`{"time":"2026-05-28T12:40:00.123456789Z","level":"ERROR","msg":"failed","service":"pay","attrs":{"a":1,"b":{"c":"x y"}}}`))
	f.Add([]byte(`{"a":[{"b":"\u001b]0;x\u0007"},"` + "\u202e" + `"],"level":"` + "\u0085" + `"}`))
	f.Add([]byte("plain \x1b[2J \r\n next"))
	f.Fuzz(func(t *testing.T, line []byte) {
		if bytes.IndexByte(bytes.TrimSuffix(line, []byte("\n")), '\n') >= 0 {
			return // lines come one by one
		}
		out := string((&renderer{}).appendLine(nil, line))
		body, ok := strings.CutSuffix(out, "\n")
		if !ok || !utf8.ValidString(out) {
			t.Fatalf("%q is not a line of text", out)
		}
		for _, r := range strings.ReplaceAll(body, "\n    ", "") { // texts below are indented
			if r != utf8.RuneError && !unicode.IsPrint(r) {
				t.Fatalf("%q holds %q", out, r)
			}
		}
	})
}

// Each line of a file becomes one JSON object on one line, whose message is the line.
func FuzzEncodeEvent(f *testing.F) {
	f.Add([]byte("May 28 12:40:00 host app[1]: hello\tworld "), "")
	f.Add([]byte(`{"msg":"x","attrs":{"a":1}}`), "pay")
	f.Add([]byte(`{"service":"x" , "context":{}} `), "pay")
	f.Add([]byte("{\"a\":\"\xff\"}"), "\xff")
	f.Add([]byte(`{ }`), "p")
	f.Fuzz(func(t *testing.T, line []byte, service string) {
		if bytes.ContainsRune(line, '\n') || len(line) == 0 {
			return
		}
		enc := encoder{service: service, file: "f"}
		if service != "" {
			enc.attrs = attrList{{"k", service}}
		}
		_, isObject := enc.object(line)
		out := enc.appendEvent(nil, line)
		if !json.Valid(out) || !utf8.Valid(out) || bytes.ContainsAny(out, "\n") || out[0] != '{' {
			t.Fatalf("%q became %q", line, out)
		}
		var e map[string]any
		if err := json.Unmarshal(out, &e); err != nil {
			t.Fatal(err)
		}
		if want := string([]rune(string(line))); !isObject && e["msg"] != want {
			t.Fatalf("%q became %q", line, out)
		}
		if service != "" && e["service"] == nil && e["app"] == nil && e["service.name"] == nil {
			t.Fatalf("%q has no service: %q", line, out)
		}
	})
}

func FuzzReadEvent(f *testing.F) {
	f.Add([]byte("retry: 2000\n: tail\n\nid: 7\ndata: {\"msg\":\"x\"}\n\nevent: end\r\ndata: {}\r\n\r\n"))
	f.Add([]byte("id: 1\ndata: cut"))
	f.Fuzz(func(t *testing.T, stream []byte) {
		in := bufio.NewReader(bytes.NewReader(stream))
		for {
			e, err := readEvent(in)
			if err != nil {
				return
			}
			if bytes.ContainsRune([]byte(e.id+e.name), '\n') {
				t.Fatalf("%+v", e)
			}
			eventText(e.data)
		}
	})
}

func TestReadEvent(t *testing.T) {
	in := bufio.NewReader(strings.NewReader("retry: 1500\n: hello\n\nid: 7\nevent:gap\ndata: a\ndata: b\n\n: beat\nid: 9\n\nid: 10\ndata: cut off"))
	for _, want := range []event{{retry: 1500 * time.Millisecond}, {id: "7", name: "gap", data: []byte("a\nb")}, {id: "9"}} {
		got, err := readEvent(in)
		if err != nil || got.id != want.id || got.name != want.name || string(got.data) != string(want.data) || got.retry != want.retry {
			t.Errorf("got %+v, %v; want %+v", got, err, want)
		}
	}
	if e, err := readEvent(in); err == nil {
		t.Errorf("a cut event was read: %+v", e)
	}
}

func TestText(t *testing.T) {
	for n, want := range map[int]string{0: "0", 999: "999", 1000: "1,000", 1234567: "1,234,567", -1000: "-1,000", -100: "-100"} {
		if got := count(n); got != want {
			t.Errorf("count(%d) is %s", n, got)
		}
	}
	for n, want := range map[int64]string{0: "0 B", 999: "999 B", 1000: "1.0 KB", 999_949: "999.9 KB", 999_950: "1.0 MB", 1 << 40: "1.1 TB"} {
		if got := byteCount(n); got != want {
			t.Errorf("byteCount(%d) is %s", n, got)
		}
	}
	if plural(1, "line") != "1 line" || plural(2000, "line") != "2,000 lines" {
		t.Error("plural")
	}
}

func TestStatusLine(t *testing.T) {
	var b bytes.Buffer
	l := statusLine{w: &b, on: true}
	l.show(func() string { return "halfway" })
	l.show(func() string { t.Error("shown twice within a moment"); return "" })
	l.clear()
	l.clear()
	if got := b.String(); got != "\rhalfway\r       \r" {
		t.Errorf("got %q", got)
	}
	b.Reset()
	narrow := statusLine{w: &b, on: true, width: func() int { return 5 }}
	narrow.show(func() string { return "grün ✓ und mehr" })
	narrow.clear()
	if got := b.String(); got != "\rgrün\r    \r" {
		t.Errorf("on a narrow terminal: %q", got)
	}
}

// The progress of a file shows how far, how fast, and how long to go.
func TestProgress(t *testing.T) {
	path := t.TempDir() + "/f"
	writeFile(t, path, strings.Repeat("x\n", 1000))
	in, err := openInput(t.Context(), path, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer in.Close()
	in.opened = time.Now().Add(-2 * time.Second)
	in.raw.n = 500
	s := &sender{call: &call{stderr: newStream(os.Stderr)}}
	got := s.progress(in, &tally{read: 250}, "f")
	if !regexp.MustCompile(`^f  \[#####\.{15}\]  25%  500 B of 2\.0 KB  12[0-5] lines/s  6(\.\d)?s left$`).MatchString(got) {
		t.Errorf("got %q", got)
	}
}
