package collector

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/rollway/rollway/collector/enrich"
)

// withRules is a collector's configuration with rules of each kind.
const withRules = `
enrich: {fields: {env: prod}, client: true, fingerprint: true}
rules:
- {name: probes, drop: {where: 'path=/healthz'}}
- {name: loud, keep: {where: 'level>=info'}}
- {name: mask, redact: {key: user.email}}
- {name: short, rename: {from: duration_ms, to: took, where: 'service=shop'}}
`

// Of an event is told what each rule decides, and the line that it becomes.
func TestExplainEvent(t *testing.T) {
	r := run(t, withEnrichment(t, withRules))
	ask := func(path, body string, header ...string) (e Explanation) {
		t.Helper()
		resp, text := r.send(t, "POST", path, body, header...)
		if resp.StatusCode != 200 {
			t.Fatalf("%s %s", resp.Status, text)
		}
		if err := json.Unmarshal([]byte(text), &e); err != nil {
			t.Fatal(err)
		}
		return e
	}
	steps := func(e ExplainedEvent) string {
		var list []string
		for _, s := range e.Steps {
			list = append(list, strings.TrimSpace(s.Step+s.Rule+" "+s.Action)+": "+s.Did)
		}
		return strings.Join(list, "; ")
	}
	e := ask(explainEventPath, `{"level":"warn","msg":"paid","user":{"email":"a@b.c"}}`)
	if len(e.Events) != 1 || len(e.Rejected) > 0 || e.Error != "" {
		t.Fatalf("%+v", e)
	}
	if got, want := steps(e.Events[0]), "read: changed; probes drop: kept; loud keep: kept; mask redact: changed; fingerprint: changed; short rename: not for"; got != want {
		t.Errorf("%s\nwant %s", got, want)
	}
	if line := string(e.Events[0].Line); !strings.Contains(line, `"user":{"email":"[REDACTED]"}`) || !strings.Contains(line, `"env":"prod"`) || !strings.Contains(line, `"client_ip":"127.0.0.1"`) {
		t.Error(line)
	}
	if e := ask(explainEventPath, `{"msg":"x","path":"/healthz"}`); e.Events[0].Dropped != "probes" || e.Events[0].Line != nil || steps(e.Events[0]) != "read: changed; probes drop: dropped" {
		t.Errorf("%+v", e)
	}
	if e := ask(explainEventPath, `{"msg":"x","service":"shop","duration_ms":3}`); !strings.Contains(steps(e.Events[0]), "mask redact: nothing; fingerprint: changed; short rename: changed") {
		t.Error(steps(e.Events[0]))
	}
	e = ask(explainEventPath, "{\"msg\":\"a\"}\n{\"msg\":\n{\"level\":\"debug\",\"msg\":\"b\"}\n{\"msg\":\"c\"}\n")
	if len(e.Events) != 3 || len(e.Rejected) != 1 || e.Rejected[0].Index != 1 || e.Rejected[0].Reason != "syntax" || e.Events[1].Dropped != "loud" || !strings.Contains(string(e.Events[2].Line), `"msg":"c"`) {
		t.Errorf("%+v", e)
	}
	for _, c := range []struct{ as, body, want string }{
		{"/v1/logs", `{"resourceLogs":[{"scopeLogs":[{"logRecords":[{"severityText":"WARN","body":{"stringValue":"by otlp"}}]}]}]}`, `"msg":"by otlp"`},
		{"/loki/api/v1/push", `{"streams":[{"stream":{"app":"a"},"values":[["1748436000000000000","by loki"]]}]}`, `"msg":"by loki"`},
		{"/things/_bulk", "{\"create\":{}}\n{\"message\":\"by bulk\"}\n", `"msg":"by bulk"`},
		{"syslog", "<14>1 2026-05-28T12:40:00Z h app - - - by syslog", `"msg":"by syslog"`},
		{"GELF", `{"version":"1.1","host":"h","short_message":"by gelf"}`, `"msg":"by gelf"`},
	} {
		if e := ask(explainEventPath+"?as="+c.as, c.body, "Content-Type", "application/json"); len(e.Events) != 1 || !strings.Contains(string(e.Events[0].Line), c.want) {
			t.Errorf("%s: %+v", c.as, e)
		}
	}
	if e := ask(explainEventPath, "no event", "Content-Type", "application/json"); !strings.Contains(e.Error, "expected a JSON object") {
		t.Errorf("%+v", e)
	}
	for _, path := range []string{"?as=/api/query", "?as=ftp", "?as=http://evil.example/", "?as=%2500"} {
		if code := r.status(t, "POST", explainEventPath+path, "{}"); code != 400 {
			t.Errorf("%s: %d", path, code)
		}
	}
	if code := r.status(t, "POST", explainEventPath, strings.Repeat(" ", maxExplained+1)); code != 413 {
		t.Errorf("too large: %d", code)
	}
	if code := r.status(t, "GET", explainEventPath, ""); code != 405 {
		t.Errorf("GET: %d", code)
	}
	if s := r.Stats(); s.Receive.Received > 0 || s.Journal.Records > 0 || s.Rejected.Rejected > 0 {
		t.Errorf("it was counted: %+v", s)
	}
}

// What is told is what becomes of the event when it is sent.
func TestExplainedIsStored(t *testing.T) {
	r := run(t, withEnrichment(t, strings.Replace(withRules, "client: true, ", "", 1)))
	for i, body := range []string{
		`{"time":"2026-05-28T12:40:00Z","msg":"a","user":{"email":"x"},"duration_ms":1,"service":"shop"}`,
		`{"time":"2026-05-28T12:40:00Z","level":"debug","msg":"b"}`,
		`[{"time":"2026-05-28T12:40:00Z","msg":"c"},7,{"time":"2026-05-28T12:40:00Z","error":"boom"}]`,
	} {
		_, text := r.send(t, "POST", explainEventPath, body)
		var e Explanation
		if err := json.Unmarshal([]byte(text), &e); err != nil {
			t.Fatal(err)
		}
		var want bytes.Buffer
		for _, event := range e.Events {
			if event.Line != nil {
				want.Write(append(event.Line, '\n'))
			}
		}
		next := r.Stats().Journal.Next
		r.do(t, "POST", logsPath, body)
		if _, _, got := r.do(t, "GET", fmt.Sprint("/api/query?from=", next), ""); got != want.String() {
			t.Errorf("%d: stored is\n%swhich was told to be\n%s", i, got, want.String())
		}
	}
}

// Who asks gets what is told for the own tenant, and no more than a bounded answer.
func TestExplainIsBounded(t *testing.T) {
	rules := "rules:\n"
	for i := range 60 {
		rules += fmt.Sprintf("- {name: r%d, rename: {from: a%d, to: a%d}}\n", i, i, i+1)
	}
	r := run(t, withEnrichment(t, rules))
	body := strings.Repeat(`{"a0":"`+strings.Repeat("x", 12_000)+`"}`+"\n", 25)
	code, _, text := r.ask(t, http.DefaultClient, "POST", explainEventPath, "", body[:min(len(body), maxExplained)])
	var e Explanation
	if err := json.Unmarshal([]byte(text), &e); err != nil || code != 200 {
		t.Fatal(code, err)
	}
	if !e.Cut || len(text) > 2*maxExplanation || len(e.Events) != maxEvents || e.Events[0].Steps[1].Did != enrich.Changed {
		t.Errorf("cut %v, %d bytes, %d events", e.Cut, len(text), len(e.Events))
	}
}
