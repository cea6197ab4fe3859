package sentry

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"

	"github.com/rollway/rollway/collector/normalize"
	"github.com/rollway/rollway/collector/pool"
	"github.com/rollway/rollway/collector/receiver"
	"github.com/rollway/rollway/collector/receiver/decodetest"
	"github.com/rollway/rollway/internal/testkit"
)

// newServer returns a server, and its routes of this protocol.
func newServer(t testing.TB, limits normalize.Limits) (*decodetest.Server, http.Handler) {
	limits.MaxPast, limits.MaxFuture = -1, -1 // the tests' times grow old
	limits.NoFingerprint = true
	s := decodetest.NewServer(t, func(o *receiver.Options) { o.Limits = limits })
	mux := http.NewServeMux()
	mux.Handle("/api/{project}/envelope/{$}", s.Handler(Envelope))
	mux.Handle("/api/{project}/store/{$}", s.Handler(Store))
	return s, mux
}

const stamp = `{"time":"2026-05-28T12:40:00.500000000Z","level":`

func TestEvents(t *testing.T) {
	for _, tt := range []struct{ event, want string }{ // the time is put first, the project last
		{`"message":"hi","level":"warning","logger":"shop"`, `"WARN","msg":"hi","logger":"shop"`},
		{`"message":"hi","level":"info"`, `"INFO","msg":"hi"`},
		{`"message":{"formatted":"hi 5","message":"hi %d","params":[5]}`, `"ERROR","msg":"hi 5","attrs":{"message":{"message":"hi %d","params":[5]},`},
		{`"logentry":{"message":"hi"},"level":"fatal"`, `"FATAL","msg":"hi"`},
		{`"logentry":{"message":"hi","formatted":"hi"}`, `"ERROR","msg":"hi"`},
		{`"logentry":{"params":[]}`, `"ERROR","attrs":{"logentry":{"params":[]},`},
		{`"message":"one","logentry":{"formatted":"two"}`, `"ERROR","msg":"one","attrs":{"logentry":"two",`},
		{`"message":"hi","level":"log"`, `"INFO","msg":"hi"`},
		{`"message":"hi","level":null`, `"ERROR","msg":"hi","attrs":{"level":null,`},
		{`"message":null,"level":"loud"`, `"INFO","attrs":{"message":null,"level":"loud",`},
		{`"exception":{"values":[{"type":"ValueError","value":"bad \"x\"","stacktrace":{"frames":[{"lineno":1}]}}]},"level":"error"`,
			`"ERROR","msg":"ValueError: bad \"x\"","error":{"type":"ValueError","message":"bad \"x\"","stack":{"frames":[{"lineno":1}]}}`},
		{`"exception":[{"type":"C","value":"c"},{"type":"A"},{"type":"B","value":"b"}],"message":"m"`,
			`"ERROR","msg":"m","error":{"type":"B","message":"b","causes":[{"type":"A"},{"type":"C","message":"c"}]}`},
		{`"exception":{"type":"A","value":"a"}`, `"ERROR","msg":"A: a","error":{"type":"A","message":"a"}`},
		{`"exception":{"values":[{"value":"only"}],"x":1}`, `"ERROR","msg":"only","error":{"message":"only"},"attrs":{"exception":{"x":1},`},
		{`"exception":{"values":[]}`, `"ERROR","attrs":{"exception":{"values":[]},`},
		{`"exception":{"values":[5]}`, `"ERROR","attrs":{"exception":{"values":[5]},`},
		{`"message":"m","logentry":{"params":[1]},"exception":[{"type":"B"}]`, `"ERROR","msg":"m","error":{"type":"B"},"attrs":{"logentry":{"params":[1]},`},
		{`"exception":[{"type":"A"}],"exception":{"type":"B"},"message":"m"`, `"ERROR","msg":"m","error":{"type":"A"},"attrs":{"exception":{"type":"B"},`},
		{`"exception":{"x":1}`, `"ERROR","attrs":{"exception":{"x":1},`},
		{`"exception":[{"type":"A"}],"level":"error","contexts":[]`, `"ERROR","msg":"A","error":{"type":"A"},"attrs":{"contexts":[],`},
		{`"contexts":{"trace":{"trace_id":"t","span_id":"s"}}`, `"ERROR","trace_id":"t","span_id":"s"`},
		{`"contexts":{"os":{"name":"x"},"trace":{"trace_id":"t","op":"o","span_id":5}},"tags":{"a":"b"}`,
			`"ERROR","trace_id":"t","attrs":{"contexts":{"os":{"name":"x"},"trace":{"op":"o","span_id":5}},"tags":{"a":"b"},`},
		{`"contexts":{"trace":5}`, `"ERROR","attrs":{"contexts":{"trace":5},`},
		{`"event_id":"1f","release":"r","extra":{"k":[1, 2]},"service":"not a slot","\u0074ime":1`,
			`"ERROR","attrs":{"event_id":"1f","release":"r","extra":{"k":[1,2]},"service":"not a slot","time":1,`},
	} {
		want := stamp + tt.want
		if !strings.HasSuffix(want, ",") {
			want += `,"attrs":{`
		}
		want += `"project":"42"}}`
		for _, at := range []string{`1779972000.5`, `"2026-05-28T12:40:00.5Z"`, `"2026-05-28T12:40:00.500000+00:00"`} {
			event := `{"timestamp":` + at + `,` + tt.event + `}`
			for path, body := range map[string]string{
				"/api/42/store/":    event,
				"/api/42/envelope/": "{}\n{\"type\":\"event\"}\n" + event,
			} {
				s, h := newServer(t, normalize.Limits{})
				if rec := decodetest.Send(h, path, body); rec.Code != 200 || len(s.Lines) != 1 || s.Lines[0] != want {
					t.Errorf("%s\n got %q\nwant %s\n%d %s", event, s.Lines, want, rec.Code, rec.Body)
				}
			}
		}
	}
}

