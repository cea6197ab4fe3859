package query

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"math"
	"math/rand/v2"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/rollway/rollway/collector/columns"
	"github.com/rollway/rollway/collector/journal"
	"github.com/rollway/rollway/collector/query/pipe"
	"github.com/rollway/rollway/internal/disktest"
	"github.com/rollway/rollway/internal/testkit"
)

// columnLine is a line whose fields are in columns of numbers, times and few or many texts, with
// exceptions.
func columnLine(r *rand.Rand, i, style int) string {
	var attrs []string
	add := func(name, value string) { attrs = append(attrs, fmt.Sprintf("%q:%s", name, value)) }
	if style&1 != 0 {
		add("tenant", one(r, `"t1"`, `"t1"`, `"t2"`, `""`))
	}
	if r.IntN(5) > 0 {
		n := r.IntN(2000) - 500
		took := []string{fmt.Sprint(n), fmt.Sprintf("%.2f", float64(n)/100), fmt.Sprint(r.Int64N(1 << 60)), fmt.Sprintf("%d.%09d", r.IntN(100), r.IntN(1e9))}[style>>1&3]
		if style&8 != 0 && r.IntN(20) == 0 {
			took = one(r, "null", `"7"`, "1e2", "1.0", `"slow"`, "[7]", "{}", `{"a":1}`, "1e400")
		}
		add("took", took)
	}
	if r.IntN(5) > 0 {
		add("user", one(r, `"a"`, `"b"`, fmt.Sprintf(`"cus_%04d"`, r.IntN(900)), fmt.Sprintf(`"cus_%04d"`, r.IntN(900))))
	}
	if r.IntN(5) > 0 {
		add("peer", fmt.Sprintf(`"10.%d.%d.%d"`, style>>2&1, style>>1&1*r.IntN(2), r.IntN(256)))
	}
	if style&16 != 0 {
		add("user2", one(r, `"a\nb"`, `"10"`, "10", "10.0", `"\u0061"`, "true"))
		attrs = append(attrs, one(r, `"http":{"status":200,"path":"/"}`, `"http":{"status":503}`, `"http.status":404`, `"http":7`, `"http":{ "status":418}`))
	} else {
		add("http", fmt.Sprintf(`{"status":%d}`, 200+r.IntN(3)))
	}
	if style&32 != 0 && r.IntN(20) == 0 {
		attrs = append(attrs, one(r, `"user":"a","user":"b"`, `"us\u0065r":"c"`, `"x":{"y":[{"took":1}]}`))
	}
	at := i / 4
	if i > 100 && style&4 == 0 {
		at = 60 * (i - r.IntN(8)) // steps of time get longer, and times come again
	}
	head := fmt.Sprintf(`{"time":"2026-05-28T%02d:%02d:%02d.%09dZ","level":"%s","msg":"%s","service":"%s"`, at/3600%24, at/60%60, at%60, r.IntN(2)*250_000_000,
		one(r, "DEBUG", "INFO", "WARN", "ERROR"), one(r, "", fmt.Sprint("job ", i, " failed"), "GET /a took 15 ms"), one(r, "pay", "ledger", "x7"))
	if style&64 != 0 && r.IntN(3) == 0 {
		head += one(r, `,"error":{"kind":"timeout"}`, `,"error":"plain"`, `,"error":{}`)
	}
	return head + `,"attrs":{` + strings.Join(attrs, ",") + "}}"
}

// tableFilter is a filter whose terms hold of many lines.
func tableFilter(r *rand.Rand) string {
	term := func() string {
		return one(r, "took>0", "took=*", "user=*", "took>=-3.5 took<7e2", "took in -100..100", "took<=0", "took<=100", "took>-0.01", "took<9223372036854775808", "took!=7", "took=7", "level>=info", "service=pay", "service!=x7", "service in (pay, x7)", "-failed", "took", "job",
			"time>=2026-05-28T00:30:00Z", "time<2026-05-28T01:00:00Z", "not time=2026-05-28T00:10:00Z", "http.status=200", "http=*", "error.kind!=timeout", "error=*", "user~cus", "user=cus*", "user2=a", "attrs~1", "tenant=t1", "took<1e300")
	}
	switch r.IntN(5) {
	case 0:
		return ""
	case 1:
		return term() + " " + term()
	case 2:
		return "(" + term() + ") or (" + term() + ")"
	case 3:
		return "not (" + term() + ") " + term()
	}
	return term()
}

