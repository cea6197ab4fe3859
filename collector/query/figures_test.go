package query

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rollway/rollway/collector/journal"
	"github.com/rollway/rollway/collector/query/pipe"
	"github.com/rollway/rollway/internal/disktest"
)

// figuresOf sends a request whose parameters are pairs to path, and reads the answer.
func figuresOf(t testing.TB, base, path string, pairs ...string) (int, string) {
	t.Helper()
	resp, err := http.Get(base + path + "?" + parametersOf(pairs))
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Error(err)
	}
	if kind := resp.Header.Get("Content-Type"); kind != "application/json" {
		t.Errorf("%s is %s", path, kind)
	}
	return resp.StatusCode, string(body)
}

func parametersOf(pairs []string) string {
	values := url.Values{}
	for i := 0; i < len(pairs); i += 2 {
		values.Add(pairs[i], pairs[i+1])
	}
	return values.Encode()
}

func TestHits(t *testing.T) {
	s := newStore(t)
	numbered(t, s, 100, 7)
	a, base := serve(t, s, Options{})
	const from, end = `"from":"2026-05-28T00:00:00.000000000Z"`, `"scanned":100,"matched":100}`
	for _, c := range []struct {
		name, want string
		pairs      []string
	}{
		{"steps and levels", `{` + from + `,"until":"2026-05-28T00:02:00.000000000Z","step_seconds":60,"by":"level","values":["INFO","WARN"],"buckets":[` +
			`{"time":"2026-05-28T00:00:00.000000000Z","count":60,"counts":[54,6]},{"time":"2026-05-28T00:01:00.000000000Z","count":40,"counts":[36,4]}],` + end,
			[]string{"step", "1m"}},
		{"the most frequent value", `{` + from + `,"until":"2026-05-28T01:00:00.000000000Z","step_seconds":3600,"by":"level","values":["INFO"],"buckets":[` +
			`{"time":"2026-05-28T00:00:00.000000000Z","count":100,"counts":[90]}],` + end,
			[]string{"step", "1h", "limit", "1"}},
		{"no values", `{` + from + `,"until":"2026-05-28T01:00:00.000000000Z","step_seconds":3600,"buckets":[` +
			`{"time":"2026-05-28T00:00:00.000000000Z","count":100}],` + end,
			[]string{"step", "1h", "by", ""}},
		{"lines without the field", `{` + from + `,"until":"2026-05-28T01:00:00.000000000Z","step_seconds":3600,"by":"a \"b\"","values":[null],"buckets":[` +
			`{"time":"2026-05-28T00:00:00.000000000Z","count":100,"counts":[100]}],` + end,
			[]string{"step", "1h", "by", `a "b"`}},
		{"numbers", `{"from":"2026-05-28T00:00:10.000000000Z","until":"2026-05-28T00:00:11.000000000Z","step_seconds":0.5,"by":"n","values":[10],"buckets":[` +
			`{"time":"2026-05-28T00:00:10.000000000Z","count":1,"counts":[1]}],"scanned":7,"matched":1}`,
			[]string{"q", "| parse msg \"<rest>\"", "since", "2026-05-28T00:00:10Z", "until", "2026-05-28T00:00:11Z", "step", "500ms", "by", "n"}},
		{"a step for the time", `{"from":"2026-05-28T00:00:00.000000000Z","until":"2026-05-28T06:00:00.000000000Z","step_seconds":300,"by":"level","values":["WARN"],"buckets":[` +
			`{"time":"2026-05-28T00:00:00.000000000Z","count":10,"counts":[10]}],"scanned":100,"matched":10}`,
			[]string{"q", "level=warn", "since", "2026-05-28", "until", "2026-05-28 06:00"}},
		{"nothing, of no time", `{"by":"level","buckets":[],"scanned":100,"matched":0}`,
			[]string{"q", "absent"}},
		{"until before since", `{"from":"2026-05-28T00:00:00.000000000Z","until":"2026-05-28T00:00:00.000000001Z","step_seconds":1,"by":"level","buckets":[],"scanned":0,"matched":0}`,
			[]string{"since", "2026-05-28", "until", "2026-05-27"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			code, body := figuresOf(t, base, "/api/hits", c.pairs...)
			if code != 200 || body != c.want+"\n" {
				t.Errorf("%d, got\n%swant\n%s", code, body, c.want)
			}
		})
	}
	for _, c := range []struct{ want, name, value string }{
		{"parameter step: found `1h), n`", "step", "1h), n"},
		{"parameter step: found `400ms`", "step", "400ms"},
		{"parameter step: 1s makes more than 10000 steps of the time from since to until", "step", "1s"},
		{"parameter limit: found 101, expected at most 100 values", "limit", "101"},
		{"parameter by: found ", "by", strings.Repeat("x", 300)},
		{"parameter q: its pipes give rows that are no lines", "q", "| fields n"},
		{`unknown parameter \"last\"`, "last", "3"},
	} {
		if code, body := figuresOf(t, base, "/api/hits", "since", "2020-01-01", c.name, c.value); code != 400 || !strings.Contains(body, c.want) {
			t.Errorf("%s=%s: %d %s", c.name, c.value, code, body)
		}
	}
	if code, body := figuresOf(t, base, "/api/hits", "q", "time<2100-01-01", "step", "1ms"); code != 200 {
		t.Errorf("100 steps: %d %s", code, body)
	}
	waitHeld(t, a, 0)
}

