package query

import (
	"encoding/json"
	"fmt"
	"math"
	"math/rand/v2"
	"net/http/httptest"
	"net/url"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/rollway/rollway/collector/journal"
	"github.com/rollway/rollway/internal/disk"
	"github.com/rollway/rollway/internal/disktest"
	"github.com/rollway/rollway/internal/testkit"
)

// counting is a journal that no longer changes, asked with its counts and without them.
type counting struct {
	*testing.T
	with, without *API
}

func newCounting(t *testing.T, s *store) *counting {
	t.Helper()
	with, err := over(s, Options{})
	if err != nil {
		t.Fatal(err)
	}
	src := with.src
	src.counts = func(uint64, int64, int64, time.Duration) (*journal.Counts, uint64, uint64) {
		return nil, 0, math.MaxUint64
	}
	without, err := newAPI(src, Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { with.Close(); without.Close() })
	return &counting{t, with, without}
}

var varies = regexp.MustCompile(`"scanned":\d+,|"until":"[^"]*",`)

// get returns the answer of a, with its trailers. Without exact it is left out how many lines were
// looked at, since a reader passes over some, and that a histogram ends now.
func (c *counting) get(a *API, path, tenant string, params url.Values, exact bool) string {
	c.Helper()
	r := httptest.NewRequest("GET", path+"?"+params.Encode(), nil)
	r.Header.Set("TE", "trailers")
	if tenant != "all" {
		r = Only(r, tenant)
	}
	w := httptest.NewRecorder()
	a.Handlers()[path](w, r)
	body, trailer := w.Body.String(), w.Result().Trailer
	if !exact {
		body = varies.ReplaceAllString(body, "")
		trailer.Del("Rollway-Scanned")
	}
	return fmt.Sprint(w.Code, " ", body, trailer)
}

// ask returns an answer, which counts must not change.
func (c *counting) ask(path, tenant string, params url.Values, exact bool) string {
	c.Helper()
	answer := c.get(c.with, path, tenant, params, exact)
	if want := c.get(c.without, path, tenant, params, exact); answer != want {
		c.Fatalf("%s of %s %v:\n%s\nwithout counts\n%s", path, tenant, params, answer, want)
	}
	return answer
}

// counted returns of how many lines the counts were enough.
func (c *counting) counted(params url.Values) (lines int) {
	c.Helper()
	var x explanation
	text := c.get(c.with, "/api/explain", "all", params, true)
	if err := json.NewDecoder(strings.NewReader(text[len("200 "):])).Decode(&x); err != nil {
		c.Fatal(err, text)
	}
	return int(x.Counted)
}

// countedFilter is a filter of levels and times from first on.
func countedFilter(r *rand.Rand, first time.Time, span time.Duration, depth int) string {
	at := func() string {
		t := first.Add(time.Duration(r.Int64N(int64(span)))).Truncate(time.Duration(one(r, 1, int64(time.Minute), int64(time.Hour))))
		return one(r, formatTime(t), formatTime(t), formatTime(t), "1500-01-01", "9999-12-31")
	}
	switch r.IntN(9 + 6*min(depth, 1)) {
	case 0:
		return "not (" + countedFilter(r, first, span, depth+1) + ")"
	case 1, 2:
		return "(" + countedFilter(r, first, span, depth+1) + one(r, " or ", " ") + countedFilter(r, first, span, depth+1) + ")"
	case 3:
		return "level in (info, warn..<panic)"
	case 4:
		return "time" + one(r, "<", "<=", ">", ">=", "=", "!=") + at()
	}
	return "level" + one(r, "=", "!=", "<", "<=", ">", ">=") + one(r, "trace", "debug", "info", "info+2", "warn", "error", "fatal", "fatal+100")
}

// countedPipes are pipes. Counts cannot answer some of them.
func countedPipes(r *rand.Rand) string {
	step := func() string {
		return "time(" + one(r, "1m", "5m", "7m", "1h", "1h", "90m", "1d", "1w", "auto", "auto", "30s", "90s", "100ms") + ")"
	}
	return "| " + one(r,
		"stats count() as n", "stats count() as n, count() as k", "top level", "top 2 level | fields level",
		"stats count() as n by "+step(), "stats count() as n by "+step(), "stats count() as n by level as l, "+step()+" as t | sort -n, l, t | limit 5",
		"stats count() as n by "+step()+" as a, level, "+step()+" as b", "stats count() by level", "stats count() by level | stats sum(count) as s, count() as k",
		"stats count() as n, count(level) as l", "stats count() as n, max(time) as l by level", "stats count() by service", "stats count() by time", "fields level | stats count() by level")
}

