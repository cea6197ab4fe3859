package query

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math"
	"net/http/httptest"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rollway/rollway/collector/admission"
	"github.com/rollway/rollway/collector/filters"
	"github.com/rollway/rollway/collector/journal"
	"github.com/rollway/rollway/collector/query/pipe"
	"github.com/rollway/rollway/internal/disk"
	"github.com/rollway/rollway/internal/disktest"
)

// segmented is a journal of many segments in a folder.
func segmented(t testing.TB, o journal.Options, lines int) (s *store, dir string, all []string) {
	t.Helper()
	dir = t.TempDir()
	o.SegmentBytes = 20_000
	if o.Disk == nil {
		o.Disk = disktest.NewMem()
	}
	j, err := journal.Open(dir, o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { j.Close() })
	s = &store{Journal: j}
	all = numbered(t, s, lines, 25)
	return s, dir, all
}

// damageOne overwrites bytes in the middle of one sealed segment, a quarter of the way from the first.
func damageOne(t testing.TB, s *store, dir string) {
	t.Helper()
	var sealed []string
	waitFor(t, "sealed segments", func() bool {
		sealed, _ = filepath.Glob(filepath.Join(dir, "*.seg"))
		return len(sealed) >= int(s.Stats().Segments)-1
	})
	f, err := os.OpenFile(sealed[len(sealed)/4], os.O_RDWR, 0)
	if err == nil {
		_, err = f.WriteAt([]byte(strings.Repeat("damage", 1000)), 7000)
	}
	if err = errors.Join(err, f.Close()); err != nil {
		t.Fatal(err)
	}
}

// result is what a search has given, with its figures.
type result struct {
	lines                     []string
	scanned, matched, missing uint64
	after, reached            uint64
	gap, err                  string
	damaged                   bool
}

func (f *found) result(lines []string, err error) result {
	r := result{lines: lines, scanned: f.scanned, matched: f.matched, missing: f.missing, after: f.after, reached: f.reached, damaged: f.damaged, err: fmt.Sprint(err)}
	if f.gap != nil {
		r.gap = f.gap.Error()
	}
	return r
}

// A search by workers finds what one goroutine does, with the same figures, also if some of the
// journal is damaged.
func TestSpansLikeOneSearch(t *testing.T) {
	s, dir, all := segmented(t, journal.Options{Disk: disk.Real{}}, 5000)
	damageOne(t, s, dir)
	a, err := over(s, Options{})
	if err != nil {
		t.Fatal(err)
	}
	for _, expr := range []string{"", "level=warn", "absent", "n>=100 n<4000", "time>=2026-05-28T00:20:00Z time<2026-05-28T00:50:00Z"} {
		q := mustParse(t, expr)
		for _, r := range [][2]uint64{{0, 5000}, {17, 4321}, {1000, 1001}, {4990, 9000}, {1200, 1300}} {
			for _, most := range []int{1, 3, 700, len(all)} {
				search := func(by func(f *found, emit func(uint64, []byte) (bool, error)) error) result {
					f := found{asked: true}
					var lines []string
					err := by(&f, func(offset uint64, line []byte) (bool, error) {
						lines = append(lines, fmt.Sprint(offset, " ", string(line)))
						return len(lines) < most, nil
					})
					if len(lines) == most {
						f.reached = f.after // of a search that was ended by its caller
					}
					return f.result(lines, err)
				}
				want := search(func(f *found, emit func(uint64, []byte) (bool, error)) error {
					reader := s.reader(r[0])
					defer reader.Close()
					q.configure(reader, nil)
					return a.search(reader, q, r[1], f, emit, func() error { return nil })
				})
				got := search(func(f *found, emit func(uint64, []byte) (bool, error)) error {
					return a.find(t.Context(), q, r[0], r[1], f, emit, func() error { return nil })
				})
				if r[0] == 0 && most == len(all) && expr == "" && (want.missing == 0 || !want.damaged) {
					t.Fatal("nothing is damaged")
				}
				if !slices.Equal(got.lines, want.lines) {
					t.Fatalf("%q %v: %d lines, want %d", expr, r, len(got.lines), len(want.lines))
				}
				if got.lines, want.lines = nil, nil; fmt.Sprint(got) != fmt.Sprint(want) {
					t.Errorf("%q %v %d:\ngot  %+v\nwant %+v", expr, r, most, got, want)
				}
			}
		}
	}
	if s := a.memory.Used(); s != 0 {
		t.Errorf("%d bytes are held", s)
	}
}