// More buckets than allowed are an error once they are known.
func TestHitsBuckets(t *testing.T) {
	s := newStore(t)
	numbered(t, s, maxBuckets+1, 1000)
	_, base := serve(t, s, Options{})
	if code, body := figuresOf(t, base, "/api/hits", "step", "1s"); code != 400 || !strings.Contains(body, "parameter step: it makes more than 10000 steps") {
		t.Errorf("%d %.300s", code, body)
	}
	if code, body := figuresOf(t, base, "/api/hits", "step", "1s", "q", "n<10000"); code != 200 {
		t.Errorf("%d %.300s", code, body)
	}
}

// time(auto) gives the same as the step that it chooses, whatever the order of lines, and in
// parts that are merged.
func TestStepsOfAuto(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for _, span := range []time.Duration{time.Millisecond, time.Minute, time.Hour, 26 * time.Hour, 9 * 24 * time.Hour, 9000 * time.Hour, 250 * 365 * 24 * time.Hour} {
		var lines []string
		begin := time.Date(1965, 3, 3, 3, 3, 3, 3, time.UTC)
		low, high := begin.Add(span), begin
		for i := range 1500 {
			at := begin.Add(time.Duration(r.Int64N(int64(span))))
			if at.Before(low) {
				low = at
			}
			if at.After(high) {
				high = at
			}
			lines = append(lines, fmt.Sprintf(`{"time":"%s","level":"INFO","msg":"m","attrs":{"n":%d}}`, formatTime(at), i%3))
		}
		pipes := func(step string) *pipe.Pipeline {
			_, p, err := parsePiped("| stats count(), sum(n), uniq(time) by n, time("+step+")", testNow)
			if err != nil {
				t.Fatal(err)
			}
			return p
		}
		p := pipes("auto")
		var out []byte
		var total *pipe.Run
		for _, part := range [][]string{lines[:0], lines[:1], lines[1:700], lines[700:]} {
			run := p.Start(pipe.Env{
				Out:   func(r *pipe.Row) error { out = appendRow(out, p.Columns, r); return nil },
				Take:  func(int) error { return nil },
				Check: func() error { return nil },
			})
			for _, line := range part {
				if _, err := run.Line([]byte(line + "\n")); err != nil {
					t.Fatal(err)
				}
			}
			if total == nil {
				total = run
			} else if err := total.Merge(run); err != nil {
				t.Fatal(err)
			}
		}
		if err := total.End(); err != nil {
			t.Fatal(err)
		}
		step := total.Step()
		if want := pipe.StepFor(low.Unix(), high.Unix(), autoSteps); step != want {
			t.Errorf("%v: step %v, want %v", span, step, want)
		}
		if n := pipe.Steps(low.Unix(), high.Unix(), step); n > autoSteps || n < autoSteps/12 && span > time.Hour {
			t.Errorf("%v: %d steps of %v", span, n, step)
		}
		if want := runOver(t, pipes(fmt.Sprint(int64(step/time.Second), "s")), lines); string(out) != want {
			t.Errorf("%v: got\n%.1000s\nwant\n%.1000s", span, out, want)
		}
		if got := runOver(t, p, lines); got != string(out) {
			t.Errorf("%v: in one run\n%.1000s\nwant\n%.1000s", span, got, out)
		}
	}
}

