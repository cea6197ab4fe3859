package query

import (
	"context"
	"fmt"
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

// What pipes hold is bounded for one query and for all, and given back.
func TestPipedMemory(t *testing.T) {
	s := newStore(t)
	numbered(t, s, 2000, 100)
	a, base := serve(t, s, Options{MaxHeld: 200_000, MaxMemory: 1 << 20})
	heavy := []string{"q", "| sort -n"}
	resp, body, err := ask(t, base, heavy...)
	if err != nil || resp.StatusCode != 400 || !strings.Contains(body, "sort holds") || !strings.Contains(body, "limits.max_query") {
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
	begin := time.Now()
	if err := run.End(); err != context.Canceled || checks != 1 {
		t.Errorf("%v after %d checks", err, checks)
	}
	if took := time.Since(begin); took > 5*time.Second {
		t.Errorf("took %v", took)
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