// The newest lines are those of a search in ascending order, wherever spans end.
func TestSpansLast(t *testing.T) {
	s, _, all := segmented(t, journal.Options{}, 5000)
	a, err := over(s, Options{})
	if err != nil {
		t.Fatal(err)
	}
	for expr, want := range map[string][]string{"": all, "level=warn": everyTenth(all), "n<700": all[:700], "absent": nil} {
		for _, n := range []int{1, 2, 99, 1000, 4999, 5000, 9000} {
			var f found
			mem := holding{memory: a.memory, p: a.nobody}
			pieces, err := a.findLast(t.Context(), mustParse(t, expr), 0, 5000, n, &f, &mem, func() error { return nil })
			got := string(bytes.Join(pieces, nil))
			if want := want[max(0, len(want)-n):]; err != nil || got != strings.Join(append(slices.Clone(want), ""), "\n") {
				t.Errorf("%q %d: %v, %d lines, want %d", expr, n, err, strings.Count(got, "\n"), len(want))
			}
			if len(want) >= n && f.scanned == 5000 && n < 100 && len(want) > 700 || len(want) < n && f.scanned != 5000 || f.matched < uint64(min(n, len(want))) {
				t.Errorf("%q %d: scanned %d, matched %d", expr, n, f.scanned, f.matched)
			}
			mem.release()
		}
	}
	if a.memory.Used() != 0 {
		t.Errorf("%d bytes are held", a.memory.Used())
	}
}

// The newest lines take no block of the segment that is being written, however few came after the last
// one that is packed ahead, and one of a packed segment.
func TestLastUnpacks(t *testing.T) {
	s := openStore(t, journal.Options{Disk: disktest.NewMem(), SegmentBytes: 4 << 20, Pack: true})
	a, err := over(s, Options{})
	if err != nil {
		t.Fatal(err)
	}
	var all []string
	fill := func(size int) {
		for ; size > 0; size -= len(all[len(all)-1]) * 100 {
			all = append(all, linesFrom(len(all), 100)...)
			s.add(t, all[len(all)-100:]...)
		}
	}
	packed := func() (end uint64) { // that are packed, ahead or not, from the first on
		_, end, _, err := s.Exclude(0, math.MinInt64, math.MaxInt64, filters.Value("absent"), new(admission.Turn), nil)
		if err != nil {
			t.Fatal(err)
		}
		return end
	}
	last := func(what string, end uint64, blocks int64) {
		t.Helper()
		s.blocks.Store(0)
		var f found
		mem := holding{memory: a.memory, p: a.nobody}
		defer mem.release()
		pieces, err := a.findLast(t.Context(), mustParse(t, ""), 0, end, 100, &f, &mem, func() error { return nil })
		if got := string(bytes.Join(pieces, nil)); err != nil || got != strings.Join(all[end-100:end], "\n")+"\n" {
			t.Errorf("%s: %v, %d lines", what, err, strings.Count(got, "\n"))
		}
		if n := s.blocks.Load(); n != blocks {
			t.Errorf("%s: %d blocks are unpacked, want %d", what, n, blocks)
		}
	}
	fill(5 << 19) // half a block is left
	waitFor(t, "a block that is packed ahead", func() bool { return packed() < s.Next() })
	for _, after := range []uint64{0, 1, 40, 100, 500} {
		last(fmt.Sprint(after, " lines after what is packed ahead"), packed()+after, 0)
	}
	fill(2 << 20)
	waitFor(t, "a packed segment", func() bool { return s.Stats().PackedSegments == 1 })
	for _, after := range []uint64{0, 1, 40} {
		last(fmt.Sprint(after, " lines after a packed segment"), packed()+after, 1)
	}
	last("a new segment", packed()+100, 0)
}