func TestStatsTable(t *testing.T) {
	s := newStore(t)
	numbered(t, s, 1500, 100)
	_, base := serve(t, s, Options{})
	for _, c := range []struct {
		want  string
		pairs []string
	}{
		{`{"columns":["level","n"],"rows":[["INFO",1350],["WARN",150]],"scanned":1500,"matched":1500}`, []string{"q", "| stats count() as n by level"}},
		{`{"columns":["level","n"],"rows":[["INFO",1350]],"scanned":1500,"matched":1500}`, []string{"q", "| stats count() as n by level", "limit", "1"}},
		{`{"columns":["n","x"],"rows":[[1498,null],[1499,null]],"scanned":2,"matched":2}`, []string{"q", "| fields n, x", "last", "2"}},
		{`{"columns":["n"],"rows":[[1499]],"scanned":1,"matched":1}`, []string{"q", "| fields n", "from", "1499"}},
		{`{"columns":["u"],"rows":[[1480]],"scanned":1500,"matched":1500,"estimates":{"u":"standard error 1.15 %"}}`, []string{"q", "| stats uniq(n) as u"}},
		{`{"columns":["msg","count"],"rows":[],"scanned":1500,"matched":0}`, []string{"q", "absent | top msg"}},
	} {
		if code, body := figuresOf(t, base, "/api/stats", c.pairs...); code != 200 || body != c.want+"\n" {
			t.Errorf("%v: %d, got\n%swant\n%s", c.pairs, code, body, c.want)
		}
	}
	for q, want := range map[string]string{"": "parameter q: its rows are lines", "| sort n": "parameter q: its rows are lines", "| stats": "query column 8"} {
		if code, body := figuresOf(t, base, "/api/stats", "q", q); code != 400 || !strings.Contains(body, want) {
			t.Errorf("%s: %d %s", q, code, body)
		}
	}
}

// ofFields is lines with all kinds of fields.
var ofFields = []string{
	`{"time":"2026-05-28T12:40:00.000000000Z","level":"INFO","msg":"a","service":"x","error":{"kind":"timeout"},"attrs":{"1":2,"1.0":3,"n":1,"level":"L2","http":{"status":200,"a.b":{"c\"d":true}},"empty":{},"attrs":{"x":1}}}`,
	`{"time":"2026-05-28T12:40:01.000000000Z","level":"INFO","msg":"b","error":"plain","attrs":{"1":"x","n":"1","list":[1,{"x":2}],"none":null,"error":{"kind":"other"},"http.status":503}}`,
	`{"time":"2026-05-28T12:40:02.000000000Z","level":"WARN","msg":"a","service":"x","attrs":{"n":1.0,"deep":{"a":{"a":{"a":{"a":{"a":{"a":{"a":{"a":1}}}}}}}}}}`,
}

