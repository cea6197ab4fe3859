package query

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/rollway/rollway/collector/query/pipe"
)

func TestPipedAnswers(t *testing.T) {
	s := newStore(t)
	all := numbered(t, s, 100, 7)
	_, base := serve(t, s, Options{})
	row := func(names string, n ...int) (out string) {
		for _, i := range n {
			out += strings.ReplaceAll(names, "%", fmt.Sprint(i)) + "\n"
		}
		return out
	}
	for _, c := range []struct {
		name, want, columns, next string
		pairs                     []string
	}{
		{"lines", all[0] + "\n" + all[10] + "\n", "", "11", []string{"q", "level=warn | limit 2"}},
		{"fields", row(`{"n":%,"level":"WARN"}`, 0, 10), "n,level", "11", []string{"q", "level=warn | limit 2 | fields n, level"}},
		{"columns are escaped", row(`{"a, é":%}`, 0), "a%2C%20%C3%A9", "1", []string{"q", `| limit 1 | fields n as "a, é"`}},
		{"sort", row(`{"n":%}`, 99, 98), "n", "100", []string{"q", "| sort -n | limit 2 | fields n"}},
		{"limit=", row(`{"n":%}`, 0, 1, 2), "n", "3", []string{"q", "| fields n", "limit", "3"}},
		{"limit= after sort", row(`{"n":%}`, 99, 98), "n", "100", []string{"q", "| fields n | sort -n", "limit", "2"}},
		{"last=", row(`{"n":%}`, 98, 99), "n", "100", []string{"q", "| fields n", "last", "2"}},
		{"last= and sort", all[90] + "\n" + all[80] + "\n", "", "100", []string{"q", "level=warn | sort -time", "last", "2"}},
		{"nothing", "", "n", "100", []string{"q", "absent | fields n"}},
		{"stats", row(`{"level":"INFO","count":90,"p50_n":49}`, 0) + row(`{"level":"WARN","count":10,"p50_n":40}`, 0), "level,count,p50_n", "100", []string{"q", "| stats count(), quantile(0.5, n) by level"}},
		{"stats of nothing", row(`{"count":0,"u":0}`, 0), "count,sum_n,u", "100", []string{"q", "absent | stats count(), sum(n), uniq(n) as u"}},
		{"first, last and values", row(`{"level":"INFO","first_n":1,"last_n":99,"v":["INFO"]}`, 0) + row(`{"level":"WARN","first_n":0,"last_n":90,"v":["WARN"]}`, 0), "level,first_n,last_n,v", "100", []string{"q", "| stats first(n), last(n), values(level) as v by level"}},
		{"values are few", row(`{"v":[0,1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16,17,18,19]}`, 0), "v", "100", []string{"q", "| stats values(n) as v"}},
		{"stats by level, in its order", row(`{"level":"INFO"}`, 0) + row(`{"level":"WARN"}`, 0), "level", "100", []string{"q", "| stats count() by level | sort level | fields level"}},
		{"steps of time", row(`{"time":"2026-05-28T00:00:00.000000000Z","n":60}`, 0) + row(`{"time":"2026-05-28T00:01:00.000000000Z","n":40}`, 0), "time,n", "100", []string{"q", "| stats count() as n by time(1m)"}},
		{"top", row(`{"level":"INFO","count":90}`, 0), "level,count", "100", []string{"q", "| top 1 level"}},
		{"weeks begin on Monday", row(`{"time":"2026-05-25T00:00:00.000000000Z","count":100}`, 0), "time,count", "100", []string{"q", "| stats count() by time(1w)"}},
		{"levels have an order", all[0] + "\n", "", "100", []string{"q", "| sort level desc, time | limit 1"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			resp, body, err := ask(t, base, c.pairs...)
			if err != nil || resp.StatusCode != 200 || body != c.want {
				t.Errorf("%s, %v, got\n%swant\n%s", resp.Status, err, body, c.want)
			}
			if got := resp.Header.Get("Rollway-Columns"); got != c.columns {
				t.Errorf("columns %q", got)
			}
			if got := resp.Trailer.Get("Rollway-Next"); got != c.next {
				t.Errorf("next %q, want %s", got, c.next)
			}
		})
	}
	w := httptest.NewRecorder()
	a, _ := over(s, Options{})
	a.ServeTail(w, httptest.NewRequest("GET", "/api/tail?q=a+|+limit+1", nil))
	if w.Code != 400 || !strings.Contains(w.Body.String(), "a tail takes no pipes") {
		t.Errorf("tail: %d %s", w.Code, w.Body)
	}
	if _, err := Parse(`"a|b" c|d`); err == nil || !strings.Contains(err.Error(), "query column 8: found `|`, expected a filter without pipes") {
		t.Errorf("rule: %v", err)
	}
}

