package slab_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"os"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rollway/rollway/internal/testkit"
	"github.com/rollway/rollway/line"
	"github.com/rollway/rollway/rollwaytest"
	"github.com/rollway/rollway/slab"
)

// chaosOptions returns options drawn at random, without a failover.
func chaosOptions(rng *rand.Rand) slab.Options {
	o := slab.Options{
		Full:          slab.Policy(rng.IntN(3)),
		MaxWait:       time.Duration(1+rng.IntN(200)) * time.Millisecond,
		SlabSize:      64 << rng.IntN(4),
		SlabCount:     2 + rng.IntN(8),
		MaxLine:       600,
		FlushInterval: time.Duration(1+rng.IntN(20)) * time.Millisecond,
		CloseTimeout:  time.Duration(1+rng.IntN(2000)) * time.Millisecond,
		NoNotice:      rng.IntN(2) == 0,
		KeepOpen:      rng.IntN(2) == 0,
		OnError:       func(error) {},
	}
	if rng.IntN(2) == 0 {
		o.GiveUp = 300 * time.Millisecond
	}
	if rng.IntN(2) == 0 {
		o.WriteThrough = slog.LevelError
	}
	return o
}

// unsettle sets faults of d at random until stop is closed.
func unsettle(rng *rand.Rand, d *rollwaytest.Destination, stop <-chan struct{}) {
	for {
		switch rng.IntN(7) {
		case 0:
			d.Stall()
		case 1:
			d.Fail(nil)
		case 2:
			d.Always(rollwaytest.Fault{Delay: time.Duration(rng.IntN(150)) * time.Millisecond, Take: rng.IntN(200), Err: rollwaytest.ErrFault})
		case 3:
			d.Next(rollwaytest.Fault{Panic: "chaos"}, rollwaytest.Fault{Exit: true}, rollwaytest.Fault{Take: 3}, rollwaytest.Fault{})
		default:
			d.Heal()
		}
		select {
		case <-stop:
			return
		case <-time.After(time.Duration(rng.IntN(400)) * time.Millisecond):
		}
	}
}

// TestChaos draws options and faults at random, and closes the Writer amid them or, in
// every second run, once the faults are over. When all is healed and settled each line
// that Write took is at a destination or was dropped, never both; what was dropped is
// announced; and nothing is dropped if the Writer blocks and never gives up.
func TestChaos(t *testing.T) { roads(t, testChaos) }

func testChaos(t *testing.T, on front) {
	for seed := range uint64(testkit.RaceRounds(t, 25, 100)) {
		t.Run(fmt.Sprint("seed ", seed), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { chaos(t, on, seed) })
		})
	}
}

func chaos(t *testing.T, on front, seed uint64) {
	rng := rand.New(rand.NewPCG(seed, 11))
	o := on.fit(chaosOptions(rng), 64)
	dsts := []*rollwaytest.Destination{{}}
	if rng.IntN(2) == 0 {
		dsts = append(dsts, &rollwaytest.Destination{})
		o.Failover = dsts[1]
	}
	w, err := on.New(dsts[0], o)
	if err != nil {
		t.Fatal(err)
	}
	stop := make(chan struct{})
	var others, writers sync.WaitGroup
	for i, d := range dsts {
		others.Go(func() { unsettle(rand.New(rand.NewPCG(seed, uint64(20+i))), d, stop) })
	}
	others.Go(func() {
		for {
			ledger(w).Check(t)
			select {
			case <-stop:
				return
			case <-time.After(3 * time.Millisecond):
			}
		}
	})
	const producers = 4
	var accepted [producers]int
	for p := range producers {
		writers.Go(func() {
			rng := rand.New(rand.NewPCG(seed, uint64(30+p)))
			for seq := 0; seq < 200; {
				text, from := "", seq
				for range 1 + rng.IntN(3) {
					text += fmt.Sprintf("%d %d %s\n", p, seq, strings.Repeat("p", rng.IntN(30)))
					seq++
				}
				bare := text[:len(text)-rng.IntN(2)] // Write adds the newline
				var n int
				var err error
				switch l := slog.Level(4 * (rng.IntN(5) - 1)); {
				case l > slog.LevelError:
					n, err = w.Write([]byte(bare))
				case seq-from == 1 && rng.IntN(2) == 0:
					n, err = trying{w}.WriteLevel(l, []byte(text))
				default:
					n, err = w.WriteLevel(l, []byte(bare))
				}
				accepted[p] += int(line.Count([]byte(text[:n])))
				if errors.Is(err, os.ErrClosed) {
					return
				} else if err != nil {
					t.Errorf("Write: %v", err)
				}
				if rng.IntN(4) == 0 {
					time.Sleep(time.Duration(rng.IntN(30)) * time.Millisecond)
				}
				switch rng.IntN(200) {
				case 0:
					_ = w.Sync()
				case 1:
					ctx, cancel := context.WithTimeout(t.Context(), time.Duration(rng.IntN(50))*time.Millisecond)
					_ = w.Flush(ctx)
					cancel()
				}
			}
		})
	}
	end := func() {
		close(stop)
		others.Wait()
		for _, d := range dsts {
			d.Heal()
		}
	}
	amid := seed%2 == 0
	if amid {
		time.Sleep(time.Duration(rng.IntN(4000)) * time.Millisecond)
		_ = w.Close()
		writers.Wait()
		end()
	} else {
		time.Sleep(4 * time.Second)
		end()
		writers.Wait()
		if err := w.Shutdown(t.Context()); err != nil && !errors.Is(err, line.ErrLost) {
			t.Errorf("Shutdown: %v", err)
		}
	}
	time.Sleep(time.Minute) // calls under way return
	synctest.Wait()

	at := make(map[string]bool)
	for _, d := range dsts {
		next := follow(t, d)
		for p, n := range next {
			if n > 202 {
				t.Errorf("producer %d: line %d", p, n)
			}
		}
		got, _ := lines(d)
		for _, l := range got {
			var p, seq int
			fmt.Sscanf(l, "%d %d", &p, &seq)
			at[fmt.Sprint(p, seq)] = true
		}
		if d.Overlaps() > 0 {
			t.Errorf("%d calls overlap", d.Overlaps())
		}
	}
	sum := 0
	for _, n := range accepted {
		sum += n
	}
	ledger(w).CheckSettled(t, sum, len(at))
	s := w.Stats()
	sumsUp(t, s)
	if !amid && !o.NoNotice && o.Failover == nil {
		announced(t, dsts[0], s)
	}
	if !amid && o.Full == slab.Block && o.GiveUp == 0 && s.Dropped != (line.Drops{}) {
		t.Errorf("dropped %+v under Block", s.Dropped)
	}
	if s.SlabsFree != s.Slabs || s.Waiting != 0 {
		t.Errorf("Stats = %+v, want all slabs free and nobody waiting", s)
	}
	if t.Failed() {
		t.Logf("options %+v", o)
	}
}