// Once the spans that should have all lines that are wanted did not have them, spans are begun beside others
// again.
func TestNotCovered(t *testing.T) {
	s, _, _ := segmented(t, journal.Options{}, 100)
	a, err := over(s, Options{})
	if err != nil {
		t.Fatal(err)
	}
	scan := a.newScan(mustParse(t, ""), 0, 100, true, new(found))
	scan.each, scan.covered, scan.spans = 10, 10, []*span{{done: true}}
	if !scan.coveredLocked() {
		t.Error("more is searched than is wanted")
	}
	scan.next()
	if scan.spans = append(scan.spans, new(span)); scan.coveredLocked() {
		t.Error("one worker searches alone")
	}
}

// linesFrom returns n lines, numbered from first on.
func linesFrom(first, n int) (lines []string) {
	for i := range n {
		lines = append(lines, testLine(first+i, "INFO", fmt.Sprintf("request %x is served", (first+i)*(first+i))))
	}
	return lines
}

func everyTenth(all []string) (some []string) {
	for i := 0; i < len(all); i += 10 {
		some = append(some, all[i])
	}
	return some
}

// Runs of workers, merged, give the rows of one run byte for byte, however small they are.
func TestSpansMerge(t *testing.T) {
	s, _, all := segmented(t, journal.Options{}, 5000)
	_, base := serve(t, s, Options{})
	for _, pipes := range []string{
		"| stats count(), sum(n), avg(n), min(n), max(msg), quantile(0.5, n), uniq(n)",
		"| stats count(), quantile(0.99, n), uniq(n) by level, time(10m)",
		"| stats max(level) by n | sort -n | limit 20",
		"| top 7 n",
		"| patterns limit 3",
		"| sort level | limit 30",
		"| sort level, -n | fields n",
		`| parse msg "l<rest>" | stats count() by rest`,
		"| fields n, level | sort -n | limit 3",
		"| limit 700 | stats count(), max(n)",
		"absent | stats count()",
	} {
		_, pl, err := parsePiped(pipes, time.Now())
		if err != nil {
			t.Fatal(err)
		}
		if want := !strings.HasPrefix(pipes, "| limit"); pl.Splits() != want || !pl.Holds() {
			t.Errorf("%s: splits is %v", pipes, pl.Splits())
		}
		var want []byte
		run := pl.Start(pipe.Env{
			Out:   func(r *pipe.Row) error { want = appendRow(want, pl.Columns, r); return nil },
			Take:  func(int) error { return nil },
			Check: func() error { return nil },
		})
		if !strings.HasPrefix(pipes, "absent") {
			for _, line := range all {
				if more, err := run.Line([]byte(line + "\n")); err != nil || !more {
					break
				}
			}
		}
		if err := run.End(); err != nil {
			t.Fatal(err)
		}
		resp, body, err := ask(t, base, "q", pipes)
		if err != nil || resp.StatusCode != 200 || body != string(want) || len(want) == 0 {
			t.Errorf("%s: %s, %v, got\n%.500swant\n%.500s", pipes, resp.Status, err, body, want)
		}
	}
}

// Where an answer that was ended early says to go on, no line is left out that it has not given,
// and the next answer gets further.
func TestNextAfterAnEarlyEnd(t *testing.T) {
	for _, c := range []struct {
		name, params  string
		tenant, lines bool // lines: answers have them
	}{
		{"lines", "", false, true},
		{"lines of a tenant", "", true, true},
		{"nothing found", "q=absent", false, false},
		{"nothing found of a tenant", "q=absent", true, false},
		{"nothing of a tenant found by its field", "q=x=absent", true, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := newStore(t)
				s.before = func(uint64) error { time.Sleep(time.Second); return nil }
				want := 0
				for i := range 200 { // the first quarter has none of the tenant
					tenant := "mine"
					if i < 50 || i%3 == 0 {
						tenant = "other"
					}
					if tenant == "mine" || !c.tenant {
						want++
					}
					s.add(t, lineOf(tenant, i))
				}
				a, err := over(s, Options{SearchTime: 20 * time.Second})
				if err != nil {
					t.Fatal(err)
				}
				defer a.Close()
				found, from := 0, uint64(0)
				for answers := 1; ; answers++ {
					r := httptest.NewRequest("GET", fmt.Sprintf("/api/query?from=%d&%s", from, c.params), nil)
					r.Header.Set("TE", "trailers")
					if c.tenant {
						r = Only(r, "mine")
					}
					w := httptest.NewRecorder()
					a.ServeQuery(w, r)
					h := w.Header()
					next, err := strconv.ParseUint(h.Get("Rollway-Next"), 10, 64)
					found += strings.Count(w.Body.String(), "\n")
					if h.Get("Rollway-Error") == "" {
						if answers < 5 || c.lines && found != want || !c.lines && found != 0 {
							t.Errorf("%d lines in %d answers, want %d", found, answers, want)
						}
						break
					}
					if err != nil || next <= from || next > 200 || !strings.HasSuffix(h.Get("Rollway-Error"), fmt.Sprintf("lines from offset %d on were not searched", next)) {
						t.Fatalf("from %d: next %d, %v, %s", from, next, err, h.Get("Rollway-Error"))
					}
					from = next
				}
			})
		})
	}
}