func TestLogs(t *testing.T) {
	payload := `{"version":2,"items":[` +
		`{"timestamp":1779972000.5,"trace_id":"t","span_id":"s","level":"warn","severity_number":13,"body":"first","attributes":{` +
		`"logger.name":{"value":"shop","type":"string"},"service.name":{"type":"string","value":"svc"},"n":{"value":5,"type":"integer"},` +
		`"size":{"value":5,"type":"integer","unit":"byte"},"plain":1,"none":{"type":"string"},"o":{"value":{"a":[1, 2]},"type":"object"}}},` +
		`{"timestamp":"2026-05-28T12:40:00.5Z","level":"error","body":"second","span_id":null}]}`
	want := []string{
		stamp + `"WARN","msg":"first","service":"svc","logger":"shop","trace_id":"t","span_id":"s","attrs":{"severity_number":13,"n":5,` +
			`"size":{"value":5,"type":"integer","unit":"byte"},"plain":1,"none":{"type":"string"},"o":{"a":[1,2]},"project":"42"}}`,
		stamp + `"ERROR","msg":"second","attrs":{"span_id":null,"project":"42"}}`,
	}
	for _, header := range []string{
		`{"type":"log","item_count":2,"content_type":"application/vnd.sentry.items.log+json"}`,
		fmt.Sprintf(`{"type":"log","length":%d}`, len(payload)),
	} {
		for _, end := range []string{"", "\n", "\r\n\n"} {
			s, h := newServer(t, normalize.Limits{})
			rec := decodetest.Send(h, "/api/42/envelope/", "{\"sdk\":{}}\n"+header+"\n"+payload+end)
			if rec.Code != 200 || rec.Body.String() != "{}\n" || fmt.Sprintf("%q", s.Lines) != fmt.Sprintf("%q", want) {
				t.Errorf("got %q\nwant %q\n%d %s", s.Lines, want, rec.Code, rec.Body)
			}
		}
	}
}