// tablePipes are random pipes that take rows of tables.
func tablePipes(t *testing.T, r *rand.Rand) string {
	names := []string{"time", "level", "msg", "service", "took", "user", "user2", "peer", "http.status", "http", "error.kind", "error", "attrs", "tenant"}
	for {
		m := &pipeMaker{Rand: r, names: names}
		some := func(n int, add ...func()) {
			for range n {
				if len(m.names) > 0 {
					one(r, add...)()
				}
			}
		}
		some(r.IntN(2), m.addParse, m.addFields)
		some(1+r.IntN(2), m.addStats, m.addStats, m.addTop)
		some(r.IntN(3), m.addSort, m.addLimit)
		text := "| " + strings.Join(m.text, " | ")
		if r.IntN(10) == 0 {
			text = one(r, "| patterns", "| patterns by service limit 3", "| stats count(), max(level) by time(auto), user | sort -count | limit 3", "| stats count(took), uniq(user) by time(auto)", "| stats count() by time(auto), service", "| stats min(took), max(took)")
		}
		if _, p, err := parsePiped(text, testNow); err == nil && !p.Lines && p.Tables() {
			return text
		}
	}
}

// TestTables compares what pipes make of rows of tables with what they make of lines, of blocks of
// several tenants whose lines take turns.
func TestTables(t *testing.T) {
	t.Parallel()
	const seed = 20261129
	rounds, rows, lines, timed := testkit.RaceRounds(t, 20, 80), 0, 0, 0
	enc, err := columns.NewEncoder()
	if err != nil {
		t.Fatal(err)
	}
	for round := range uint64(rounds) {
		r := rand.New(rand.NewPCG(seed, round))
		style, n, different := r.IntN(128), 70+r.IntN(300), 1+r.IntN(3)
		if round%20 == 7 {
			n, different = 40*(maxTables+5), maxTables+5
		}
		texts, blocks := make([][]byte, n), make([][]byte, different)
		in := make([]int, n)
		for i := range texts {
			in[i] = r.IntN(len(blocks))
			line := columnLine(r, i, style+2*in[i]) // blocks have numbers of different digits
			switch {
			case style&32 != 0 && r.IntN(30) == 0:
				line = one(r, randomLine(r, i), string(nestedLine(r)), string(genLine(r)), "", "no object")
			}
			texts[i] = []byte(strings.TrimSuffix(line, "\n") + "\n")
			blocks[in[i]] = append(blocks[in[i]], texts[i]...)
		}
		packed, times := make([][]byte, len(blocks)), make([]columns.Range, len(blocks))
		for i, text := range blocks {
			packed[i], times[i] = enc.Append(nil, text), rangeOf(text)
		}
		f := found{tables: new(tables)}
		for range 20 {
			expr := tableFilter(r) + tablePipes(t, r)
			q, p, err := parsePiped(expr, testNow)
			if err != nil {
				t.Fatal(expr, err)
			}
			if style&1 != 0 && r.IntN(3) == 0 {
				q.tenant = new(string)
				*q.tenant = one(r, "t1", "t2", "")
			}
			l := newLens(q, &f)
			f.tables.begin, f.tables.steps = true, p.Steps(len(q.fields))
			parts := make([][]byte, len(blocks))
			for i, text := range blocks {
				if parts[i], err = l.unpack(nil, packed[i], len(text), times[i]); err != nil {
					t.Fatal(err)
				}
			}
			var frame []byte
			for _, block := range in {
				n := bytes.IndexByte(parts[block], '\n') + 1
				if n == 0 { // no line of the block matches
					frame = append(frame, '\n')
					continue
				}
				frame = append(frame, parts[block][:n]...)
				parts[block] = parts[block][n:]
			}
			end := uint64(1 + r.IntN(n))
			before := f
			got := runBy(t, p, func(run *pipe.Run) {
				emit := func(_ uint64, line []byte) (more bool, err error) {
					if f.batch != nil {
						rows += len(f.batch.rows)
						for i, step := range f.tables.steps {
							if step > 0 && f.batch.table.Cells[i].Fixed() {
								timed++
							}
						}
						return run.Rows(&f.batch.table.Table, f.batch.rows)
					}
					lines++
					return run.Line(line)
				}
				if _, err := q.findIn(journal.Frame{Records: n, Lines: frame}, end, &f, emit, func() error { return nil }); err != nil {
					t.Fatal(err)
				}
			})
			matched := uint64(0)
			want := runBy(t, p, func(run *pipe.Run) {
				for _, line := range texts[:end] {
					if len(line) > 1 && q.owns(line) && q.Match(line) {
						matched++
						if _, err := run.Line(line); err != nil {
							t.Fatal(err)
						}
					}
				}
			})
			if got != want || f.matched-before.matched != matched || f.scanned-before.scanned != end {
				t.Fatalf("seed %d, round %d: %s\n%d matched of %d, want %d of %d; got\n%.3000swant\n%.3000s", seed, round, expr, f.matched-before.matched, f.scanned-before.scanned, matched, end, got, want)
			}
		}
	}
	if rows < 375*rounds || lines < 62*rounds || rounds == 80 && timed < 50 {
		t.Errorf("%d rows, %d lines, %d times a step: the generator proves little", rows, lines, timed)
	}
}

