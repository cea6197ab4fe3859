package enrich

import (
	"strings"
	"testing"

	"github.com/rollway/rollway/collector/normalize"
)

// BenchmarkArticle normalizes 100 events, with nothing configured, with what is
// added, with rules that find nothing and with rules that find something.
func BenchmarkArticle(b *testing.B) {
	event := `{"service":"payment-api","level":"error","message":"failed to charge customer","timestamp":"2026-05-28T12:40:00Z","trace_id":"abc123","metadata":{"customer_id":"cus_123","retry_count":2,"region":"eu-west"}}`
	added := "enrich: {fields: {env: prod}, host: true, client: true, id: ulid, networks: {table: {10.0.0.0/8: {site: fra}}}}\n"
	for _, tc := range []struct{ name, config, event string }{
		{"nothing", "", event},
		{"added", added, event},
		{"added, fingerprint", strings.Replace(added, "{fields", "{fingerprint: true, fields", 1), event},
		{"drop where", "rules: [{drop: {where: 'path=/healthz'}}]", event},
		{"redact keys", "rules: [{redact: {key: ['**.password', user.email]}}]", event},
		{"redact card, none there", `rules: [{redact: {match: '\b(?:\d[ -]?){12,15}\d\b'}}]`, event},
		{"redact card, one there", `rules: [{redact: {match: '\b(?:\d[ -]?){12,15}\d\b'}}]`, strings.Replace(event, "customer\"", "4111 1111 1111 1111\"", 1)},
		{"nine idle rules", nineIdle, event},
		{"nine idle rules, nested", nineIdle, strings.Replace(event, `"retry_count":2`, `"client":{"name":"x","version":{"major":1}},"tags":["a","b"]`, 1)},
		{"everything", everything, event},
	} {
		b.Run(tc.name, func(b *testing.B) {
			p, err := compile(tc.config)
			if err != nil {
				b.Fatal(err)
			}
			body := []byte(strings.Repeat(tc.event+"\n", 100))
			n, batch := normalize.New(normalize.Limits{NoFingerprint: true}), new(normalize.Batch)
			b.ReportAllocs()
			for b.Loop() {
				batch.Reset()
				n.SetEnricher(enricher(p), peer)
				n.Body(batch, body, received)
			}
			if batch.Records != 100 {
				b.Fatal(batch.Rejected)
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/100, "ns/event")
		})
	}
}

// nineIdle are rules that find nothing in the event, as most rules do in most events.
const nineIdle = `rules:
- drop: {where: 'path=/healthz'}
- drop: {key: http.path, match: '^/metrics'}
- keep: {where: 'level>=debug'}
- remove: {key: [debug.*, http.headers.cookie]}
- rename: {from: user.id, to: user_id}
- rename: {from: app_name, to: service}
- redact: {key: ['**.password', user.email]}
- redact: {match: '\b(?:\d[ -]?){12,15}\d\b', with: '[card]'}
- redact: {key: msg, match: 'token=\w+', with: 'token=…'}
`
