package enrich

import (
	"encoding/json"
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/rollway/rollway/collector/config"
	"github.com/rollway/rollway/collector/normalize"
	"github.com/rollway/rollway/collector/ulid"
	"github.com/rollway/rollway/internal/jsonwalk"
)

var (
	received = time.Date(2026, 5, 28, 12, 40, 0, 0, time.UTC)
	peer     = netip.MustParseAddr("10.1.2.3")
	ids      = new(ulid.Source)
)

func compile(text string) (*Program, error) {
	c, err := config.Parse("f.yaml", []byte(text))
	if err != nil {
		return nil, err
	}
	return Compile(c.Enrich, c.Rules, c.Normalize.Parse, Environment{Host: "collector-1", IDs: ids})
}

func mustCompile(t testing.TB, text string) *Program {
	t.Helper()
	p, err := compile(text)
	if err != nil {
		t.Fatalf("%v in\n%s", err, text)
	}
	return p
}

// enricher is p for a Normalizer.
func enricher(p *Program) normalize.Enricher {
	if p == nil {
		return nil
	}
	return p
}

// roads are the ways in which an event, one JSON object, gets to its line.
var roads = map[string]func(n *normalize.Normalizer, b *normalize.Batch, event []byte){
	"body": func(n *normalize.Normalizer, b *normalize.Batch, event []byte) { n.Body(b, event, received) },
	"line": func(n *normalize.Normalizer, b *normalize.Batch, event []byte) { n.Line(b, event, received) },
	"builder": func(n *normalize.Normalizer, b *normalize.Batch, event []byte) {
		builder := n.Build(b, received)
		builder.Begin()
		if string(event) != "{}" { // which is text
			builder.Message(event)
		}
		builder.End()
		builder.Done()
	},
}

// enriched returns the lines of an event on each road, which must be the same
// except for identifiers.
func enriched(t testing.TB, p *Program, event string) string {
	t.Helper()
	var first, firstRoad string
	for name, road := range roads {
		n, b := normalize.New(normalize.Limits{NoFingerprint: true}), new(normalize.Batch)
		n.SetEnricher(enricher(p), peer)
		road(n, b, []byte(event))
		got := anID.ReplaceAllString(string(b.Lines), `"ulid":"ID"`)
		for _, r := range b.Rejected {
			got += "rejected: " + r.Reason + "\n"
		}
		for _, d := range b.Dropped {
			got += "dropped: " + d.Rule + "\n"
		}
		if firstRoad == "" {
			first, firstRoad = got, name
		} else if got != first {
			t.Fatalf("%s\nby %s: %sby %s: %s", event, firstRoad, first, name, got)
		}
	}
	return first
}

var anID = regexp.MustCompile(`"ulid":"[0-7][0-9A-HJKMNP-TV-Z]{25}"`)

const head = `{"time":"2026-05-28T12:40:00.000000000Z","level":"INFO"`