func TestEnvelopes(t *testing.T) {
	event := "{\"type\":\"event\"}\n{\"message\":\"x\"}\n"
	for _, tt := range []struct {
		name, body string
		lines      int
		code       int
		want       string
		ignored, n uint64 // n: rejected
	}{
		{"id", "{\"event_id\":\"9ec79c33\"}\n" + event, 1, 200, `{"id":"9ec79c33"}`, 0, 0},
		{"id of the event", "{}\n{\"type\":\"event\"}\n{\"event_id\":\"9ec79c33\"}", 1, 200, `{"id":"9ec79c33"}`, 0, 0},
		{"not an id", "{\"event_id\":\"<script>\"}\n" + event, 1, 200, `{}`, 0, 0},
		{"an id of 40 digits", "{\"event_id\":\"" + strings.Repeat("ab", 20) + "\"}\n" + event, 1, 200, `{"id":"` + strings.Repeat("ab", 20) + `"}`, 0, 0},
		{"an id of 70 digits", "{\"event_id\":\"" + strings.Repeat("ab", 35) + "\"}\n" + event, 1, 200, `{}`, 0, 0},
		{"two ids", "{\"event_id\":\"ab\"}\n{\"type\":\"event\"}\n{\"event_id\":\"cd\"}", 1, 200, `{"id":"ab"}`, 0, 0},
		{"no length", "{}\n{\"type\":\"event\",\"length\":null}\n{}\n" + event, 2, 200, `{}`, 0, 0},
		{"length with a fraction", "{}\n{\"type\":\"event\",\"length\":2.0}\n{}", 0, 400, `its length is 2.0`, 0, 1},
		{"header alone", "{}", 0, 200, `{}`, 0, 0},
		{"other types", "{}\n{\"type\":\"session\"}\n{}\n" + event + "{\"type\":\"attachment\",\"length\":5}\na\nb\nc\n{\"type\":\"client_report\"}\n{}",
			1, 200, `{}`, 3, 0},
		{"other types alone", "{}\n{\"type\":\"transaction\"}\n{}\n{}\n{}", 0, 200, `{}`, 2, 0},
		{"not an event", "{}\n{\"type\":\"event\"}\n[]\n" + event, 1, 200, `{}`, 0, 1},
		{"alone", "{}\n{\"type\":\"event\"}\n[]\n", 0, 400, `nothing was stored: the payload is not an object`, 0, 1},
		{"not JSON", "{}\n{\"type\":\"event\"}\n{\"a\"\n", 0, 400, `nothing was stored`, 0, 1},
		{"not UTF-8", "{}\n{\"type\":\"event\"}\n{\"message\":\"caf\xe9\"}\n{\"type\":\"log\"}\n{\"items\":[{\"body\":\"\xe9\"},{\"body\":\"\xe9\"}]}\n", 3, 200, `{}`, 0, 0},
		{"many logs, one not UTF-8", "{}\n{\"type\":\"log\"}\n{\"items\":[" + strings.Repeat(`{"body":"`+strings.Repeat("x", 90)+`"},`, 9) + "{\"body\":\"\xe9\"}]}\n", 10, 200, `{}`, 0, 0},
		{"headers that are not UTF-8", "{\"x\":\"\xe9\"}\n{\"type\":\"event\",\"x\":\"\xe9\"}\n{}\n", 1, 200, `{}`, 0, 0},
		{"logs without items", "{}\n{\"type\":\"log\"}\n{}\n", 0, 400, `without an array of items`, 0, 1},
		{"not a log", "{}\n{\"type\":\"log\"}\n{\"items\":[{},5]}\n", 1, 200, `{}`, 0, 1},
		{"no length left", "{}\n" + event + "{\"type\":\"event\",\"length\":9}\n{}", 0, 400, `item 1: its length is 9, but 2 bytes follow`, 0, 1},
		{"length too small", "{}\n{\"type\":\"event\",\"length\":2}\n{}x\n", 0, 400, `the line does not end`, 0, 1},
		{"length too great", "{}\n{\"type\":\"event\",\"length\":99999999999999999999}\n{}", 0, 400, `its length is 9999`, 0, 1},
		{"length below zero", "{}\n{\"type\":\"event\",\"length\":-1}\n{}", 0, 400, `its length is -1`, 0, 1},
		{"length as text", "{}\n{\"type\":\"event\",\"length\":\"2\"}\n{}", 0, 400, `its length is`, 0, 1},
		{"no header", "nonsense\n" + event, 0, 400, `invalid envelope header`, 0, 1},
		{"no item header", "{}\nnonsense\n", 0, 400, `invalid header of item 0`, 0, 1},
		{"empty", "", 0, 400, `the body is empty`, 0, 0},
		{"too many", "{}\n" + strings.Repeat(event, 12), 10, 200, `{}`, 0, 2},
		{"too large", "{}\n{\"type\":\"event\"}\n{\"message\":\"" + strings.Repeat("x", 300) + "\"}\n" + event, 1, 200, `{}`, 0, 1},
		{"too deep", "{}\n{\"type\":\"event\"}\n{\"exception\":{\"values\":[{\"a\":" + strings.Repeat("[", 99) + strings.Repeat("]", 99) + "}]}}\n" + event, 1, 200, `{}`, 0, 1},
	} {
		s, h := newServer(t, normalize.Limits{MaxEventBytes: 200, MaxEvents: 10})
		rec := decodetest.Send(h, "/api/1/envelope/", tt.body)
		stats := s.Stats()
		if rec.Code != tt.code || !strings.Contains(rec.Body.String(), tt.want) || !json.Valid(rec.Body.Bytes()) || len(s.Lines) != tt.lines ||
			stats.RejectedTotal() != tt.n || stats.IgnoredTotal() != tt.ignored {
			t.Errorf("%s: %d %s, %q, %v", tt.name, rec.Code, rec.Body, s.Lines, stats.Rejected)
		}
		if told := rec.Header().Get("X-Sentry-Error") != ""; told != (tt.n > 0 || tt.code != 200) {
			t.Errorf("%s: %v", tt.name, rec.Header())
		}
	}
}

