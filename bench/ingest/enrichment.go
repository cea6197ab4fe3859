package ingest

import (
	"strings"

	"github.com/rollway/rollway/bench/internal/measure"
	"github.com/rollway/rollway/collector/config"
	"github.com/rollway/rollway/collector/enrich"
	"github.com/rollway/rollway/collector/normalize"
	"github.com/rollway/rollway/collector/ulid"
)

// caseEnriched are requests of the article's size whose events are enriched.
const caseEnriched = "100 events, enriched"

// peer is where these requests are from.
const peer = "10.1.2.3:40000"

// An enrichment is a configuration and what it is called in tables.
type enrichment struct{ name, config string }

// enrichments are what is measured. Nothing of the article's event is dropped,
// and nothing in it is redacted, as that is how most events meet most rules.
func enrichments() []enrichment {
	return []enrichment{
		{"nothing configured", ""},
		{"two fields, host, ULID, tenant", "enrich: {fields: {env: prod, region_of: eu-1}, host: true, id: ulid}"},
		{"fingerprint", "enrich: {fingerprint: true}"},
		{"client, look-up among 3 networks", "enrich: {client: true, networks: {table: {10.0.0.0/8: {site: fra}, 10.1.0.0/16: {site: muc}, 192.168.0.0/16: {site: ams}}}}"},
		{"redact card numbers anywhere, none there", `rules: [{redact: {match: '\b(?:\d[ -]?){12,15}\d\b'}}]`},
		{"redact a key that is there", "rules: [{redact: {key: customer_id}}]"},
		{"9 rules, nothing for them to do", nineRules},
	}
}

const nineRules = `rules:
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

// subject is a request of the article's size, enriched.
func (e enrichment) subject(dir string) measure.Subject {
	return measure.Subject{Case: caseEnriched, Library: e.name, Mode: serial, Goroutines: 1, Prepare: func() (measure.Run, error) {
		o, err := e.own()
		if err != nil {
			return measure.Run{}, err
		}
		return ownRun(dir, o, 100)
	}}
}

// own is a receiver with what the collector would make of the configuration.
func (e enrichment) own() (own, error) {
	c, err := config.Parse("bench.yaml", []byte(e.config))
	if err != nil {
		return own{}, err
	}
	p, err := enrich.Compile(c.Enrich, c.Rules, nil, enrich.Environment{Host: "collector-1", IDs: new(ulid.Source)})
	o := own{tenant: strings.Contains(e.name, "tenant"), enrich: func() normalize.Enricher {
		if p == nil {
			return nil
		}
		return p
	}}
	return o, err
}