// rangeOf returns the range of the times that lines have.
func rangeOf(lines []byte) columns.Range {
	r := columns.Range{First: math.MaxInt64, Last: math.MinInt64}
	for line := range bytes.Lines(lines) {
		at, err := time.Parse(`"`+time.RFC3339Nano+`"`, string(field{id: fieldTime}.find(line)))
		if err == nil {
			r.First, r.Last = min(r.First, at.UnixNano()), max(r.Last, at.UnixNano())
		}
	}
	return r
}

// TestKnownGroups groups by values of more blocks, and of longer ones, than a run can tell apart by
// numbers.
func TestKnownGroups(t *testing.T) {
	testkit.NoRace(t, "it takes a minute there, in one goroutine")
	t.Parallel()
	enc, err := columns.NewEncoder()
	if err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		blocks int
		value  func(block, i int) string
	}{
		"many names":     {60, func(block, i int) string { return fmt.Sprintf("%0200d x", block/2*20+i%40) }},
		"long names":     {60, func(block, i int) string { return fmt.Sprintf("%02000d x", block/9*10+i%40) }},
		"many spellings": {600, func(block, i int) string { return fmt.Sprintf("%c%c-%d", 'a'+block/2%26, 'a'+block/52, i*i%90) }},
		"long spellings": {20, func(block, i int) string { return fmt.Sprintf("%s-%d", strings.Repeat("y", 1100), block/5+i) }},
		"mixed spellings": {60, func(block, i int) string {
			n := i * i * (1 + block%3)
			return []string{
				fmt.Sprintf("cus_%04d", n), fmt.Sprintf("cus_%04d", n), fmt.Sprintf("cus_%d", n), fmt.Sprintf("cus_%04d", i%4), "cus_0007",
				fmt.Sprintf("%04d", n), fmt.Sprintf("cus_%04d or %d", n, i%4), "cus_" + []string{"0007", "0008", "x", "07", "", "10 x", "abcdef"}[n%7],
			}[block*11%8]
		}},
		"numbers": {60, func(block, i int) string { return fmt.Sprint(block / 2 * i) }},
	} {
		lines, packed := make([][]byte, c.blocks), make([][]byte, c.blocks)
		for block := range lines {
			for i := range 80 {
				some := "" // values are negative, sparse or not there
				if i%9 > 0 {
					some = fmt.Sprintf(`"k":%d,`, (i%37-3)*(1+block%3*5000*(i%2)))
				}
				lines[block] = fmt.Appendf(lines[block], `{"level":"%s","attrs":{"v":"%s","n":%d.%d,%s"c":%d}}`+"\n", []string{"INFO", "WARN"}[i/3%2], c.value(block, i), i%5, block%10, some, block/3%2)
			}
			packed[block] = enc.Append(nil, lines[block])
		}
		for _, by := range []string{"v", "n, v", "k", "c, k", "c, level", "v, c, absent", "c, absent", "k, level", "n", "v | sort -count | limit 3", "k | sort -count | limit 3"} {
			q, p, err := parsePiped("| stats count(), max(n) by "+by, testNow)
			if err != nil {
				t.Fatal(err)
			}
			f := found{tables: new(tables)}
			l := newLens(q, &f)
			run := func(most, merged int) string { // of 3 blocks, how many are tables
				return runBy(t, p, func(whole *pipe.Run) {
					parts := []*pipe.Run{whole}
					for i := range merged {
						parts = append(parts[:i], p.Start(pipe.Env{Take: func(int) error { return nil }}))
					}
					defer func() {
						for _, part := range parts[:merged] {
							if err := whole.Merge(part); err != nil {
								t.Fatal(err)
							}
						}
					}()
					for block, frame := range lines {
						run, tabled := parts[block*7%c.blocks%len(parts)], block*5%7%3 < most
						if tabled {
							f.tables.begin = true
							if frame, err = l.unpack(nil, packed[block], len(frame), columns.Range{}); err != nil {
								t.Fatal(err)
							}
						}
						if _, err := q.findIn(journal.Frame{Records: 80, Lines: frame}, 80, &f, func(_ uint64, line []byte) (bool, error) {
							if (f.batch != nil) != tabled {
								t.Fatalf("%s: %.100s", name, line)
							}
							if tabled {
								return run.Rows(&f.batch.table.Table, f.batch.rows)
							}
							return run.Line(line)
						}, func() error { return nil }); err != nil {
							t.Fatal(err)
						}
					}
				})
			}
			want := run(0, 0)
			for i := range 9 {
				most, merged := 1+i%3, []int{0, 2, 3}[i/3]
				if got := run(most, merged); got != want || len(got) < 50 {
					t.Errorf("%s by %s, %d of 3 as tables, %d merged: got\n%.2000swant\n%.2000s", name, by, most, merged, got, want)
				}
			}
		}
	}
}

