package slab_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rollway/rollway/rollwaytest"
	"github.com/rollway/rollway/slab"
)

// TestNoticesShareARequest: under overload each Write carries a slab of lines,
// with the notice of what was lost before them, and no Write carries a notice
// alone.
func TestNoticesShareARequest(t *testing.T) { fronts(t, testNoticesShareARequest) }

func testNoticesShareARequest(t *testing.T, on front) {
	for _, full := range []slab.Policy{slab.Bounded, slab.Drop} {
		t.Run(full.String(), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w, dst := on.open(t, slab.Options{SlabSize: 1024, SlabCount: 4, Full: full})
				const takes = 200 * time.Millisecond
				dst.Always(rollwaytest.Fault{Delay: takes, Take: 1 << 20})
				n := 0
				begin := time.Now()
				for time.Since(begin) < 40*takes {
					for range 20 {
						put(t, w, numbered(n, 50))
						n++
					}
					time.Sleep(time.Millisecond)
				}
				s := w.Stats()
				if s.Dropped.Full < uint64(n/2) {
					t.Fatalf("%d of %d lines dropped, want most", s.Dropped.Full, n)
				}
				writes := dst.Writes()
				noticed, partial := 0, 0
				for i, p := range writes {
					all := strings.SplitAfter(strings.TrimSuffix(p, "\n"), "\n")
					if isNotice(all[0]) {
						noticed++
						all = all[1:]
					}
					if len(all) < 20 && on.shards > 1 { // each tick queues what a shard has
						partial++
					}
					if len(all) != 20 && (on.shards == 1 || len(all) == 0) || slices.ContainsFunc(all, isNotice) { // 20 lines of 51 bytes are a slab
						t.Fatalf("Write %d has %d lines besides the notice: %q", i, len(all), p)
					}
				}
				if partial > len(writes)/3 {
					t.Errorf("%d of %d Writes with less than a slab, want few", partial, len(writes))
				}
				if len(writes) < 38 || noticed < len(writes)-6 {
					t.Errorf("%d Writes, %d with a notice, in the time of 40, want nearly all", len(writes), noticed)
				}
				dst.Heal()
				if err := w.Close(); err != nil {
					t.Fatal(err)
				}
				settled(t, w, dst, n)
				announced(t, dst, w.Stats())
			})
		})
	}
}

// TestNoticeWithPartialWrites: notices and the lines after them arrive once and
// whole however the destination cuts a Write, and whichever takes the rest.
func TestNoticeWithPartialWrites(t *testing.T) { fronts(t, testNoticeWithPartialWrites) }

func testNoticeWithPartialWrites(t *testing.T, on front) {
	for _, two := range []bool{false, true} {
		for cut := range 2 * len(notice(1, "buffer full")) {
			synctest.Test(t, func(t *testing.T) {
				o := slab.Options{SlabSize: 64, SlabCount: 4, MaxLine: 64, Full: slab.Drop, OnError: func(error) {}}
				first, second := new(rollwaytest.Destination), new(rollwaytest.Destination)
				if two {
					o.Failover = second
				}
				w, err := on.New(first, o)
				if err != nil {
					t.Fatal(err)
				}
				first.Always(rollwaytest.Fault{Delay: time.Millisecond, Take: 1 << 20})
				put(t, w, numbered(0, 60), numbered(1, 60), numbered(4, 60), numbered(5, 60), numbered(2, 60))
				if _, err := w.Write(make([]byte, 100)); err == nil { // a notice of two lines
					t.Error("a line of 100 bytes was taken")
				}
				time.Sleep(4 * time.Millisecond)
				put(t, w, numbered(3, 30))
				first.Heal()
				first.Next(rollwaytest.Fault{Take: cut})
				if two {
					first.Fail(nil)
				} else {
					first.Next(rollwaytest.Fault{Take: 7}, rollwaytest.Fault{Take: 1})
				}
				if err := w.Flush(t.Context()); err != nil {
					t.Fatal(err)
				}
				first.Heal()
				if err := w.Close(); err != nil {
					t.Fatal(err)
				}
				at := make(map[string]bool)
				for _, dst := range []*rollwaytest.Destination{first, second} {
					for _, l := range dst.Lines() {
						at[l] = true
					}
					if b := dst.Bytes(); len(b) > 0 && b[len(b)-1] != '\n' {
						t.Errorf("cut at %d: the end is torn: %q", cut, b)
					}
				}
				s := w.Stats()
				if len(at) != 7 || s.Written != 5 || s.Notices != 2 || s.Dropped.Full != 1 || s.Dropped.TooLarge != 1 {
					t.Errorf("cut at %d: %v arrived, Stats %+v, want 5 lines and 2 notices", cut, at, s)
				}
				ledger(w).Check(t)
			})
		}
	}
}