// An answer that is given whole or not at all has nothing to go on from but its beginning.
func TestNextAfterNothingWasGiven(t *testing.T) {
	for _, params := range []string{"last=100", "q=|stats+count()", "q=|sort+-time|limit+3"} {
		for _, tenant := range []bool{false, true} {
			synctest.Test(t, func(t *testing.T) {
				s := newStore(t)
				s.before = func(uint64) error { time.Sleep(time.Second); return nil }
				for i := range 100 {
					s.add(t, lineOf("mine", i))
				}
				a, err := over(s, Options{SearchTime: 20 * time.Second})
				if err != nil {
					t.Fatal(err)
				}
				defer a.Close()
				r := httptest.NewRequest("GET", "/api/query?from=7&"+params, nil)
				r.Header.Set("TE", "trailers")
				if tenant {
					r = Only(r, "mine")
				}
				w := httptest.NewRecorder()
				a.ServeQuery(w, r)
				if h := w.Header(); w.Body.Len() > 0 || h.Get("Rollway-Next") != "7" || !strings.Contains(h.Get("Rollway-Error"), "searched for 20s") {
					t.Errorf("%s: %v %s", params, h, w.Body)
				}
			})
		}
	}
}

// An error of one span comes after all that was found before it, and what comes after is not told.
func TestSpansErrorInOrder(t *testing.T) {
	s, _, all := segmented(t, journal.Options{}, 2000)
	s.before = func(first uint64) error {
		if first >= 1700 {
			return errors.New("disk failed")
		}
		return nil
	}
	_, base := serve(t, s, Options{})
	resp, body, err := ask(t, base)
	h := resp.Trailer
	if err != nil || body != strings.Join(all[:1700], "\n")+"\n" || h.Get("Rollway-Error") != "disk failed" || h.Get("Rollway-Next") != "1700" || h.Get("Rollway-Scanned") != "1700" {
		t.Errorf("%v, %d lines, %v", err, strings.Count(body, "\n"), h)
	}
}

// While a client takes nothing, workers wait: what they have found is bounded and charged, and they
// keep no turn.
func TestSpansOfASlowReader(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, _, all := segmented(t, journal.Options{}, 2000)
		long := testLine(0, "INFO", strings.Repeat("x", 15_000))
		for range 300 {
			s.add(t, long)
		}
		a, err := over(s, Options{})
		if err != nil {
			t.Fatal(err)
		}
		defer a.Close()
		req := httptest.NewRequest("GET", "/api/query", nil)
		w := httptest.NewRecorder()
		most, taken := int64(0), 0
		a.ServeQuery(&slowClient{w, func() {
			taken++
			time.Sleep(lendAfter / 2)
			synctest.Wait() // the workers wait
			most = max(most, a.memory.Used())
			if a.o.Admission.CPU.Waiting() != 0 {
				t.Error("a turn is waited for")
			}
		}}, req)
		if want := strings.Join(all, "\n") + "\n" + strings.Repeat(long+"\n", 300); w.Body.String() != want {
			t.Errorf("%d of %d bytes", w.Body.Len(), len(want))
		}
		if most == 0 || most > aheadBytes || a.memory.Used() != 0 || taken < 50 {
			t.Errorf("at most %d bytes were charged, and %d are, in %d pieces", most, a.memory.Used(), taken)
		}
	})
}

