package direct

import (
	"bytes"
	"io"
	"log"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/rollway/rollway/bench/internal/child"
	"github.com/rollway/rollway/bench/internal/measure"
	"github.com/rollway/rollway/bench/internal/report"
	"github.com/rollway/rollway/internal/testkit"
)

func TestMain(m *testing.M) {
	child.Main()
	log.SetOutput(io.Discard) // zerolog's diode prints a line for each collision
	os.Exit(m.Run())
}

// TestExperimentsRun: that no design loses a record which must not is checked
// by every run itself; timing figures are not looked at.
func TestExperimentsRun(t *testing.T) {
	testkit.Nightly(t, testkit.Bench, "it measures for real, if briefly")
	s, results := Settings{Dir: t.TempDir(), Short: true}, t.TempDir()
	raced := testkit.Race(t, "rivals have races of their own")
	for _, name := range Cases() {
		r := measure.NewResults(Kind, 1)
		for _, u := range s.Subjects(name) {
			// What the published design does without waiting is a race, and
			// AsyncWriter sets itself up without a lock.
			if raced && (u.Design.Lossy || strings.HasPrefix(u.Design.Name, "phuslu")) {
				continue
			}
			sample, err := u.take(s.Dir)
			if err != nil {
				t.Fatal(err)
			}
			x := sample.Extra
			if x["given"] == 0 || x["accepted"]+x["refused"] != x["given"] {
				t.Errorf("%s, %s, %s: given %v, accepted %v, refused %v", name, u.Design.Name, u.Mode, x["given"], x["accepted"], x["refused"])
			}
			r.Samples = append(r.Samples, sample)
		}
		if err := measure.Save(filepath.Join(results, File(name)), r); err != nil {
			t.Fatal(err)
		}
	}
	if raced {
		return
	}
	h := &Headlines{Results: *measure.NewResults(Kind, 1), Runs: make([]Run, 3)}
	if err := measure.Save(filepath.Join(results, FileHeadline), h); err != nil {
		t.Fatal(err)
	}
	made, err := Report(results)
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range Cases() {
		if !strings.Contains(made.Text, "raw results: "+report.Raw(File(name))) {
			t.Errorf("no table of %s", name)
		}
	}
	if _, err := Report(t.TempDir()); err == nil {
		t.Error("tables of no results were made")
	}
}

// TestHeadline: every record that the server took is found, whatever the
// machine makes of the load; Run fails if not.
func TestHeadline(t *testing.T) {
	testkit.Nightly(t, testkit.Bench, "it measures for real, if briefly")
	s := DefaultHeadline()
	s.Dir = t.TempDir()
	s.Short()
	runs, err := s.Run(t.Output())
	if err != nil {
		t.Fatal(err)
	}
	h := &Headlines{Results: *measure.NewResults(Kind, 1), Runs: runs}
	if err := measure.Save(filepath.Join(s.Dir, FileHeadline), h); err != nil {
		t.Fatal(err)
	}
	if back, err := LoadHeadlines(filepath.Join(s.Dir, FileHeadline)); err != nil || !reflect.DeepEqual(back.Runs, h.Runs) {
		t.Errorf("read back %+v, %v", back, err)
	}
	if len(runs) != 5 {
		t.Fatalf("%d runs, want 5", len(runs))
	}
	long := runs[4]
	for _, r := range runs {
		v, given := r.Verified, r.Requests+s.warm()
		if r.Failed > 0 || r.Logging && (v.Found != v.Accepted || v.Accepted+r.Server.Dropped != given || v.NULs > 0) {
			t.Errorf("%s: of %d requests %d failed, %d were dropped: %+v", r.Name, given, r.Failed, r.Server.Dropped, v)
		}
		if left, err := filepath.Glob(filepath.Join(s.Dir, "rollway-*")); err != nil || len(left) > 0 {
			t.Errorf("files are left: %v, %v", left, err)
		}
	}
	if busy := runs[2]; !busy.Disk || busy.Beside == 0 {
		t.Errorf("nothing was written beside: %+v", busy)
	}
	if copies := runs[3]; !copies.Copies || copies.Logging || copies.Disk {
		t.Errorf("the second control is %+v", copies)
	}
	if long.Verified.Files < 2 && long.Server.Dropped == 0 {
		t.Errorf("the log was never rotated: %+v", long.Verified)
	}
	text, err := report.Make(func() string { return h.tables(0) })
	if err != nil || !strings.Contains(text, "| records lost, all runs | 0 | 0 | yes |") || !strings.Contains(text, "\n| off, each record copied once in memory | ") {
		t.Errorf("%v in\n%s", err, text)
	}
	if svg := h.plot(); strings.Count(svg, "<polyline") != 6 || !strings.Contains(svg, "published") {
		t.Errorf("the plot is %s", svg)
	}
}