// TestNoticeOfAGivenUpSlab: what the notices of a slab that was given up
// announced is announced before the next one, once.
func TestNoticeOfAGivenUpSlab(t *testing.T) { fronts(t, testNoticeOfAGivenUpSlab) }

func testNoticeOfAGivenUpSlab(t *testing.T, on front) {
	size := len(`{"time":"2000-01-01T00:00:00.000000000Z","level":"WARN",`) + len(notice(1, "buffer full")) + 1
	head := 2*size + len("line too large") - len("buffer full")
	for _, take := range []int{0, 10, size, size + 10, head, head + 20} {
		t.Run(fmt.Sprint(take, " bytes taken"), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w, dst := on.open(t, slab.Options{SlabSize: 64, SlabCount: 4, MaxLine: 64, Full: slab.Drop, GiveUp: time.Second})
				dst.Always(rollwaytest.Fault{Delay: time.Millisecond, Take: 1 << 20})
				put(t, w, numbered(0, 60), numbered(1, 60), numbered(5, 60), numbered(6, 60), numbered(2, 60))
				if _, err := w.Write(make([]byte, 100)); err == nil {
					t.Error("a line of 100 bytes was taken")
				}
				time.Sleep(150 * time.Millisecond) // the slabs are written, the notice is not yet alone
				if take > 0 {
					dst.Next(rollwaytest.Fault{Take: take})
				}
				dst.Fail(nil)
				put(t, w, numbered(3, 60))
				time.Sleep(10 * time.Second)
				dst.Heal()
				put(t, w, numbered(4, 60))
				_ = w.Close()
				ledger(w).Check(t)
				announced(t, dst, w.Stats())
				got, _ := lines(dst)
				if want := []string{numbered(0, 60), numbered(1, 60), numbered(5, 60), numbered(6, 60), numbered(3, 60), numbered(4, 60)}; take > head {
					if !slices.Equal(got, want) {
						t.Errorf("lines %q, want %q", got, want)
					}
				} else if want = slices.Delete(want, 4, 5); !slices.Equal(got, want) {
					t.Errorf("lines %q, want %q", got, want)
				}
			})
		})
	}
}

// TestLossIsAnnouncedOnceNothingComes: when no line comes to carry it, a notice
// is written alone, after FlushInterval or for a Flush.
func TestLossIsAnnouncedOnceNothingComes(t *testing.T) {
	fronts(t, testLossIsAnnouncedOnceNothingComes)
}

func testLossIsAnnouncedOnceNothingComes(t *testing.T, on front) {
	for _, flush := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			w, dst := on.open(t, slab.Options{SlabSize: 64, SlabCount: 4, Full: slab.Drop})
			dst.Next(rollwaytest.Fault{Delay: time.Millisecond, Take: 64}) // until all was put
			put(t, w, numbered(0, 60), numbered(1, 60), numbered(3, 60), numbered(4, 60), numbered(2, 60))
			if flush {
				if err := w.Flush(t.Context()); err != nil {
					t.Fatal(err)
				}
			} else {
				time.Sleep(250 * time.Millisecond)
			}
			_, notices := lines(dst)
			want(t, "notices", notices, []string{notice(1, "buffer full")})
			if err := w.Close(); err != nil {
				t.Fatal(err)
			}
			settled(t, w, dst, 5)
		})
	}
}