// Numbers around the greatest that has a place of its own are of groups of their own, and keys that are
// written at the end are accounted for.
func TestNumberedGroups(t *testing.T) {
	t.Parallel()
	enc, err := columns.NewEncoder()
	if err != nil {
		t.Fatal(err)
	}
	const many, long = 34_000, 900
	around := []int{1<<20 - 2, 1<<20 - 1, 1 << 20, 1<<20 + 1, 1<<20 + 2}
	for _, spelling := range []string{"%d", `"` + strings.Repeat("x", long) + ` %d"`} {
		n := many
		if len(spelling) > long {
			n = 300
		}
		var lines []byte
		for i := range n + len(around) {
			k := i
			if i >= n {
				k = around[i-n]
			}
			lines = fmt.Appendf(lines, `{"level":"INFO","attrs":{"k":`+spelling+"}}\n", k)
		}
		n += len(around)
		q, p, err := parsePiped("| stats count() as n by k | stats count() as groups, max(n) as most", testNow)
		if err != nil {
			t.Fatal(err)
		}
		f := found{tables: new(tables)}
		f.tables.begin = true
		frame, err := newLens(q, &f).unpack(nil, enc.Append(nil, lines), len(lines), columns.Range{})
		if err != nil {
			t.Fatal(err)
		}
		var got []byte
		held, peak := 0, 0
		run := p.Start(pipe.Env{
			Out:   func(r *pipe.Row) error { got = appendRow(got, p.Columns, r); return nil },
			Take:  func(n int) error { held += n; peak = max(peak, held); return nil },
			Check: func() error { return nil },
		})
		if _, err := q.findIn(journal.Frame{Records: n, Lines: frame}, uint64(n), &f, func(uint64, []byte) (bool, error) {
			return run.Rows(&f.batch.table.Table, f.batch.rows)
		}, func() error { return nil }); err != nil {
			t.Fatal(err)
		}
		if err := run.End(); err != nil {
			t.Fatal(err)
		}
		if want := fmt.Sprintf(`{"groups":%d,"most":1}`+"\n", n); string(got) != want {
			t.Errorf("got %swant %s", got, want)
		}
		if peak < n*len(spelling) {
			t.Errorf("%d bytes were accounted for %d keys of %d bytes", peak, n, len(spelling))
		}
	}
}