func TestLines(t *testing.T) {
	for _, tc := range []struct{ name, config, event, want string }{
		{"nothing", "", `{"msg":"x","a":1}`, `,"msg":"x","attrs":{"a":1}}`},
		{"fields", "enrich: {fields: {env: prod, shard: 3, canary: true, ratio: 0.5, \"a b\": 'q\"<é'}}", `{"msg":"x","a":1}`,
			`,"msg":"x","attrs":{"env":"prod","shard":3,"canary":true,"ratio":0.5,"a b":"q\"<é","a":1}}`},
		{"fields of an event without any", "enrich: {fields: {env: prod}}", `{}`, `,"attrs":{"env":"prod"}}`},
		{"an event has the field", "enrich: {fields: {env: prod}}", `{"env":"dev","\u0065nv":2}`, `,"attrs":{"env":"prod","env_2":"dev","\u0065nv_3":2}}`},
		{"defaults", "enrich: {defaults: {env: prod, service: s, logger: l}}", `{"a":1}`, `,"service":"s","logger":"l","attrs":{"a":1,"env":"prod"}}`},
		{"defaults that are there", "enrich: {defaults: {env: prod, service: s, logger: l}}", `{"\u0065nv":"dev","app":"mine"}`, `,"service":"mine","logger":"l","attrs":{"\u0065nv":"dev"}}`},
		{"a default whose slot has something else", "enrich: {defaults: {service: s}}", `{"service":5}`, `,"service":"s","attrs":{"service":5}}`},
		{"host and client", "enrich: {host: true, client: true}", `{"client_ip":"6.6.6.6"}`, `,"attrs":{"received_by":"collector-1","client_ip":"10.1.2.3","client_ip_2":"6.6.6.6"}}`},
		{"off", "enrich: {host: false, client: false, fingerprint: false}", `{"a":1}`, `,"attrs":{"a":1}}`},
		{"id", "enrich: {id: ulid}", `{"ulid":"mine"}`, `,"attrs":{"ulid":"ID","ulid_2":"mine"}}`},
		{"networks", "enrich: {networks: {table: {10.0.0.0/8: {site: wide}, 10.1.0.0/16: {site: near, rack: 7}, 10.1.2.3: {rack: 8}}}}", `{"a":1}`, `,"attrs":{"rack":8,"a":1}}`},
		{"another network", "enrich: {networks: {table: {10.0.0.0/8: {site: wide}, 10.1.0.0/16: {site: near, rack: 7}, 10.2.0.0/16: {rack: 8}}}}", `{"site":0}`, `,"attrs":{"site":"near","rack":7,"site_2":0}}`},
		{"by a field", "enrich: {networks: {field: net.src, table: {192.0.2.0/24: {src_site: lab, rack: 7}}}}", `{"a":1,"net":{"src":"192.0.2.9"}}`, `,"attrs":{"a":1,"net":{"src":"192.0.2.9"},"src_site":"lab","rack":7}}`},
		{"by a field that is escaped, with a port", "enrich: {networks: {field: src, table: {192.0.2.0/24: {site: lab}}}}", `{"src":"192\u002e0.2.9:80","site":"own"}`, `,"attrs":{"src":"192\u002e0.2.9:80","site_2":"own","site":"lab"}}`},
		{"by a slot, IPv6", "enrich: {networks: {field: service, table: {'2001:db8::/32': {site: lab}}}}", `{"service":"[2001:db8::1]:80"}`, `,"service":"[2001:db8::1]:80","attrs":{"site":"lab"}}`},
		{"by a field that is not an address", "enrich: {networks: {field: src, table: {192.0.2.0/24: {site: lab}}}}", `{"src":3221225993,"site":"own"}`, `,"attrs":{"src":3221225993,"site_2":"own"}}`},
		{"by a field with a name in it", "enrich: {networks: {field: src, table: {0.0.0.0/0: {site: all}}}}", `{"src":"host.example"}`, `,"attrs":{"src":"host.example"}}`},
		{"by a field in a list", "enrich: {networks: {field: a.src, table: {0.0.0.0/0: {site: all}}}}", `{"a":[{"src":"192.0.2.1"}]}`, `,"attrs":{"a":[{"src":"192.0.2.1"}]}}`},
		{"by a field that is not there", "enrich: {networks: {field: src, table: {0.0.0.0/0: {site: all}}}}", `{"a":1}`, `,"attrs":{"a":1}}`},
		{"by two fields and the client", "enrich: {networks: [{table: {10.0.0.0/8: {site: c}}}, {field: src, table: {192.0.2.0/24: {src_site: s}}}, {field: '**.dst', table: {198.51.100.0/24: {dst_site: d}}}]}", `{"src":"192.0.2.1","x":{"dst":"198.51.100.1"}}`, `,"attrs":{"site":"c","src":"192.0.2.1","x":{"dst":"198.51.100.1"},"src_site":"s","dst_site":"d"}}`},
		{"rules see what a field adds", "enrich: {networks: {field: src, table: {192.0.2.0/24: {src_site: lab}}}}\nrules: [{drop: {where: src_site=lab}}]", `{"src":"192.0.2.1"}`, "dropped: rule_1"},
		{"only keeps what a field adds", "enrich: {networks: {field: src, table: {192.0.2.0/24: {src_site: lab}}}}\nrules: [{only: {key: a}}]", `{"src":"192.0.2.1","a":1}`, `,"attrs":{"a":1,"src_site":"lab"}}`},
		{"no network", "enrich: {networks: {table: {11.0.0.0/8: {site: wide}, '::/0': {site: six}}}}", `{"a":1}`, `,"attrs":{"a":1}}`},
		{"a fingerprint", "enrich: {fingerprint: true}", `{"msg":"user 5 not found"}`, `,"msg":"user 5 not found","attrs":{"fingerprint":"1-e40b215b9e2559a9"}}`},
		{"a fingerprint beside others", "enrich: {fingerprint: true}", `{"msg":"user 77 not found","a":1}`, `,"msg":"user 77 not found","attrs":{"a":1,"fingerprint":"1-e40b215b9e2559a9"}}`},
		{"a fingerprint that is there", "enrich: {fingerprint: true}", `{"msg":"x","\u0066ingerprint":["a"]}`, `,"msg":"x","attrs":{"\u0066ingerprint":["a"]}}`},
		{"nothing to take a fingerprint of", "enrich: {fingerprint: true}", `{"a":1}`, `,"attrs":{"a":1}}`},

		{"drop", "rules: [{name: noise, drop: {where: 'path=/healthz'}}]", `{"path":"/healthz"}`, "dropped: noise"},
		{"drop others only", "rules: [{drop: {where: 'path=/healthz'}}]", `{"path":"/x"}`, `,"attrs":{"path":"/x"}}`},
		{"drop by an expression", "rules: [{drop: {key: http.path, match: '^/health'}}]", `{"http":{"path":"/health\u007a"}}`, "dropped: rule_1"},
		{"drop by an expression in no such key", "rules: [{drop: {key: http.path, match: '^/health'}}]", `{"http":{"url":"/healthz"}}`, `,"attrs":{"http":{"url":"/healthz"}}}`},
		{"drop by an expression in the message", "rules: [{drop: {key: message, match: 'probe$'}}]", `{"log":"a probe"}`, "dropped: rule_1"},
		{"drop by an expression in a name", "rules: [{drop: {match: 'ab+c'}}]", `{"abc":"cab"}`, "dropped: rule_1"},
		{"keep by an expression in a name", "rules: [{keep: {match: 'ab+c'}}]", `{"abc":"cab","n":1}`, `,"attrs":{"abc":"cab","n":1}}`},
		{"remove by an expression in a name below", "rules: [{remove: {key: x, match: 'ab+c'}}]", `{"x":{"abc":"cab"},"y":1}`, `,"attrs":{"y":1}}`},
		{"drop by both", "rules: [{drop: {where: 'level<warn', key: msg, match: x}}]", `{"msg":"x","level":"warn"}`, `{"time":"2026-05-28T12:40:00.000000000Z","level":"WARN","msg":"x"}`},
		{"keep", "rules: [{keep: {where: 'service=a or level>=warn'}}]", `{"service":"a"}`, `,"service":"a"}`},
		{"keep none other", "rules: [{keep: {where: 'service=a or level>=warn'}}]", `{"service":"b"}`, "dropped: rule_1"},
		{"rules see what is added", "enrich: {networks: {table: {10.0.0.0/8: {site: lab}}}}\nrules: [{drop: {where: site=lab}}]", `{}`, "dropped: rule_1"},
		{"drop by a fingerprint", "enrich: {fingerprint: true}\nrules: [{redact: {key: password}}, {drop: {where: fingerprint=1-e40b215b9e2559a9}}]", `{"msg":"user 5 not found"}`, "dropped: rule_2"},

		{"remove", "rules: [{remove: {key: b}}]", `{"a":1,"b":[{"x":2}],"c":3}`, `,"attrs":{"a":1,"c":3}}`},
		{"remove the first", "rules: [{remove: {key: a}}]", `{"a":1,"b":2}`, `,"attrs":{"b":2}}`},
		{"remove the last", "rules: [{remove: {key: b}}]", `{"a":1,"b":2}`, `,"attrs":{"a":1}}`},
		{"remove the last two", "rules: [{remove: {key: [b, c]}}]", `{"a":1,"b":2,"c":3}`, `,"attrs":{"a":1}}`},
		{"remove every second", "rules: [{remove: {key: [a, c, e]}}]", `{"a":1,"b":2,"c":3,"d":4,"e":5}`, `,"attrs":{"b":2,"d":4}}`},
		{"remove all", "rules: [{remove: {key: [a, b]}}]", `{"a":1,"b":2}`, `}`},
		{"remove attrs", "rules: [{remove: {key: attrs}}]", `{"msg":"x","a":1,"b":2}`, `,"msg":"x"}`},
		{"remove inside", "rules: [{remove: {key: 'a.*.c'}}]", `{"a":{"b":{"c":1,"d":2}},"l":[1]}`, `,"attrs":{"a":{"b":{"d":2}},"l":[1]}}`},
		{"remove in arrays", "rules: [{remove: {key: users.mail}}]", `{"users":[{"mail":"x"},{"mail":"y","id":1},[{"mail":3}]]}`, `,"attrs":{"users":[{},{"id":1},[{}]]}}`},
		{"remove slots", "rules: [{remove: {key: [service, traceId, error.stack]}}]", `{"service":"s","trace_id":"t","error":{"stack":1,"kind":2},"service":"again"}`, `{"time":"2026-05-28T12:40:00.000000000Z","level":"ERROR"` + `,"error":{"kind":2}}`},
		{"remove what matches", "rules: [{remove: {key: '**', match: 'secret'}}]", `{"a":"a secret","b":{"c":["x",{"d":"secret"}]},"e":"no"}`, `,"attrs":{"e":"no"}}`},
		{"only", "enrich: {host: true}\nrules: [{only: {key: [http.status, 'user*']}}]", `{"msg":"x","http":{"status":1,"path":2},"user_id":3,"users":{"a":1},"z":[1]}`, `,"msg":"x","attrs":{"received_by":"collector-1","user_id":3,"users":{"a":1},"http":{"status":1}}}`},
		{"only, through a list", "rules: [{only: {key: user.id}}]", `{"user":["s",{"id":1,"name":"n"},2,[3,{"id":4},5],6,7]}`, `,"attrs":{"user":[{"id":1},[{"id":4}]]}}`},
		{"only, and nothing stays", "rules: [{only: {key: no}}]", `{"a":1,"b":{"c":2}}`, `}`},

		{"rename", "rules: [{rename: {from: a, to: b}}]", `{"x":0,"a":{"c":1},"y":2}`, `,"attrs":{"x":0,"b":{"c":1},"y":2}}`},
		{"rename to what is there", "rules: [{rename: {from: a, to: b}}]", `{"a":1,"b":2,"b_2":3}`, `,"attrs":{"b_3":1,"b":2,"b_2":3}}`},
		{"rename from inside", "rules: [{rename: {from: a.b, to: c.d}}]", `{"a":{"x":1,"b":"v"}}`, `,"attrs":{"a":{"x":1},"c.d":"v"}}`},
		{"rename finds nothing in lists", "rules: [{rename: {from: a.b, to: c}}]", `{"a":[{"b":"v"}]}`, `,"attrs":{"a":[{"b":"v"}]}}`},
		{"rename to a slot", "rules: [{rename: {from: app_name, to: service}}]", `{"msg":"x","logger":"l","app_name":"shop"}`, `,"msg":"x","service":"shop","logger":"l"}`},
		{"rename to a slot that is taken", "rules: [{rename: {from: name, to: service}}]", `{"service":"s","name":"shop"}`, `,"service":"s","attrs":{"name":"shop"}}`},
		{"rename to a slot that cannot hold it", "rules: [{rename: {from: name, to: service}}]", `{"name":5}`, `,"attrs":{"name":5}}`},
		{"rename a number to the message", "rules: [{rename: {from: text, to: msg}}]", `{"text":5}`, `,"msg":"5"}`},
		{"rename a slot", "rules: [{rename: {from: service, to: attrs.service}}]", `{"service":"s","a":1}`, `,"attrs":{"a":1,"service":"s"}}`},
		{"rename the only thing", "rules: [{rename: {from: error.kind, to: kind}}]", `{"error":{"kind":"k"}}`, `{"time":"2026-05-28T12:40:00.000000000Z","level":"ERROR"` + `,"error":{},"attrs":{"kind":"k"}}`},
		{"rename where", "rules: [{rename: {from: a, to: b, where: service=x}}]", `{"a":1}`, `,"attrs":{"a":1}}`},

		{"redact", "rules: [{redact: {key: user.email}}]", `{"user":{"email":"a@b.c","id":1}}`, `,"attrs":{"user":{"email":"[REDACTED]","id":1}}}`},
		{"redact any value", "rules: [{redact: {key: '**.password', with: '***'}}]", `{"password":1,"a":{"PassWord":{"x":1}},"b":[{"pass\u0077ord":null}]}`, `,"attrs":{"password":"***","a":{"PassWord":"***"},"b":[{"pass\u0077ord":"***"}]}}`},
		{"redact what came twice", "rules: [{redact: {key: card}}]", `{"card":"1","card":"2","metadata":{"card":"3"},"card_x":4}`, `,"attrs":{"card":"[REDACTED]","card_2":"[REDACTED]","card_3":"[REDACTED]","card_x":4}}`},
		{"redact by the name it came with", "rules: [{redact: {key: [metadata.card, message]}}]", `{"message":"m","metadata":{"card":"3"}}`, `,"msg":"[REDACTED]","attrs":{"card":"[REDACTED]"}}`},
		{"redact in texts", `rules: [{redact: {match: '\b\d{4}(?:[ -]?\d{4}){3}\b', with: '[card]'}}]`,
			`{"msg":"paid by 4111 1111 1111 1111, 4111-1111-1111-1111.","n":4111111111111111,"f":1.5,"o":{"4111111111111111":["\u0034111111111111111"]}}`,
			`,"msg":"paid by [card], [card].","attrs":{"n":"[card]","f":1.5,"o":{"[card]":["[card]"]}}}`},
		{"redact names of attributes", `rules: [{redact: {match: '\d{4}', with: x}}]`, `{"1111":1,"2222":2,"x":3,"x_2":4}`, `,"attrs":{"x_3":1,"x_4":2,"x":3,"x_2":4}}`},
		{"redact in one key", "rules: [{redact: {key: msg, match: '[^ ]+@[^ ]+', with: '<mail>'}}]", `{"msg":"from a@b.c to d@e.f","mail":"a@b.c"}`, `,"msg":"from <mail> to <mail>","attrs":{"mail":"a@b.c"}}`},
		{"redact what is written in escapes", "rules: [{redact: {match: 'sec\\w+'}}]", `{"msg":"a \u0073\u0065cret \"here\"\n"}`, `,"msg":"a [REDACTED] \"here\"\n"}`},
		{"what is not redacted keeps its escapes", "rules: [{redact: {match: 'sec\\w+'}}]", `{"msg":"\u0061\/","n":1.50e0}`, `,"msg":"\u0061\/","attrs":{"n":1.50e0}}`},
		{"redact with a context", "rules: [{redact: {match: '\\bfoo'}}]", `{"msg":"foofoo foo"}`, `,"msg":"[REDACTED]foo [REDACTED]"}`},
		{"redact words", "rules: [{redact: {match: '\\b\\w+\\b', with: w}}]", `{"msg":"é a-b, c"}`, `,"msg":"é w-w, w"}`},
		{"redact what is added too", "enrich: {client: true}\nrules: [{redact: {key: client_ip, match: '\\.\\d+$', with: '.0'}}]", `{}`, `,"attrs":{"client_ip":"10.1.2.0"}}`},
		{"redact the error", "rules: [{redact: {key: error, match: 'token=\\w+', with: 'token=…'}}]", `{"error":{"msg":"get /?token=abc: no","n":[{"x":"token=1"}]}}`, `{"time":"2026-05-28T12:40:00.000000000Z","level":"ERROR"` + `,"error":{"message":"get /?token=…: no","n":[{"x":"token=…"}]}}`},
		{"not a key", "rules: [{redact: {key: '.a'}}]", "", "error"},
		{"an empty name", "rules: [{redact: {key: b}}, {rename: {from: c, to: d}}]", `{"":{"b":1,"c":2},"_2":{"b":2},"b":3}`, `,"attrs":{"":{"b":1,"c":2},"_2":{"b":2},"b":"[REDACTED]"}}`},
		{"rename to what has a default", "enrich: {defaults: {service: s, team: t}}\nrules: [{rename: {from: app_name, to: service}}, {rename: {from: crew, to: team}}]", `{"msg":"m","app_name":"a","crew":1}`, `,"msg":"m","service":"a","attrs":{"team":1}}`},
		{"no rename to what has a default", "enrich: {defaults: {service: s, team: t}}\nrules: [{rename: {from: app_name, to: service}}, {rename: {from: crew, to: team}}]", `{"logger":"l"}`, `,"service":"s","logger":"l","attrs":{"team":"t"}}`},
		{"all in a row", "enrich: {fields: {env: prod}, fingerprint: true}\nrules: [{rename: {from: u, to: user}}, {redact: {key: user}}, {remove: {key: env}}]", `{"msg":"m","u":"me"}`, `,"msg":"m","attrs":{"user":"[REDACTED]","fingerprint":"1-d8b424186b8d4182"}}`},
	} {
		t.Run(tc.name, func(t *testing.T) {
			p, err := compile(tc.config)
			if tc.want == "error" {
				if err == nil {
					t.Error("it is taken")
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			want := tc.want + "\n"
			if strings.HasPrefix(want, ",") || strings.HasPrefix(want, "}") {
				want = head + want
			}
			if got := enriched(t, p, tc.event); got != want {
				t.Errorf("%s\ngot  %swant %s", tc.event, got, want)
			}
		})
	}
}

func TestNetworkFile(t *testing.T) {
	dir := t.TempDir()
	file := func(text string) string {
		path := filepath.Join(dir, "networks.csv")
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return "enrich: {networks: {file: " + path + ", table: {192.0.2.0/24: {site: here}}}}"
	}
	p := mustCompile(t, file("\ufeffnetwork, site,zone\r\n# ours\n10.0.0.0/8,\"a, b\",\n10.1.2.0/24,,dmz\n2001:db8::/32,six,\n"))
	for addr, want := range map[string]string{
		"10.9.9.9":          `,"attrs":{"site":"a, b"}}`,
		"10.1.2.9":          `,"attrs":{"zone":"dmz"}}`,
		"::ffff:10.1.2.9":   `,"attrs":{"zone":"dmz"}}`,
		"2001:db8:1::1%eth": `,"attrs":{"site":"six"}}`,
		"192.0.2.255":       `,"attrs":{"site":"here"}}`,
		"192.0.3.0":         `}`,
	} {
		n, b := normalize.New(normalize.Limits{NoFingerprint: true}), new(normalize.Batch)
		n.SetEnricher(p, netip.MustParseAddr(addr))
		n.Body(b, []byte("{}"), received)
		if got := string(b.Lines); got != head+want+"\n" {
			t.Errorf("%s: %s", addr, got)
		}
	}
	n, b := normalize.New(normalize.Limits{NoFingerprint: true}), new(normalize.Batch)
	n.SetEnricher(p, netip.Addr{})
	n.Body(b, []byte("{}"), received)
	if string(b.Lines) != head+"}\n" {
		t.Errorf("of nobody: %s", b.Lines)
	}
	for text, want := range map[string]string{
		"":                                  "must begin with a line of names",
		"ip,site\n":                         "the first of them network",
		"network\n":                         "must begin with a line of names",
		"network,a,a\n":                     "a is there twice",
		"network,level\n":                   "level is a key of every line",
		"network,tenant\n":                  "the attribute tenant is what tokens and addresses say already",
		"network,a\n10.0.0.1/8,x\n":         "networks.csv:2: 10.0.0.1/8 has bits beyond its length: the network is 10.0.0.0/8",
		"network,a\n10/8,x\n":               `networks.csv:2: "10/8" is no network`,
		"network,a\n10.0.0.0/8\n":           "wrong number of fields",
		"network,a\n1.1.1.1,x\n1.1.1.1,y\n": "networks.csv:3: 1.1.1.1/32 is there already",
		"network,a\n192.0.2.0/24,x\n":       "192.0.2.0/24 is there already",
	} {
		if _, err := compile(file(text)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %q", text, err, want)
		}
	}
	if _, err := compile("enrich: {networks: {file: " + dir + "/none.csv}}"); err == nil || !strings.Contains(err.Error(), "f.yaml:1:27: enrich.networks.file: open") {
		t.Errorf("no file: %v", err)
	}
}

// No rule changes or makes the attribute tenant, where there are tokens.
func TestTenantIsLeftAlone(t *testing.T) {
	for _, rules := range []string{
		"remove: {key: tenant}", "remove: {key: '**'}", "remove: {key: attrs}", "remove: {key: x}", "remove: {key: '*', match: a}", "only: {key: x}",
		"rename: {from: tenant, to: y}", "rename: {from: attrs.tenant, to: msg}", "rename: {from: '*', to: y}",
		"redact: {key: '**', with: b}", "redact: {key: tenant}", "redact: {match: 'a', with: ''}", "redact: {match: 'ZZ', with: ''}", "redact: {match: 'ZZ|_2', with: ''}",
	} {
		c, err := config.Parse("f.yaml", []byte("rules: [{"+rules+"}]"))
		if err != nil {
			t.Fatal(err)
		}
		p, err := Compile(c.Enrich, c.Rules, c.Normalize.Parse, Environment{Tenants: true})
		if err != nil {
			t.Fatal(err)
		}
		for want, extras := range map[string]*normalize.Extras{"a": new(normalize.Extras), "": new(normalize.Extras)} {
			if want == "" {
				extras.Reserve([]byte(normalize.Tenant))
			} else {
				extras.Add(normalize.Tenant, want)
			}
			n, b := normalize.New(normalize.Limits{NoFingerprint: true}), new(normalize.Batch)
			n.SetExtras(extras)
			n.SetEnricher(p, peer)
			n.Body(b, []byte(`{"tenant":"b","x":"a","tenZZant":"b","a":{"tenant":"b"},"\u0074enant":"b","tenant_2":"b"}`), received)
			var l struct{ Attrs json.RawMessage }
			if err := json.Unmarshal(b.Lines, &l); err != nil || b.Records != 1 {
				t.Fatalf("%s: %v in %s", rules, err, b.Lines)
			}
			var found []string
			for m := jsonwalk.Members(l.Attrs, 0); len(l.Attrs) > 0 && m.Next(); {
				if m.Is(normalize.Tenant) {
					found = append(found, string(m.RawValue()))
				}
			}
			if got := strings.Join(found, " and "); got != strings.TrimSuffix(fmt.Sprintf("%q", want), `""`) {
				t.Errorf("%s: tenant is %s, want %q: %s", rules, got, want, b.Lines)
			}
		}
	}
}
