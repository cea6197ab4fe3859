package rollway

import (
	"bytes"
	"context"
	"io"
	"log/slog"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// msgs returns the messages of JSON lines, with `of` and `left_out` of reports.
func msgs(t *testing.T, b *bytes.Buffer) (out []string) {
	t.Helper()
	for l := range strings.Lines(b.String()) {
		_, rest, _ := strings.Cut(l, `"msg":"`)
		msg, rest, _ := strings.Cut(rest, `"`)
		if _, of, ok := strings.Cut(rest, `"of":"`); ok {
			of, _, _ = strings.Cut(of, `"`)
			msg += " of " + of
		}
		out = append(out, msg)
	}
	b.Reset()
	return out
}

func TestSampling(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var b bytes.Buffer
		l := mustNew(t, Options{Outputs: []Output{{Writer: &b}}, Sampling: &Sampling{First: 2, Then: 5}, Caller: LevelOff})
		s := slog.New(l.Handler())
		for i := range 20 {
			if i%2 == 0 {
				l.Info(t.Context(), "a")
			} else {
				s.Info("a")
			}
		}
		l.Warn(t.Context(), "a") // another level is another key
		for range 10 {
			l.Error(t.Context(), "e") // never left out
		}
		// Of 20: the first 2, then the 7th, 12th and 17th.
		if got := strings.Join(msgs(t, &b), " "); got != "a a a a a a e e e e e e e e e e" {
			t.Errorf("got %s", got)
		}
		time.Sleep(time.Second)
		l.Info(t.Context(), "b")
		if got := strings.Join(msgs(t, &b), ", "); got != "rollway: 15 lines left out by sampling of a, b" {
			t.Errorf("got %s", got)
		}
		for range 4 {
			l.Info(t.Context(), "b")
		}
		if err := l.Close(); err != nil {
			t.Fatal(err)
		}
		if got := strings.Join(msgs(t, &b), ", "); got != "b, rollway: 3 lines left out by sampling of b" {
			t.Errorf("at Close: %s", got)
		}
		if got := l.Stats().Sampled; got != 18 {
			t.Errorf("Stats.Sampled = %d, want 18", got)
		}
	})
}

func TestSamplingByKey(t *testing.T) {
	type tenant struct{}
	var b bytes.Buffer
	l := mustNew(t, Options{Outputs: []Output{{Writer: &b}}, Sampling: &Sampling{Period: time.Hour, First: 1, Key: func(ctx context.Context, _ slog.Level, _ string) string {
		return ctx.Value(tenant{}).(string) // panics without one
	}}})
	for _, name := range []string{"x", "y", "x"} {
		l.Info(context.WithValue(t.Context(), tenant{}, name), "for "+name)
	}
	l.Info(t.Context(), "no tenant")
	if got := strings.Join(msgs(t, &b), ", "); got != "for x, for y, no tenant" {
		t.Errorf("got %s", got)
	}
}

// TestSamplingLedger: written + left out = logged, with many goroutines and
// periods, and messages without end.
func TestSamplingLedger(t *testing.T) {
	out := &levelBuffer{}
	l := mustNew(t, Options{Outputs: []Output{{Writer: out}}, Sampling: &Sampling{Period: 2 * time.Millisecond, First: 3, Then: 10}})
	const goroutines, each = 8, 5000
	var wg sync.WaitGroup
	for range goroutines {
		wg.Go(func() {
			for i := range each {
				l.Info(context.Background(), "message "+itoa(i%50))
			}
		})
	}
	wg.Wait()
	if err := l.Flush(t.Context()); err != nil {
		t.Fatal(err)
	}
	reports := 0
	for _, line := range out.lines {
		if strings.Contains(line, "left out by sampling") {
			reports++
		}
	}
	if got := uint64(len(out.lines)-reports) + l.Stats().Sampled; got != goroutines*each {
		t.Errorf("%d written and %d left out are %d, want %d", len(out.lines)-reports, l.Stats().Sampled, got, goroutines*each)
	}
	for i := range 100_000 {
		l.Info(context.Background(), "unlike any other "+itoa(i))
	}
	for i := range l.core.sampler.shards {
		if n := len(l.core.sampler.shards[i].keys); n > maxSampled {
			t.Errorf("shard %d holds %d messages", i, n)
		}
	}
}

func TestSamplingErrors(t *testing.T) {
	for _, s := range []Sampling{{}, {First: 1, Then: -1}, {First: 1, Period: time.Microsecond}} {
		if _, err := New(Options{Outputs: []Output{{Writer: io.Discard}}, Sampling: &s}); err == nil || !strings.Contains(err.Error(), "Options.Sampling.") {
			t.Errorf("%+v: %v", s, err)
		}
	}
}