// What parse finds is an attribute of the line, in place of one of the same name.
func TestPipedParse(t *testing.T) {
	s := newStore(t)
	s.add(t,
		`{"time":"2026-05-28T12:40:00.000000000Z","level":"INFO","msg":"GET /a took 15 ms"}`,
		`{"time":"2026-05-28T12:40:01.000000000Z","level":"INFO","msg":"PUT /b took 7.5 ms","attrs":{"path":"old","x":1}}`,
		`{"time":"2026-05-28T12:40:02.000000000Z","level":"INFO","msg":"other","attrs":{"path":"kept"}}`,
		`{"time":"2026-05-28T12:40:03.000000000Z","level":"INFO","msg":"DELETE /\"c\" took 1 ms","attrs":{}}`)
	_, base := serve(t, s, Options{})
	for q, want := range map[string]string{
		`| parse "<method> <path> took <ms:number>"`: `{"time":"2026-05-28T12:40:00.000000000Z","level":"INFO","msg":"GET /a took 15 ms","attrs":{"method":"GET","path":"/a","ms":15}}
{"time":"2026-05-28T12:40:01.000000000Z","level":"INFO","msg":"PUT /b took 7.5 ms","attrs":{"x":1,"method":"PUT","path":"/b","ms":7.5}}
{"time":"2026-05-28T12:40:02.000000000Z","level":"INFO","msg":"other","attrs":{"path":"kept"}}
{"time":"2026-05-28T12:40:03.000000000Z","level":"INFO","msg":"DELETE /\"c\" took 1 ms","attrs":{"method":"DELETE","path":"/\"c\"","ms":1}}
`,
		`| parse "<method> <path> took <ms:number>" | stats sum(ms), count(method) by path`: `{"path":"/\"c\"","sum_ms":1,"count_method":1}
{"path":"/a","sum_ms":15,"count_method":1}
{"path":"/b","sum_ms":7.5,"count_method":1}
{"path":"kept","count_method":0}
`,
		`| parse path ~"^(?P<first>\w)" | fields path, first | limit 3`: `{}
{"path":"old","first":"o"}
{"path":"kept","first":"k"}
`,
	} {
		if resp, body, err := ask(t, base, "q", q); err != nil || resp.StatusCode != 200 || body != want {
			t.Errorf("%s: %s, %v, got\n%swant\n%s", q, resp.Status, err, body, want)
		}
	}
}

// Messages that differ in what varies are one pattern; the rows do not depend on their order.
func TestPipedPatterns(t *testing.T) {
	s := newStore(t)
	s.add(t,
		`{"time":"2026-05-28T12:40:01.000000000Z","level":"INFO","msg":"took 7.5 ms","service":"a"}`,
		`{"time":"2026-05-28T12:40:00.000000000Z","level":"ERROR","msg":"took 15 ms","service":"b"}`,
		`{"time":"2026-05-28T12:40:02.000000000Z","level":"INFO","msg":"say \"hi 1\"","service":"a"}`,
		`{"time":"2026-05-28T12:40:03.000000000Z","level":"INFO","service":"a"}`)
	_, base := serve(t, s, Options{})
	for q, want := range map[string]string{
		`| patterns`: `{"pattern":"took <num> ms","count":2,"first":"2026-05-28T12:40:00.000000000Z","last":"2026-05-28T12:40:01.000000000Z","level":"ERROR","example":"took 15 ms"}
{"pattern":"say \"<str>\"","count":1,"first":"2026-05-28T12:40:02.000000000Z","last":"2026-05-28T12:40:02.000000000Z","level":"INFO","example":"say \"hi 1\""}
{"count":1,"first":"2026-05-28T12:40:03.000000000Z","last":"2026-05-28T12:40:03.000000000Z","level":"INFO"}
`,
		`| patterns new since "2026-05-28 12:40:02" | fields pattern, count`: `{"pattern":"say \"<str>\"","count":1}
{"count":1}
`,
		`| patterns new since 2026-05-28T12:40:01Z by service limit 1 | fields pattern, service, count, first`: `{"pattern":"say \"<str>\"","service":"a","count":1,"first":"2026-05-28T12:40:02.000000000Z"}
`,
		`took | patterns by service limit 1 | fields pattern, service, count`: `{"pattern":"took <num> ms","service":"a","count":1}
`,
		`took | parse "took <pattern> " | patterns | fields pattern, count`: `{"pattern":"took <num> ms","count":2}
`,
	} {
		if resp, body, err := ask(t, base, "q", q); err != nil || resp.StatusCode != 200 || body != want {
			t.Errorf("%s: %s, %v, got\n%swant\n%s", q, resp.Status, err, body, want)
		}
	}
}