// TestDiskIsBusyFromTheStart: the disk has work before it is said to have, however
// soon the end comes.
func TestDiskIsBusyFromTheStart(t *testing.T) {
	j := job{Dir: t.TempDir(), Period: time.Hour, Bytes: 1000, Buffer: 128 << 10, Shards: 2}
	var said strings.Builder
	if err := keepDiskBusy(j, strings.NewReader(""), &said); err != nil || said.String() != "\"\"\n{\"Bytes\":65536}\n" {
		t.Errorf("%v, %q", err, said.String())
	}
}

// TestQuietPairs: noisy pairs are left out as long as five others remain.
func TestQuietPairs(t *testing.T) {
	all := make([]Run, 14)
	for i := range all {
		all[i].Logging = i%2 == 0
		all[i].GRPC.P99 = time.Duration(2 - i%2)
	}
	all[3].Others, all[8].Others = 90, 21
	if used := quietPairs(all); len(used) != 10 || noiseOf(all, used) != "2 left out as noisy; in those used other programs took up to 0 % of a core" {
		t.Errorf("%d runs used: %s", len(used), noiseOf(all, used))
	}
	all[0].Others = 30
	if used := quietPairs(all); len(used) != 14 {
		t.Errorf("%d runs used", len(used))
	}
	if r := pairRatios(all); len(r) != 7 || r[0] != 2 {
		t.Errorf("ratios %v", r)
	}
}

// TestVerdictOfFound: answers and files are compared.
func TestVerdictOfFound(t *testing.T) {
	f := found{Numbers: []uint64{1<<0 | 1<<3}}
	v := f.against([]byte{accepted, accepted, dropped, dropped, unanswered})
	if v.Accepted != 2 || v.Lost != 1 || v.Unasked != 1 {
		t.Errorf("%+v", v)
	}
}

func TestRecord(t *testing.T) {
	for _, size := range []int{minRecord, 300, headlineBytes - 1} {
		line := make([]byte, size+1)
		line[size] = '\n'
		fillRecord(line[:size], 12, 345)
		parse := parseRecord(size + 1)
		if p, n, ok := parse(line); p != 12 || n != 345 || !ok {
			t.Fatalf("size %d: %d, %d, %v of %.80s", size, p, n, ok, line)
		}
		for i := 0; i < size; i += 1 + size/200 {
			if i < recordCRC || i >= recordBody && i < recordBody+2 {
				continue // known by position, or part of the sum's field
			}
			line[i] ^= 1
			if _, _, ok := parse(line); ok {
				t.Errorf("size %d: a flipped bit in byte %d goes unseen", size, i)
			}
			line[i] ^= 1
		}
		if _, _, ok := parse(line[1:]); ok {
			t.Errorf("size %d: a record cut by a byte goes unseen", size)
		}
	}
}

