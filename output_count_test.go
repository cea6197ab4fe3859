package rollway

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"math/rand/v2"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// moody is a writer that takes lines, or fails in every way that there is.
type moody struct {
	calm      atomic.Bool
	took      atomic.Uint64 // lines, notices left out
	announced atomic.Uint64 // lines that notices say were lost
}

func (m *moody) Write(p []byte) (int, error) {
	mood := rand.IntN(12)
	if m.calm.Load() {
		mood = 12
	}
	switch mood {
	case 0:
		return 0, errors.New("moody")
	case 1:
		return len(p) - 1, nil
	case 2:
		panic("moody")
	case 3:
		runtime.Goexit()
	case 4:
		return len(p), io.ErrShortWrite
	}
	var line struct {
		Msg   string
		Attrs struct{ Dropped uint64 }
	}
	if err := json.Unmarshal(p, &line); err != nil {
		return 0, err
	}
	if line.Msg == "m" {
		m.took.Add(1)
	}
	m.announced.Add(line.Attrs.Dropped)
	return len(p), nil
}

func (m *moody) Flush() error { return nil }
func (m *moody) Sync() error  { return nil }

// leveledMoody is told the level, and so is called by several at once.
type leveledMoody struct{ moody }

func (m *leveledMoody) WriteLevel(_ slog.Level, p []byte) (int, error) { return m.Write(p) }

// Written is what the writer took, exactly, what it did not take is GaveUp and,
// where the Logger announces it, announced once, while others flush and look: for a writer of its own, for one that two outputs
// share, for one that is told the level.
func TestOutputCountsAreExact(t *testing.T) {
	own, shared, leveled := &moody{}, &moody{}, &leveledMoody{}
	for name, c := range map[string]struct {
		outputs []Output
		w       *moody
	}{
		"of its own":     {[]Output{{Writer: own}}, own},
		"shared":         {[]Output{{Writer: shared}, {Writer: shared, Level: slog.LevelError}}, shared},
		"told the level": {[]Output{{Writer: leveled}}, &leveled.moody},
	} {
		t.Run(name, func(t *testing.T) {
			log := mustNew(t, Options{Outputs: c.outputs, MaxWait: time.Minute, OnError: func(error) {}})
			const producers, each = 8, 1500
			var stop atomic.Bool
			var others, writers sync.WaitGroup
			for _, f := range []func(){
				func() { log.Flush(context.Background()) },
				func() { log.Sync(context.Background()) },
				func() {
					if o := log.Stats().Outputs[0]; o.Written+o.Dropped.GaveUp > producers*each || o.Err() != nil {
						t.Errorf("%+v of %d", o, producers*each)
					}
				},
			} {
				others.Go(func() {
					for !stop.Load() {
						f()
						time.Sleep(50 * time.Microsecond)
					}
				})
			}
			for range producers {
				writers.Go(func() {
					for range each {
						var one sync.WaitGroup // the writer may end the goroutine that calls
						one.Go(func() { log.Info(context.Background(), "m") })
						one.Wait()
					}
				})
			}
			writers.Wait()
			stop.Store(true)
			others.Wait()
			c.w.calm.Store(true)
			log.Info(context.Background(), "m")
			if err := log.Close(); err != nil {
				t.Error(err)
			}
			o := log.Stats().Outputs[0]
			if o.Written != c.w.took.Load() || o.Accepted != producers*each+1 || o.Err() != nil || o.Dropped.Total() != o.Dropped.GaveUp {
				t.Errorf("%+v, but the writer took %d of %d", o, c.w.took.Load(), producers*each+1)
			}
			if got := c.w.announced.Load(); got != o.Dropped.GaveUp && name != "told the level" {
				t.Errorf("%d lines failed, %d announced", o.Dropped.GaveUp, got)
			}
		})
	}
}
