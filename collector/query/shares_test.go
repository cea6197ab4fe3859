package query

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/rollway/rollway/collector/admission"
)

// One principal cannot have all queries: another's is answered, and the one that asks for
// too much is told that it is its share.
func TestSharesOfQueries(t *testing.T) {
	m := newStore(t)
	numbered(t, m, 2, 1)
	entered, release := make(chan struct{}, 20), make(chan struct{})
	m.before = func(uint64) error {
		entered <- struct{}{}
		<-release
		return nil
	}
	c := admission.New()
	a, err := over(m, Options{Admission: c})
	if err != nil {
		t.Fatal(err)
	}
	defer a.Close()
	ask := func(who string) *httptest.ResponseRecorder {
		rec := httptest.NewRecorder()
		r := httptest.NewRequest("GET", "/api/query", nil)
		a.ServeQuery(rec, r.WithContext(admission.WithPrincipal(r.Context(), c.Named(who, 1))))
		return rec
	}
	codes := make(chan int, 20)
	begin := func(who string, n int) {
		for range n {
			go func() { codes <- ask(who).Code }()
			<-entered
		}
	}
	begin("greedy", 8)
	if rec := ask("greedy"); rec.Code != http.StatusTooManyRequests || rec.Header().Get("Retry-After") != "1" || !strings.Contains(rec.Body.String(), "8 queries of yours") {
		t.Errorf("%d %s", rec.Code, rec.Body)
	}
	begin("modest", 2)
	begin("another", 1)
	begin("last", 1)
	if rec := ask("late"); rec.Code != http.StatusServiceUnavailable {
		t.Errorf("%d %s", rec.Code, rec.Body)
	}
	close(release)
	for range 12 {
		if code := <-codes; code != 200 {
			t.Errorf("%d", code)
		}
	}
	if s := a.Stats(); s.Refused != 2 || s.RunningQueries != 0 || c.CPU.Waiting() != 0 {
		t.Errorf("%+v", s)
	}
}

// A search for some lines, which somebody waits for, comes before figures and before all lines.
func TestFiguresComeLater(t *testing.T) {
	a, err := over(newStore(t), Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer a.Close()
	for query, later := range map[string]bool{"last=40": false, "limit=40": false, "": true, "q=|+patterns": true, "q=|+limit+5&last=40": true} {
		w, r := httptest.NewRecorder(), httptest.NewRequest("GET", "/api/query?"+query, nil)
		req, err := a.parseRequest(r, "q", "last", "limit")
		if err != nil {
			t.Fatal(err)
		}
		_, out, done, ok := a.start(w, r, req)
		if !ok {
			t.Fatal(w.Body)
		}
		if out.later != later || a.newScan(req.query, 0, 1, false, &out.found).later != later {
			t.Errorf("%q: later is %v", query, out.later)
		}
		done()
	}
}