// New patterns need lines before them.
func TestNewPatterns(t *testing.T) {
	s := newStore(t)
	numbered(t, s, 10, 10)
	_, base := serve(t, s, Options{})
	const q = "| patterns new since 2026-05-28T00:00:05Z"
	for since, want := range map[string]int{"2026-05-28T00:00:04.999999999Z": 200, "2026-05-28T00:00:05Z": 400, "2026-05-29": 400} {
		if resp, body, err := ask(t, base, "q", q, "since", since); err != nil || resp.StatusCode != want || want == 400 && !strings.Contains(body, "parameter q: patterns new since 2026-05-28T00:00:05.000000000Z needs lines before that time") {
			t.Errorf("%s: %s %v %s", since, resp.Status, err, body)
		}
	}
	if resp, body, err := ask(t, base, "q", "n>=7 | patterns new since 2026-05-28T00:00:05Z | fields count"); err != nil || resp.StatusCode != 200 || body != "{\"count\":3}\n" {
		t.Errorf("%s %v %s", resp.Status, err, body)
	}
}

// What pipes hold is bounded for one query and for all, and given back.
func TestPipedMemory(t *testing.T) {
	s := newStore(t)
	numbered(t, s, 2000, 100)
	a, base := serve(t, s, Options{MaxHeld: 200_000, MaxMemory: 1 << 20})
	heavy := []string{"q", "| sort -n"}
	// On a busy machine the status is sent before the limit is reached.
	refused := func(q ...string) (*http.Response, string, error) {
		resp, body, err := ask(t, base, q...)
		if text := resp.Trailer.Get("Rollway-Error"); resp.StatusCode == 200 && text != "" {
			resp.StatusCode, body = 400, body+text
		}
		return resp, body, err
	}
	resp, body, err := refused(heavy...)
	if err != nil || resp.StatusCode != 400 || !strings.Contains(body, "sort holds") || !strings.Contains(body, "limits.max_query") {
		t.Errorf("%s, %v, %.300s", resp.Status, err, body)
	}
	resp, body, err = refused("q", "| stats count() by n")
	if err != nil || resp.StatusCode != 400 || !strings.Contains(body, "stats holds") || !strings.Contains(body, "group by fields with fewer values") {
		t.Errorf("%s, %v, %.300s", resp.Status, err, body)
	}
	if resp, body, err := ask(t, base, "q", "| sort -n | limit 500"); err != nil || resp.StatusCode != 200 || strings.Count(body, "\n") != 500 {
		t.Errorf("with a limit: %s, %v, %.300s", resp.Status, err, body)
	}
	waitHeld(t, a, 0)
	other := a.o.Admission.Named("other", 1)
	a.memory.Acquire(other, 1<<20-1000)
	if resp, body, err := ask(t, base, heavy...); err != nil || resp.StatusCode != 503 || resp.Header.Get("Retry-After") != "1" || !strings.Contains(body, "as much memory as they may") {
		t.Errorf("with others: %s, %v, %.300s", resp.Status, err, body)
	}
	a.memory.Release(other, 1<<20-1000)
	waitHeld(t, a, 0)
}

// A tenant's pipes get its lines alone.
func TestPipedOnly(t *testing.T) {
	s := newStore(t)
	for i := range 20 {
		s.add(t, lineOf([]string{"other", "other", "mine", "other"}[i%4], i))
	}
	_, base := serveOnly(t, s, Options{})
	resp, body, err := ask(t, base, "q", "| fields tenant | sort tenant")
	if err != nil || body != strings.Repeat(`{"tenant":"mine"}`+"\n", 5) {
		t.Errorf("%v, %s", err, body)
	}
	for name := range resp.Trailer {
		if name == "Rollway-Scanned" || name == "Rollway-Matched" {
			t.Errorf("told %s", name)
		}
	}
}

// A query ends with its client, also while its pipes sort and send.
func TestPipedCancelled(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	p := &pipe.Pipeline{Stages: []pipe.Stage{&pipe.Sort{Keys: []pipe.Key{{Field: pipe.Field{Index: -1, Find: resolve("n").find}}}}}}
	checks := 0
	run := p.Start(pipe.Env{
		Out:   func(*pipe.Row) error { return nil },
		Take:  func(int) error { return nil },
		Check: func() error { checks++; return ctx.Err() },
	})
	for i := range 100_000 {
		if _, err := run.Line([]byte(testLine(i*7919%100_000, "INFO", "x"))); err != nil {
			t.Fatal(err)
		}
	}
	cancel()
	if err := run.End(); err != context.Canceled || checks != 1 {
		t.Errorf("%v after %d checks", err, checks)
	}
}