// TestSamplingByAttrs: records whose calls differ in one of these attributes are
// counted apart, and the report names them, with what Redact leaves of them.
func TestSamplingByAttrs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for name, c := range map[string]struct {
			redact *Redaction
			of     string
		}{
			"plain":    {nil, `http request route=\"GET /pay\" status=200`},
			"patterns": {&Redaction{Patterns: []*regexp.Regexp{regexp.MustCompile("pay")}}, `http request route=\"GET /[REDACTED]\" status=200`},
			"keys":     {&Redaction{Keys: []string{"g.route"}}, `http request route=\"[REDACTED]\" status=200`},
		} {
			var b bytes.Buffer
			l := mustNew(t, Options{Outputs: []Output{{Writer: &b}}, Sampling: &Sampling{Period: time.Second, First: 1, Attrs: []string{"route", "status"}}, Redact: c.redact}).WithGroup("g")
			s := slog.New(l.Handler())
			for range 3 {
				for _, route := range []string{"GET /pay", "GET /user/{id}"} {
					l.Info(t.Context(), "http request", slog.String("route", route), slog.Int("status", 200), slog.Duration("took", time.Second))
					s.Info("http request", "route", route, "status", 404)
				}
			}
			l.Info(t.Context(), "http request")
			if got := strings.Join(msgs(t, &b), ", "); got != strings.Repeat("http request, ", 4)+"http request" {
				t.Errorf("%s: got %s", name, got)
			}
			time.Sleep(time.Second)
			l.Info(t.Context(), "next")
			if got := b.String(); !strings.Contains(got, `"of":"`+c.of+`"`) {
				t.Errorf("%s: no %s in\n%s", name, c.of, got)
			}
		}
	})
}

// logsOnValue logs to l when it is asked for its value.
type logsOnValue struct{ l *Logger }

func (v logsOnValue) LogValue() slog.Value {
	for i := range 100 { // in the same shard, too
		v.l.Info(context.Background(), strconv.Itoa(i))
	}
	return slog.StringValue("value")
}

// A value by which records are told apart may log itself.
func TestSamplingOfAValueThatLogs(t *testing.T) {
	var w arrivals
	l := mustNew(t, Options{Outputs: []Output{{Writer: &w}}, Sampling: &Sampling{Period: time.Hour, First: 1, Attrs: []string{"k"}}})
	l.Info(t.Context(), "m", slog.Any("k", logsOnValue{l}))
	l.Info(t.Context(), "m", slog.String("k", "value"))
	if len(w.lines) != 101 {
		t.Errorf("%d lines", len(w.lines))
	}
}

// A clock that is set back by years ends the period that is under way, and with it
// no message is left out until the clock is there again.
func TestSamplingWhenClockIsSetBack(t *testing.T) {
	for _, step := range []time.Duration{-10 * 365 * 24 * time.Hour, -time.Hour, time.Hour, 10 * 365 * 24 * time.Hour} {
		now := time.Date(2026, 5, 28, 12, 0, 0, 0, time.UTC).UnixNano()
		s, err := newSampler(&Sampling{First: 1}, func() int64 { return now })
		if err != nil {
			t.Fatal(err)
		}
		takes := func() (bool, uint64) {
			ok, due := s.takes(t.Context(), slog.LevelInfo, "a", nil, nil)
			left := uint64(0)
			for _, d := range due {
				left += d.leftOut
			}
			return ok, left
		}
		for i := range 5 {
			if ok, _ := takes(); ok != (i == 0) {
				t.Errorf("record %d is written: %v", i, ok)
			}
		}
		now += int64(step)
		if ok, left := takes(); !ok || left != 4 {
			t.Errorf("clock set by %v: the next record is written: %v, after a report of %d, want 4", step, ok, left)
		}
		if ok, _ := takes(); ok {
			t.Errorf("clock set by %v: one more is written in the new period", step)
		}
	}
}

// A goroutine whose look at the clock is older than that of another begins no period.
func TestSamplingWithOlderLooksAtTheClock(t *testing.T) {
	start := time.Date(2026, 5, 28, 12, 0, 0, 0, time.UTC).UnixNano()
	now := start
	s, err := newSampler(&Sampling{First: 1}, func() int64 { return now })
	if err != nil {
		t.Fatal(err)
	}
	for i, at := range []int64{105, 100, 106, 99, 104} {
		now = start + at
		if ok, due := s.takes(t.Context(), slog.LevelInfo, "a", nil, nil); ok != (i == 0) || len(due) > 0 {
			t.Errorf("look %d: written %v, reports %v", i, ok, due)
		}
	}
}
