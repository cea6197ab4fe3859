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
