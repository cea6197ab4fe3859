package ingest

import (
	"fmt"
	"strings"

	"github.com/rollway/rollway/bench/internal/measure"
	"github.com/rollway/rollway/collector/config"
	"github.com/rollway/rollway/collector/enrich"
	"github.com/rollway/rollway/collector/normalize"
	"github.com/rollway/rollway/collector/ulid"
)

// caseEnriched are requests of the article's size, of which something is done to
// each event.
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
		return ownRun(dir, o, Sizes()[0])
	}}
}

// own is a receiver with what the collector would make of the configuration.
func (e enrichment) own() (own, error) {
	c, err := config.Parse("bench.yaml", []byte(e.config))
	if err != nil {
		return own{}, err
	}
	p, err := enrich.Compile(c.Enrich, c.Rules, enrich.Environment{Host: "collector-1", IDs: ulid.NewSource()})
	o := own{tenant: strings.Contains(e.name, "tenant"), enrich: func() normalize.Enricher {
		if p == nil {
			return nil
		}
		return p
	}}
	return o, err
}

// enrichmentTable is what each configuration adds to a request, none if it was
// not measured. without is a request of the same size where there is no enricher
// to be asked for.
func enrichmentTable(b *strings.Builder, sums map[measure.Key]measure.Summary, without measure.Summary) {
	events := float64(Sizes()[0])
	t := measure.NewTable("configuration", "µs, median (least to most)", "more for each event, ns", "allocations", "noisy samples used")
	some := false
	for _, e := range enrichments() {
		s := sums[measure.Key{Case: caseEnriched, Library: e.name, Mode: serial}]
		if s.Samples == 0 {
			continue
		}
		some = true
		us := func(ns float64) string { return measure.Number(ns / 1e3) }
		t.Row(e.name, fmt.Sprintf("%s (%s–%s)", us(s.Ns), us(s.MinNs), us(s.MaxNs)), fmt.Sprintf("%.0f", (s.Ns-without.Ns)/events),
			measure.Count(s.Allocs), fmt.Sprintf("%d of %d", s.NoisyButUsedSamples, s.Samples))
	}
	if some {
		fmt.Fprintf(b, "\n**What enrichment costs a request of %s**, against %s above\n\n%s", sizeCase(Sizes()[0]), Buffered, t)
	}
}