// What is no log is counted by its type, as far as it is known, and leaves no dead letter.
func TestOtherTypes(t *testing.T) {
	s, h := newServer(t, normalize.Limits{})
	s.OnReject = func(b *normalize.Batch) { t.Errorf("%d rejected", b.RejectedTotal) }
	body, want := "{}\n", map[string]uint64{"other": 4}
	for _, kind := range otherTypes {
		body += `{"type":"` + kind + `","length":3}` + "\n\x00\n{\n"
		want[kind]++
	}
	body += "{}\n\n{\"type\":7}\nx\n{\"type\":\"sessionx\"}\nx\n{\"type\":\"" + strings.Repeat("x", 1000) + "\"}\nx\n{\"type\":\"se\\u0073sion\"}\nx"
	want["session"]++
	if rec := decodetest.Send(h, "/api/1/envelope/", body); rec.Code != 200 || rec.Body.String() != "{}\n" || rec.Header().Get("X-Sentry-Error") != "" {
		t.Errorf("%d %s %v", rec.Code, rec.Body, rec.Header())
	}
	if got := s.Stats(); !maps.Equal(got.Ignored, want) || got.Received != got.IgnoredTotal() {
		t.Errorf("%v, want %v", got, want)
	}
}

// What a client is told in a header is one line of ASCII and short.
func TestOneLine(t *testing.T) {
	if got := oneLine("a \r\nb\x7f~é"); got != "a ??b?~??" {
		t.Errorf("%q", got)
	}
	if got := oneLine(strings.Repeat("x", 201)); got != strings.Repeat("x", 200) {
		t.Errorf("%d bytes", len(got))
	}
	s, h := newServer(t, normalize.Limits{})
	for n, code := range map[int]int{64: 200, 65: 400} {
		if rec := decodetest.Send(h, "/api/"+strings.Repeat("p", n)+"/store/", "{}"); rec.Code != code {
			t.Errorf("a project's name of %d bytes: %d %s, %q", n, rec.Code, rec.Body, s.Lines)
		}
	}
}

func TestStore(t *testing.T) {
	_, h := newServer(t, normalize.Limits{})
	for body, want := range map[string]string{
		`{"event_id":"ab","message":"x"}`:  `{"id":"ab"}`,
		``:                                 `{"detail":"the body is empty`,
		`[]`:                               `{"detail":"invalid event: it is not an object"}`,
		`eJyrVkrLz1eyUlBKSixSqgUAHuYDsg==`: `{"detail":"invalid event: not valid JSON`,
	} {
		if rec := decodetest.Send(h, "/api/1/store/", body); !strings.HasPrefix(rec.Body.String(), want) {
			t.Errorf("%s: %d %s", body, rec.Code, rec.Body)
		}
	}
}

func TestFull(t *testing.T) {
	for err, code := range map[error]int{receiver.ErrFull: 429, os.ErrClosed: 429, errors.New("broken"): 500} {
		s, h := newServer(t, normalize.Limits{})
		s.Fail = err
		rec := decodetest.Send(h, "/api/1/envelope/", "{}\n{\"type\":\"event\"}\n{}")
		limits := rec.Header().Get("X-Sentry-Rate-Limits")
		if rec.Code != code || (limits == "1::key:full") != (code == 429) || rec.Header().Get("Retry-After") != limits[:min(1, len(limits))] {
			t.Errorf("%v: %d %v %s", err, rec.Code, rec.Header(), rec.Body)
		}
	}
}