func TestFields(t *testing.T) {
	s := newStore(t)
	s.add(t, ofFields...)
	_, base := serve(t, s, Options{})
	const want = `{"fields":[` +
		`{"name":"level","count":3,"types":{"string":3},"values":2},` +
		`{"name":"msg","count":3,"types":{"string":3},"values":2},` +
		`{"name":"n","count":3,"types":{"number":2,"string":1},"values":2},` +
		`{"name":"time","count":3,"types":{"string":3},"values":3},` +
		`{"name":"1","count":2,"types":{"number":1,"string":1},"values":2},` +
		`{"name":"error.kind","count":2,"types":{"string":2},"values":2},` +
		`{"name":"http.status","count":2,"types":{"number":2},"values":2},` +
		`{"name":"service","count":2,"types":{"string":2},"values":1},` +
		`{"name":"1.0","count":1,"types":{"number":1},"values":1},` +
		`{"name":"attrs.attrs.x","count":1,"types":{"number":1},"values":1},` +
		`{"name":"attrs.level","count":1,"types":{"string":1},"values":1},` +
		`{"name":"deep.a.a.a.a.a.a.a","count":1,"types":{"object":1},"values":1},` +
		`{"name":"empty","count":1,"types":{"object":1},"values":1},` +
		`{"name":"error","count":1,"types":{"string":1},"values":1},` +
		`{"name":"http.a.b.c\"d","count":1,"types":{"boolean":1},"values":1},` +
		`{"name":"list","count":1,"types":{"list":1},"values":1},` +
		`{"name":"none","count":1,"types":{"null":1},"values":1}` +
		`],"scanned":3,"matched":3}` + "\n"
	if code, body := figuresOf(t, base, "/api/fields"); code != 200 || body != want {
		t.Errorf("%d, got\n%swant\n%s", code, body, want)
	}
	var answer struct{ Fields []fieldFigures }
	if err := json.Unmarshal([]byte(want), &answer); err != nil {
		t.Fatal(err)
	}
	for _, f := range answer.Fields { // a filter with the name finds the lines
		if f.Name == "error" {
			f.Count = 2 // it is an object, too
		}
		if code, body := figuresOf(t, base, "/api/hits", "step", "1d", "by", "", "q", string(appendQuoted(nil, f.Name))+"=*"); code != 200 || !strings.Contains(body, fmt.Sprintf(`"matched":%d}`, f.Count)) {
			t.Errorf("%s: %d, %s", f.Name, code, body)
		}
	}
	if code, body := figuresOf(t, base, "/api/fields", "limit", "1", "q", "level=warn"); code != 200 || body != `{"fields":[{"name":"deep.a.a.a.a.a.a.a","count":1,"types":{"object":1},"values":1}],"more":5,"scanned":3,"matched":1}`+"\n" {
		t.Errorf("%d %s", code, body)
	}
	if code, body := figuresOf(t, base, "/api/fields", "last", "1"); code != 200 || strings.Count(body, `"count":1`) != 6 || strings.Count(body, `"name"`) != 6 {
		t.Errorf("the fields of the last line: %d %s", code, body)
	}
	if code, body := figuresOf(t, base, "/api/fields", "limit", "10001"); code != 400 || !strings.Contains(body, "parameter limit: found 10001, expected at most 10000 names") {
		t.Errorf("%d %s", code, body)
	}
}

