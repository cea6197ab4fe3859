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

// An event of Sentry that is sent again, by either path and also after a
// restart, is answered as the first and stored once. Other ids, other projects
// and envelopes without an event are other requests.
func TestSentryEventsOnce(t *testing.T) {
	cfg := testConfig(t)
	r := run(t, cfg)
	const id = "0123456789ABCDEF0123456789abcdef"
	dashed := "01234567-89ab-cdef-0123-456789abcdef"
	event := func(id string) string {
		return "{\"event_id\":\"" + id + "\"}\n{\"type\":\"event\"}\n{\"message\":\"hi\"}\n"
	}
	logs := "{\"event_id\":\"" + id + "\"}\n{\"type\":\"log\"}\n{\"items\":[{\"body\":\"l\"}]}\n"
	post := func(path, body string, again bool, want string) {
		t.Helper()
		code, header, answer := r.do(t, "POST", path, body)
		if code != 200 || header.Get("Idempotent-Replayed") == "true" != again || answer != want+"\n" {
			t.Errorf("%s %q: %d %q, again %q", path, body, code, answer, header.Get("Idempotent-Replayed"))
		}
	}
	ofID := `{"id":"` + id + `"}`
	for again := range 2 {
		post("/api/7/envelope/", event(id), again == 1, ofID)
	}
	post("/api/7/envelope/", event(dashed), true, `{"id":"`+dashed+`"}`)
	post("/api/7/store/", `{"event_id":"`+id+`","message":"hi"}`, true, ofID)
	post("/api/8/envelope/", event(id), false, ofID)
	post("/api/7/envelope/", event(strings.Repeat("1", 32)), false, `{"id":"`+strings.Repeat("1", 32)+`"}`)
	for range 2 {
		post("/api/7/envelope/", logs, false, ofID)
		post("/api/7/envelope/", event(strings.Repeat("0", 32)), false, `{"id":"`+strings.Repeat("0", 32)+`"}`)
		post("/api/7/envelope/", event("abc"), false, `{"id":"abc"}`)
	}
	if s := r.Stats().Receive; s.Stored != 9 || s.Duplicate != 3 || s.Received != s.Stored+s.RejectedTotal()+s.Failed+s.Duplicate {
		t.Errorf("%+v", s)
	}
	if err := r.stop(); err != nil {
		t.Fatal(err)
	}
	r = run(t, cfg)
	post("/api/7/envelope/", event(id), true, ofID)
	post("/api/7/store/", `{"event_id":"`+id+`","message":"hi"}`, true, ofID)
	if _, _, lines := r.do(t, "GET", "/api/query", ""); strings.Count(lines, "\n") != 9 {
		t.Errorf("stored are\n%s", lines)
	}
}

// A request that asks for it is remembered by its body, and as another tenant's,
// path's or query's it is another one.
func TestBodiesOnce(t *testing.T) {
	cfg := withTokens(t)
	for round := range 2 { // the second after a restart
		r := run(t, cfg)
		for i, tc := range []struct {
			secret, path, body string
			hashed, again      bool
		}{
			{writerSecret, "/api/logs", `{"msg":"a"}`, true, round == 1},
			{writerSecret, "/api/logs", `{"msg":"a"}`, true, true},
			{writerSecret, "/api/logs", `{"msg":"a"}`, false, false},
			{writerSecret, "/api/logs", `{"msg":"b"}`, true, round == 1},
			{writerSecret, "/services/collector/raw", `{"msg":"a"}`, true, round == 1},
			{writerSecret, "/services/collector/raw?host=h", `{"msg":"a"}`, true, round == 1},
			{slowSecret, "/api/logs", `{"msg":"a"}`, true, round == 1},
		} {
			req, err := http.NewRequest("POST", r.url+tc.path, strings.NewReader(tc.body))
			if err != nil {
				t.Fatal(err)
			}
			req.Header.Set("Authorization", "Bearer "+tc.secret)
			if tc.hashed {
				req.Header.Set("X-Idempotency", "body")
			}
			resp, err := http.DefaultClient.Do(req)
			if err != nil {
				t.Fatal(err)
			}
			io.Copy(io.Discard, resp.Body)
			resp.Body.Close()
			if again := resp.Header.Get("Idempotent-Replayed") == "true"; resp.StatusCode != 200 || again != tc.again {
				t.Errorf("round %d, request %d: %d, again %v", round, i, resp.StatusCode, again)
			}
		}
		if err := r.stop(); err != nil {
			t.Fatal(err)
		}
	}
}

// A request that comes again when rules have changed is answered as it was at
// first and stored once, also if they leave out all of it now.
func TestRepeatedAfterReload(t *testing.T) {
	cfg := withEnrichment(t, "rules: [{drop: {where: a=1}}]")
	r := run(t, cfg)
	body := `[{"a":1},{"a":2},{"a":3},7]`
	sentry := "{\"event_id\":\"0123456789abcdef0123456789abcdef\"}\n{\"type\":\"event\"}\n{\"message\":\"hi\"}\n{\"type\":\"log\"}\n{\"items\":[{\"body\":\"l\",\"attributes\":{\"a\":{\"value\":1}}}]}\n"
	first, err := r.postKeyed("k", body)
	if err != nil || first.code != 200 || first.replayed != "" || !strings.Contains(first.body, `"accepted":3,"first_offset":0,"dropped":1`) {
		t.Fatal(first, err)
	}
	if code, header, answer := r.do(t, "POST", "/api/7/envelope/", sentry); code != 200 || header.Get("Idempotent-Replayed") != "" {
		t.Fatal(code, answer)
	}
	first.replayed = "true"
	for _, rules := range []string{"rules: []", "rules: [{drop: {where: a=2}}]", "rules: [{drop: {where: 'a>0'}}, {drop: {where: 'msg=hi'}}]"} {
		changed := withEnrichment(t, rules)
		cfg.Enrich, cfg.Rules = changed.Enrich, changed.Rules
		if err := r.Reload(cfg); err != nil {
			t.Fatal(err)
		}
		if again, err := r.postKeyed("k", body); err != nil || again != first {
			t.Errorf("%s: %+v, %v, want %+v", rules, again, err, first)
		}
		if code, header, answer := r.do(t, "POST", "/api/7/envelope/", sentry); code != 200 || header.Get("Idempotent-Replayed") != "true" {
			t.Errorf("%s: %d %s, again %q", rules, code, answer, header.Get("Idempotent-Replayed"))
		}
		if other, err := r.postKeyed("k", `{"a":5}`); err != nil || other.code != 422 || other.replayed != "" {
			t.Errorf("%s: another request under the key: %+v, %v", rules, other, err)
		}
	}
	if s := r.Stats(); s.Journal.Records != 3 || s.Receive.Stored != 3 || s.Receive.Duplicate != s.Journal.DuplicateRecords ||
		s.Receive.Received != s.Receive.Stored+s.Receive.RejectedTotal()+s.Receive.Failed+s.Receive.Duplicate+s.Receive.DroppedTotal() {
		t.Errorf("%+v", s)
	}
}
