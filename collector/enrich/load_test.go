package enrich

import (
	"fmt"
	"strings"
	"testing"

	"github.com/rollway/rollway/collector/config"
)

func TestWhatIsWrongIsTold(t *testing.T) {
	for _, tc := range []struct{ text, want string }{
		{"enrich: 5", "f.yaml:1:9: enrich: keys with values are wanted: fields, defaults, host, client, id, fingerprint, networks"},
		{"enrich: {feilds: {}}", "f.yaml:1:10: unknown key enrich.feilds; did you mean fields?"},
		{"enrich: {x: 1}", "f.yaml:1:10: unknown key enrich.x; there are fields, "},
		{"enrich: {host: yes}", "f.yaml:1:16: enrich.host: true or false is wanted"},
		{"enrich: {host: true, host: true}", "f.yaml:1:22: enrich.host: given twice; the first is in line 1"},
		{"enrich: {id: uuid}", "f.yaml:1:14: enrich.id: ulid is wanted"},
		{"enrich: {fields: [a]}", "f.yaml:1:18: enrich.fields: names with values are wanted, as in {env: prod}"},
		{"enrich: {fields: {a: [1]}}", "f.yaml:1:22: enrich.fields.a: a text, a number, true or false is wanted"},
		{"enrich: {fields: {a: .nan}}", "enrich.fields.a: .nan is nothing that JSON can hold"},
		{"enrich: {fields: {'': 1}}", "a name has 1 to 256 bytes"},
		{"enrich: {fields: {service: x}}", "f.yaml:1:19: enrich.fields.service: service is a key of every line and no attribute; enrich.defaults has it for events without one"},
		{"enrich: {fields: {lvl: x}}", "lvl is a key of every line and no attribute"},
		{"enrich: {fields: {tenant: x}}", "the attribute tenant is what tokens and addresses say already"},
		{"enrich: {fields: {client_ip: x}, client: true}", "f.yaml:1:34: enrich.client: the attribute client_ip is what enrich.fields adds already"},
		{"enrich: {fields: {a: x}, networks: {table: {1.1.1.1: {a: 2}}}}", "the attribute a is what enrich.fields adds already"},
		{"enrich: {defaults: {msg: x}}", "f.yaml:1:21: enrich.defaults.msg: it is a key of every line"},
		{"enrich: {defaults: {service: 5}}", "texts both"},
		{"enrich: {networks: {table: {x: {a: 1}}}}", `f.yaml:1:29: enrich.networks.table: "x" is no network`},
		{"enrich: {networks: {table: {1.1.1.1: {a: 1}, 1.1.1.1/32: {a: 2}}}}", "1.1.1.1/32 is there already"},
		{"enrich: {networks: {fiel: x}}", "did you mean file?"},
		{"enrich: {networks: {field: '', table: {}}}", "enrich.networks.field: the key of a value, as in net.src_ip, is wanted"},
		{"enrich: {networks: {field: a..***, table: {}}}", "is no key"},
		{"enrich: {networks: [{table: {}}, {table: {}}]}", "one table uses the client's address"},
		{"enrich: {networks: [{table: {1.1.1.1: {a: 1}}}, {field: ip, table: {1.1.1.1: {a: 1}}}]}", "the attribute a is what table 1 of enrich.networks adds already"},
		{"enrich: {networks: [5]}", "keys with values are wanted: file, table, field"},
		{"enrich: {networks: [{field: ip, table: {}}" + strings.Repeat(", {field: ip, table: {}}", 16) + "]}", "17 tables are more than 16"},

		{"rules: {drop: {}}", "f.yaml:1:8: rules: a list of rules is wanted"},
		{"rules: [{}]", "f.yaml:1:9: rules: a rule is one of drop, keep, remove, only, rename, redact"},
		{"rules: [x]", "keys with values are wanted"},
		{"rules: [{dropp: {where: a}}]", "f.yaml:1:10: unknown key rules.dropp; did you mean drop?"},
		{"rules: [{drop: {where: a}, keep: {where: b}}]", "a rule does one thing, and this one is drop already"},
		{"rules: [{name: 'a b', drop: {where: a}}]", "f.yaml:1:16: rules.name: 1 to 64 letters"},
		{"rules: [{name: a, drop: {where: a}}, {name: a, drop: {where: a}}]", "the name a is taken in line 1"},
		{"rules: [{drop: {}}]", "f.yaml:1:16: rules.drop: where or match is wanted: which events"},
		{"rules: [{drop: {key: a}}]", "to take a value out of events use remove, to keep some only use only"},
		{"rules: [{drop: {where: 'a='}}]", "f.yaml:1:24: rules.drop.where: "},
		{"rules: [{drop: {where: ''}}]", "an expression is wanted"},
		{"rules: [{drop: {wher: a}}]", "unknown key rules.drop.wher; did you mean where?"},
		{"rules: [{drop: {match: 5}}]", "f.yaml:1:24: rules.drop.match: a text is wanted, best in single quotes"},
		{"rules: [{redact: {match: 'a('}}]", "f.yaml:1:26: rules.redact.match: missing closing ): \"a(\"; the syntax is that of RE2"},
		{"rules: [{redact: {match: '(?=a)'}}]", "without backreferences and lookaround"},
		{"rules: [{redact: {match: 'a*'}}]", "it matches the empty text"},
		{"rules: [{redact: {match: '\\b'}}]", "it matches the empty text"},
		{"rules: [{redact: {with: x}}]", "f.yaml:1:18: rules.redact: key or match is wanted"},
		{"rules: [{redact: {key: time}}]", "f.yaml:1:24: rules.redact.key: time is in every line and cannot be selected"},
		{"rules: [{redact: {key: []}}]", "at least one key is wanted"},
		{"rules: [{redact: {key: [{}]}}]", "a key is wanted, or a list of them"},
		{"rules: [{redact: {key: a., with: x}}]", `"a." is no key`},
		{"rules: [{remove: {match: a}}]", "rules.remove: key is wanted"},
		{"rules: [{only: {}}]", "rules.only: key is wanted"},
		{"rules: [{rename: {from: a}}]", "from and to are wanted"},
		{"rules: [{rename: {from: a, to: level}}]", "level is read when an event comes in, before rules"},
		{"rules: [{rename: {from: a, to: 'b*'}}]", "a name of 1 to 256 bytes is wanted, without *"},
	} {
		p, err := compile(tc.text)
		if err == nil || p != nil || !strings.Contains(err.Error(), tc.want) {
			t.Errorf("%s\ngot  %v\nwant %s", tc.text, err, tc.want)
		}
	}
	_, err := compile("enrich:\n  id: x\n  host: 1\nrules:\n- drop: {}\n- keep: {where: '('}\n")
	if n := strings.Count(fmt.Sprint(err), "\n") + 1; n != 4 {
		t.Errorf("%d of 4 errors are told: %v", n, err)
	}
	if p, err := compile("enrich: {}\nrules: []"); p != nil || err != nil {
		t.Errorf("of nothing: %v, %v", p, err)
	}
	many := "rules: [" + strings.Repeat("{drop: {where: a}},", maxRules+1) + "]"
	if _, err := compile(many); err == nil || !strings.Contains(err.Error(), "1001 rules are more than 1000") {
		t.Errorf("many rules: %v", err)
	}
}

func ExampleCompile() {
	c, err := config.Parse("rollway.yaml", []byte(`
enrich: {fields: {env: prod}, hots: true}
rules:
- redact: {match: '\d{16'}
`))
	if err != nil {
		fmt.Println(err)
		return
	}
	_, err = Compile(c.Enrich, c.Rules, c.Normalize.Parse, Environment{Host: "collector-1"})
	fmt.Println(err)
	// Output:
	// rollway.yaml:2:31: unknown key enrich.hots; did you mean host?
}