func TestFacets(t *testing.T) {
	s := newStore(t)
	s.add(t, ofFields...)
	_, base := serve(t, s, Options{})
	for _, c := range []struct {
		want  string
		pairs []string
	}{
		{`{"facets":[{"field":"service","values":[{"value":"x","count":2},{"value":null,"count":1}]},` +
			`{"field":"attrs.n","values":[{"value":1,"count":2},{"value":"1","count":1}]}],"scanned":3,"matched":3}`,
			[]string{"field", "service,attrs.n", "limit", "2"}},
		{`{"facets":[{"field":"word","values":[{"value":"a","count":1},{"value":"b","count":1}]}],"scanned":3,"matched":2}`,
			[]string{"q", `level=info | parse msg "<word>"`, "field", "word"}},
		{`{"facets":[{"field":"level","values":[{"value":"INFO","count":2}],"more":1}],"scanned":3,"matched":3}`, []string{"field", "level", "limit", "1"}},
		{`{"facets":[{"field":"msg","values":[]}],"scanned":3,"matched":0}`, []string{"q", "absent", "field", "msg"}},
	} {
		if code, body := figuresOf(t, base, "/api/facets", c.pairs...); code != 200 || body != c.want+"\n" {
			t.Errorf("%v: %d, got\n%swant\n%s", c.pairs, code, body, c.want)
		}
	}
	for value, want := range map[string]string{
		"": "parameter field: found ``, expected the name of a field", "a,": "parameter field: found ``", "a,b,a": "parameter field: found `a` twice",
		strings.Repeat("a,", 20) + "b": "parameter field: found 21 fields, expected at most 20",
	} {
		if code, body := figuresOf(t, base, "/api/facets", "field", value); code != 400 || !strings.Contains(body, want) {
			t.Errorf("%s: %d %s", value, code, body)
		}
	}
	if code, body := figuresOf(t, base, "/api/facets", "field", "a", "limit", "10001"); code != 400 || !strings.Contains(body, "parameter limit") {
		t.Errorf("%d %s", code, body)
	}
}

// partEvent is one of an answer.
type partEvent struct{ name, data string }

// eventsOf has a new API over s answer a request for events, and returns them with the times
// since the request. It returns once the answer has ended.
func eventsOf(t *testing.T, s *store, o Options, ctx context.Context, only bool, target string, take func(partEvent)) (list []partEvent, times []time.Duration, answer *httptest.ResponseRecorder) {
	t.Helper()
	a, err := over(s, o)
	if err != nil {
		t.Fatal(err)
	}
	defer a.Close()
	r := httptest.NewRequest("GET", target, nil).WithContext(ctx)
	r.Header.Set("Accept", "text/event-stream")
	if only {
		r = Only(r, "mine")
	}
	w := &eventWriter{ResponseRecorder: httptest.NewRecorder(), begin: time.Now(), take: take}
	a.Handlers()[r.URL.Path](w, r)
	if n := a.memory.Used(); n != 0 {
		t.Errorf("%d bytes are not given back", n)
	}
	return w.list, w.times, w.ResponseRecorder
}

type eventWriter struct {
	*httptest.ResponseRecorder
	begin time.Time
	buf   bytes.Buffer
	list  []partEvent
	times []time.Duration
	take  func(partEvent)
}

func (w *eventWriter) Write(p []byte) (int, error) {
	w.buf.Write(p)
	for {
		block, rest, ok := strings.Cut(w.buf.String(), "\n\n")
		if !ok {
			return w.ResponseRecorder.Write(p)
		}
		w.buf.Reset()
		w.buf.WriteString(rest)
		name, data, _ := strings.Cut(strings.TrimPrefix(block, "event: "), "\ndata: ")
		w.list, w.times = append(w.list, partEvent{name, data}), append(w.times, time.Since(w.begin))
		w.take(w.list[len(w.list)-1])
	}
}

// faces are requests for figures.
var faces = []string{
	"/api/hits?step=1m",
	"/api/hits",
	"/api/stats?q=|stats+count()+by+level,time(1m)",
	"/api/stats?q=|fields+msg",
	"/api/fields",
	"/api/facets?field=level,msg,none",
}