// A client that takes nothing for lendAfter lends its query's slot, and what workers have found and
// read; its answer is whole if it comes back, unless others have the slot for too long.
func TestSpansLent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, _, all := segmented(t, journal.Options{}, 3000)
		a, err := over(s, Options{MaxQueries: 3})
		if err != nil {
			t.Fatal(err)
		}
		defer a.Close()
		ask := func(who string, take func()) *httptest.ResponseRecorder {
			req := httptest.NewRequest("GET", "/api/query", nil)
			req.Header.Set("TE", "trailers")
			w := httptest.NewRecorder()
			a.ServeQuery(&slowClient{w, take}, req.WithContext(admission.WithPrincipal(req.Context(), a.o.Admission.Named(who, 1))))
			return w
		}
		again := make(chan struct{})
		slow := make(chan *httptest.ResponseRecorder)
		for i := range 2 {
			go func() { slow <- ask(fmt.Sprint("slow ", i), func() { <-again }) }()
		}
		synctest.Wait()
		if a.queries.Used() != 2 || a.memory.Used() == 0 {
			t.Errorf("%d slots, %d bytes before", a.queries.Used(), a.memory.Used())
		}
		time.Sleep(lendAfter)
		synctest.Wait()
		if a.queries.Used() != 0 || a.memory.Used() != 0 || s.Stats().Readers != 0 {
			t.Errorf("%d slots, %d bytes, %d readers", a.queries.Used(), a.memory.Used(), s.Stats().Readers)
		}
		whole := strings.Join(all, "\n") + "\n"
		for i := range 3 {
			if w := ask(fmt.Sprint("fast ", i), func() {}); w.Code != 200 || w.Body.String() != whole {
				t.Errorf("another: %d, %d bytes", w.Code, w.Body.Len())
			}
		}
		close(again)
		for range 2 {
			if w := <-slow; w.Body.String() != whole || w.Header().Get("Rollway-Scanned") != "3000" || w.Header().Get("Rollway-Matched") != "3000" {
				t.Errorf("%d of %d bytes, %v", w.Body.Len(), len(whole), w.Header())
			}
		}
		busy := a.o.Admission.Named("busy", 1)
		w := ask("slow", func() {
			time.Sleep(2 * lendAfter)
			if a.queries.Of(busy) == 0 {
				a.queries.Take(busy, 3)
			}
		})
		next, err := strconv.Atoi(w.Header().Get("Rollway-Next"))
		if err != nil || next == 0 || next >= 3000 || !strings.HasPrefix(whole, w.Body.String()) || strings.Count(w.Body.String(), "\n") != next || !strings.Contains(w.Header().Get("Rollway-Error"), "other queries") {
			t.Errorf("%d bytes, %v", w.Body.Len(), w.Header())
		}
		a.queries.Release(busy, 3)
		if a.queries.Used() != 0 || a.memory.Used() != 0 || s.Stats().Readers != 0 {
			t.Errorf("%d slots, %d bytes, %d readers afterwards", a.queries.Used(), a.memory.Used(), s.Stats().Readers)
		}
	})
}

// twoWorkers has scans use two workers or more, and returns what waits until do was called by one of them
// while another waits.
func twoWorkers(t *testing.T) (done, wait func()) {
	before := runtime.GOMAXPROCS(0)
	runtime.GOMAXPROCS(max(2, before))
	t.Cleanup(func() { runtime.GOMAXPROCS(before) })
	ch := make(chan struct{})
	return sync.OnceFunc(func() { close(ch) }), func() {
		select {
		case <-ch:
		case <-time.After(time.Minute):
			t.Error("a worker waits for another")
		}
	}
}

