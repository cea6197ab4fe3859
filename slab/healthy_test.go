package slab_test

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rollway/rollway/rollwaytest"
	"github.com/rollway/rollway/slab"
)

// longest is the longest that one call took.
type longest struct {
	mu sync.Mutex
	d  time.Duration
}

func (l *longest) see(d time.Duration) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.d = max(l.d, d)
}

// saturate writes n lines from each of eight goroutines as fast as w takes them,
// and returns how long the longest call took.
func saturate(t *testing.T, w *slab.Writer, n, pad int) time.Duration {
	var most longest
	var wg sync.WaitGroup
	for p := range 8 {
		wg.Go(func() {
			for seq := range n {
				l := fmt.Sprintf("%d %d %s\n", p, seq, strings.Repeat("p", pad))
				start := time.Now()
				if _, err := w.Write([]byte(l)); err != nil {
					t.Errorf("Write: %v", err)
				}
				most.see(time.Since(start))
			}
		})
	}
	wg.Wait()
	return most.d
}

const maxWait = 100 * time.Millisecond

// TestHealthyFailoverLosesNothing: whatever the destination does, no line is lost
// and no call takes longer than MaxWait as long as the failover works.
func TestHealthyFailoverLosesNothing(t *testing.T) { roads(t, testHealthyFailoverLosesNothing) }

func testHealthyFailoverLosesNothing(t *testing.T, on front) {
	for name, fail := range map[string]func(*rollwaytest.Destination, *rand.Rand){
		"hangs":  func(d *rollwaytest.Destination, _ *rand.Rand) { d.Stall() },
		"errors": func(d *rollwaytest.Destination, _ *rand.Rand) { d.Fail(syscall.EIO) },
		"panics": func(d *rollwaytest.Destination, _ *rand.Rand) { d.Always(rollwaytest.Fault{Panic: "bang"}) },
		"late errors": func(d *rollwaytest.Destination, _ *rand.Rand) {
			d.Always(rollwaytest.Fault{Delay: maxWait / 3, Err: syscall.EIO})
		},
		"slow": func(d *rollwaytest.Destination, _ *rand.Rand) {
			d.Always(rollwaytest.Fault{Delay: maxWait * 2 / 5, Take: 1 << 20})
		},
		"slower": func(d *rollwaytest.Destination, _ *rand.Rand) {
			d.Always(rollwaytest.Fault{Delay: maxWait * 9 / 10, Take: 1 << 20})
		},
		"slowest": func(d *rollwaytest.Destination, _ *rand.Rand) {
			d.Always(rollwaytest.Fault{Delay: maxWait * 3, Take: 1 << 20})
		},
		"slow in parts": func(d *rollwaytest.Destination, _ *rand.Rand) {
			d.Always(rollwaytest.Fault{Delay: maxWait / 2, Take: 50})
		},
		"all of it": func(d *rollwaytest.Destination, rng *rand.Rand) {
			for range 1000 {
				d.Next(rollwaytest.Fault{
					Delay: time.Duration(rng.IntN(4)) * rand.N(maxWait),
					Take:  rng.IntN(2) * rng.IntN(600),
					Err:   []error{nil, syscall.EIO}[rng.IntN(2)],
				})
			}
		},
	} {
		for seed := range uint64(3) {
			t.Run(fmt.Sprint(name, " ", seed), func(t *testing.T) {
				t.Parallel()
				synctest.Test(t, func(t *testing.T) {
					rng := rand.New(rand.NewPCG(seed, 4))
					w, first, second := on.openTwo(t, slab.Options{SlabSize: 512, SlabCount: on.slabs(2 + 3*int(seed))})
					second.Always(rollwaytest.Fault{Delay: time.Millisecond, Take: 1 << 20})
					fail(first, rng)
					n, pad := 400/int(1+seed), []int{10, 150, 400}[seed] // the longest fill a slab
					if d := saturate(t, w, n, pad); d > maxWait {
						t.Errorf("the longest call took %v", d)
					}
					if s := w.Stats(); s.Dropped.Total() != 0 || s.FailedOver == 0 && (name != "slow" || pad == 400) {
						t.Errorf("Stats = %+v, want no line dropped, and the failover used", s)
					}
					first.Heal()
					if err := w.Close(); err != nil {
						t.Error(err)
					}
					ledger(w).CheckSettled(t, 8*n, 8*n)
					at := make(map[string]bool)
					for _, d := range []*rollwaytest.Destination{first, second} {
						follow(t, d)
						for _, l := range d.Lines() {
							at[l] = true
						}
					}
					if len(at) != 8*n {
						t.Errorf("%d different lines arrived, want %d", len(at), 8*n)
					}
				})
			})
		}
	}
}

