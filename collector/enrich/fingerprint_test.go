package enrich

import (
	"strings"
	"testing"

	"github.com/rollway/rollway/collector/fingerprint"
)

// fingerprintIn returns the fingerprint in a line.
func fingerprintIn(t *testing.T, line string) string {
	t.Helper()
	_, rest, found := strings.Cut(line, `"fingerprint":"`)
	if !found || len(rest) < fingerprint.Size {
		t.Fatalf("%s has no fingerprint", line)
	}
	return rest[:fingerprint.Size]
}

// TestVectors are those of docs/ENRICH.md.
func TestVectors(t *testing.T) {
	p := mustCompile(t, "enrich: {fingerprint: true}")
	for event, want := range map[string]string{
		`{"msg":"user 5 not found"}`:                                        "1-e40b215b9e2559a9",
		`{"msg":"took 12.5ms, 3 retries"}`:                                  "1-a0dacc4ce342ed9e",
		`{"msg":"GET /v2/54fadb412c4e40cdbaed9335e4c35a9e/servers/detail"}`: "1-032ab58af575c3f1",
		`{"msg":"session 38101a0b-2096-447d-96ea-a692162415ae closed"}`:     "1-5379e9f4efbd8884",
		`{"msg":"m","error":"java.io.IOException: a"}`:                      "1-2c5df9553bda9bc3",
	} {
		if got := fingerprintIn(t, enriched(t, p, event)); got != want {
			t.Errorf("%s: %s, want %s", event, got, want)
		}
	}
}

// Events whose fingerprints are the same, and others.
func TestGroups(t *testing.T) {
	p := mustCompile(t, "enrich: {fingerprint: true}")
	seen := map[string]int{}
	for i, group := range [][]string{
		{`{"msg":"user 5"}`, `{"message":"user 77","a":1}`, `{"level":"error","msg":"us\u0065r 1\nat x"}`},
		{`{"msg":"user 5","error":{"type":"E1","msg":"x"}}`, `{"msg":"user 6","error":{"msg":"y","\u0074ype":"E1"}}`},
		{`{"msg":"user","error":{"type":"E1"}}`},
		{`{"msg":"m","error":"java.io.IOException: a"}`, `{"msg":"m","error":{"kind":"java.io.IOException"}}`, `{"msg":"m","exception.type":"java.io.IOException"}`, `{"msg":"m","exception":{"type":"java.io.IOException","stack":[]}}`},
		{`{"msg":"m"}`, `{"msg":"m","error":"no such host"}`, `{"msg":"m","error":"dial tcp: no"}`, `{"msg":"m","error":{"code":5}}`, `{"msg":"m","error":null}`},
		{`{"error":{"name":"E"}}`},
	} {
		for _, event := range group {
			got := fingerprintIn(t, enriched(t, p, event))
			if other, has := seen[got]; has && other != i {
				t.Errorf("%s is in group %d, not %d", event, other, i)
			} else if event != group[0] && !has {
				t.Errorf("%s is in no group", event)
			}
			seen[got] = i
		}
	}
}
