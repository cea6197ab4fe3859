package query

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/rollway/rollway/collector/admission"
	"github.com/rollway/rollway/collector/columns"
	"github.com/rollway/rollway/collector/filters"
	"github.com/rollway/rollway/collector/journal"
	"github.com/rollway/rollway/internal/disktest"
)

// TestFilter checks on generated lines that no frame is excluded that has a line which matches,
// and that frames are.
func TestFilter(t *testing.T) {
	t.Parallel()
	const seed = 20261128
	r := rand.New(rand.NewPCG(seed, 1))
	enc, err := columns.NewEncoder()
	if err != nil {
		t.Fatal(err)
	}
	b, err := filters.NewBuilder()
	if err != nil {
		t.Fatal(err)
	}
	enc.Text, enc.Value = b.Text, b.Value
	excluded, matched := 0, 0
	for round := range 30 {
		frames := make([][]byte, 8)
		for i := range frames {
			for range 20 {
				line := genLine(r)
				if round%2 == 0 {
					line = nestedLine(r)
				}
				frames[i] = append(append(frames[i], line...), '\n')
			}
			enc.Append(nil, frames[i])
			b.Lines(64 << 10) // else filters would not pay
			b.End(uint64(i))
		}
		section := b.Append(nil)
		for range 60 {
			expr := genExpr(r, 0)
			if round%2 == 0 {
				form := oneOf(r, "%s=%s", "%s~%s", "%s=%s*", "%s in (%s, x1, x22)", `%s in (%s, i"X1", 5)`, `%s~i"%s"`, `%s~w"%s"`, `%s=~"%s$"`)
				expr = fmt.Sprintf(form, oneOf(r, "service", "trace_id", "attrs.a", "a.b", "a.b.c", "c"), plainValue(r))
			}
			q := mustParse(t, expr)
			out, err := filters.Excluded(bytes.NewReader(section), int64(len(section)), q.root.filter())
			if err != nil {
				t.Fatal(err)
			}
			excluded += len(out)
			for i, lines := range frames {
				for line := range bytes.Lines(lines) {
					if !q.Match(line) {
						continue
					}
					if matched++; slices.Contains(out, uint64(i)) {
						t.Fatalf("seed %d: %s excludes a frame with\n%s", seed, expr, line)
					}
				}
			}
		}
	}
	if excluded < 1000 || matched < 1000 {
		t.Errorf("%d frames excluded, %d lines matched: the generator proves little", excluded, matched)
	}
}

// filtered is a journal of packed segments with filters, and how many lines it has. Every line has
// an id of its own; those that a thousand divides have a rare word.
func filtered(t *testing.T, o journal.Options, tenants int) (s *store, n int) {
	o.Disk, o.SegmentBytes, o.Pack = disktest.NewMem(), 3<<20, true
	s = openStore(t, o)
	rng := rand.New(rand.NewPCG(5, 6))
	for n = 0; n < 24_000; n += 1000 {
		var lines []string
		for i := n; i < n+1000; i++ {
			word := ""
			if i%1000 == 0 {
				word = fmt.Sprintf("restored%c%d ", 'a'+i/1000%26, i)
			}
			attrs := fmt.Sprintf(`"trace_id":"%032x","attrs":{"text":"%x",`, i*7919, [100]byte{byte(i)})
			if tenants > 1 {
				attrs += fmt.Sprintf(`"tenant":"t%d",`, i%tenants)
			}
			lines = append(lines, strings.Replace(testLine(i, "INFO", word+fmt.Sprintf("request %x of shop", rng.Uint64())), `"attrs":{`, attrs, 1))
		}
		s.add(t, lines...)
	}
	waitFor(t, "packing", func() bool { return s.Stats().PackedSegments >= uint64(s.Stats().Segments-1) && s.Stats().Segments > 2 })
	return s, n
}

