package query

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/rollway/rollway/collector/columns"
	"github.com/rollway/rollway/collector/journal"
	"github.com/rollway/rollway/internal/disktest"
)

// TestPrunedBlocksHaveNoMatch checks on generated lines that a block with a match is not
// left out, and that blocks are.
func TestPrunedBlocksHaveNoMatch(t *testing.T) {
	t.Parallel()
	const seed = 20261127
	r := rand.New(rand.NewPCG(seed, 1))
	enc, err := columns.NewEncoder()
	if err != nil {
		t.Fatal(err)
	}
	matched, left := 0, 0
	block, memory := []byte(nil), new(columns.Block)
	for round := range 400 {
		var lines []byte
		for range 20 {
			line := genLine(r)
			if round%2 == 0 {
				line = nestedLine(r)
			}
			lines = append(append(lines, line...), '\n')
		}
		block = enc.Append(block[:0], lines)
		for range 30 {
			expr := genExpr(r, 0)
			if round%2 == 0 {
				expr = fmt.Sprintf("%s%s%s", oneOf(r, "service", "trace_id", "attrs.a", "a.b", "a.b.c", "c"), oneOf(r, "=", "~", "!="), plainValue(r))
				if r.IntN(3) == 0 {
					expr += oneOf(r, " ", " or ", " -") + oneOf(r, "a.b", "logger") + "=" + plainValue(r) + "*"
				}
			}
			q := mustParse(t, expr)
			need := q.Needs()
			may := need.mayBeIn(memory, block, len(lines))
			for line := range bytes.Lines(lines) {
				if !q.Match(line) {
					continue
				}
				if matched++; !may {
					t.Fatalf("seed %d: %s matches\n%s, whose block is left out by %s", seed, expr, line, showNeed(need))
				}
			}
			if !may {
				left++
			}
		}
	}
	if matched < 1000 || left < 100 {
		t.Errorf("%d matched, %d blocks were left out: the generator proves little", matched, left)
	}
}

func oneOf(r *rand.Rand, from ...string) string { return from[r.IntN(len(from))] }

func plainValue(r *rand.Rand) string { return fmt.Sprintf("x%d", r.IntN(60)) }

// nestedLine is a line in which a value may be inside an object, a list, or a key with a point.
func nestedLine(r *rand.Rand) []byte {
	v := func() string {
		return fmt.Sprintf(oneOf(r, "%q", "%q", "%q", "[%q]", `{"c":%q}`), oneOf(r, "", "x", `\"`)+plainValue(r))
	}
	return fmt.Appendf(nil, `{"time":"2026-05-28T12:40:00.000000000Z","level":"INFO","msg":"m","service":"%s","trace_id":"%s","attrs":{%s}}`,
		plainValue(r), plainValue(r), fmt.Sprintf(oneOf(r, `"a":{"b":%s}`, `"a.b":%s`, `"a":%s`, `"c":%s`, `"a":{"b.c":%s}`), v()))
}

// TestPacked finds one line by its trace id in packed segments, of one tenant and of several,
// with the same counts as by a search through all lines.
func TestPacked(t *testing.T) {
	for _, tenants := range []int{1, 3} {
		s := openStore(t, journal.Options{Disk: disktest.NewMem(), SegmentBytes: 100_000, Pack: true})
		const n = 6000
		for i := range n {
			attrs := ""
			if tenants > 1 {
				attrs = fmt.Sprintf(`"tenant":"t%d",`, i%tenants)
			}
			s.add(t, strings.Replace(testLine(i, "INFO", "shop"), `"attrs":{`, fmt.Sprintf(`"trace_id":"%032x","attrs":{%s"user":"u-%d",`, i*7919, attrs, i), 1))
		}
		waitFor(t, "packing", func() bool { return s.Stats().PackedSegments >= uint64(s.Stats().Segments-1) })
		_, base := serve(t, s, Options{})
		for _, i := range []int{0, 17, 3000, n - 1} {
			for _, q := range []string{fmt.Sprintf("trace_id=%032x", i*7919), fmt.Sprintf("user=u-%d level=info", i), fmt.Sprintf("trace_id=%032x or user=none", i*7919)} {
				resp, body, err := ask(t, base, "q", q)
				if err != nil || strings.Count(body, "\n") != 1 || !strings.Contains(body, fmt.Sprintf(`"user":"u-%d"`, i)) {
					t.Fatalf("%d tenants: %s: %v: %s", tenants, q, err, body)
				}
				_, all, err := ask(t, base, "q", fmt.Sprintf("%032x", i*7919), "from", "0")
				if err != nil || all != "" && all != body {
					t.Fatalf("%s, searched everywhere: %v: %s", q, err, all)
				}
				if tenants == 1 && resp.Trailer.Get("Rollway-Scanned") != fmt.Sprint(n) {
					t.Errorf("%s: %v", q, resp.Trailer)
				}
			}
		}
	}
}
