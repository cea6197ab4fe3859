package direct

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/rollway/rollway/bench/internal/child"
	"github.com/rollway/rollway/internal/testkit"
)

func TestMain(m *testing.M) {
	child.Main()
	os.Exit(m.Run())
}

// TestExperimentsRun: that no design loses a record which must not is checked
// by every run itself; timing figures are not looked at.
func TestExperimentsRun(t *testing.T) {
	testkit.Nightly(t, testkit.Bench, "it measures for real, if briefly")
	s := Settings{Dir: t.TempDir(), Short: true}
	raced := testkit.Race(t, "rivals have races of their own")
	for _, e := range Experiments() {
		for _, u := range e.plan(s) {
			if raced && u.design.Lossy { // what the published design does without waiting is a race
				continue
			}
			sample, err := e.take(u, s.Dir)
			if err != nil {
				t.Fatal(err)
			}
			x := sample.Extra
			if x["given"] == 0 || x["accepted"]+x["refused"] != x["given"] {
				t.Errorf("%s, %s, %s: given %v, accepted %v, refused %v", e.Name, u.design.Name, u.mode, x["given"], x["accepted"], x["refused"])
			}
		}
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
	if len(runs) != 4 {
		t.Fatalf("%d runs, want 4", len(runs))
	}
	long := runs[3]
	for _, r := range runs {
		v, given := r.Verified, r.Requests+s.warm()
		if r.Failed > 0 || r.Logging && (v.Found != v.Accepted || v.Accepted+r.Server.Dropped != given || v.NULs > 0) {
			t.Errorf("%s: of %d requests %d failed, %d were dropped: %+v", r.Name, given, r.Failed, r.Server.Dropped, v)
		}
		if left, err := filepath.Glob(filepath.Join(s.Dir, "rollway-*")); err != nil || len(left) > 0 {
			t.Errorf("files are left: %v, %v", left, err)
		}
	}
	if copies := runs[2]; !copies.Copies || copies.Logging {
		t.Errorf("the control is %+v", copies)
	}
	if long.Verified.Files < 2 && long.Server.Dropped == 0 {
		t.Errorf("the log was never rotated: %+v", long.Verified)
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