// Counts change no answer, whatever of a segment they tell.
func TestCountsLikeReading(t *testing.T) {
	t.Parallel()
	seed := rand.Uint64()
	rounds, lines, answers := testkit.RaceRounds(t, 3, 10), 0, 0
	for round := range uint64(rounds) {
		r := rand.New(rand.NewPCG(seed, round))
		c, first, span := randomCounting(t, r)
		for range 60 {
			params, q := url.Values{}, ""
			if r.IntN(3) > 0 {
				q = countedFilter(r, first, span, 0)
			}
			hits := r.IntN(4) == 0
			for _, name := range []string{"since", "until"} {
				if r.IntN(3) == 0 || hits && params.Has("since") {
					params.Set(name, formatTime(first.Add(time.Duration(r.Int64N(int64(span)))).Truncate(time.Duration(one(r, 1, int64(time.Minute))))))
				}
			}
			tenant := one(r, "all", "all", "all", "", "a")
			if hits {
				params.Set("q", q)
				params.Set("step", one(r, "", "1m", "1h", "1d", "1s"))
				c.ask("/api/hits", tenant, params, false)
				continue
			}
			params.Set("q", q+countedPipes(r))
			for _, name := range []string{"from", "to"} {
				if r.IntN(6) == 0 {
					params.Set(name, fmt.Sprint(r.Uint64N(c.with.src.next())))
				}
			}
			c.ask(one(r, "/api/query", "/api/stats"), tenant, params, false)
			n := c.counted(params)
			lines += n
			answers += min(n, 1)
		}
		if t.Failed() {
			t.Fatalf("seed %d, round %d", seed, round)
		}
	}
	if t.Logf("%d answers had counts of %d lines", answers, lines); rounds == 10 && (answers < 80 || lines < 80_000) {
		t.Error("that proves little")
	}
}

// randomCounting makes a journal of some segments, and returns the time of its first line and about
// how long after it the last one is.
func randomCounting(t *testing.T, r *rand.Rand) (*counting, time.Time, time.Duration) {
	t.Helper()
	first, span := testNow.Add(-24*time.Hour), time.Duration(one(r, int64(time.Minute), int64(2*time.Hour), int64(2*time.Hour), int64(9*24*time.Hour)))
	o := journal.Options{Disk: disk.Real{Owned: true}, SegmentBytes: 20_000, Pack: r.IntN(3) > 0}
	tenants := one(r, []string{""}, []string{""}, []string{"", "a"}, []string{"a"})
	if o.Pack && r.IntN(3) == 0 {
		o.Tenants = map[string]journal.Retention{"a": {Bytes: 2000}}
	}
	levels := one(r, []string{"INFO", "WARN", "ERROR"}, []string{"TRACE", "DEBUG", "INFO", "INFO+2", "WARN", "ERROR", "PANIC", "FATAL"}, []string{"INFO"})
	odd := one(r, 0, 0, 500) // of so many lines, one has no canonical time and level
	dir := t.TempDir()
	j, err := journal.Open(dir, o)
	if err != nil {
		t.Fatal(err)
	}
	s := &store{Journal: j}
	const n = 2000
	for i := 0; i < n; {
		var lines []string
		for range 1 + r.IntN(40) {
			at := first.Add(span * time.Duration(i) / n)
			if r.IntN(3) == 0 {
				at = at.Add(time.Duration(r.Int64N(int64(span / 50))))
			}
			line := fmt.Sprintf(`{"time":"%s","level":"%s","msg":"m","attrs":{"tenant":"%s"}}`, formatTime(at), levels[r.IntN(len(levels))], tenants[min(i, n-1)*len(tenants)/n])
			if odd > 0 && r.IntN(odd) == 0 {
				line = one(r, strings.Replace(line, `"level":"WARN"`, `"level":"INFO+4"`, 1), strings.ToLower(line[:60])+line[60:], strings.Replace(line, `"level":`, `"lvl":`, 1), strings.Replace(line, "Z", "z", 1))
			}
			lines = append(lines, line)
			i++
		}
		s.add(t, lines...)
	}
	waitFor(t, "sealing and packing", func() bool {
		st := s.Stats()
		return !o.Pack || st.PackedSegments >= uint64(st.Segments-1) && (o.Tenants == nil || len(tenants) == 1 && tenants[0] == "" || st.DroppedRecords+st.DeletedRecords > 0)
	})
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if s.Journal, err = journal.OpenReadOnly(dir); err != nil {
		t.Fatal(err)
	}
	return newCounting(t, s), first, span
}

