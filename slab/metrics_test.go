package slab_test

import (
	"errors"
	"fmt"
	"io"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rollway/rollway/rollwaytest"
	"github.com/rollway/rollway/slab"
)

func TestWriteMetrics(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, dst := open(t, slab.Options{SlabSize: 64, SlabCount: 2, Full: slab.Drop})
		dst.Next(rollwaytest.Fault{Delay: 250 * time.Millisecond, Err: rollwaytest.ErrFault})
		for i := range 5 {
			putLevel(t, w, slog.LevelInfo, numbered(i, 60))
		}
		if err := w.Flush(t.Context()); err != nil {
			t.Fatal(err)
		}
		var b strings.Builder
		s := w.Stats()
		if err := s.WriteMetrics(&b, "log", "audit"); err != nil {
			t.Fatal(err)
		}
		if s.Accepted != 5 || s.Written != 2 {
			t.Fatalf("Stats = %+v", s)
		}
		for _, want := range []string{
			`lines_accepted_total{log="audit"} 5`,
			`lines_written_total{log="audit"} 2`,
			`lines_dropped_total{log="audit",reason="full"} 3`,
			`lines_dropped_by_level_total{log="audit",level="info"} 3`,
			`lines_dropped_by_level_total{log="audit",level="error"} 0`,
			`write_duration_seconds_sum{log="audit"} 0.25`,
			fmt.Sprintf(`write_duration_seconds_count{log="audit"} %d`, s.Writes),
			`write_duration_max_seconds{log="audit"} 0.25`,
			`write_errors_total{log="audit"} 1`,
			`stalled_seconds{log="audit"} 0`,
			`oldest_line_age_seconds{log="audit"} 0`,
			`memory_bytes{log="audit"} 128`,
			`slabs{log="audit"} 2`,
			`failing{log="audit"} 0`,
			`last_error_timestamp_seconds{log="audit"} 946684800.25`,
		} {
			if !strings.Contains(b.String(), "\nrollway_slab_"+want+"\n") {
				t.Errorf("no %s in:\n%s", want, b.String())
			}
		}
		if err := s.WriteMetrics(io.Discard, "level", "x"); err == nil {
			t.Error("a label level was taken")
		}
		broken, end := io.Pipe()
		broken.CloseWithError(errors.ErrUnsupported)
		if err := s.WriteMetrics(end); !errors.Is(err, errors.ErrUnsupported) {
			t.Errorf("a Writer that fails: %v", err)
		}
	})
}

// The mean is that of the Writes that have returned, 0 while none has.
func TestWriteMetricsMean(t *testing.T) {
	for writes, want := range map[uint64]string{0: "0", 4: "0.25"} {
		var b strings.Builder
		if err := (slab.Stats{Writes: writes, WriteTime: time.Second}).WriteMetrics(&b); err != nil {
			t.Fatal(err)
		}
		if !strings.Contains(b.String(), "\nrollway_slab_write_duration_mean_seconds "+want+"\n") {
			t.Errorf("no mean of %s in:\n%s", want, b.String())
		}
	}
}

// A call that hangs, and the lines that wait for it, have an age from their
// bounds on, and none once it has returned.
func TestMetricsOfAStall(t *testing.T) {
	fronts(t, func(t *testing.T, on front) {
		synctest.Test(t, func(t *testing.T) {
			w, dst := on.open(t, slab.Options{SlabSize: 64, SlabCount: 4})
			want := func(stalled, oldest time.Duration) {
				t.Helper()
				synctest.Wait()
				s := w.Stats()
				if s.Stalled != stalled || s.OldestAge.Round(time.Microsecond) != oldest {
					t.Errorf("Stalled = %v, OldestAge = %v, want %v, %v; %+v", s.Stalled, s.OldestAge, stalled, oldest, s)
				}
			}
			want(0, 0)
			dst.Stall()
			put(t, w, numbered(0, 50))
			time.Sleep(40 * time.Millisecond)
			put(t, w, numbered(1, 50)) // the first one is sealed, and its Write begins
			time.Sleep(90 * time.Millisecond)
			want(0, 130*time.Millisecond)
			time.Sleep(time.Second)
			want(1090*time.Millisecond, 1130*time.Millisecond)
			dst.Heal()
			time.Sleep(time.Millisecond)
			put(t, w, numbered(2, 50))
			time.Sleep(50 * time.Millisecond)
			want(0, 50*time.Millisecond) // the line that came last, in a slab that is being filled
			if err := w.Close(); err != nil {
				t.Error(err)
			}
			want(0, 0)
		})
	})
}