// TestOutcome: what was accepted is compared with what is there, to the record.
func TestOutcome(t *testing.T) {
	const size = 100
	record := func(producer, number int) string {
		b := make([]byte, size-1)
		fillRecord(b, producer, number)
		return string(b)
	}
	file := record(0, 0) + "\n" + record(0, 2) + "\n" + record(1, 0)[:50] + record(1, 1)[50:] + "\n" + record(1, 1) + "\n"
	a := newAudit(2, parseRecord(size))
	if err := a.Read(strings.NewReader(file)); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		name   string
		taken  [][]bool
		lossy  bool
		failed bool
		lost   float64
	}{
		{"a torn record", [][]bool{{true, false, true}, {false, true}}, false, true, 0},
		{"of a lossy design", [][]bool{{true, false, true}, {false, true}}, true, false, 0},
		{"a lost record", [][]bool{{true, true, true}, {false, true}}, true, false, 1},
		{"a refused record that is there", [][]bool{{true, false, true}, {false, false}}, true, true, 0},
	} {
		if x, err := outcome(a, c.taken, size, c.lossy); (err != nil) != c.failed || err == nil && (x["lost"] != c.lost || x["torn"] != 1) {
			t.Errorf("%s: %v, %v", c.name, x, err)
		}
	}
}

// TestPublishedForgetsASet: while one set waits to be written, a second one
// that fills up is never written, and what was accepted into it is lost.
func TestPublishedForgetsASet(t *testing.T) {
	path := filepath.Join(t.TempDir(), "log")
	const size = 1024
	l, err := newCAS(Config{Path: path, BufferSize: 8 << 10, Shards: 1, Flush: time.Hour}, 1, 1)
	if err != nil {
		t.Fatal(err)
	}
	taken := [][]bool{make([]bool, 20)}
	record := make([]byte, size-1)
	accepted := 0
	for i := range taken[0] {
		fillRecord(record, 0, i)
		if err := l.LogBytes(record); err == nil {
			taken[0][i] = true
			accepted++
		}
	}
	go l.run()
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	a := newAudit(1, parseRecord(size))
	if err := readFile(a, path); err != nil {
		t.Fatal(err)
	}
	// Both sets were filled once each before anything was written.
	if x, err := outcome(a, taken, size, true); accepted != 16 || err != nil || x["lost"] != 8 || a.Found != 8 {
		t.Errorf("accepted %d, lost %v, found %d; want 16, 8 and 8: %v", accepted, x["lost"], a.Found, err)
	}
}

// TestEngines: every way to the file leaves the same lines there.
func TestEngines(t *testing.T) {
	for _, e := range []Engine{Buffered, Separate, Copied, Vectored} {
		for _, fresh := range []bool{false, true} {
			path := filepath.Join(t.TempDir(), "log")
			o, err := openOutput(Config{Path: path, IO: e, Unpooled: fresh})
			if err != nil {
				t.Fatal(err)
			}
			want := newAudit(3, parseRecord(500))
			for round := range 2 {
				var set [][]byte
				for p := range 3 {
					b := bytes.Repeat([]byte{'\n'}, 500*10*(p+1))
					for i := range len(b) / 500 {
						fillRecord(b[500*i:500*i+499], p, 100*round+i)
					}
					set = append(set, b)
				}
				if err := o.WriteSet(set); err != nil {
					t.Fatal(err)
				}
			}
			if err := o.Close(); err != nil {
				t.Fatal(err)
			}
			if err := readFile(want, path); err != nil {
				t.Fatal(err)
			}
			if want.Found != 120 || want.Torn+want.Repeated+want.Reordered > 0 || o.Figures().Flushes != 2 {
				t.Errorf("%v: found %d, torn %d", e, want.Found, want.Torn)
			}
		}
	}
}

// TestAllocators: the logger comes first, then the functions that allocated most.
func TestAllocators(t *testing.T) {
	before := map[string]int64{siteLogger: 10, "a": 5, "old": 7}
	now := map[string]int64{siteLogger: 2_000_010, "a": 1_000_005, "b": 3_000_000, "old": 7}
	want := []Allocator{{siteLogger, 1}, {"b", 1.5}, {"a", 0.5}}
	if got := allocators(before, now, 2); !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
}
