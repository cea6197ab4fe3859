package query

import (
	"encoding/json"
	"fmt"
	"maps"
	"math/rand/v2"
	"net/url"
	"slices"
	"strings"
	"testing"

	"github.com/rollway/rollway/collector/journal"
	"github.com/rollway/rollway/collector/query/pipe"
	"github.com/rollway/rollway/internal/disktest"
	"github.com/rollway/rollway/internal/testkit"
)

// TestFacetsOfAJournal compares facets, of columns and of lines, with what stats counts of each field.
func TestFacetsOfAJournal(t *testing.T) {
	t.Parallel()
	names := []string{"time", "level", "msg", "service", "took", "user", "user2", "peer", "http.status", "http", "error.kind", "error", "attrs", "tenant"}
	for _, style := range []int{0, 3, 21, 63, 127} {
		r := rand.New(rand.NewPCG(20261128, uint64(style)))
		s := openStore(t, journal.Options{Disk: disktest.NewMem(), SegmentBytes: 100_000, Pack: true})
		for i := range 2000 {
			s.add(t, columnLine(r, i, style))
		}
		waitFor(t, "packing", func() bool { return s.Stats().PackedSegments >= uint64(s.Stats().Segments-1) })
		_, base := serve(t, s, Options{})
		for range testkit.RaceRounds(t, 4, 15) {
			filter, fields := tableFilter(r), []string{}
			for _, i := range r.Perm(len(names))[:1+r.IntN(5)] {
				fields = append(fields, names[i])
			}
			var got struct {
				Facets []struct {
					Field  string
					Values []struct {
						Value json.RawMessage
						Count int64
					}
					More int
				}
				Matched   int
				Estimates map[string]string
			}
			_, body := figuresOf(t, base, "/api/facets", "q", filter, "field", strings.Join(fields, ","), "limit", "3000")
			if err := json.Unmarshal([]byte(body), &got); err != nil || len(got.Facets) != len(fields) || got.Estimates != nil {
				t.Fatalf("%s: %.300s %v", filter, body, err)
			}
			for i, f := range got.Facets {
				counts, before := make(map[string]int64), int64(2000)
				for _, v := range f.Values {
					if v.Count > before {
						t.Errorf("%s by %s: %d after %d", filter, f.Field, v.Count, before)
					}
					counts[string(v.Value)] += v.Count // null is a value, too
					before = v.Count
				}
				var table struct{ Rows [][]json.RawMessage }
				_, body := figuresOf(t, base, "/api/stats", "q", filter+" | stats count() by "+fields[i])
				if err := json.Unmarshal([]byte(body), &table); err != nil {
					t.Fatalf("%.300s %v", body, err)
				}
				want := make(map[string]int64)
				for _, row := range table.Rows {
					want[string(row[0])] += intOf(pipe.Value{Text: row[1]})
				}
				for value, n := range want {
					if counts[value] != n {
						t.Errorf("style %d: %s by %s: %s is %d, want %d", style, filter, fields[i], value, counts[value], n)
					}
				}
				if f.Field != fields[i] || f.More != 0 || len(counts) != len(want) {
					t.Errorf("style %d: %s by %s: %d values, %d more, want %d", style, filter, fields[i], len(counts), f.More, len(want))
				}
			}
		}
	}
}

// TestFacetOfManyValues counts more values than are remembered, in runs that are merged: a count is too
// low by no more than is told, and what is frequent is there.
func TestFacetOfManyValues(t *testing.T) {
	testkit.NoRace(t, "it takes 20 s there, in one goroutine")
	t.Parallel()
	r := rand.New(rand.NewPCG(7, 7))
	zipf := rand.NewZipf(r, 1.1, 20, 400_000)
	for name, value := range map[string]func() string{
		"few":    func() string { return fmt.Sprint(zipf.Uint64() % 9000) },
		"many":   func() string { return fmt.Sprint(zipf.Uint64()) },
		"long":   func() string { return strings.Repeat("x", 3000) + fmt.Sprint(zipf.Uint64()%5000) },
		"unique": func() string { return fmt.Sprint(r.Uint64()) },
	} {
		req := &request{query: &Query{}, values: url.Values{"field": {"v,w"}}, now: testNow, limit: maxBuckets}
		if _, err := askFacets(req); err != nil {
			t.Fatal(err)
		}
		held, counts := 0, make(map[string]int64)
		start := func() *pipe.Run {
			return req.pipes.Start(pipe.Env{
				Out: func(row *pipe.Row) error {
					if string(row.Values[0].Text) == "v" {
						counts[string(row.Values[1].Text)] = intOf(row.Values[2])
					}
					return nil
				},
				Take:  func(n int) error { held += n; return nil },
				Check: func() error { return nil },
			})
		}
		total, truth := start(), make(map[string]int64)
		part := start()
		for range 4 {
			if !part.Reset() {
				t.Fatal("a run is not used again")
			}
			for range 15_000 {
				v := value()
				truth[v]++
				if _, err := part.Line([]byte(`{"attrs":{"v":"` + v + `","w":1}}` + "\n")); err != nil {
					t.Fatal(err)
				}
			}
			if err := total.Merge(part); err != nil {
				t.Fatal(err)
			}
		}
		if err := total.End(); err != nil {
			t.Fatal(err)
		}
		less, told := int64(0), total.Estimates()
		_, _ = fmt.Sscanf(told["v"], "each count may be up to %d too low", &less)
		for v, n := range truth {
			if counts[v] > n || counts[v]+less < n {
				t.Fatalf("%s: %.20s is %d, want %d, or %d less", name, v, counts[v], n, less)
			}
		}
		if exact := name == "few"; told["w"] != "" || (less == 0) != exact || less > 200 || len(counts) > maxBuckets || held > 30<<20 {
			t.Errorf("%s: %d values of %d, %q, %d bytes", name, len(counts), len(truth), slices.Collect(maps.Values(told)), held)
		}
	}
}
