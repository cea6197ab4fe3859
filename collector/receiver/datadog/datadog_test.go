package datadog

import (
	"fmt"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/rollway/rollway/collector/normalize"
	"github.com/rollway/rollway/collector/receiver"
	"github.com/rollway/rollway/collector/receiver/decodetest"
)

const stamp = `{"time":"2026-05-28T12:40:00.000000000Z","level":`

var received = time.Unix(1779972000, 0)

func TestEvents(t *testing.T) {
	for _, tt := range []struct{ event, want string }{
		{`{"ddsource":"nginx","ddtags":"env:staging,version:5.1","hostname":"i-012345678","message":"hello","service":"payment","status":"warn"}`,
			`"WARN","msg":"hello","service":"payment","attrs":{"ddsource":"nginx","ddtags":{"env":"staging","version":"5.1"},"host":"i-012345678"}}`},
		{`{"message":"m","ddtags":"a:1, b, a:2,a:3,,c:x:y"}`, `"INFO","msg":"m","attrs":{"ddtags":{"a":["1","2","3"],"b":"","c":"x:y"}}}`},
		{`{"message":"m","ddtags":"alone"}`, `"INFO","msg":"m","attrs":{"ddtags":"alone"}}`},
		{`{"message":"m","ddtags":["a:1"]}`, `"INFO","msg":"m","attrs":{"ddtags":["a:1"]}}`},
		{`{"message":"m","ddtags":"` + strings.Repeat("a:1,", 100) + `"}`, `"INFO","msg":"m","attrs":{"ddtags":"` + strings.Repeat("a:1,", 100) + `"}}`},
		{`{"message":{"msg":"inner","trace_id":"t"},"status":"critical"}`, `"FATAL","msg":"inner","trace_id":"t"}`},
		{`{"message":"m","status":"teapot","dd.trace_id":"7"}`, `"INFO","msg":"m","trace_id":"7","attrs":{"status":"teapot"}}`},
		{"{\"message\":\"caf\xe9\"}", `"INFO","msg":"caf` + "\uFFFD\"}"},
		{`{"message":"m","status":3}`, `"ERROR","msg":"m"}`},
		{`{"message":"m","status":"7"}`, `"DEBUG","msg":"m"}`},
		{`{"message":"m","status":500}`, `"INFO","msg":"m","attrs":{"status":500}}`},
		{`{"message":"m","level":"warn","status":200}`, `"WARN","msg":"m","attrs":{"status":200}}`},
		{`{"message":"m","timestamp":1779972000000}`, `"INFO","msg":"m"}`},
	} {
		for _, body := range []string{tt.event, "[" + tt.event + "]", " [ {}, " + tt.event + " ] "} {
			got, _ := decodetest.Lines(t, Protocol, "application/json", body, received)
			if len(got) != 1 || got[0] != stamp+tt.want {
				t.Errorf("%s\n got %s\nwant %s", body, got, stamp+tt.want)
			}
		}
	}
}

func TestText(t *testing.T) {
	got, _ := decodetest.Lines(t, Protocol, "text/plain; charset=utf-8", "one\r\n\n[two]\n", received)
	if want := []string{stamp + `"INFO","msg":"one"}`, stamp + `"INFO","msg":"[two]"}`}; strings.Join(got, "\n") != strings.Join(want, "\n") {
		t.Errorf("%q", got)
	}
}

// The Agent sends each line that a container prints as an event, unless it is told otherwise.
func TestJoins(t *testing.T) {
	event := func(text, status string) string {
		return `{"message":"` + text + `","status":"` + status + `","timestamp":17799720000` + fmt.Sprint(10+len(text)) + `,"hostname":"h","service":"shop","ddtags":"env:x"}`
	}
	body := "[" + event("Traceback (most recent call last):", "error") + ",{}," + event("Traceback (most recent call last):", "error") + "," + event(`  File \"a.py\", line 7`, "error") + "," + event("ValueError: x", "error") + "," + event(" other", "info") + "]"
	got, _ := decodetest.Lines(t, Protocol, "application/json", body, received)
	want := []string{`"msg":"Traceback (most recent call last):"`, `"msg":"Traceback (most recent call last):\n  File \"a.py\", line 7\nValueError: x"`, `"msg":" other"`}
	if len(got) != len(want) {
		t.Fatalf("%q", got)
	}
	for i, line := range got {
		if !strings.Contains(line, want[i]) {
			t.Errorf("%s, want %s", line, want[i])
		}
	}
}