// TestBothDestinationsDead: no call takes longer than MaxWait, and all but the
// first do not wait.
func TestBothDestinationsDead(t *testing.T) { fronts(t, testBothDestinationsDead) }

func testBothDestinationsDead(t *testing.T, on front) {
	for name, fail := range map[string]func(*rollwaytest.Destination){
		"hang":   func(d *rollwaytest.Destination) { d.Stall() },
		"errors": func(d *rollwaytest.Destination) { d.Fail(syscall.EIO) },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w, first, second := on.openTwo(t, slab.Options{SlabSize: 512})
				fail(first)
				fail(second)
				start := time.Now()
				if d := saturate(t, w, 1000, 20); d != maxWait {
					t.Errorf("the longest call took %v, want %v", d, maxWait)
				}
				if d := time.Since(start); d != maxWait {
					t.Errorf("8000 calls took %v, want %v", d, maxWait)
				}
				s := w.Stats()
				ledger(w).Check(t)
				if s.Pending == 0 || s.Dropped.Full != 8000-s.Pending || !s.Failing {
					t.Errorf("Stats = %+v, want the lines that found room pending, the others dropped", s)
				}
				second.Heal()
				if err := w.Flush(t.Context()); err != nil {
					t.Error(err)
				}
				first.Heal()
				if err := w.Close(); err != nil {
					t.Error(err)
				}
				ledger(w).CheckSettled(t, 8000, int(s.Pending))
			})
		})
	}
}

// TestTimeToFailOver: with each policy the failover has taken lines within
// MaxWait of the beginning of the fault, also when nobody waits for room.
func TestTimeToFailOver(t *testing.T) { fronts(t, testTimeToFailOver) }

func testTimeToFailOver(t *testing.T, on front) {
	for name, fail := range map[string]func(*rollwaytest.Destination){
		"hang":   func(d *rollwaytest.Destination) { d.Stall() },
		"errors": func(d *rollwaytest.Destination) { d.Fail(syscall.EIO) },
	} {
		for _, full := range []slab.Policy{slab.Bounded, slab.Block, slab.Drop} {
			t.Run(fmt.Sprint(name, " ", full), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					w, first, second := on.openTwo(t, slab.Options{SlabSize: 512, Full: full, MaxWait: time.Second})
					fail(first)
					put(t, w, numbered(0, 30))
					go w.Flush(t.Context())
					time.Sleep(time.Second)
					synctest.Wait()
					if got := seqs(t, "the failover", second); len(got) != 1 || !w.Stats().FailingOver {
						t.Errorf("after MaxWait the failover has %v", got)
					}
					first.Heal()
				})
			})
		}
	}
}

// TestLongSyncIsNotAFailure: a Sync may take longer than MaxWait, but under
// pressure the lines go to the failover meanwhile.
func TestLongSyncIsNotAFailure(t *testing.T) { fronts(t, testLongSyncIsNotAFailure) }

func testLongSyncIsNotAFailure(t *testing.T, on front) {
	for _, full := range []slab.Policy{slab.Bounded, slab.Drop} {
		t.Run(full.String(), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				first, second := &slowSyncer{takes: time.Second}, new(rollwaytest.Destination)
				w, err := on.New(first, slab.Options{SlabSize: 512, Failover: second, Full: full, OnError: func(error) {}})
				if err != nil {
					t.Fatal(err)
				}
				put(t, w, numbered(0, 30))
				if err := w.Sync(); err != nil || w.Stats().FailedOver != 0 {
					t.Errorf("Sync = %v, %d lines at the failover, want nil and none", err, w.Stats().FailedOver)
				}
				synced := make(chan error, 1)
				go func() { synced <- w.Sync() }()
				synctest.Wait()
				n := 1
				for end := time.Now().Add(time.Second / 2); time.Now().Before(end); time.Sleep(time.Millisecond) {
					for range 10 {
						put(t, w, numbered(n, 30))
						n++
					}
				}
				s := w.Stats()
				if s.FailedOver == 0 || full == slab.Bounded && s.Dropped.Total() != 0 {
					t.Errorf("Stats = %+v, want lines at the failover", s)
				}
				if err := <-synced; err == nil {
					t.Error("Sync = nil although it was left")
				}
				time.Sleep(2 * time.Second)
				if err := w.Close(); err != nil {
					t.Error(err)
				}
				ledger(w).Check(t)
			})
		})
	}
}