// Of whole segments no line is looked at; of one that begins before since, those of its first
// minutes.
func TestCountsOfWholeSegments(t *testing.T) {
	s := openStore(t, journal.Options{Disk: disktest.NewMem(), SegmentBytes: 20_000, Pack: true})
	const n = 6000 // an hour and 40 minutes
	numbered(t, s, n, 20)
	waitFor(t, "packing", func() bool { return s.Stats().PackedSegments >= uint64(s.Stats().Segments-1) })
	c := newCounting(t, s)
	_, open, _ := s.Counts(n-1, math.MinInt64, math.MaxInt64, 0)
	for _, row := range []struct {
		q, since string
		lines    int // that were counted
	}{
		{"| stats count()", "", int(open)},
		{"level=warn | top level", "", int(open)},
		{"level>=warn | stats count() by level, time(1h)", "", int(open)},
		{"| stats count() by time(auto)", "", int(open)},
		{"| stats count() by time(1h)", "2026-05-28T00:30:00Z", int(open) - 1800},
		{"| stats count() by time(1h)", "2026-05-28T00:30:30Z", int(open) - 1860},
		{"| stats count() by time(30s)", "", 0},
		{"| stats count() by service", "", 0},
		{"line | stats count()", "", 0},
		{"| stats max(time)", "", 0},
	} {
		params := url.Values{"q": {row.q}}
		if row.since != "" {
			params.Set("since", row.since)
		}
		c.ask("/api/query", "all", params, row.since == "")
		if lines := c.counted(params); lines != row.lines {
			t.Errorf("%s: counts told of %d lines, want %d", row.q, lines, row.lines)
		}
	}
	all := c.get(c.with, "/api/stats", "all", url.Values{"q": {"level=warn | stats count() as n"}}, true)
	if want := fmt.Sprintf(`200 {"columns":["n"],"rows":[[%d]],"scanned":%d,"matched":%d}`, n/10, n, n/10); !strings.HasPrefix(all, want) {
		t.Errorf("%s, want %s", all, want)
	}
}

// Of the newest segment, which grows, only the last lines are looked at.
func TestCountsOfTheNewestSegment(t *testing.T) {
	s := newStore(t)
	numbered(t, s, 40_000, 100)
	c := newCounting(t, s)
	for range 2 {
		_, last, _ := s.Counts(s.Next()-1, math.MinInt64, math.MaxInt64, 0)
		for _, q := range []string{"| stats count()", "level=warn | stats count() as n by time(1h), level", "| stats count() by time(5m) as t | sort -t", "| stats count() by time(auto)"} {
			params := url.Values{"q": {q}}
			c.ask("/api/query", "all", params, true)
			if lines := c.counted(params); lines != int(last) || last < 20_000 || last >= s.Next() {
				t.Errorf("%s: counts told of %d of %d lines, want %d", q, lines, s.Next(), last)
			}
		}
		numbered(t, s, 20_000, 100)
	}
}

// Steps of counts that are longer than those asked for are read, others are not.
func TestCountsOfLongSteps(t *testing.T) {
	s := openStore(t, journal.Options{Disk: disktest.NewMem(), SegmentBytes: 3 << 20})
	r := rand.New(rand.NewPCG(5, 5))
	const n = 45_000
	for i := 0; i < n; {
		var lines []string
		for range 500 {
			lines = append(lines, strings.Replace(testLine(0, one(r, "INFO", "WARN"), "line"), "2026-05-28T00:00:00", formatTime(testNow.Add(time.Duration(i)*5*time.Minute + time.Duration(r.IntN(86400))*time.Second))[:19], 1))
			i++
		}
		s.add(t, lines...)
	}
	waitFor(t, "sealing", func() bool {
		n, _, _ := s.Counts(0, math.MinInt64, math.MaxInt64, journal.CountStep)
		return n != nil && n.Step > int64(journal.CountStep)
	})
	c := newCounting(t, s)
	whole, _, _ := s.Counts(0, math.MinInt64, math.MaxInt64, journal.CountStep)
	if whole.Step != int64(32*time.Minute) {
		t.Fatalf("%d counts of steps of %v", len(whole.Steps), time.Duration(whole.Step))
	}
	for q, enough := range map[string]bool{
		"| stats count()": true, "| stats count() by time(1d)": true, "level=warn | stats count() by time(1w), level": true, "| stats count() by time(auto)": true,
		"| stats count() by time(1m)": false, "| stats count() by time(1h)": false,
	} {
		params := url.Values{"q": {q}}
		c.ask("/api/query", "all", params, true)
		if lines := c.counted(params); (lines > 0) != enough {
			t.Errorf("%s: counts of %d lines", q, lines)
		}
	}
}

// Once a reader has met damage, each answer tells of it.
func TestCountsOfDamage(t *testing.T) {
	s, dir, _ := segmented(t, journal.Options{Disk: disk.Real{}}, 5000)
	damageOne(t, s, dir)
	c := newCounting(t, s)
	params := url.Values{"q": {"| stats count() as n"}}
	if got := c.get(c.with, "/api/stats", "all", params, true); !strings.Contains(got, "[[5000]]") {
		t.Errorf("before: %s", got)
	}
	c.get(c.without, "/api/stats", "all", params, true)
	if got := c.ask("/api/stats", "all", params, true); !strings.Contains(got, `"missing":`) || strings.Contains(got, "[[5000]]") {
		t.Errorf("afterwards: %s", got)
	}
}
