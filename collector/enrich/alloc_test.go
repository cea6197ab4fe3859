package enrich

import (
	"strings"
	"testing"

	"github.com/rollway/rollway/collector/normalize"
	"github.com/rollway/rollway/internal/testkit"
)

// everything is a configuration with all there is.
const everything = `
enrich:
  fields: {env: prod, region: eu-1}
  defaults: {team: core, service: unknown}
  host: true
  client: true
  id: ulid
  fingerprint: true
  networks: [{table: {10.0.0.0/8: {site: fra}, 10.1.0.0/16: {site: muc}}}, {field: src_ip, table: {192.0.2.0/24: {src_site: lab}}}]
rules:
- {name: health, drop: {where: 'path=/healthz'}}
- drop: {key: http.path, match: '^/metrics'}
- keep: {where: 'level>=debug'}
- remove: {key: [debug.*, http.headers.cookie]}
- rename: {from: user.id, to: user_id}
- rename: {from: app_name, to: service}
- redact: {key: ['**.password', user.email], with: '***'}
- redact: {match: '\b(?:\d[ -]?){12,15}\d\b', with: '[card]'}
- redact: {key: msg, match: 'token=\w+', with: 'token=…'}
`

const busy = `{"level":"error","message":"payment with 4111 1111 1111 1111 failed\n\u0041 token=abc","timestamp":"2026-05-28T12:40:00Z","app_name":"shop","error":{"type":"E","password":"x"},"metadata":{"user":{"id":7,"email":"a@b.c"},"http":{"path":"/x","headers":{"cookie":"c","accept":"*"}},"debug":{"a":1},"tags":["x","\u0034111111111111111"]},"src_ip":"192.0.2\u002e7:80"}`

const busyLine = `{"time":"2026-05-28T12:40:00.000000000Z","level":"ERROR","msg":"payment with [card] failed\nA token=…","service":"shop","error":{"type":"E","password":"***"},"attrs":{"env":"prod","region":"eu-1","received_by":"collector-1","client_ip":"10.1.2.3","site":"muc","ulid":"ID","user":{"email":"***"},"http":{"path":"/x","headers":{"accept":"*"}},"debug":{},"tags":["x","[card]"],"src_ip":"192.0.2\u002e7:80","team":"core","src_site":"lab","user_id":7,"fingerprint":"FP"}}`

func TestEverything(t *testing.T) {
	p := mustCompile(t, everything)
	got := enriched(t, p, busy)
	if got := strings.Replace(got, fingerprintIn(t, got), "FP", 1); got != busyLine+"\n" {
		t.Errorf("got  %swant %s", got, busyLine)
	}
	if got := enriched(t, p, `{"path":"/healthz"}`); got != "dropped: health\n" {
		t.Error(got)
	}
}

func TestNoAllocationPerEvent(t *testing.T) {
	raced := testkit.Race(t, "the sync.Pool of regexp forgets at random")
	events := []string{busy, `{"path":"/healthz"}`, `{"http":{"path":"/metrics"}}`, `{"msg":"a user who is 5 years old","a":[1,2,{"b":null}]}`}
	body := []byte(strings.Repeat(strings.Join(events, "\n")+"\n", 100))
	p := mustCompile(t, everything)
	for name, run := range map[string]func(n *normalize.Normalizer, b *normalize.Batch){
		"body": func(n *normalize.Normalizer, b *normalize.Batch) { n.Body(b, body, received) },
		"lines": func(n *normalize.Normalizer, b *normalize.Batch) {
			for line := range strings.Lines(string(body)) {
				n.Line(b, []byte(line), received)
			}
		},
		"builder": func(n *normalize.Normalizer, b *normalize.Batch) {
			builder := n.Build(b, received)
			for range 100 {
				for _, event := range events {
					builder.Begin()
					builder.Message([]byte(event))
					builder.End()
				}
			}
			builder.Done()
		},
	} {
		n, b := normalize.New(normalize.Limits{NoFingerprint: true}), new(normalize.Batch)
		baseline := normalize.New(normalize.Limits{NoFingerprint: true})
		count := func(n *normalize.Normalizer, e normalize.Enricher) uint64 {
			return testkit.Mallocs(func() {
				b.Reset()
				n.SetEnricher(e, peer)
				run(n, b)
			})
		}
		without := count(baseline, nil)
		with := count(n, p)
		if b.Records != 200 || b.DroppedTotal != 200 || b.RejectedTotal != 0 {
			t.Fatalf("%s: %d stored, %d dropped, %v", name, b.Records, b.DroppedTotal, b.Rejected)
		}
		if with > without && !raced {
			t.Errorf("%s: %d allocations for 400 events, %d without enrichment", name, with, without)
		}
	}
}
