package enrich

import (
	"fmt"
	"hash/fnv"
	"strings"
	"testing"
	"unicode/utf8"
)

// templates are the vectors of docs/ENRICH.md, and more.
var templates = [][2]string{
	{"user 5 not found", "user <*> not found"},
	{"user 12345 not found", "user <*> not found"},
	{"took 12.5ms, 3 retries", "took <*>ms, <*> retries"},
	{"GET /v2/54fadb412c4e40cdbaed9335e4c35a9e/servers/detail", "GET /v<*>/servers/detail"},
	{"session 38101a0b-2096-447d-96ea-a692162415ae closed", "session <*> closed"},
	{`cannot open "a.txt"`, `cannot open "<*>"`},
	{`can't open 'b'`, `can't open '<*>'`},
	{`"GET /x HTTP/1.1" 200`, `"GET /x HTTP/<*>" <*>`},
	{"at 2026-05-28T12:40:00.123Z from 10.0.0.1:80", "at <*>Z from <*>"},
	{"Jun 14 15:16:01 combo", "<*> combo"},
	{"blk_-1608999687919862906 and blk_38865", "blk_<*> and blk_<*>"},
	{"0xDEADBEEF deadbee5 deadbeef", "<*> deadbeef"},
	{"x=-1 y=+2 z-3", "x=<*> y=<*> z-<*>"},
	{"list 1, 2, 3 and 4", "list <*> and <*>"},
	{"  first \t line \r\nat second", "first line"},
	{"instance-a81k3jd9 node12", "instance-<*> node<*>"},
	{"é5 日本 6", "é<*> 日本 <*>"},
	{"", ""},
	{" \n", ""},
	{"12", "<*>"},
	{"-", "-"},
}

func TestTemplates(t *testing.T) {
	for _, v := range templates {
		if got := string(appendTemplate(nil, []byte(v[0]))); got != v[1] {
			t.Errorf("%q: %q, want %q", v[0], got, v[1])
		}
		if got := string(appendTemplate([]byte("<*> "), []byte(v[0]))); got != "<*> "+v[1] {
			t.Errorf("behind something %q: %q", v[0], got)
		}
	}
}

func TestSumIsFNV(t *testing.T) {
	for _, v := range [][2]string{{"user <*> not found", ""}, {"", "E"}, {"a", "java.io.IOException"}} {
		h := fnv.New64a()
		h.Write([]byte(v[0]))
		if v[1] != "" {
			h.Write([]byte("\x00" + v[1]))
		}
		if got, want := string(appendHex(nil, sum([]byte(v[0]), []byte(v[1])))), fmt.Sprintf("%016x", h.Sum64()); got != want {
			t.Errorf("%q: %s, want %s", v, got, want)
		}
	}
}

// TestVectors are those of docs/ENRICH.md.
func TestVectors(t *testing.T) {
	p := mustCompile(t, "enrich: {fingerprint: true}")
	for event, want := range map[string]string{
		`{"msg":"user 5 not found"}`:                                        "f68d9fec1689bf47",
		`{"msg":"took 12.5ms, 3 retries"}`:                                  "633a5e179ad4fb64",
		`{"msg":"GET /v2/54fadb412c4e40cdbaed9335e4c35a9e/servers/detail"}`: "74409514afee8d01",
		`{"msg":"session 38101a0b-2096-447d-96ea-a692162415ae closed"}`:     "1553768e1f367855",
		`{"msg":"m","error":"java.io.IOException: a"}`:                      "b636a343cbf7fbd1",
	} {
		if line := enriched(t, p, event); !strings.Contains(line, `"fingerprint":"`+want+`"`) {
			t.Errorf("%s: %s, want %s", event, line, want)
		}
	}
}

// Events whose fingerprints are the same, and others.
func TestGroups(t *testing.T) {
	p := mustCompile(t, "enrich: {fingerprint: true}")
	seen := map[string]int{}
	for i, group := range [][]string{
		{`{"msg":"user 5"}`, `{"message":"user 77","a":1}`, `{"level":"error","msg":"us\u0065r 1\nat x"}`},
		{`{"msg":"user 5","error":{"type":"E1","msg":"x"}}`, `{"msg":"user 6","error":{"msg":"y","\u0074ype":"E1"}}`, `{"msg":"user","error":{"type":"E1"}}`},
		{`{"msg":"m","error":"java.io.IOException: a"}`, `{"msg":"m","error":{"kind":"java.io.IOException"}}`, `{"msg":"m","exception.type":"java.io.IOException"}`, `{"msg":"m","exception":{"type":"java.io.IOException","stack":[]}}`},
		{`{"msg":"m"}`, `{"msg":"m","error":"no such host"}`, `{"msg":"m","error":"dial tcp: no"}`, `{"msg":"m","error":{"code":5}}`, `{"msg":"m","error":null}`},
		{`{"error":{"name":"E"}}`},
	} {
		for _, event := range group {
			line := enriched(t, p, event)
			_, rest, found := strings.Cut(line, `"fingerprint":"`)
			if !found {
				t.Fatalf("%s has none", line)
			}
			if other, has := seen[rest[:16]]; has && other != i {
				t.Errorf("%s is in group %d, not %d", line, other, i)
			} else if event != group[0] && !has && !strings.HasPrefix(event, `{"msg":"user",`) {
				t.Errorf("%s is in no group", line)
			}
			if !strings.HasPrefix(event, `{"msg":"user",`) {
				seen[rest[:16]] = i
			}
		}
	}
}

func FuzzTemplate(f *testing.F) {
	for _, v := range templates {
		f.Add(v[0])
	}
	f.Fuzz(func(t *testing.T, msg string) {
		if !utf8.ValidString(msg) {
			return
		}
		got := appendTemplate(nil, []byte(msg))
		// Another number instead of each makes no difference.
		other := strings.Map(func(r rune) rune {
			if '1' <= r && r <= '8' {
				return r + 1
			}
			return r
		}, msg)
		if again := appendTemplate(nil, []byte(other)); string(again) != string(got) {
			t.Fatalf("%q: %q, and %q: %q", msg, got, other, again)
		}
	})
}
