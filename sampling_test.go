package rollway

import (
	"bytes"
	"context"
	"io"
	"log/slog"
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
		if got := l.Stats().LeftOut; got != 18 {
			t.Errorf("Stats.LeftOut = %d, want 18", got)
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
	if got := uint64(len(out.lines)-reports) + l.Stats().LeftOut; got != goroutines*each {
		t.Errorf("%d written and %d left out are %d, want %d", len(out.lines)-reports, l.Stats().LeftOut, got, goroutines*each)
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
