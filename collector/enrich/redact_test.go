package enrich

import (
	"bytes"
	"encoding/json"
	"net/netip"
	"regexp"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/rollway/rollway/collector/normalize"
)

var events = []string{
	busy, `{}`, `{"msg":"x"}`, `{"a":1,"a":2,"\u0061":3,"a_2":4}`, `{"metadata":{"a":{"b":1,"b":2}},"fields":[],"attrs":{"attrs":{"time":1}},"error":{"x":[ ]}}`,
	`{"msg":"s3cr3t-1 s3cr3t-22","password":"x","s3cr3t-5":{"s3cr3t-6":["s3cr3t-7",{"PASSWORD":[1]}]}}`,
	`{"m\u0073g":"\u0073\u0033cr3t-\u0031\u0032","pass\u0077ord":"s","x":{"Password":{"password":1}},"password_2":3,"source":{"password":"p"}}`,
	`{"error":"s3cr3t-1: \ud800","s3cr3t-1":1,"s3cr3t-2":2,"[X]":3,"[X]_2":4,"service":"s3cr3t-9","trace_id":"s3cr3t-8","logger":"\\s3cr3t-7\\"}`,
	`{"":{"":{"":"s3cr3t-1"}},"_2":1,"password":1,"password":2,"password":{"x":[{"password":"y"}]}}`,
	`{"a":[[[],{}],"s3cr3t-\u0661"],"b":{},"c":[{}],"level":"s3cr3t-1","time":"s3cr3t-2"}`,
	`{"a":"\\\"s3cr3t-1\"","b":"\\\\","c\\":"\\","d\"":1,"e":-1.5e3,"f":null,"g":true}`,
}

// FuzzRedact looks for secrets in what a JSON reader sees of the lines.
func FuzzRedact(f *testing.F) {
	for _, e := range events {
		f.Add([]byte(e))
	}
	secret := regexp.MustCompile(`s3cr3t-\d+`)
	p := mustCompile(f, `
enrich: {fingerprint: true, fields: {env: prod}}
rules:
- redact: {key: '**.password', with: '[P]'}
- redact: {match: 's3cr3t-\d+', with: '[X]'}
`)
	f.Fuzz(func(t *testing.T, event []byte) {
		if !json.Valid(event) || !utf8.Valid(event) || bytes.TrimSpace(event)[0] != '{' {
			return
		}
		line := enriched(t, p, string(event))
		if strings.HasPrefix(line, "rejected: ") {
			return
		}
		var v map[string]any
		numbers := json.NewDecoder(strings.NewReader(line))
		numbers.UseNumber() // which may be larger than a float64
		if err := numbers.Decode(&v); err != nil {
			t.Fatalf("%v: %s", err, line)
		}
		var search func(name string, v any)
		search = func(name string, v any) {
			if strings.EqualFold(name, "password") && v != "[P]" {
				t.Fatalf("a password is left in %s", line)
			}
			if secret.MatchString(name) {
				t.Fatalf("a secret is left in a name in %s", line)
			}
			switch v := v.(type) {
			case string:
				if secret.MatchString(v) {
					t.Fatalf("a secret is left in %s", line)
				}
			case []any:
				for _, e := range v {
					search("", e)
				}
			case map[string]any:
				for name, e := range v {
					search(name, e)
				}
			}
		}
		for name, value := range v {
			search(name, value)
		}
		// What comes out is a canonical line, which would come out again.
		n, b := normalize.New(normalize.Limits{NoFingerprint: true}), new(normalize.Batch)
		if n.Body(b, []byte(line), received); string(b.Lines) != line {
			t.Fatalf("%s becomes %s%+v", line, b.Lines, b.Rejected)
		}
	})
}

// FuzzRules compares what rules make of a line with what they should make of
// the decoded one, as far as that is easy to say: the line stays canonical, and
// a rule that selects nothing changes nothing.
func FuzzRules(f *testing.F) {
	for _, e := range events {
		f.Add([]byte(e))
	}
	idle := mustCompile(f, `
rules:
- drop: {where: 'no_such_attribute=1'}
- drop: {key: 'no.such', match: x}
- keep: {where: 'level>=trace or level<trace'}
- remove: {key: no_such_attribute}
- remove: {key: '**', match: 'no\x{10FFFE}such'}
- rename: {from: no_such_attribute, to: x}
- redact: {key: 'no.*.such'}
- redact: {match: 'no\x{10FFFE}such'}
- only: {key: '**'}
`)
	changing := mustCompile(f, `
enrich: {fields: {env: prod}, defaults: {service: s, x: 1}, fingerprint: true}
rules:
- remove: {key: ['a', '**.b', 'error']}
- rename: {from: password, to: error}
- rename: {from: '**.x', to: x}
- rename: {from: msg, to: attrs.m}
- remove: {key: '**', match: 's3cr3t'}
- only: {key: ['*.*', 'm', 'x']}
`)
	f.Fuzz(func(t *testing.T, event []byte) {
		if !json.Valid(event) || !utf8.Valid(event) || bytes.TrimSpace(event)[0] != '{' || bytes.Contains(event, []byte("no_such")) {
			return
		}
		plain := enriched(t, nil, string(event))
		if got := enriched(t, idle, string(event)); got != plain {
			t.Fatalf("rules that are for nothing make %sof %s", got, plain)
		}
		line := enriched(t, changing, string(event))
		if strings.HasPrefix(line, "rejected: ") {
			return
		}
		n, b := normalize.New(normalize.Limits{NoFingerprint: true}), new(normalize.Batch)
		if n.Body(b, []byte(line), received); string(b.Lines) != line {
			t.Fatalf("%s becomes %s%+v", line, b.Lines, b.Rejected)
		}
		var v struct {
			Error *json.RawMessage
			Attrs map[string]json.RawMessage
		}
		if err := json.Unmarshal([]byte(line), &v); err != nil {
			t.Fatal(err)
		}
		if _, has := v.Attrs["a"]; has {
			t.Fatalf("a is left in %s", line)
		}
		for name, value := range v.Attrs {
			var text string
			if json.Unmarshal(value, &text) == nil && strings.Contains(text, "s3cr3t") {
				t.Fatalf("%s is left in %s", name, line)
			}
		}
	})
}

