package query

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"io"
	"os"
	"path/filepath"
	"reflect"
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

// TestCorpus: a size and a seed make the same lines each time, all valid, with rising
// times within the days.
func TestCorpus(t *testing.T) {
	write := func(seed uint64) ([]byte, Corpus) {
		var out bytes.Buffer
		c, err := Write(&out, 4<<20, seed)
		if err != nil {
			t.Fatal(err)
		}
		return out.Bytes(), c
	}
	text, c := write(1)
	again, _ := write(1)
	other, _ := write(2)
	if sha256.Sum256(text) != sha256.Sum256(again) || bytes.Equal(text, other) {
		t.Error("the seed does not decide")
	}
	if c.Bytes != int64(len(text)) || c.Lines != int64(bytes.Count(text, []byte("\n"))) || bytes.Count(text, []byte(c.Needle)) != 1 || !bytes.Contains(text, []byte(c.Trace)) || c.Trace == "" {
		t.Errorf("it says %+v of %d bytes", c, len(text))
	}
	before, services, system := "", map[string]int{}, 0
	for line := range bytes.Lines(text) {
		var l struct {
			Time, Service, Msg, Level string
			Attrs                     map[string]any
		}
		if err := json.Unmarshal(line, &l); err != nil || l.Msg == "" || l.Level == "" || l.Time <= before {
			t.Fatalf("%s: %v", line, err)
		}
		before = l.Time
		if len(l.Attrs) == 8 {
			services[l.Service]++
		} else {
			system++
		}
	}
	if end := Begin.AddDate(0, 0, Days+1).Format("2006-01-02"); before >= end || before < Begin.AddDate(0, 0, Days-1).Format("2006-01-02") {
		t.Errorf("the last time is %s", before)
	}
	if share := float64(system) / float64(c.Lines); len(services) != 20 || share < 0.37 || share > 0.43 {
		t.Errorf("%d services, %.2f of the lines are of daemons", len(services), share)
	}
}

// TestDiffer: what is no estimate must be equal.
func TestDiffer(t *testing.T) {
	for _, c := range []struct {
		a, b     string
		estimate float64
		same     bool
	}{
		{"x\t100", "x\t100", 0, true},
		{"x\t100", "x\t100.5", 0, false},
		{"x\t100", "x\t100.5", 0.01, true},
		{"x\t100", "x\t102", 0.01, false},
		{"x\t100", "y\t100", 0.01, false},
		{"100", "100.5", 0.01, false},
	} {
		if err := (Query{estimate: c.estimate}).differ([]string{c.a}, []string{c.b}); (err == nil) != c.same {
			t.Errorf("%+v: %v", c, err)
		}
	}
	if (Query{}).differ(nil, []string{"1"}) == nil {
		t.Error("a missing row is no difference")
	}
}

// TestLeaveOut: an engine that takes too long is ended with all that it started, and left out.
// A measurement that is cancelled ends.
func TestLeaveOut(t *testing.T) {
	if child.Missing != "" {
		t.Skip("it needs " + child.Missing)
	}
	testkit.Program(t, "zstd")
	testkit.Program(t, "rg")
	dir := t.TempDir()
	file := filepath.Join(dir, "lines")
	if err := os.WriteFile(file, []byte("{}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, cancelled := range []bool{false, true} {
		folder := t.TempDir()
		e, err := startPipe(folder)
		if err != nil {
			t.Fatal(err)
		}
		if _, _, err := e.load(file); err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancelCause(t.Context())
		defer cancel(nil)
		r := &runner{Settings: Settings{Limit: 200 * time.Millisecond}, ctx: ctx, log: t.Output(), run: Run{LeftOut: map[string]string{}}}
		r.members = []*member{{Engine: Engine{Name: Pipe}, engine: e, answers: make([]Answer, 1)}}
		if cancelled {
			cancel(io.ErrUnexpectedEOF)
		}
		pid := filepath.Join(folder, "pid")
		_, err = r.question(0, 0, &Query{Shell: "sh -c 'echo $$ >" + pid + "; exec sleep 1000'"})
		if cancelled {
			if !errors.Is(err, io.ErrUnexpectedEOF) {
				t.Errorf("cancelled: %v", err)
			}
			continue
		}
		if err != nil || len(r.members) > 0 || !strings.Contains(r.run.LeftOut[Pipe], "it took longer than 200ms") {
			t.Errorf("%d engines, left out %v, %v", len(r.members), r.run.LeftOut, err)
		}
		text, err := os.ReadFile(pid)
		if err != nil {
			t.Fatal(err)
		}
		for begin := time.Now(); ; time.Sleep(time.Millisecond) {
			stat, err := os.ReadFile("/proc/" + strings.TrimSpace(string(text)) + "/stat")
			if err != nil || strings.Contains(string(stat), ") Z ") {
				break
			}
			if time.Since(begin) > 10*time.Second {
				t.Fatal("what the engine started still runs")
			}
		}
	}
}

// TestMeasure asks the engines that are on this machine.
func TestMeasure(t *testing.T) {
	if child.Missing != "" {
		t.Skip("it needs " + child.Missing)
	}
	s := Settings{Size: 4 << 20, Seed: 1, Rounds: 1, Dir: t.TempDir(), Limit: time.Minute, Time: time.Minute}
	run, err := Measure(t.Context(), t.Output(), s)
	if err != nil {
		t.Fatal(err)
	}
	if len(run.Engines)+len(run.LeftOut) != len(kinds) || run.Engines[0].Name != Rollway {
		t.Fatalf("engines %+v, left out %v", run.Engines, run.LeftOut)
	}
	own := 0
	for _, a := range run.Answers {
		if a.Rows == 0 && a.Query != "l" || len(a.Warm) != 1 || len(a.Cold) != 1 || a.Warm[0].Wall <= 0 {
			t.Errorf("%+v", a)
		}
		if a.Engine == Rollway {
			own++
		}
	}
	for _, e := range run.Engines {
		if e.Stored <= 0 || e.Stored >= run.Bytes || e.Ingest.CPU <= 0 || e.Peak <= 0 || e.Storing <= 0 || e.Version == "" {
			t.Errorf("%+v", e)
		}
	}
	if own != 12 {
		t.Errorf("Rollway has answered %d of 12 questions", own)
	}
	if again, err := Measure(t.Context(), t.Output(), s); err != nil || !reflect.DeepEqual(again, run) {
		t.Errorf("what was measured is measured again: %v", err)
	}
	if err := s.Remove(); err != nil {
		t.Error(err)
	}
	if left, err := os.ReadDir(s.Dir); err != nil || len(left) > 0 {
		t.Errorf("%v is left, %v", left, err)
	}
}
