package journal

import (
	"context"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/rollway/rollway/internal/disktest"
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
	// check compares the counts with what a reader finds, and returns how many segments have some.
	check := func() (counted, segments int) {
		r := j.NewReader(0)
		defer r.Close()
		for at := uint64(0); at < n; segments++ {
			c, first, end := j.Counts(at, math.MinInt64, math.MaxInt64)
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
			for _, k := range c.Steps {
				sum += uint64(k.Records)
			}
			if again, _, _ := j.Counts(first, math.MinInt64, math.MaxInt64); again != c {
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
			if s.counts != nil {
				held += len(s.counts.Steps)
			}
		}
		if counted != segments-1 || len(j.counts.segs) != counted || j.counts.n != held {
			t.Errorf("round %d: %d of %d segments are counted, %d held, of %d", round, counted, segments, j.counts.n, held)
		}
		if c, _, _ := j.Counts(1000, math.MinInt64, math.MaxInt64); c == nil || c.Records != 0 && (c.Tenant == nil || *c.Tenant != "a") {
			t.Errorf("round %d: %+v of what was two tenants'", round, c)
		}
		if c, _, end := j.Counts(0, math.MinInt64, -1); c == nil || c.Records != 0 || c.End != end {
			t.Errorf("round %d: %+v of another time", round, c)
		}
		if round == 0 {
			testkit.OK(t, j.Close())
			j = mustOpen(t, "/j", o)
		}
	}
	first, last := j.segs[0], j.segs[len(j.segs)-2]
	j.dropCountsLocked(last)
	j.counts.n += maxHeldCounts // as if there were so many more
	if c, _, _ := j.Counts(last.first, math.MinInt64, math.MaxInt64); c == nil || first.counts != nil || !slices.Equal(j.counts.segs, []*segment{last}) {
		t.Errorf("%d segments have counts, and %v is one", len(j.counts.segs), c)
	}
}
