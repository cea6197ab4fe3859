package shard_test

import (
	"context"
	"errors"
	"os"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rollway/rollway/rollwaytest"
	"github.com/rollway/rollway/shard"
)

func TestBarrierErrors(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, dst := open(t, small)
		boom := errors.New("boom")
		for err, want := range map[error]error{boom: boom, syscall.EINVAL: nil, syscall.ENOTTY: nil, errors.ErrUnsupported: nil, nil: nil} {
			dst.FailSync(err)
			log(t, w, "one")
			if got := w.Sync(); !errors.Is(got, want) || want == nil && got != nil {
				t.Errorf("Sync with %v = %v, want %v", err, got, want)
			}
		}
		dst.Heal()
		dst.Fail(boom)
		log(t, w, "two", "three")
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if err := w.Flush(ctx); !errors.Is(err, context.DeadlineExceeded) || !errors.Is(err, boom) || !strings.Contains(err.Error(), "2 records still pending") {
			t.Errorf("Flush = %v", err)
		}
		began := time.Now()
		if err := w.Sync(); !errors.Is(err, context.DeadlineExceeded) || time.Since(began) != 5*time.Second {
			t.Errorf("Sync = %v after %v", err, time.Since(began))
		}
		if s := w.Stats(); !errors.Is(s.LastError, boom) || s.Errors == 0 {
			t.Errorf("Stats %+v", s)
		}
		dst.Heal()
		if err := w.Flush(t.Context()); err != nil {
			t.Error(err)
		}
		if err := w.Close(); err != nil {
			t.Error(err)
		}
		for _, err := range []error{w.Flush(t.Context()), w.Sync()} {
			if !errors.Is(err, os.ErrClosed) {
				t.Errorf("barrier after Close = %v", err)
			}
		}
		settled(t, w, 7, 7)
	})
}

func TestFlushTellsWhatWasGivenUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := small
		o.Retry.GiveUp = time.Second
		var reports []string
		o.OnError = func(err error) { reports = append(reports, err.Error()); panic("dropped") }
		w, dst := open(t, o)
		dst.Fail(nil)
		log(t, w, "one", "two")
		if err := w.Flush(t.Context()); !errors.Is(err, rollwaytest.ErrFault) || !strings.Contains(err.Error(), "gave up 2 records") {
			t.Errorf("Flush = %v", err)
		}
		dst.Heal()
		log(t, w, "three")
		if err := w.Flush(t.Context()); err != nil {
			t.Errorf("the next Flush = %v", err)
		}
		time.Sleep(time.Minute) // the announcement may have failed once, before the repair
		if l := dst.Lines(); len(l) != 2 || l[0] != "three" && l[1] != "three" || !strings.Contains(strings.Join(l, ""), `"reason":"destination failed","dropped":2`) {
			t.Errorf("the destination has %q", l)
		}
		if got := strings.Join(reports, "; "); strings.Count(got, "gave up 2 records after 1s") != 1 {
			t.Errorf("OnError got %q", reports)
		}
		if err := w.Close(); err == nil || !strings.Contains(err.Error(), "gave up 2 records") {
			t.Errorf("Close = %v", err)
		}
		settled(t, w, 3, 1)
	})
}

// OnError hears of the first loss of an episode of failure, and not of each buffer
// that is given up in it.
func TestLossIsBlamedOnceAnEpisode(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := small
		o.Retry, o.NoLossNotice = shard.Retry{Min: 10 * time.Millisecond, Max: 10 * time.Millisecond, GiveUp: time.Second}, true
		var reports []string
		o.OnError = func(err error) { reports = append(reports, err.Error()) }
		w, dst := open(t, o)
		given := 0
		for episode := range 3 {
			dst.Fail(nil)
			for range 4 {
				log(t, w, "lost")
				if err := w.Flush(t.Context()); err == nil {
					t.Error("Flush says that nothing was lost")
				}
			}
			dst.Heal()
			log(t, w, "kept")
			if err := w.Flush(t.Context()); err != nil {
				t.Error(err)
			}
			given += 5
			if got := strings.Count(strings.Join(reports, "\n"), "gave up 1 record after 1s"); got != episode+1 {
				t.Fatalf("%d losses were told of in %d episodes: %q", got, episode+1, reports)
			}
		}
		if err := w.Close(); err == nil || !strings.Contains(err.Error(), "gave up 12 records") {
			t.Errorf("Close = %v", err)
		}
		settled(t, w, given, 3)
	})
}

func TestCloseErrors(t *testing.T) {
	boom := errors.New("boom")
	for name, c := range map[string]struct {
		prepare func(*rollwaytest.Destination)
		want    string
		is      error
	}{
		"the destination's Close fails": {func(d *rollwaytest.Destination) { d.FailClose(boom) }, "close the destination: boom", boom},
		"the destination's Close hangs": {func(d *rollwaytest.Destination) { d.StallClose() }, "the destination's Close has not returned", context.DeadlineExceeded},
		"the destination fails":         {func(d *rollwaytest.Destination) { d.Fail(boom) }, "2 records dropped, 0 inside a write that has not returned", boom},
		"the destination hangs":         {func(d *rollwaytest.Destination) { d.Stall() }, "0 records dropped, 2 inside a write that has not returned", context.DeadlineExceeded},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				o := small
				o.CloseDestination, o.CloseTimeout = true, time.Second
				w, dst := open(t, o)
				c.prepare(dst)
				log(t, w, "one", "two")
				began := time.Now()
				err := w.Close()
				if err == nil || !strings.Contains(err.Error(), c.want) || !errors.Is(err, c.is) {
					t.Errorf("Close = %v", err)
				}
				if took := time.Since(began); took != 0 && took != time.Second {
					t.Errorf("Close took %v", took)
				}
				if again := w.Close(); again != err {
					t.Errorf("the second Close = %v", again)
				}
				if err := w.LogBytes([]byte("late")); err != os.ErrClosed {
					t.Errorf("LogBytes = %v", err)
				}
				dst.Heal()
				synctest.Wait()
				settled(t, w, 2, len(dst.Lines()))
			})
		})
	}
}