// What is sent decides nothing about what the next event gets.
func TestEventsDoNotMeet(t *testing.T) {
	p := mustCompile(t, everything)
	n, b := normalize.New(normalize.Limits{NoFingerprint: true}), new(normalize.Batch)
	want := map[string]string{}
	for _, e := range events {
		want[e] = enriched(t, p, e)
	}
	for _, first := range events {
		for _, e := range events {
			n.SetEnricher(p, peer)
			n.Body(b, []byte(first), received)
			b.Reset()
			n.Body(b, []byte(e), received)
			if got := anID.ReplaceAllString(string(b.Lines), `"ulid":"ID"`); got != want[e] {
				t.Errorf("behind %s\ngot  %swant %s", first, got, want[e])
			}
			n.SetEnricher(nil, netip.Addr{})
			b.Reset()
		}
	}
}

// A limit holds for the line with what is added to it.
func TestLimits(t *testing.T) {
	size := len(head + `,"msg":"aaaa"}`)
	for _, tc := range []struct {
		config string
		limit  int
		want   string
	}{
		{"", size, ""}, {"", size - 1, "too_large"},
		{"enrich: {fields: {e: p}}", size + len(`,"attrs":{"e":"p"}`), ""},
		{"enrich: {fields: {e: p}}", size + len(`,"attrs":{"e":"p"}`) - 1, "too_large"},
		{"enrich: {fingerprint: true}", size + len(`,"attrs":{"fingerprint":"1-0123456789abcdef"}`), ""},
		{"enrich: {fingerprint: true}", size + len(`,"attrs":{"fingerprint":"1-0123456789abcdef"}`) - 1, "too_large"},
		{"rules: [{redact: {match: a, with: bb}}]", size + 4, ""},
		{"rules: [{redact: {match: a, with: bb}}]", size + 3, "too_large"},
		{"rules: [{remove: {key: msg}}]", size - 1, "too_large"},
	} {
		n, b := normalize.New(normalize.Limits{MaxEventBytes: tc.limit}), new(normalize.Batch)
		p, err := compile(tc.config)
		if err != nil {
			t.Fatal(err)
		}
		n.SetEnricher(enricher(p), peer)
		n.Body(b, []byte(`{"msg":"aaaa"}`), received)
		got := ""
		if b.RejectedTotal == 1 && b.Records == 0 && len(b.Lines) == 0 {
			got = b.Rejected[0].Reason
		}
		if got != tc.want || b.Records+b.RejectedTotal != 1 {
			t.Errorf("%s, %d bytes: %q, want %q", tc.config, tc.limit, got, tc.want)
		}
	}
}

// A line with a syntax error takes back what was dropped in it, and no more.
func TestDropsAreTakenBack(t *testing.T) {
	p := mustCompile(t, "rules: [{name: a, drop: {where: a=*}}, {name: b, drop: {where: b=*}}]")
	n, b := normalize.New(normalize.Limits{NoFingerprint: true}), new(normalize.Batch)
	n.SetEnricher(p, peer)
	n.Body(b, []byte(`{"a":1}{"c":1}`+"\n"+`{"b":1}{"a":1}{"c":1}{`+"\n"+`{"b":1}`+"\n"), received)
	if b.Records != 1 || b.RejectedTotal != 1 || b.DroppedTotal != 2 || len(b.Dropped) != 2 || b.Dropped[0].Events != 1 || b.Dropped[1].Events != 1 {
		t.Errorf("%d stored, %d rejected, %+v", b.Records, b.RejectedTotal, b.Dropped)
	}
	b.Discard(false)
	if b.DroppedTotal != 0 || len(b.Dropped) != 0 {
		t.Errorf("discarded: %+v", b.Dropped)
	}
}

// Where rules redact, nothing of a rejected event is kept.
func TestDeadLettersAreWithheld(t *testing.T) {
	p := mustCompile(t, "rules: [{redact: {key: password}}]")
	b := new(normalize.Batch)
	b.KeepDeadLetters(1 << 20)
	b.WithholdText(p.Withholds())
	n := normalize.New(normalize.Limits{NoFingerprint: true})
	n.SetEnricher(p, peer)
	n.Body(b, []byte("{\"a\":1}\n{\"password\":\"s3cr3t\n[1]\n"), received)
	letters := b.DeadLetters()
	if b.RejectedTotal != 2 || len(letters) != 2 {
		t.Fatalf("%d rejected, %d dead letters", b.RejectedTotal, len(letters))
	}
	for i := range letters {
		if l := &letters[i]; !l.Withheld || l.Reason == "" || l.Detail != "" || len(b.Text(l)) != 0 {
			t.Errorf("%+v: %s", l, b.Text(l))
		}
	}
}