// TestSieve finds lines by filters, with the same figures as by a search through all lines.
func TestSieve(t *testing.T) {
	t.Parallel()
	s, n := filtered(t, journal.Options{}, 1)
	_, base := serve(t, s, Options{})
	_, plain := serve(t, &store{Journal: s.Journal, blind: true}, Options{})
	for _, q := range []string{
		fmt.Sprintf("trace_id=%032x", 5000*7919), "restoredb", `"restoredb"`, "restored", `trace_id=x or msg~restoredc`, "msg~nothing-like-this",
		"not msg~restored | stats count()", fmt.Sprintf("trace_id in (%032x, %032x)", 1, 23_999*7919), `msg=~"^restored[ab]1"`, "level=info restored", "n=11000", "restored | top msg",
	} {
		for _, more := range [][]string{nil, {"last", "3"}, {"limit", "2"}, {"from", "3000"}, {"since", "2026-05-28T01:00:00Z"}} {
			if strings.Contains(q, "|") && len(more) > 0 && more[0] != "since" {
				continue
			}
			pairs := append([]string{"q", q}, more...)
			resp, body, err := ask(t, base, pairs...)
			resp2, body2, err2 := ask(t, plain, pairs...)
			if err != nil || err2 != nil || body != body2 {
				t.Fatalf("%v: %v, %v\n%s\nnot\n%s", pairs, err, err2, body, body2)
			}
			for _, name := range []string{"Rollway-Matched", "Rollway-Next", "Rollway-Missing", "Rollway-Complete"} {
				if got, want := resp.Trailer.Get(name), resp2.Trailer.Get(name); got != want {
					t.Errorf("%v: %s is %s, want %s", pairs, name, got, want)
				}
			}
			if got := resp.Trailer.Get("Rollway-Scanned"); len(more) == 0 && got != fmt.Sprint(n) {
				t.Errorf("%v: scanned %s lines", pairs, got)
			}
		}
	}
	if s.asking.Load() == 0 {
		t.Error("filters are asked outside of turns")
	}
	if x := explained(t, base, "q", fmt.Sprintf("trace_id=%032x", 5000*7919)); x.Blocks["by_filter"] < 6 || x.Rows != 1 {
		t.Errorf("%+v", x)
	}
}

// While a worker reads the filters of a segment, another reads those of the next.
func TestSievesAtOnce(t *testing.T) {
	s, _ := filtered(t, journal.Options{}, 1)
	done, wait := twoWorkers(t)
	var calls atomic.Int64
	s.sift = func() {
		if calls.Add(1) == 1 {
			wait()
		} else {
			done()
		}
	}
	_, base := serve(t, s, Options{})
	if _, body, err := ask(t, base, "q", "restoredb"); err != nil || strings.Count(body, "\n") != 1 {
		t.Errorf("%v\n%s", err, body)
	}
}

// Filters that nobody waits for are read no further.
func TestSieveEnds(t *testing.T) {
	t.Parallel()
	s, _ := filtered(t, journal.Options{}, 2)
	asked := 0
	if _, _, parts, err := s.Exclude(0, 0, 1<<62, filters.Text("no such words"), new(admission.Turn), func() bool {
		asked++
		return asked == 2
	}); err == nil || len(parts) > 0 || asked != 2 {
		t.Errorf("%v, %d parts, asked %d times", err, len(parts), asked)
	}
}

// TestSieveAfterRetention: what retention leaves of a segment keeps its filters.
func TestSieveAfterRetention(t *testing.T) {
	t.Parallel()
	s, n := filtered(t, journal.Options{Tenants: map[string]journal.Retention{"t1": {Bytes: 1}}}, 2)
	waitFor(t, "retention", func() bool { return s.Stats().DroppedRecords > uint64(n)/4 })
	_, base := serve(t, s, Options{})
	for i, want := range map[int]int{5000: 1, 5001: 0} {
		if x := explained(t, base, "q", fmt.Sprintf("trace_id=%032x", i*7919)); x.Rows != want || x.Blocks["by_filter"] < 4 {
			t.Errorf("line %d: %+v", i, x)
		}
	}
	for first := s.First(); first < s.Next(); {
		_, end, parts, err := s.Exclude(first, 0, 1<<62, filters.Text("no such words"), new(admission.Turn), nil)
		if err != nil {
			t.Fatal(err)
		}
		for i, p := range parts {
			if p.From < first || p.To > end || i > 0 && p.From <= parts[i-1].To {
				t.Errorf("segment %d to %d: %+v", first, end, parts)
			}
		}
		first = end
	}
}
