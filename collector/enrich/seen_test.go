package enrich

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/rollway/rollway/collector/normalize"
)

// thorough is p with rules that are applied whatever is in a line.
func thorough(p *Program) *Program {
	all := *p
	all.rules = slices.Clone(p.rules)
	for i := range all.rules {
		all.rules[i].thorough = true
	}
	return &all
}

// An author makes up events and rules of few names and texts, so that they meet.
type author struct{ *rand.Rand }

func (a author) of(words ...string) string { return words[a.IntN(len(words))] }

func (a author) name() string {
	return a.of("a", "b", "A", "user", "email", "user.email", "x.user.b", "a_2", "a_3", "_2", "b.7", "b_x", "ü", `\u0061`, `q\"`, "a.", "message", "error", "card", "deep.er_2", "1_2", "e..f")
}

func (a author) value(depth int) string {
	switch a.IntN(7 + depth) {
	case 0:
		return a.of("1", "-12.5e3", "4111111111111111", "null", "true")
	case 1:
		return `"card 4111 1111 1111 1111."`
	case 2:
		return a.of(`"token=abc"`, `"to\u006ben=abc"`, `"x token="`, `"\\token=q"`)
	case 3:
		return a.object(depth + 2)
	case 4:
		return "[" + a.value(depth+2) + "," + a.value(depth+2) + "]"
	}
	return a.of(`"plain"`, `"ünï"`, `""`, `"a\nb"`, `"/metrics"`)
}

func (a author) object(depth int) string {
	var members []string
	for range a.IntN(5) {
		members = append(members, fmt.Sprintf(`"%s":%s`, a.name(), a.value(depth)))
	}
	return "{" + strings.Join(members, ",") + "}"
}

func (a author) key() string {
	key := a.of("a", "b", "user", "email", "card", "user.email", "x.user.b", "*", "**", "**.email", "a.*", "a.**", "us*r.b", "*.b", "x.*.b", "a_2", "msg", "error", "message", "attrs.a", "attrs.*", "deep.er", "1", "ü", "e..f", "metadata.b")
	return "'" + key + "'"
}

func (a author) rule() string {
	match := a.of(`token=\w+`, `\b(?:\d[ -]?){12,15}\d\b`, "^plain$", "(?i)PLAIN", "ab?c|/m.*s", "ü", "c+a*rd|4", "a")
	switch a.IntN(6) {
	case 0:
		return fmt.Sprintf(`drop: {key: %s, match: '%s'}`, a.key(), match)
	case 1:
		return fmt.Sprintf(`remove: {key: [%s, %s]}`, a.key(), a.key())
	case 2:
		return fmt.Sprintf(`rename: {from: [%s, %s], to: %s}`, a.key(), a.key(), a.of("a", "b", "user.email", "service", "msg", "new"))
	case 3:
		return fmt.Sprintf(`redact: {match: '%s', with: '%s'}`, match, a.of("a", `\`, "card"))
	case 4:
		return fmt.Sprintf(`redact: {key: %s, match: '%s'}`, a.key(), match)
	}
	return fmt.Sprintf(`redact: {key: %s}`, a.key())
}

// TestIdleRulesChangeNothing: what a rule is kept from by what is known of a line
// would have come to nothing.
func TestIdleRulesChangeNothing(t *testing.T) {
	changed, dropped := 0, 0
	for seed := range uint64(150) {
		a := author{rand.New(rand.NewPCG(seed, 7))}
		text := "enrich: {fingerprint: true}\nrules:\n"
		for range 1 + a.IntN(6) {
			text += "- " + a.rule() + "\n"
		}
		p := mustCompile(t, text)
		bodies := ""
		for range 30 {
			bodies += a.object(0) + "\n"
		}
		run := func(p *Program) (string, *normalize.Batch) {
			n, b := normalize.New(normalize.Limits{NoFingerprint: true}), new(normalize.Batch)
			n.SetEnricher(enricher(p), peer)
			n.Body(b, []byte(bodies), received)
			return fmt.Sprintf("%s%v %v", b.Lines, b.Dropped, b.Rejected), b
		}
		got, b := run(p)
		want, _ := run(thorough(p))
		if got != want {
			t.Fatalf("seed %d: %s%s\ncomes to   %s\nthoroughly %s", seed, text, bodies, got, want)
		}
		if b.RejectedTotal > 0 {
			t.Fatalf("seed %d: %v", seed, b.Rejected)
		}
		dropped += b.DroppedTotal
		changed += strings.Count(got, "[REDACTED]")
	}
	if changed < 100 || dropped < 100 {
		t.Errorf("only %d values were redacted and %d events dropped", changed, dropped)
	}
}

// TestSeenTellsIdleRules: of rules that the article's event has nothing for, none
// walks through it, nor of most others with other names in them.
func TestSeenTellsIdleRules(t *testing.T) {
	line := []byte(`{"time":"2026-05-28T12:40:00.000000000Z","level":"ERROR","msg":"failed to charge customer","service":"payment-api","trace_id":"6f9c9b9d7a1a","attrs":{"customer_id":"cus_123","Region":"eu-west","retry_count":2}}`)
	for rule, idle := range map[string]bool{
		`redact: {key: ['**.password', user.email]}`:      true,
		`redact: {key: region}`:                           false,
		`redact: {key: password}`:                         true,
		`remove: {key: [debug.*, http.headers.cookie]}`:   true,
		`rename: {from: user.id, to: user_id}`:            true,
		`rename: {from: retry_count, to: retries}`:        false,
		`redact: {match: '\b(?:\d[ -]?){12,15}\d\b'}`:     true,
		`redact: {key: msg, match: 'token=\w+'}`:          true,
		`redact: {key: msg, match: 'charge .*'}`:          false,
		`redact: {key: '*', match: 'charge .*'}`:          false,
		`only: {key: nothing}`:                            false,
		`drop: {key: http.path, match: '^/metrics'}`:      true,
		`redact: {match: 'secret-[0-9]{4}', with: 'x-y'}`: true,
	} {
		r := &mustCompile(t, "rules: [{"+rule+"}]").rules[0]
		var s seen
		var buf []byte
		if got := r.idle(line, &s, &buf); got != idle {
			t.Errorf("%s is idle: %t", rule, got)
		}
	}
}
