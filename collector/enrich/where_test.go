package enrich

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/rollway/rollway/collector/normalize"
	"github.com/rollway/rollway/collector/query"
)

// field is a name as an expression has it: of a slot, of an attribute, or a path.
func (a author) field() string {
	return a.of("a", "b", "A", "user", "user.email", "x.user.b", "a_2", "b.7", "card", "error", "error.a", "source", "source.line", "service", "msg", "level", "time", "logger", "trace_id", "span_id", "attrs", "attrs.a", "attrs.user.b", `"q\""`, "ü", "e..f", "env", "site", "region", "app")
}

// term is a comparison or a text that the language has.
func (a author) term() string {
	for {
		if term := a.anyTerm(); valid(term) {
			return term
		}
	}
}

func valid(expr string) bool {
	_, err := query.Parse(expr)
	return err == nil
}

func (a author) anyTerm() string {
	switch a.IntN(6) {
	case 0:
		return "level" + a.of("=", "!=", "<", "<=", ">", ">=") + a.of("debug", "info", "warn", "error", "fatal", "INFO+2", "trace")
	case 1:
		return a.field() + a.of("=*", "!=*")
	case 2:
		return a.field() + a.of("=", "!=", "~", "!~") + a.of("plain", "1", "null", "ERR*", `"card 4111 1111 1111 1111."`, "20*", "2026", "token", "prod", "true", "E")
	case 3:
		return a.field() + a.of("<", "<=", ">", ">=") + a.of("0", "5", "2026-01-01", "p")
	case 4:
		return a.of("plain", "token", `"card 4"`, "4111111111111111")
	}
	return a.of("time>=", "time<") + a.of("2020-01-01", "2030-01-01")
}

func (a author) where(depth int) string {
	if depth > 2 || a.IntN(3) == 0 {
		return a.of("", "", "not ") + a.term()
	}
	return a.of("", "", "not ") + "(" + a.where(depth+1) + a.of(" and ", " or ", " ") + a.where(depth+1) + ")"
}

func (a author) event() string {
	members := []string{}
	for _, m := range []string{
		`"level":` + a.of(`"debug"`, `"info"`, `"WARN"`, `"error"`, `"fatal"`, `"INFO+2"`, "30", "17", `"?"`),
		`"time":"2026-05-28T12:40:00Z"`,
		`"msg":` + a.value(0),
		`"error":` + a.of(`{"a":1,"kind":"plain"}`, `"plain"`, `[{"a":"plain"}]`),
		`"source":` + a.of(`{"line":5,"file":"p"}`, `"plain"`),
		`"service":` + a.of(`"plain"`, `{"name":"plain","a":1}`),
		`"log":{"level":"error","logger":"plain","a":5}`,
		`"logger":"plain"`,
		`"attributes":` + a.object(0),
		`"trace_id":"4bf92f3577b34da6a3ce929d0e0e4736"`,
		`"site":"plain"`, `"ip":"` + a.of("10.0.0.1", "127.0.0.1") + `"`,
	} {
		if a.IntN(3) == 0 {
			members = append(members, m)
		}
	}
	for range a.IntN(4) {
		members = append(members, fmt.Sprintf(`"%s":%s`, a.name(), a.value(0)))
	}
	a.Shuffle(len(members), func(i, j int) { members[i], members[j] = members[j], members[i] })
	return "{" + strings.Join(members, ",") + "}"
}

// TestConditions: what decides a condition without a look at the line, the level and
// the names in it, decides as the whole condition does.
func TestConditions(t *testing.T) {
	held, not := 0, 0
	for seed := range uint64(500) {
		a := author{rand.New(rand.NewPCG(seed, 8))}
		text := a.of("", "enrich: {fingerprint: true}\n", "enrich: {fields: {env: prod}, defaults: {service: prod, region: p}, networks: {field: ip, table: {10.0.0.0/8: {site: prod}}}}\n")
		text += "rules:\n"
		for range 1 + a.IntN(3) {
			switch a.IntN(5) {
			case 0:
				text += "- " + a.rule() + "\n"
			case 1:
				text += fmt.Sprintf("- rename: {from: %s, to: %s, where: '%s'}\n", a.key(), a.of("a", "service", "new", "msg"), a.where(0))
			case 2:
				text += fmt.Sprintf("- redact: {key: %s, where: '%s'}\n", a.key(), a.where(0))
			default:
				text += fmt.Sprintf("- %s: {where: '%s'}\n", a.of("drop", "keep"), a.where(0))
			}
		}
		p := mustCompile(t, text)
		for range 20 {
			body := a.event()
			run := func(p *Program) (string, *normalize.Batch) {
				n, b := normalize.New(normalize.Limits{NoFingerprint: true}), new(normalize.Batch)
				n.SetEnricher(enricher(p), peer)
				n.Body(b, []byte(body), received)
				return fmt.Sprintf("%s%v %v", b.Lines, b.Dropped, b.Rejected), b
			}
			got, b := run(p)
			if want, _ := run(thorough(p)); got != want {
				t.Errorf("seed %d: %s%s\ncomes to   %s\nthoroughly %s", seed, text, body, got, want)
				break
			}
			if b.RejectedTotal > 0 {
				t.Fatalf("seed %d: %s: %v", seed, body, b.Rejected)
			}
			held += b.DroppedTotal
			not += 1 - b.DroppedTotal
		}
	}
	if held < 1000 || not < 1000 {
		t.Errorf("%d events were dropped, %d were not", held, not)
	}
}

// TestConditionOnWhatEachLineHas: every line has a time and a level, which
// package normalize does not report: a rule for lines that have them is for all.
func TestConditionOnWhatEachLineHas(t *testing.T) {
	for _, where := range []string{"level=*", "time=*", "time~-", "time=2*", "level=* or a=1", "not level!=*", "b=1 or time=*"} {
		p := mustCompile(t, fmt.Sprintf("rules: [{redact: {key: secret, where: '%s'}}]", where))
		n, b := normalize.New(normalize.Limits{NoFingerprint: true}), new(normalize.Batch)
		n.SetEnricher(enricher(p), peer)
		n.Body(b, []byte(`{"level":"warn","secret":"hunter2"}`), received)
		if strings.Contains(string(b.Lines), "hunter2") {
			t.Errorf("where %s: %s", where, b.Lines)
		}
	}
}
