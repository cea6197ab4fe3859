package query

import (
	"encoding/json"
	"fmt"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rollway/rollway/collector/journal"
	"github.com/rollway/rollway/internal/disktest"
)

// explained sends a request to /api/explain.
func explained(t *testing.T, base string, pairs ...string) explanation {
	t.Helper()
	code, body := figuresOf(t, base, "/api/explain", pairs...)
	var x explanation
	if err := json.Unmarshal([]byte(body), &x); err != nil || code != 200 {
		t.Fatalf("%v: %d, %v, %s", pairs, code, err, body)
	}
	return x
}

// What a query leaves out and reads adds up to what there is.
func TestExplain(t *testing.T) {
	s := openStore(t, journal.Options{Disk: disktest.NewMem(), SegmentBytes: 100_000, Pack: true})
	const n = 6000
	for i := range n {
		s.add(t, strings.Replace(testLine(i, "INFO", "shop"), `"attrs":{`, fmt.Sprintf(`"service":"s%d","attrs":{"user":"u-%d",`, i/3000, i), 1))
	}
	waitFor(t, "packing", func() bool { return s.Stats().PackedSegments >= uint64(s.Stats().Segments-1) })
	_, base := serve(t, s, Options{})
	all := explained(t, base)
	total, segments := all.Blocks["read"], all.Segments["all"]
	if segments != s.Stats().Segments || all.Segments["in_range"] != segments || total < int64(segments) || all.Blocks["by_time"]+all.Blocks["by_filter"]+all.Blocks["by_tenant"] != 0 || all.Rows != n || all.Matched != n || !all.Complete || all.Reads != "whole lines" {
		t.Errorf("everything: %+v", all)
	}
	x := explained(t, base, "q", "service=s1 or not user=*")
	if x.Blocks["by_filter"] == 0 || x.Blocks["by_filter"]+x.Blocks["read"] != total || x.Rows != n/2 {
		t.Errorf("of a filter: %+v", x)
	}
	x = explained(t, base, "since", "2026-05-28T01:00:00Z", "q", "| stats count() by service")
	if in := x.Segments["in_range"]; in == 0 || in >= segments || x.Rows != 1 || x.Matched != n-3600 || fmt.Sprint(x.Reads) != "[service]" || fmt.Sprint(x.Pipes) != "[stats]" || x.From != "2026-05-28T01:00:00.000000000Z" || x.Until != "" {
		t.Errorf("of a time: %+v", x)
	}
	if got := x.Blocks["by_time"] + x.Blocks["read"]; got > total || x.Blocks["read"] == 0 {
		t.Errorf("of a time %d blocks of %d: %+v", got, total, x)
	}
	x = explained(t, base, "q", `(level>=warn "a b") or -service=x time<2026-01-01 | limit 3 | sort n`)
	const tree = `{"or":[{"and":["level>=WARN","\"a b\""]},{"and":[{"not":"service=x"},"time<2026-01-01T00:00:00Z"]}]}`
	if got, _ := json.Marshal(x.Tree); strings.ReplaceAll(string(got), `\u003e`, ">") != strings.ReplaceAll(tree, "<", `\u003c`) || fmt.Sprint(x.Pipes) != "[limit sort]" || !strings.HasPrefix(x.Query, `level>=WARN "a b" or service!=x time<`) {
		t.Errorf("%s\nof %s: %+v", got, x.Query, x)
	}
	for _, step := range []string{"parse", "wait", "read", "unpack", "match", "pipes", "all"} {
		if took, ok := x.Seconds[step]; !ok || took < 0 || took > x.Seconds["all"]*16 {
			t.Errorf("%s takes %v of %v", step, took, x.Seconds["all"])
		}
	}
	for _, c := range []struct{ want, name, value string }{
		{"parameter for: found `61s`", "for", "61s"}, {"parameter for: found `x`", "for", "x"}, {"parameter last", "last", "0"}, {"query column 1", "q", ")"},
	} {
		if code, body := figuresOf(t, base, "/api/explain", c.name, c.value); code != 400 || !strings.Contains(body, c.want) {
			t.Errorf("%s: %d %s", c.value, code, body)
		}
	}
}

// The search ends after the time given, and a tenant is told nothing of others.
func TestExplainInParts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStore(t)
		for i := range 300 {
			s.add(t, lineOf([]string{"mine", "other"}[i%2], i))
		}
		s.before = func(uint64) error { time.Sleep(100 * time.Millisecond); return nil }
		a, err := over(s, Options{})
		if err != nil {
			t.Fatal(err)
		}
		defer a.Close()
		for _, target := range []string{"/api/explain?for=3s", "/api/explain?for=3s&last=200", "/api/explain?for=3s&q=|stats+count()"} {
			w, r, begin := httptest.NewRecorder(), httptest.NewRequest("GET", target, nil), time.Now()
			a.Handlers()["/api/explain"](w, Only(r, "mine"))
			if took := time.Since(begin); w.Code != 200 || took < 3*time.Second || took > 4*time.Second {
				t.Errorf("%s: %d after %v", target, w.Code, took)
			}
			if body := w.Body.String(); !strings.Contains(body, `"complete":false`) || strings.Contains(body, "scanned") || strings.Contains(body, "blocks") || strings.Contains(body, "segments") {
				t.Errorf("%s: %s", target, body)
			}
		}
		if n := a.memory.Used(); n != 0 {
			t.Errorf("%d bytes are not given back", n)
		}
	})
}
