package collector

import (
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"
)

// keyedPost is one answer to a request with a key.
type keyedPost struct {
	code     int
	body     string
	replayed string
}

func (r *running) postKeyed(key, body string) (keyedPost, error) {
	req, err := http.NewRequest("POST", r.url+"/api/logs", strings.NewReader(body))
	if err != nil {
		return keyedPost{}, err
	}
	req.Header.Set("Idempotency-Key", key)
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return keyedPost{}, err
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	return keyedPost{resp.StatusCode, string(b), resp.Header.Get("Idempotent-Replayed")}, err
}

// Requests that come again, also at the same time and after a restart, are
// answered as the first and stored once.
func TestRepeatedRequests(t *testing.T) {
	cfg := testConfig(t)
	r := run(t, cfg)
	const requests, senders = 20, 4
	body := func(i int) string {
		return fmt.Sprintf(`[{"msg":"request %d."},{"msg":"second of %d"},7]`, i, i)
	}
	answers := make([][requests]keyedPost, senders)
	var sending sync.WaitGroup
	for s := range senders {
		sending.Go(func() {
			for i := range requests {
				a, err := r.postKeyed(fmt.Sprintf("key-%d", i), body(i))
				if err != nil {
					t.Error(err)
				}
				answers[s][i] = a
			}
		})
	}
	sending.Wait()
	for i := range requests {
		first := 0
		for s := range senders {
			a := answers[s][i]
			if a.code != 200 || a.body != answers[0][i].body {
				t.Errorf("request %d: %+v and %+v", i, a, answers[0][i])
			}
			if a.replayed == "" {
				first++
			}
		}
		if first != 1 {
			t.Errorf("request %d was the first %d times", i, first)
		}
	}
	s := r.Stats().Receive
	if s.Stored != 2*requests || s.Duplicate != 2*requests*(senders-1) || s.Received != s.Stored+s.RejectedTotal()+s.Failed+s.Duplicate {
		t.Errorf("%+v", s)
	}
	if a, err := r.postKeyed("key-0", `{"msg":"another request"}`); err != nil || a.code != 422 {
		t.Errorf("another request under a key that was given: %+v, %v", a, err)
	}
	if err := r.stop(); err != nil {
		t.Fatal(err)
	}
	r = run(t, cfg)
	for i := range requests {
		if a, err := r.postKeyed(fmt.Sprintf("key-%d", i), body(i)); err != nil || a.body != answers[0][i].body || a.replayed != "true" {
			t.Errorf("after a restart, request %d: %+v, %v", i, a, err)
		}
	}
	if _, _, lines := r.do(t, "GET", "/api/query", ""); strings.Count(lines, "\n") != 2*requests {
		t.Errorf("stored are\n%s", lines)
	}
	if _, _, page := r.do(t, "GET", "/metrics", ""); !strings.Contains(page, fmt.Sprintf("\nrollway_events_duplicate_total %d\n", 2*requests)) {
		t.Error("the duplicates are not in the metrics")
	}
}