// Workers that have large parts of their own do not wait for the one at the front.
func TestSpansOfOwnParts(t *testing.T) {
	s, _, all := segmented(t, journal.Options{}, 5000)
	done, wait := twoWorkers(t)
	s.before = func(first uint64) error {
		switch {
		case first == 0:
			wait()
		case first >= uint64(len(all)-25):
			done()
		}
		return nil
	}
	a, err := over(s, Options{})
	if err != nil {
		t.Fatal(err)
	}
	scan := a.newScan(mustParse(t, ""), 0, uint64(len(all)), false, new(found))
	scan.sums, scan.most = true, 1
	scan.setShare(4 * aheadBytes)
	scan.fresh = func(p *part) { p.bytes = 0 }
	scan.keep = func(p *part, _ uint64, _ []byte) error {
		p.bytes = aheadBytes + 1
		return nil
	}
	var f found
	err = scan.run(t.Context(), &f, func(p *part) (bool, error) {
		if !p.given {
			a.add(&f, &p.found)
		}
		return true, nil
	}, func() error { return nil })
	if err != nil || f.scanned != uint64(len(all)) || a.memory.Used() != 0 {
		t.Errorf("%v, %d lines, %d bytes are charged", err, f.scanned, a.memory.Used())
	}
}

// Memory that others hold delays workers, and ends nothing.
func TestSpansWithoutMemory(t *testing.T) {
	s, _, all := segmented(t, journal.Options{}, 2000)
	a, err := over(s, Options{MaxMemory: 1000})
	if err != nil {
		t.Fatal(err)
	}
	if !a.memory.Acquire(a.o.Admission.Named("other", 1), 1000) {
		t.Fatal("there is no memory")
	}
	w := httptest.NewRecorder()
	a.ServeQuery(w, httptest.NewRequest("GET", "/api/query", nil))
	if w.Body.String() != strings.Join(all, "\n")+"\n" {
		t.Errorf("%d bytes", w.Body.Len())
	}
}

// A query whose client goes ends soon, whatever its workers wait for.
func TestSpansCancelled(t *testing.T) {
	s, _, _ := segmented(t, journal.Options{}, 5000)
	a, err := over(s, Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer a.Close()
	for _, after := range []uint64{0, 30, 2500} {
		ctx, cancel := context.WithCancel(t.Context())
		var begin time.Time
		f := found{}
		err := a.find(ctx, mustParse(t, ""), 0, 5000, &f, func(offset uint64, _ []byte) (bool, error) {
			if offset == after {
				begin = time.Now()
				cancel()
			}
			return true, nil
		}, func() error { return nil })
		if took := time.Since(begin); !errors.Is(err, context.Canceled) || took > 30*time.Second || f.reached > 5000 {
			t.Errorf("%v after %v", err, took)
		}
	}
	if a.memory.Used() != 0 {
		t.Errorf("%d bytes are held", a.memory.Used())
	}
}

// Retention that deletes segments during a search leaves a gap of them, and lines in order.
func TestSpansAndRetention(t *testing.T) {
	s, _, all := segmented(t, journal.Options{RetainBytes: 200_000}, 3000)
	a, err := over(s, Options{})
	if err != nil {
		t.Fatal(err)
	}
	first, end := s.First(), s.Next()
	f := found{asked: true}
	next := first
	err = a.find(t.Context(), mustParse(t, ""), first, end, &f, func(offset uint64, line []byte) (bool, error) {
		if string(line) != all[offset]+"\n" || offset < next {
			t.Fatalf("offset %d after %d: %s", offset, next, line)
		}
		if next = offset + 1; offset == first {
			numbered(t, s, 2500, 25)
			waitFor(t, "retention", func() bool { return s.First() >= first+1000 })
		}
		return true, nil
	}, func() error { return nil })
	if err != nil || f.matched+f.missing != end-first || f.reached != end {
		t.Errorf("%v, %d found, %d missing of %d", err, f.matched, f.missing, end-first)
	}
}

// A panic of a worker is one of the request, which a server survives.
func TestSpansPanic(t *testing.T) {
	s, _, _ := segmented(t, journal.Options{}, 1000)
	s.before = func(first uint64) error {
		if first > 500 {
			panic("broken")
		}
		return nil
	}
	a, err := over(s, Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if what := fmt.Sprint(recover()); !strings.Contains(what, "broken\n") || s.Stats().Readers != 0 || a.Stats().RunningQueries != 0 {
			t.Errorf("%s, %+v", what, s.Stats())
		}
	}()
	a.ServeQuery(httptest.NewRecorder(), httptest.NewRequest("GET", "/api/query", nil))
}