// runBy returns what pipes give of what feed gives them.
func runBy(t *testing.T, p *pipe.Pipeline, feed func(*pipe.Run)) string {
	t.Helper()
	var out []byte
	run := p.Start(pipe.Env{
		Out:   func(r *pipe.Row) error { out = appendRow(out, p.Columns, r); return nil },
		Take:  func(int) error { return nil },
		Check: func() error { return nil },
	})
	feed(run)
	if err := run.End(); err != nil {
		t.Fatal(err)
	}
	return string(out)
}

// TestTablesOfAJournal asks over packed segments, of one tenant and of several, and over one that is being
// written and is packed in part.
func TestTablesOfAJournal(t *testing.T) {
	t.Parallel()
	questions := testkit.RaceRounds(t, 8, 30)
	for _, c := range []struct {
		style, lines int
		segment      int64
	}{{0, 3000, 100_000}, {1, 3000, 100_000}, {1, 16_000, 64 << 20}} {
		r := rand.New(rand.NewPCG(20261130, uint64(c.style)))
		s := openStore(t, journal.Options{Disk: disktest.NewMem(), SegmentBytes: c.segment, Pack: true})
		var all []string
		for i := range c.lines {
			all = append(all, columnLine(r, i, c.style))
			s.add(t, all[i])
		}
		q, _, err := parsePiped("| stats count() by service", testNow)
		if err != nil {
			t.Fatal(err)
		}
		waitFor(t, "packing", func() bool {
			return s.Stats().PackedSegments >= uint64(s.Stats().Segments-1) && s.refers(t, q) > c.lines/10
		})
		_, base := serve(t, s, Options{})
		references := 0
		for range questions {
			expr := tableFilter(r) + tablePipes(t, r)
			q, p, err := parsePiped(expr, testNow)
			if err != nil {
				t.Fatal(expr, err)
			}
			references += s.refers(t, q)
			want := runBy(t, p, func(run *pipe.Run) {
				for _, line := range all {
					if line := []byte(line + "\n"); q.Match(line) {
						if _, err := run.Line(line); err != nil {
							t.Fatal(err)
						}
					}
				}
			})
			if resp, body, err := ask(t, base, "q", expr); err != nil || resp.StatusCode != 200 || body != want {
				t.Fatalf("%s: %s, %v; got\n%.2000swant\n%.2000s", expr, resp.Status, err, body, want)
			}
		}
		if references < 650*questions {
			t.Errorf("%d references: that proves little", references)
		}
	}
}

// TestLargeRunsOfTables groups packed lines by so many values that the run of a worker gets large. It
// takes memory for that while there is enough, and else is merged before the end.
func TestLargeRunsOfTables(t *testing.T) {
	t.Parallel()
	const lines, groups = 24_000, 8000
	s := openStore(t, journal.Options{Disk: disktest.NewMem(), SegmentBytes: 1 << 20, Pack: true})
	for from := 0; from < lines; from += 1000 {
		var some []string
		for i := from; i < from+1000; i++ {
			some = append(some, testLine(i*7919%groups, "INFO", "x"))
		}
		s.add(t, some...)
	}
	waitFor(t, "packing", func() bool { return s.Stats().PackedSegments >= uint64(s.Stats().Segments-1) })
	const expr = "| stats count() as c, max(n), min(n), avg(n), sum(n), uniq(n) by n | stats count(), max(sum_n) by c"
	const want = `{"c":3,"count":8000,"max_sum_n":23997}` + "\n"
	for name, c := range map[string]struct {
		o      Options
		others int // hold so much
	}{
		"enough":             {},
		"little for a query": {o: Options{MaxHeld: 5 << 20}},
		"little for all":     {o: Options{MaxMemory: 7 << 20}},
		"others have some":   {o: Options{MaxMemory: 16 << 20}, others: 4 << 20},
	} {
		a, err := over(s, c.o)
		if err != nil {
			t.Fatal(err)
		}
		others := int64(c.others)
		a.memory.Take(a.o.Admission.Named("other", 1), others)
		var mu sync.Mutex
		charged := int64(0)
		s.before = func(uint64) error {
			mu.Lock()
			defer mu.Unlock()
			charged = max(charged, a.memory.Used()-others)
			return nil
		}
		w := httptest.NewRecorder()
		a.ServeQuery(w, httptest.NewRequest("GET", "/api/query?q="+url.QueryEscape(expr), nil))
		if w.Code != 200 || w.Body.String() != want || a.memory.Used() != others {
			t.Errorf("%s: %d, %d held, %.1000s", name, w.Code, a.memory.Used(), w.Body)
		}
		if name == "enough" && charged == 0 {
			t.Errorf("large runs are not charged")
		}
		a.Close()
	}
}