// Parts come at most every 250 ms, their progress grows, and the last event is the answer
// without events.
func TestFiguresInParts(t *testing.T) {
	for _, target := range faces {
		t.Run(target, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := newStore(t)
				numbered(t, s, 300, 10)
				var want strings.Builder
				a, err := over(s, Options{})
				if err != nil {
					t.Fatal(err)
				}
				w := httptest.NewRecorder()
				r := httptest.NewRequest("GET", target, nil)
				a.Handlers()[r.URL.Path](w, r)
				want.WriteString(w.Body.String())
				s.before = func(uint64) error { time.Sleep(100 * time.Millisecond); return nil }
				list, times, answer := eventsOf(t, s, Options{}, t.Context(), false, target, func(partEvent) {})
				if len(list) < 8 || list[len(list)-1].name != "done" || list[len(list)-1].data+"\n" != want.String() {
					t.Fatalf("%d events, the last is %+v, want %s", len(list), list[len(list)-1], &want)
				}
				if kind := answer.Header().Get("Content-Type"); kind != "text/event-stream" {
					t.Errorf("it is %s", kind)
				}
				before := uint64(0)
				for i, e := range list[:len(list)-1] {
					var part struct {
						Progress progress
						Matched  uint64
					}
					if err := json.Unmarshal([]byte(e.data), &part); err != nil || e.name != "partial" || part.Progress.Searched <= before || part.Progress.Total != 300 || part.Matched != part.Progress.Searched {
						t.Errorf("%v: %+v", err, e)
					}
					before = part.Progress.Searched
					if i > 0 && times[i]-times[i-1] < partialEvery || times[i]-time.Duration(i)*partialEvery > time.Second {
						t.Errorf("event %d comes at %v", i, times[i])
					}
				}
			})
		})
	}
}

// The search ends within 100 ms after its client has gone, and gives back what it holds.
func TestFiguresEndWithTheirClient(t *testing.T) {
	for _, target := range faces {
		synctest.Test(t, func(t *testing.T) {
			s := newStore(t)
			numbered(t, s, 1000, 1)
			s.before = func(uint64) error { time.Sleep(10 * time.Millisecond); return nil }
			ctx, cancel := context.WithCancel(t.Context())
			var gone time.Time
			list, _, _ := eventsOf(t, s, Options{}, ctx, false, target, func(partEvent) { gone = time.Now(); cancel() })
			if took := time.Since(gone); len(list) != 1 || took > 100*time.Millisecond {
				t.Errorf("%s: %d events, it ended after %v", target, len(list), took)
			}
		})
	}
}

// What fails before the first event is a status, and what fails later an event.
func TestFiguresThatFail(t *testing.T) {
	for _, target := range faces {
		synctest.Test(t, func(t *testing.T) {
			s := newStore(t)
			numbered(t, s, 100, 10)
			s.before = func(first uint64) error {
				time.Sleep(100 * time.Millisecond)
				if first == 90 {
					return errors.New("disk\nfailed")
				}
				return nil
			}
			list, _, _ := eventsOf(t, s, Options{}, t.Context(), false, target, func(partEvent) {})
			if last := list[len(list)-1]; last.name != "error" || last.data != `{"error":"disk\nfailed"}` {
				t.Errorf("%s: %+v", target, last)
			}
			list, _, answer := eventsOf(t, s, Options{SearchTime: 150 * time.Millisecond}, t.Context(), false, target, func(partEvent) {})
			if len(list) != 0 || answer.Code != 400 || !strings.Contains(answer.Body.String(), "searched for 150ms, which is the limit") {
				t.Errorf("%s: %d %s", target, answer.Code, answer.Body)
			}
		})
	}
}

// A tenant's figures are of its lines, and tell nothing of others.
func TestFiguresOnly(t *testing.T) {
	for _, target := range faces {
		synctest.Test(t, func(t *testing.T) {
			answers := func(others int) (text string) {
				s := newStore(t)
				for i := range 40 {
					s.add(t, lineOf("mine", i))
					for range others {
						s.add(t, lineOf("other", i+5))
					}
				}
				s.before = func(uint64) error { time.Sleep(10 * time.Millisecond); return nil }
				list, _, _ := eventsOf(t, s, Options{}, t.Context(), true, target, func(partEvent) {})
				for _, e := range list {
					if strings.Contains(e.data, "scanned") || strings.Contains(e.data, "progress") {
						t.Errorf("%s tells %s", target, e.data)
					}
				}
				return list[len(list)-1].data
			}
			if alone, among := answers(0), answers(3); alone != among || !strings.Contains(alone, `"matched":40`) {
				t.Errorf("%s: alone\n%s\namong others\n%s", target, alone, among)
			}
		})
	}
}

