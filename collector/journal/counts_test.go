package journal

import (
	"context"
	"log/slog"
	"maps"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/rollway/rollway/internal/disktest"
	"github.com/rollway/rollway/internal/levels"
	"github.com/rollway/rollway/internal/recordlog"
	"github.com/rollway/rollway/internal/testkit"
)

// Counts are known of a segment whose lines all begin as canonical ones do.
func TestCounts(t *testing.T) {
	const head = `{"time":"2026-05-28T12:40:00.000000000Z","level":"INFO"`
	at := time.Date(2026, 5, 28, 12, 40, 0, 0, time.UTC).UnixNano()
	for _, c := range []struct {
		name, line string
		exact      bool
	}{
		{"canonical", head + `}`, true},
		{"canonical, with a distance", strings.Replace(head, "INFO", "ERROR+1", 1) + `,"msg":"m"}`, true},
		{"no level", `{"time":"2026-05-28T12:40:00.000000000Z","msg":"m"}`, false},
		{"a level in small letters", strings.Replace(head, "INFO", "info", 1) + `}`, false},
		{"a level by another name", strings.Replace(head, "INFO", "INFO+4", 1) + `}`, false},
		{"a long level", strings.Replace(head, "INFO", "FATAL+2147483", 1) + `}`, false},
		{"no time", `{"level":"INFO","msg":"a text that is as long as a time"}`, false},
		{"a time of another form", strings.Replace(head, "00Z", "0+0", 1) + `}`, false},
		{"a second too many", strings.Replace(head, ":00.", ":60.", 1) + `}`, false},
		{"not a time", strings.Replace(head, ".000", ".0x0", 1) + `}`, false},
		{"a year that no int64 has", strings.Replace(head, "2026", "2400", 1) + `}`, false},
		{"empty", "", false},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := newSummary(1, 0)
			s.lines([]byte(head+"}\n"+c.line+"\n"+c.line+"\n"), 3, at)
			s.flush()
			f := &recordlog.Footer{Records: 3, End: 3, MinTime: at, MaxTime: at, Marks: []recordlog.Mark{{Records: 3}}}
			for k, n := range s.counts {
				k.Records = n
				f.Counts = append(f.Counts, k)
			}
			if got := exactCounts(f, false); (got != nil) != c.exact {
				t.Errorf("%+v", got)
			}
		})
	}
}

// However levels and minutes alternate, each line is counted once.
func TestCountsOfManyLevels(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	s, want := newSummary(1, 0), map[recordlog.Count]uint32{}
	begin := time.Date(2026, 5, 28, 12, 40, 0, 0, time.UTC)
	for n := range 5000 {
		at := begin.Add(time.Duration(n/700) * time.Minute)
		if r.IntN(9) == 0 {
			at = begin // as a late line has
		}
		level := slog.Level(r.IntN(1 + n/300)) // up to twice maxRecent
		line := `{"time":"` + at.Format("2006-01-02T15:04:05.000000000Z") + `","level":"` + string(levels.Append(nil, level)) + "\"}\n"
		s.lines([]byte(line), 1, at.UnixNano())
		want[recordlog.Count{Step: floorDiv(at.UnixNano(), minute), Level: int32(level)}]++
	}
	if s.flush(); !maps.Equal(s.counts, want) {
		t.Errorf("%v, want %v", s.counts, want)
	}
}

