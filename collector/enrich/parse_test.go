package enrich

import (
	"strings"
	"testing"

	"github.com/rollway/rollway/collector/config"
	"github.com/rollway/rollway/collector/normalize"
)

func withParse(t testing.TB, parse string) (*Program, error) {
	t.Helper()
	c, err := config.Parse("p.yaml", []byte("normalize:\n  parse:\n"+parse))
	if err != nil {
		t.Fatal(err)
	}
	return Compile(c.Enrich, c.Rules, c.Normalize.Parse, Environment{})
}

func TestParse(t *testing.T) {
	p, err := withParse(t, `  - {where: 'service=nginx', as: access}
  - {where: 'service=logfmt', as: logfmt}
  - {where: 'service=json', as: json}
  - {where: 'service=pattern', as: '<level> <method> <path> took <ms:number> ms for <trace_id>'}
  - {where: 'service=text', as: '<_>: <msg>'}
  - {as: '~^code (?P<code>\d+)(?P<rest> .*)?'}
`)
	if err != nil {
		t.Fatal(err)
	}
	const at, now = `{"time":"2026-05-28T12:40:00.000000000Z",`, `{"time":"2026-05-28T12:40:00.000000000Z","level":"INFO",`
	for _, c := range []struct{ in, want string }{
		{`{"time":"2026-05-28T12:41:00Z","level":"info","service":"nginx","msg":"192.0.2.1 - - [28/May/2026:14:40:00 +0200] \"GET /pay HTTP/1.1\" 502 12"}`,
			at + `"level":"ERROR","msg":"192.0.2.1 - - [28/May/2026:14:40:00 +0200] \"GET /pay HTTP/1.1\" 502 12","service":"nginx","attrs":{"remote":"192.0.2.1","method":"GET","path":"/pay","status":502,"bytes":12,"time":"2026-05-28T12:41:00.000000000Z","level":"INFO"}}`},
		{`{"service":"logfmt","msg":"a=1 b=\"c d\""}`, now + `"service":"logfmt","attrs":{"a":1,"b":"c d"}}`},
		{`{"service":"logfmt","msg":"it failed: a=1 b=2"}`, now + `"msg":"it failed: a=1 b=2","service":"logfmt","attrs":{"a":1,"b":2}}`},
		{`{"service":"json","msg":"it failed {\"a\":{\"b\":1}}"}`, now + `"msg":"it failed {\"a\":{\"b\":1}}","service":"json","attrs":{"a":{"b":1}}}`},
		{`{"service":"pattern","msg":"error GET /a took 1.5 ms for abc","ms":2}`,
			at + `"level":"ERROR","msg":"error GET /a took 1.5 ms for abc","service":"pattern","trace_id":"abc","attrs":{"ms":2,"method":"GET","path":"/a","ms_2":1.5}}`},
		{`{"service":"pattern","msg":"error GET /a took"}`, now + `"msg":"error GET /a took","service":"pattern"}`},
		{`{"service":"pattern","msg":"error GET /a took "}`, now + `"msg":"error GET /a took ","service":"pattern"}`},
		{`{"service":"text","msg":"x: \"y\""}`, now + `"msg":"\"y\"","service":"text","attrs":{"msg":"x: \"y\""}}`},
		{`{"msg":"code 7"}`, now + `"msg":"code 7","attrs":{"code":"7"}}`},
		{`{"log":"{\"msg\":\"code 7 x\",\"level\":\"warn\"}"}`, at + `"level":"WARN","msg":"code 7 x","attrs":{"code":"7","rest":" x"}}`},
		{`{"msg":"other"}`, now + `"msg":"other"}`},
		{`{"a":1}`, now + `"attrs":{"a":1}}`},
	} {
		for name, road := range roads {
			n, b := normalize.New(normalize.Limits{}), new(normalize.Batch)
			n.SetEnricher(p, peer)
			road(n, b, []byte(c.in))
			if got := strings.TrimSuffix(string(b.Lines), "\n"); got != c.want {
				t.Errorf("%s by %s:\n got %s\nwant %s", c.in, name, got, c.want)
			}
		}
	}
}

func TestParseErrors(t *testing.T) {
	for in, want := range map[string]string{
		"    x":                        "p.yaml:3:5: normalize.parse: a list is wanted",
		"  - {where: 'a=1'}":           "as is wanted: json, logfmt, access, a pattern",
		"  - {where: 'a=(', as: json}": "p.yaml:3:13: normalize.parse.where:",
		"  - {as: jsn}":                `p.yaml:3:10: normalize.parse.as: "jsn" is not json, logfmt or access, and as a pattern it has no placeholder`,
		"  - {as: '~('}":               "a regular expression that is not valid",
		"  - {as: '~a'}":               "no group with a name",
		"  - {as: '<a> <a>'}":          "is there twice",
		"  - {as: 7}":                  "a text is wanted",
		"  - {as: json, form: x}":      "unknown key normalize.parse.form",
		"  - {as: json, where: ''}":    "an expression is wanted",
		"  - {as: '<a:text>'}":         "expected <a> or <a:number>",
	} {
		if _, err := withParse(t, in+"\n"); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, expected %s", in, err, want)
		}
	}
}