// refers returns how many references a reader gives of all lines.
func (s *store) refers(t *testing.T, q *Query) (n int) {
	reader := s.NewReader(0)
	defer reader.Close()
	f := &found{tables: new(tables)}
	q.configure(reader, f)
	for {
		f.tables.begin = true
		frame, ok, err := reader.TryNext()
		if err != nil {
			t.Fatal(err)
		}
		if !ok {
			return n
		}
		for line := range bytes.Lines(frame.Lines) {
			if table, _ := f.tables.find(line); table != nil {
				n++
			}
		}
	}
}

// A line that looks like a reference is a line if there is no such row.
func TestForgedReferences(t *testing.T) {
	t.Parallel()
	f := found{tables: new(tables)}
	q, _, err := parsePiped("| stats count() by n", testNow)
	if err != nil {
		t.Fatal(err)
	}
	lines := []byte(strings.Repeat(`{"attrs":{"n":7}}`+"\n", 100))
	enc, err := columns.NewEncoder()
	if err != nil {
		t.Fatal(err)
	}
	f.tables.begin = true
	part, err := newLens(q, &f).unpack(nil, enc.Append(nil, lines), len(lines), columns.Range{})
	if err != nil {
		t.Fatal(err)
	}
	for size, want := range map[int]int{-1: 1, 0: 1, 1: 1, 18: 1, 19: 2, 36: 2, 37: 3, 5000: 100} {
		if b := f.tables.references(part, 1000, size); b == nil || len(b.rows) != want || b.lines != want {
			t.Errorf("of %d bytes: %+v, want %d", size, b, want)
		}
	}
	r := rand.New(rand.NewPCG(1, 2))
	for range 100_000 {
		line := binary.LittleEndian.AppendUint64(nil, reference(r.IntN(3), r.IntN(1<<r.IntN(28))))
		line[r.IntN(len(line))] ^= byte(r.IntN(2) << r.IntN(8))
		if table, row := f.tables.find(line); table != nil && (table != f.tables.list[0] || row >= 100) {
			t.Fatalf("%q is row %d", line, row)
		}
	}
}

// Tables keep no more memory from frame to frame than they may, however large blocks were.
func TestTablesKeepLittle(t *testing.T) {
	t.Parallel()
	f := found{tables: new(tables)}
	q, _, err := parsePiped("| stats uniq(id) by n", testNow)
	if err != nil {
		t.Fatal(err)
	}
	enc, err := columns.NewEncoder()
	if err != nil {
		t.Fatal(err)
	}
	var lines []byte
	r := rand.New(rand.NewPCG(1, 3))
	for i := range 4000 {
		lines = fmt.Appendf(lines, `{"attrs":{"n":%d,"id":"%0200x"}}`+"\n", i%7, r.Uint64())
	}
	block, l, most := enc.Append(nil, lines), newLens(q, &f), 0
	for range 3 {
		f.tables.begin = true
		for i := range maxTables {
			if _, err := l.unpack(nil, block, len(lines), columns.Range{}); err != nil {
				t.Fatal(err)
			}
			if i == 0 && f.tables.held() > maxTableBytes {
				t.Fatalf("%d bytes are kept", f.tables.held())
			}
			most = max(most, f.tables.held())
		}
	}
	if most < 2*maxTableBytes {
		t.Errorf("at most %d bytes: that proves nothing", most)
	}
}
