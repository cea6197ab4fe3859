package collector

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/rollway/rollway/collector/deadletter"
)

// The pipeline tells of each part what the others tell of it, and to a tenant nothing of others.
func TestPipeline(t *testing.T) {
	cfg := withTenants(t)
	rules := withEnrichment(t, "rules: [{name: noise, drop: {where: 'msg=noise'}}, {name: other, drop: {where: 'msg=other'}}]")
	cfg.Rules = rules.Rules
	r := run(t, cfg)
	post := func(secret, body string) { r.ask(t, http.DefaultClient, "POST", logsPath, secret, body) }
	post(secretA, `[{"msg":"x"},{"msg":"noise"},7]`)
	post(secretB, `[{"msg":"y"},{"msg":"other"}]`)
	post("wrong-0123456789", `{}`)
	pipeline := func(secret string) (p Pipeline, text string) {
		t.Helper()
		_, _, text = r.ask(t, http.DefaultClient, "GET", "/api/pipeline", secret, "")
		if err := json.Unmarshal([]byte(text), &p); err != nil {
			t.Fatal(err, text)
		}
		return p, text
	}
	p, text := pipeline(secretNo)
	if p.PipelineOfAll == nil || p.Received != 5 || p.Outcomes["stored"] != 2 || !p.Ledger.Agrees || p.Journal.Next != 2 || p.Ready != "" || p.Journal.DiskFree == 0 {
		t.Errorf("%s", text)
	}
	if len(p.Receivers) != 1 || p.Receivers[0].Receiver != logsPath || p.Receivers[0].Events != 5 || p.Receivers[0].Clients != 2 {
		t.Errorf("%+v", p.Receivers)
	}
	if got, want := fmt.Sprint(p.Rules), "[{{noise drop} 1} {{other drop} 1}]"; got != want {
		t.Errorf("rules %s, want %s", got, want)
	}
	if got, want := fmt.Sprint(p.Refused), "[{/api/logs unauthorized 1}]"; got != want {
		t.Errorf("refused %s, want %s", got, want)
	}
	p, text = pipeline(secretA)
	if p.PipelineOfAll != nil || p.Tenant != "a" || p.Received != 3 || fmt.Sprint(p.Rules) != "[{{noise drop} 1}]" || strings.Contains(text, "other") || strings.Contains(text, "journal") {
		t.Errorf("a tenant is told %s", text)
	}
}

// What is kept is bounded by what comes first: the age, a size, or the disk.
func TestForecast(t *testing.T) {
	now := time.Date(2026, 5, 28, 12, 0, 0, 0, time.UTC)
	for _, c := range []struct {
		name string
		p    PipelineJournal
		want string
	}{
		{"nothing is known", PipelineJournal{}, "<nil>"},
		{"it has only begun", PipelineJournal{Oldest: now.Add(-time.Second), Bytes: 1, DiskTotal: 9}, "<nil>"},
		{"the disk", PipelineJournal{Oldest: now.Add(-48 * time.Hour), Bytes: 200, DiskFree: 800, DiskTotal: 9000}, "{100 10 disk true}"},
		{"the disk is full", PipelineJournal{Oldest: now.Add(-48 * time.Hour), Bytes: 200, DiskTotal: 9000}, "{100 2 disk true}"},
		{"a size", PipelineJournal{Oldest: now.Add(-24 * time.Hour), Bytes: 100, DiskFree: 800, DiskTotal: 9000, RetainSize: 300, MaxSize: 400}, "{100 3 retain_size false}"},
		{"refused above a size", PipelineJournal{Oldest: now.Add(-24 * time.Hour), Bytes: 100, DiskFree: 800, DiskTotal: 9000, MaxSize: 400}, "{100 4 max_size true}"},
		{"the age", PipelineJournal{Oldest: now.Add(-24 * time.Hour), Bytes: 100, RetainSize: 300, RetainAge: 36 * time.Hour}, "{100 1.5 retain_age false}"},
		{"no limit", PipelineJournal{Oldest: now.Add(-24 * time.Hour), Bytes: 100}, "<nil>"},
	} {
		got := "<nil>"
		if f := c.p.forecast(now); f != nil {
			got = fmt.Sprint(*f)
		}
		if got != c.want {
			t.Errorf("%s: %s, want %s", c.name, got, c.want)
		}
	}
}

// Dead letters are sent again with the tenant of their first sender, once, and those of other
// tenants are not found.
func TestReplayOnServer(t *testing.T) {
	cfg := withPeople(t)
	writePeople(t, cfg, "- {name: sender, secret: "+slowSecret+", tenant: shop}\n")
	cfg.Limits.MaxDepth = 3
	r := run(t, cfg)
	const deep = `{"msg":"deep","a":{"b":{"c":{"d":1}}}}`
	r.ask(t, http.DefaultClient, "POST", logsPath, slowSecret, deep)
	r.ask(t, http.DefaultClient, "POST", logsPath, writerSecret, strings.Replace(deep, "deep", "of nobody", 1))
	ids := map[string]string{}
	for _, e := range r.rejectedOf(t, secretOfAdmin, "") {
		ids[e.Tenant] = e.ID
	}
	ops := r.logIn(t, secretOfOperator)
	replay := func(who []string, id string) (a replayed) {
		t.Helper()
		resp, body := r.send(t, "POST", replayPath, fmt.Sprintf(`{"ids":[%q]}`, id), who...)
		if err := json.Unmarshal([]byte(body), &a); err != nil || resp.StatusCode != 200 {
			t.Fatal(resp.Status, body)
		}
		return a
	}
	if a := replay(ops, ids["shop"]); a.Stored != 0 || len(a.Failed) != 1 || !strings.Contains(a.Failed[0].Error, "rejected again: too_deep") {
		t.Errorf("within the same limits: %+v", a)
	}
	r.stop()
	cfg.Limits.MaxDepth = 64
	r = run(t, cfg)
	ops = r.logIn(t, secretOfOperator)
	all := r.logIn(t, secretOfAdmin)
	if a := replay(ops, ids[""]); a.Stored != 0 || len(a.Failed) != 1 || !strings.Contains(a.Failed[0].Error, "no such dead letter") {
		t.Errorf("of another: %+v", a)
	}
	if a := replay(all, ids["shop"]); a.Stored != 1 || a.Marked != 1 || len(a.Failed) > 0 {
		t.Errorf("%+v", a)
	}
	if a := replay(all, ids["shop"]); a.Stored != 0 || len(a.Failed) != 1 {
		t.Errorf("again: %+v", a)
	}
	if a := replay(all, ids[""]); a.Stored != 1 {
		t.Errorf("of nobody: %+v", a)
	}
	_, _, got := r.ask(t, http.DefaultClient, "GET", "/api/query?q=a.b.c.d%3D1", secretOfAdmin, "")
	if strings.Count(got, "\n") != 2 || strings.Count(got, `"tenant":"shop"`) != 1 || !strings.Contains(got, `"msg":"deep"`) {
		t.Errorf("stored is\n%s", got)
	}
	var marked []deadletter.Entry
	for _, e := range r.rejectedOf(t, secretOfAdmin, "") {
		if e.Replayed {
			marked = append(marked, e)
		}
	}
	if len(marked) != 2 {
		t.Errorf("%d are marked", len(marked))
	}
}