// TestKeyIsNotKept: the public key is in no line and no answer.
func TestKeyIsNotKept(t *testing.T) {
	s, h := newServer(t, normalize.Limits{})
	for _, item := range []string{"{\"type\":\"event\"}\n{}", "{\"type\":\"event\"}\n[]", "nonsense"} {
		rec := decodetest.Send(h, "/api/1/envelope/?sentry_key=s3cr3t", "{\"dsn\":\"http://s3cr3t@localhost/1\",\"trace\":{\"public_key\":\"s3cr3t\"}}\n"+item)
		if all := fmt.Sprint(s.Lines, rec.Body, rec.Header()); strings.Contains(all, "s3cr3t") {
			t.Error(all)
		}
	}
	if len(s.Lines) != 1 {
		t.Errorf("%q", s.Lines)
	}
}

const someEvent = `{"event_id":"9ec79c33","timestamp":1779972000.5,"level":"error","logentry":{"message":"a %s","params":["b"],"formatted":"a b"},` +
	`"exception":{"values":[{"type":"A","value":"x\u0061"},{"type":"B"}],"m":1},"contexts":{"os":{"\u006eame":"l"},"trace":{"trace_id":"t","op":"x"}},"tags":{"a":"b"}}`

const someLog = `{"timestamp":1779972000.5,"level":"info","body":"x","trace_id":"t","attributes":{"a":{"value":"b","type":"string"},"logger.name":{"value":"l","type":"string"}}}`

func TestNoAllocationPerEvent(t *testing.T) {
	norm, batch := normalize.New(normalize.Limits{}), new(normalize.Batch)
	req := httptest.NewRequest("POST", "/", nil)
	for _, body := range []func(n int) string{
		func(n int) string { return "{}\n" + strings.Repeat("{\"type\":\"event\"}\n"+someEvent+"\n", n) },
		func(n int) string {
			return "{}\n" + strings.Repeat("{\"type\":\"event\"}\n{\"exception\":{\"values\":[{\"type\":\"A\\u0061\",\"value\":\"b\"}]}}\n", n)
		},
		func(n int) string {
			return "{}\n{\"type\":\"log\"}\n{\"items\":[" + strings.Repeat(someLog+",", n-1) + someLog + "]}"
		},
	} {
		var note []byte
		cost := func(n int) uint64 {
			text := []byte(body(n))
			return testkit.Mallocs(func() {
				batch.Reset()
				var err error
				if note, err = decodetest.Decode(Envelope, norm, batch, req, text, note[:0]); err != nil || batch.Records != n {
					t.Fatal(err, batch.Records, batch.Rejected)
				}
			})
		}
		cost(1000)
		if few, many := cost(2), cost(1000); many > few+10 && !pool.Poisons { // such a pool allocates
			t.Errorf("%.60s: 2 events: %d allocations, 1000 events: %d", body(1), few, many)
		}
	}
}

func BenchmarkDecode(b *testing.B) {
	body := "{}\n{\"type\":\"log\"}\n{\"items\":[" + strings.Repeat(someLog+",", 99) + someLog + "]}"
	decodetest.Benchmark(b, Envelope, "application/json", body, 100)
}

// FuzzDecode checks that lines and answers are JSON.
func FuzzDecode(f *testing.F) {
	f.Add([]byte("{}\n{\"type\":\"event\"}\n" + someEvent + "\n{\"type\":\"session\",\"length\":2}\n{}\n{\"type\":\"log\"}\n{\"items\":[" + someLog + ",5]}"))
	f.Add([]byte(someEvent))
	decodetest.AddRecorded(f)
	f.Fuzz(func(t *testing.T, body []byte) {
		for _, limits := range decodetest.FuzzLimits() {
			for _, p := range []receiver.Protocol{Envelope, Store} {
				norm, batch := normalize.New(limits), new(normalize.Batch)
				req := httptest.NewRequest("POST", "/", nil)
				req.SetPathValue("project", "1")
				note, err := decodetest.Decode(p, norm, batch, req, bytes.Clone(body), nil)
				decodetest.CheckLines(t, batch)
				a := receiver.Answer{Code: 200, Batch: batch, Note: note, Header: http.Header{}}
				if err != nil {
					a.Code, a.Text = 400, err.Error()
				}
				p.Answer(&a)
				if !json.Valid(a.Body) || (a.Code == 200) != (err == nil) {
					t.Fatalf("%v: %d %s", err, a.Code, a.Body)
				}
			}
		}
	})
}