// Counts are those of the file that a segment has now: sealed, packed, and without the blocks that
// retention has deleted; also after a start.
func TestCountsFollowTheFile(t *testing.T) {
	o := Options{Disk: disktest.NewMem(), SegmentBytes: 20_000, Pack: true, Tenants: map[string]Retention{"b": {Bytes: 1}}}
	j := mustOpen(t, "/j", o)
	const n = 3000
	for i := 0; i < n; i += 10 {
		b := Batch{Records: 10}
		for k := range 10 {
			b.Lines = append(b.Lines, tenantLine(i+k, []string{"a", "b", "a"}[i/700%3], 0)...)
		}
		_, err := j.Append(context.Background(), b)
		testkit.OK(t, err)
	}
	counts := func(j *Journal, at uint64) (*Counts, uint64, uint64) {
		return j.Counts(at, math.MinInt64, math.MaxInt64, CountStep)
	}
	// check compares the counts with what a reader finds, and returns how many segments have some.
	check := func() (counted, segments int) {
		r := j.NewReader(0)
		defer r.Close()
		for at := uint64(0); at < n; segments++ {
			c, first, end := counts(j, at)
			if at = end; c == nil {
				continue
			}
			counted++
			records, sum := uint64(0), uint64(0)
			testkit.OK(t, r.Seek(first))
			for r.Offset() < end {
				f, _, _ := r.TryNext() // or a gap
				records += uint64(f.Records)
			}
			for _, step := range []time.Duration{0, 24 * time.Hour, time.Minute} {
				sum = 0
				w, _, _ := j.Counts(first, math.MinInt64, math.MaxInt64, step)
				if w == nil || w.Step < c.Step || step > 0 && w.Step > int64(step) {
					t.Fatalf("%+v for %v", w, step)
				}
				for _, k := range w.Steps {
					sum += uint64(k.Records)
				}
			}
			if again, _, _ := counts(j, first); again != c {
				continue // the file was replaced meanwhile
			}
			if c.First != first || c.End != end || c.Records != records || sum != records {
				t.Fatalf("%d of %+v, a reader finds %d", sum, c, records)
			}
		}
		return counted, segments
	}
	done := func(j *Journal) bool {
		st := j.Stats()
		return st.PackedSegments >= uint64(st.Segments-1) && st.DroppedRecords > 500
	}
	for end := time.Now().Add(time.Minute); !done(j) && time.Now().Before(end); {
		check()
	}
	for round := range 2 {
		counted, segments := check()
		held := 0
		for _, s := range j.segs {
			if c := s.counts[2]; c != nil {
				held += c.size()
			}
		}
		if counted != segments-1 || len(j.counts[2].segs) != counted || j.counts[2].n != held {
			t.Errorf("round %d: %d of %d segments are counted, %d held, of %d", round, counted, segments, j.counts[2].n, held)
		}
		if c, _, _ := counts(j, 1000); c == nil || c.Records != 0 && (c.Tenant == nil || *c.Tenant != "a") {
			t.Errorf("round %d: %+v of what was two tenants'", round, c)
		}
		if c, _, end := j.Counts(0, math.MinInt64, -1, 0); c == nil || c.Records != 0 || c.End != end {
			t.Errorf("round %d: %+v of another time", round, c)
		}
		if round == 0 {
			testkit.OK(t, j.Close())
			j = mustOpen(t, "/j", o)
		}
	}
	first, last := j.segs[0], j.segs[len(j.segs)-2]
	j.dropCountsLocked(last)
	j.counts[0].n += maxHeldCounts // as if there were so many more
	if c, _, _ := counts(j, last.first); c == nil || first.counts[0] != nil || first.counts[2] == nil || !slices.Equal(j.counts[0].segs, []*segment{last}) {
		t.Errorf("%d segments have counts, and %v is one", len(j.counts[0].segs), c)
	}
}

// Pieces of a segment that is not sealed have counts, which stay the same while it grows.
func TestCountsOfPieces(t *testing.T) {
	j := mustOpen(t, "/j", Options{Disk: disktest.NewMem()})
	lines := func(n int) {
		for range n {
			b := Batch{Records: 100}
			for i := range b.Records {
				b.Lines = append(b.Lines, tenantLine(i, "", 1000)...)
			}
			_, err := j.Append(context.Background(), b)
			testkit.OK(t, err)
		}
	}
	type piece struct {
		*Counts
		first, end uint64
	}
	pieces := func() (all []piece) {
		for at := uint64(0); at < j.Next(); at = all[len(all)-1].end {
			c, first, end := j.Counts(at+(j.Next()-at)%7, math.MinInt64, math.MaxInt64, 0)
			all = append(all, piece{c, first, end})
			if first != at || c != nil && (c.First != first || c.End != end || c.Records != end-first || len(c.Steps) != 1 || uint64(c.Steps[0].Records) != c.Records) {
				t.Fatalf("%+v from %d to %d, at %d", c, first, end, at)
			}
		}
		return all
	}
	lines(20)
	before := pieces()
	lines(40)
	after := pieces()
	if n := len(before); n < 2 || before[n-1].Counts != nil || len(after) < n+2 || !slices.Equal(before[:n-1], after[:n-1]) || after[n-1].Counts == nil {
		t.Errorf("%v, and later %v", before, after)
	}
}