// The time that pipes take counts as the query's own.
func TestPipedTime(t *testing.T) {
	s := newStore(t)
	numbered(t, s, 100, 10)
	_, base := serve(t, s, Options{SearchCPU: time.Nanosecond})
	resp, body, err := ask(t, base, "q", "| sort n")
	if err != nil || resp.StatusCode != http.StatusBadRequest || !strings.Contains(body, "timeouts.query_cpu") {
		t.Errorf("%s, %v, %s", resp.Status, err, body)
	}
}

// An answer says which of its columns are estimates.
func TestPipedEstimates(t *testing.T) {
	s := newStore(t)
	numbered(t, s, 9000, 1000)
	_, base := serve(t, s, Options{})
	for q, want := range map[string]string{
		"| stats uniq(n) as u, quantile(0.5, n)":            "p50_n (within 1 % of the value), u (standard error 1.15 %)",
		"| stats values(n), values(level)":                  "values_n (the first 20)",
		"n<8192 | stats uniq(n) as u, quantile(0.5, n)":     "u (standard error 1.15 %)",
		"n<1024 | stats uniq(n) as u, quantile(0.5, n)":     "",
		"| stats count(), min(n), max(n), sum(n) | limit 1": "",
	} {
		if resp, _, err := ask(t, base, "q", q); err != nil || resp.Trailer.Get("Rollway-Estimates") != want {
			t.Errorf("%s: %q, %v", q, resp.Trailer.Get("Rollway-Estimates"), err)
		}
	}
}

// Runs over parts of the lines merge into what one run over all gives.
func TestPipesMerge(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for _, expr := range []string{
		"| stats count(), sum(took), avg(took), min(took), max(user), quantile(0.9, took), uniq(msg), uniq(user) by service, time(1h)",
		"| stats quantile(0.9, took), uniq(msg), avg(took) by flag",
		"| sort took, -user", "| sort -took | limit 7", "| top 3 user | sort user",
	} {
		_, p, err := parsePiped(expr, testNow)
		if err != nil {
			t.Fatal(err)
		}
		var lines []string
		for i := range 6000 {
			line := randomLine(r, i)
			for strings.Contains(line, "1e400") {
				line = randomLine(r, i)
			}
			lines = append(lines, line)
		}
		var out []byte
		var total, spare *pipe.Run // spare has been used before
		held := 0
		for _, part := range [][]string{lines[:100], lines[100:2000], lines[2000:4000], lines[4000:]} {
			run := spare
			if run == nil {
				run = p.Start(pipe.Env{
					Out:   func(r *pipe.Row) error { out = appendRow(out, p.Columns, r); return nil },
					Take:  func(n int) error { held += n; return nil },
					Check: func() error { return nil },
				})
			}
			for _, line := range part {
				if _, err := run.Line([]byte(line + "\n")); err != nil {
					t.Fatal(err)
				}
			}
			if total == nil {
				total = run
			} else if err := total.Merge(run); err != nil {
				t.Fatal(err)
			} else if run.Reset() {
				spare = run
			}
		}
		if err := total.End(); err != nil || held <= 0 {
			t.Fatal(err, held)
		}
		if want := runOver(t, p, lines); string(out) != want {
			t.Errorf("%s\ngot\n%.2000s\nwant\n%.2000s", expr, out, want)
		}
	}
}

// A limit after a sort by counts gives what the sort gives first.
func TestMostFrequent(t *testing.T) {
	r := rand.New(rand.NewPCG(5, 6))
	for range 50 {
		var lines []string
		for i := range 300 {
			lines = append(lines, randomLine(r, i))
		}
		for _, stages := range []string{"| stats count() by user, took | sort count", "| stats count(), count(took) by user | sort -count_took", "| stats max(took), count() by user, level | sort count desc"} {
			n := 1 + r.IntN(30)
			_, all, err := parsePiped(stages, testNow)
			if err != nil {
				t.Fatal(err)
			}
			_, some, err := parsePiped(fmt.Sprint(stages, " | limit ", n), testNow)
			if err != nil {
				t.Fatal(err)
			}
			want := strings.SplitAfter(runOver(t, all, lines), "\n")
			if want := strings.Join(want[:min(n, len(want))], ""); runOver(t, some, lines) != want {
				t.Fatalf("%s | limit %d\ngot\n%swant\n%s", stages, n, runOver(t, some, lines), want)
			}
		}
	}
}
