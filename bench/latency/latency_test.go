package latency

import (
	"io"
	"testing"
	"time"

	"github.com/rollway/rollway/bench/internal/lines"
	"github.com/rollway/rollway/bench/internal/pace"
	"github.com/rollway/rollway/internal/testkit"
)

// TestEveryWriterRuns: that lines arrive in form and order is checked by run
// itself; timing figures are not looked at.
func TestEveryWriterRuns(t *testing.T) {
	scenarios, err := Scenarios()
	if err != nil {
		t.Fatal(err)
	}
	raced := testkit.Race(t, "a rival has races of its own")
	for i := range scenarios {
		scenarios[i].Rate = 2000
		if raced { // AsyncWriter sets itself up without a lock
			scenarios[i].Writers = withoutPhuslu(scenarios[i].Writers)
		}
	}
	samples, err := Measure(io.Discard, scenarios, 1, 100*time.Millisecond)
	if err != nil {
		t.Fatal(err)
	}
	own := map[string]bool{}
	for _, s := range scenarios {
		for _, w := range s.Writers {
			own[w.Name] = own[w.Name] || w.Own
		}
	}
	for _, s := range samples {
		if s.Extra["lines"] != 200 {
			t.Errorf("%s, %s: %v lines", s.Library, s.Mode, s.Extra["lines"])
		}
		if own[s.Library] && s.Extra["lost"]+s.Extra["refused"]+s.Extra["counted"] != 0 {
			t.Errorf("%s, %s lost lines: %v", s.Library, s.Mode, s.Extra)
		}
		if s.Library == "direct" && s.Extra["call_max"] < float64(stall) {
			t.Errorf("direct, %s: the longest call took %v: the destination did not stall", s.Mode, time.Duration(s.Extra["call_max"]))
		}
	}
}

func withoutPhuslu(all []Writer) []Writer {
	var kept []Writer
	for _, w := range all {
		if w.Name != "phuslu AsyncWriter 4096" {
			kept = append(kept, w)
		}
	}
	return kept
}

// TestLateCallsCountFromTheirDueTime: one call of 50 ms makes those that came
// due meanwhile late, though each of them is quick.
func TestLateCallsCountFromTheirDueTime(t *testing.T) {
	alarm, err := pace.NewAlarm()
	if err != nil {
		t.Fatal(err)
	}
	defer alarm.Close()
	p := producer{alarm: alarm}
	p.produce(&slowOnce{delay: stall}, 0, 100, time.Now(), time.Millisecond, pace.MaxSpin)
	if n := p.call.Over(stall - time.Millisecond); n < 1 || p.call.Count() != 100 {
		t.Errorf("%d of %d calls were slow", n, p.call.Count())
	}
	if n := p.due.Over(10 * time.Millisecond); n < 30 {
		t.Errorf("%d calls ended 10 ms or more after they were due, want some 40", n)
	}
}

type slowOnce struct{ delay time.Duration }

func (s *slowOnce) Write(p []byte) (int, error) {
	time.Sleep(s.delay)
	s.delay = 0
	return len(p), nil
}

func TestDestinationNotices(t *testing.T) {
	line := func(producer, sequence int) []byte { return lines.Append(nil, lineBytes, producer, sequence) }
	d := newStalling(2, time.Now().Add(time.Hour))
	for _, p := range [][]byte{line(0, 0), line(0, 1), line(1, 0), line(0, 1), line(0, 0), line(1, 1)[:100]} {
		if _, err := d.Write(p); err != nil {
			t.Fatal(err)
		}
	}
	if d.lines != 3 || d.broken != 3 {
		t.Errorf("%d lines, %d broken, want 3 and 3", d.lines, d.broken)
	}
}