// TestAnswers also counts: what the query says goes to events that do not say it, and is kept
// with those that are rejected.
func TestAnswers(t *testing.T) {
	for _, tt := range []struct {
		body, kind, want string
		code             int
		lines            []string
	}{
		{`[{"message":"m"},{"message":"n","service":"own"},7]`, "application/json", "{}\n", 202, []string{
			`"INFO","msg":"m","service":"shop","attrs":{"ddtags":{"env":"x"}}}`, `"INFO","msg":"n","service":"own","attrs":{"ddtags":{"env":"x"}}}`}},
		{"line", "text/plain", "{}\n", 202, []string{`"INFO","msg":"line","service":"shop","attrs":{"ddtags":{"env":"x"}}}`}},
		{`{}`, "application/json", "{}\n", 202, nil},
		{``, "application/json", `{"errors":[{"status":"400","title":"Bad Request","detail":"the body is empty; expected an array of objects"}]}` + "\n", 400, nil},
		{`[{"message":`, "application/json", `{"errors":[{"status":"400","title":"Bad Request","detail":"nothing was stored: the text ends inside a value"}]}` + "\n", 400, nil},
	} {
		contexts := 0
		s := decodetest.NewServer(t, func(o *receiver.Options) { o.Limits.MaxPast, o.Limits.MaxFuture = -1, -1 })
		s.OnReject = func(b *normalize.Batch) {
			for i := range b.DeadLetters() {
				if string(b.Context(&b.DeadLetters()[i])) == "ddtags=env%3Ax&service=shop" {
					contexts++
				}
			}
		}
		req := httptest.NewRequest("POST", "/api/v2/logs?service=shop&ddtags=env:x&dd-api-key=secret", strings.NewReader(tt.body))
		req.Header.Set("Content-Type", tt.kind)
		rec := httptest.NewRecorder()
		s.Handler(Protocol).ServeHTTP(rec, req)
		if rec.Code != tt.code || rec.Body.String() != tt.want || len(s.Lines) != len(tt.lines) {
			t.Errorf("%q: %d %s, %q", tt.body, rec.Code, rec.Body, s.Lines)
			continue
		}
		for i, want := range tt.lines {
			if !strings.HasSuffix(s.Lines[i], want) {
				t.Errorf("%q: %s, want %s", tt.body, s.Lines[i], want)
			}
		}
		if rejects := strings.Contains(tt.body, "7]") || strings.HasSuffix(tt.body, ":"); rejects != (contexts == 1) {
			t.Errorf("%q: %d contexts", tt.body, contexts)
		}
	}
}

// TestReread reads rejected events again with what the query said.
func TestReread(t *testing.T) {
	for _, body := range []string{`{"message":"late"}`, "late"} {
		b := new(normalize.Batch)
		q := &receiver.Request{HTTP: httptest.NewRequest("POST", "/api/v2/logs", nil), Body: []byte(body), Received: received, Norm: normalize.New(normalize.Limits{}), Batch: b}
		if err := Protocol.(receiver.Rereader).Reread(q, []byte("service=shop")); err != nil {
			t.Fatal(err)
		}
		if got, want := string(b.AppendTo(nil)), stamp+`"INFO","msg":"late","service":"shop"}`+"\n"; got != want {
			t.Errorf("%s, want %s", got, want)
		}
	}
}

func TestNoAllocationPerEvent(t *testing.T) {
	event := `{"ddsource":"nginx","ddtags":"env:staging,version:5.1,env:x","hostname":"h","message":"hello","service":"payment","status":"warn"}`
	norm, batch := normalize.New(normalize.Limits{}), new(normalize.Batch)
	req := httptest.NewRequest("POST", "/api/v2/logs", nil)
	decode := func(events int) float64 {
		body := []byte("[" + strings.Repeat(event+",", events-1) + event + "]")
		return testing.AllocsPerRun(100, func() {
			batch.Reset()
			if _, err := decodetest.Decode(Protocol, norm, batch, req, body, nil); err != nil {
				t.Fatal(err)
			}
		})
	}
	decode(200)
	if one, many := decode(1), decode(100); many > one+0.5 {
		t.Errorf("%v allocations for 1 event, %v for 100", one, many)
	}
}

func FuzzDecode(f *testing.F) {
	for _, s := range []string{`[{"message":"m","ddtags":"a:1,b,a:2","status":"error"},{}]`, "{}{}", "text\n\xff", `{"message":{"a":[1]},"ddtags":":,:,a"}`} {
		f.Add(s, false)
		f.Add(s, true)
	}
	f.Fuzz(func(t *testing.T, body string, text bool) {
		for _, limits := range decodetest.FuzzLimits() {
			req := httptest.NewRequest("POST", "/api/v2/logs?ddtags=q:1,q:2&hostname=h", nil)
			if text {
				req.Header.Set("Content-Type", "text/plain")
			}
			b := new(normalize.Batch)
			if _, err := decodetest.Decode(Protocol, normalize.New(limits), b, req, []byte(body), nil); err == nil {
				decodetest.CheckLines(t, b)
			}
		}
	})
}

func BenchmarkDecode(b *testing.B) {
	event := `{"ddsource":"nginx","ddtags":"env:staging,version:5.1","hostname":"i-012345678","message":"2019-11-19T14:37:58,995 INFO [process.name] Hello World","service":"payment"}`
	decodetest.Benchmark(b, Protocol, "application/json", fmt.Sprintf("[%s]", strings.Join([]string{event, event, event, event}, ",")), 4)
}