// Memory that one query may hold bounds the groups of an answer.
func TestFiguresMemory(t *testing.T) {
	s := newStore(t)
	numbered(t, s, 2000, 100)
	a, base := serve(t, s, Options{MaxHeld: 200_000, MaxMemory: 1 << 20})
	if code, body := figuresOf(t, base, "/api/hits", "step", "1s", "by", "n"); code != 400 || !strings.Contains(body, "limits.max_query") {
		t.Errorf("%d %.300s", code, body)
	}
	waitHeld(t, a, 0)
}

// Figures are the same of columns, whose lines are read in part, as of lines.
func TestFiguresOfColumns(t *testing.T) {
	var lines [][]string
	r := rand.New(rand.NewPCG(1, 2))
	for i := range 60 {
		var batch []string
		for k := range 100 {
			line := testLine(i*100+k, "INFO", "took "+fmt.Sprint(r.IntN(50))+" ms")
			batch = append(batch, strings.Replace(line, `"attrs":{`, fmt.Sprintf(`"service":"s%d","attrs":{"user":"u-%d",`, r.IntN(3), r.IntN(20)), 1))
		}
		lines = append(lines, batch)
	}
	answers := func(pack bool) (all []string) {
		s := openStore(t, journal.Options{Disk: disktest.NewMem(), SegmentBytes: 100_000, Pack: pack})
		for _, batch := range lines {
			s.add(t, batch...)
		}
		if pack {
			waitFor(t, "packing", func() bool { return s.Stats().PackedSegments >= uint64(s.Stats().Segments-1) })
		}
		_, base := serve(t, s, Options{})
		for _, c := range [][]string{
			{"/api/hits", "by", "user"}, {"/api/hits", "q", `user=u-1 | parse msg "took <ms:number>"`, "by", "ms", "step", "1h"}, {"/api/hits", "by", ""},
			{"/api/facets", "field", "service,user,attrs.n,none"}, {"/api/facets", "q", `s1 or service=s2 | parse "took <ms:number>"`, "field", "ms,service"},
			{"/api/fields"}, {"/api/stats", "q", "msg~9 | stats count(), uniq(user) by service"},
		} {
			code, body := figuresOf(t, base, c[0], c[1:]...)
			if code != 200 || strings.Contains(body, `"matched":0`) {
				t.Errorf("%v: %d %s", c, code, body)
			}
			all = append(all, fmt.Sprint(c, body))
		}
		return all
	}
	want := answers(false)
	for i, got := range answers(true) {
		if got != want[i] {
			t.Errorf("of columns\n%.2000s\nof lines\n%.2000s", got, want[i])
		}
	}
}

// Lines that end too early, as damage may leave them, are figures of what is there.
func TestFiguresOfDamagedLines(t *testing.T) {
	for _, prepare := range []func(*request) (shape, error){askFields, askFacets, askHits} {
		req := &request{query: &Query{}, values: url.Values{"field": {"http.status,error.kind,deep.a.a,level"}}, now: testNow}
		if _, err := prepare(req); err != nil {
			t.Fatal(err)
		}
		rows := 0
		run := req.pipes.Start(pipe.Env{
			Out:   func(*pipe.Row) error { rows++; return nil },
			Take:  func(int) error { return nil },
			Check: func() error { return nil },
		})
		for _, line := range ofFields {
			for end := range len(line) {
				if _, err := run.Line([]byte(line[:end])); err != nil {
					t.Fatal(err)
				}
				if _, err := run.Line([]byte(line[:end] + "\n")); err != nil {
					t.Fatal(err)
				}
			}
		}
		if err := run.End(); err != nil || rows == 0 {
			t.Errorf("%d rows, %v", rows, err)
		}
	}
}
