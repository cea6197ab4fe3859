package slab_test

import (
	"errors"
	"fmt"
	"log/slog"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rollway/rollway/line"
	"github.com/rollway/rollway/rollwaytest"
	"github.com/rollway/rollway/slab"
)

func TestWaitingProducersGetInFirstComeFirstServed(t *testing.T) {
	fronts(t, testWaitingProducersGetInFirstComeFirstServed)
}

func testWaitingProducersGetInFirstComeFirstServed(t *testing.T, on front) {
	synctest.Test(t, func(t *testing.T) {
		slabs := on.slabs(2)
		w, dst := on.open(t, slab.Options{SlabSize: 128, SlabCount: slabs, Full: slab.Block})
		dst.Stall()
		for i := range slabs {
			put(t, w, numbered(i, 120))
		}
		const n = 40
		var wanted []string
		for i := range n {
			l := numbered(slabs+i, 20+i*7%100)
			wanted = append(wanted, l)
			go put(t, w, l)
			synctest.Wait() // it is in line now
		}
		if got := w.Stats().Waiting; got != n {
			t.Errorf("%d producers are waiting, want %d", got, n)
		}
		dst.Heal()
		synctest.Wait()
		if got := w.Stats().Waiting; got != 0 {
			t.Errorf("%d producers are still waiting", got)
		}
		if err := w.Close(); err != nil {
			t.Fatal(err)
		}
		got := dst.Lines()[slabs:]
		if on.shards > 1 { // goroutines have no order among each other
			slices.Sort(got)
			slices.Sort(wanted)
		}
		want(t, "lines", got, wanted)
		settled(t, w, dst, slabs+n)
	})
}

func TestShortLineDoesNotOvertakeAWaitingLongOne(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, dst := open(t, slab.Options{SlabSize: 128, SlabCount: 2, Full: slab.Block})
		dst.Always(rollwaytest.Fault{Delay: time.Second, Take: 1 << 20})
		var wanted []string
		for i, size := range []int{120, 120, 30, 120} {
			l := numbered(i, size)
			wanted = append(wanted, l)
			go put(t, w, l)
			synctest.Wait()
		}
		time.Sleep(1500 * time.Millisecond) // the third has a slab, which has room for 30 more
		if got := w.Stats().Waiting; got != 1 {
			t.Fatalf("%d producers are waiting, want 1", got)
		}
		wanted = append(wanted, numbered(4, 30))
		put(t, w, numbered(4, 30))
		if err := w.Close(); err != nil {
			t.Fatal(err)
		}
		want(t, "lines", dst.Lines(), wanted)
		settled(t, w, dst, 5)
	})
}

func TestOneWriteLargerThanAllSlabs(t *testing.T) { fronts(t, testOneWriteLargerThanAllSlabs) }

func testOneWriteLargerThanAllSlabs(t *testing.T, on front) {
	for _, full := range []slab.Policy{slab.Block, slab.Drop} {
		t.Run(full.String(), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w, dst := on.open(t, slab.Options{SlabSize: 100, SlabCount: on.slabs(3), Full: full})
				dst.Always(rollwaytest.Fault{Delay: time.Millisecond, Take: 1 << 20})
				var p strings.Builder
				var all []string
				for i := range 100 {
					l := numbered(i, 10+i*13%80)
					if i%10 == 9 {
						l = numbered(i, on.maxLine(100, 401)-1) // oversized, in the middle of the others
					}
					all = append(all, l)
					p.WriteString(l)
					if i < 99 {
						p.WriteByte('\n')
					}
				}
				if n, err := w.Write([]byte(p.String())); n != p.Len() || err != nil {
					t.Fatalf("Write = %d, %v, want %d, nil", n, err, p.Len())
				}
				if err := w.Close(); err != nil {
					t.Fatal(err)
				}
				got, _ := lines(dst)
				if full == slab.Drop {
					all = all[:len(got)]
					if len(got) < 3 || len(got) > 30 {
						t.Errorf("%d lines delivered, want what the slabs hold", len(got))
					}
				}
				want(t, "lines", got, all)
				for _, write := range dst.Writes() {
					if !strings.HasSuffix(write, "\n") {
						t.Errorf("a write ends within a line: %q", write)
					}
				}
				settled(t, w, dst, 100)
			})
		})
	}
}

func TestLineSizesAroundTheLimits(t *testing.T) { fronts(t, testLineSizesAroundTheLimits) }

func testLineSizesAroundTheLimits(t *testing.T, on front) {
	limit := on.maxLine(128, 256)
	w, dst := on.open(t, slab.Options{SlabSize: 128, SlabCount: on.slabs(2), MaxLine: limit, Full: slab.Block, NoNotice: true})
	accepted := 0
	var wanted []string
	for size := range 300 { // newline not counted
		for _, end := range []string{"\n", ""} {
			l := strings.Repeat("x", size)
			n, err := w.Write([]byte(l + end))
			if len(l+end) == 0 {
				continue
			}
			accepted++
			if size+1 > limit {
				if n != 0 || !errors.Is(err, line.ErrTooLarge) {
					t.Fatalf("Write of %d bytes = %d, %v, want 0, ErrTooLarge", len(l+end), n, err)
				}
				continue
			}
			if n != len(l+end) || err != nil {
				t.Fatalf("Write of %d bytes = %d, %v, want %d, nil", len(l+end), n, err, len(l+end))
			}
			wanted = append(wanted, l)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	want(t, "lines", dst.Lines(), wanted)
	settled(t, w, dst, accepted)
	if got := w.Stats().Dropped.TooLarge; got != uint64(accepted-len(wanted)) {
		t.Errorf("%d lines too large, want %d", got, accepted-len(wanted))
	}
}

func TestTooLargeLineAmongOthers(t *testing.T) { fronts(t, testTooLargeLineAmongOthers) }

func testTooLargeLineAmongOthers(t *testing.T, on front) {
	synctest.Test(t, func(t *testing.T) {
		limit := on.maxLine(64, 128)
		w, dst := on.open(t, slab.Options{SlabSize: 64, MaxLine: limit})
		huge := strings.Repeat("h", 500)
		p := "one\n" + huge + "\ntwo\n"
		n, err := w.Write([]byte(p))
		if n != len("one\ntwo\n") || !errors.Is(err, line.ErrTooLarge) {
			t.Fatalf("Write = %d, %v, want 8, ErrTooLarge", n, err)
		}
		if msg := err.Error(); !strings.Contains(msg, "501 bytes") || !strings.Contains(msg, fmt.Sprint(limit)) {
			t.Errorf("the error %q does not name the sizes", msg)
		}
		time.Sleep(time.Hour) // the writer is asleep
		if _, err := w.Write([]byte(huge)); !errors.Is(err, line.ErrTooLarge) {
			t.Fatalf("Write = %v, want ErrTooLarge", err)
		}
		time.Sleep(time.Second)
		got, notices := lines(dst)
		want(t, "lines", got, []string{"one", "two"})
		want(t, "notices", notices, []string{notice(1, "line too large"), notice(1, "line too large")})
		settled(t, w, dst, 4)
	})
}

// TestReserve: of the slabs that are left when the destination stalls, the last
// ones are for WARN and above, the very last for ERROR and above, with few slabs
// for fewer.
func TestReserve(t *testing.T) { fronts(t, testReserve) }

func testReserve(t *testing.T, on front) {
	for _, tc := range []struct{ slabs, warn, err int }{{2, 0, 0}, {3, 0, 0}, {4, 1, 0}, {7, 1, 0}, {8, 1, 1}, {16, 1, 1}, {32, 2, 2}} {
		if tc.slabs < on.slabs(2) {
			continue
		}
		for _, full := range []slab.Policy{slab.Bounded, slab.Drop} {
			synctest.Test(t, func(t *testing.T) {
				w, dst := on.open(t, slab.Options{SlabSize: 64, SlabCount: tc.slabs, Full: full})
				dst.Stall()
				n := 0
				var wanted []string
				fill := func(l slog.Level, taken int) {
					t.Helper()
					for i := range 3 * tc.slabs {
						putLevel(t, w, l, numbered(n, 63))
						if i < taken {
							wanted = append(wanted, numbered(n, 63))
						}
						n++
					}
					if got := w.Stats().Pending; int(got) != len(wanted) {
						t.Errorf("%v, %d slabs: %d lines pending after those at %v, want %d", full, tc.slabs, got, l, len(wanted))
					}
				}
				fill(slog.LevelInfo, tc.slabs-tc.warn-tc.err)
				fill(slog.LevelWarn, tc.warn)
				fill(slog.LevelError, tc.err)
				dst.Heal()
				if err := w.Flush(t.Context()); err != nil {
					t.Fatal(err)
				}
				putLevel(t, w, slog.LevelInfo, numbered(n, 63)) // there is room for all again
				wanted = append(wanted, numbered(n, 63))
				n++
				if err := w.Close(); err != nil {
					t.Fatal(err)
				}
				got, _ := lines(dst)
				want(t, "lines", got, wanted)
				settled(t, w, dst, n)
			})
		}
	}
}

func TestOpenReserveSlabIsGivenBack(t *testing.T) { fronts(t, testOpenReserveSlabIsGivenBack) }

func testOpenReserveSlabIsGivenBack(t *testing.T, on front) {
	synctest.Test(t, func(t *testing.T) {
		w, dst := on.open(t, slab.Options{SlabSize: 64, SlabCount: 4, Full: slab.Drop, FlushInterval: time.Hour})
		dst.Next(rollwaytest.Fault{Delay: time.Second, Take: 64}, rollwaytest.Fault{Delay: time.Minute, Take: 64})
		info := func(s string) {
			t.Helper()
			if _, err := w.WriteLevel(slog.LevelInfo, []byte(s+"\n")); err != nil {
				t.Fatal(err)
			}
		}
		info(numbered(0, 63)) // at the destination
		synctest.Wait()
		info(numbered(1, 63))
		info(numbered(2, 63))
		if _, err := w.WriteLevel(slog.LevelError, []byte("error\n")); err != nil { // opens the reserve
			t.Fatal(err)
		}
		info("short, but the reserve is not for it")
		time.Sleep(2 * time.Second) // the first slab is free, and the reserve again
		info("short, and now there is room")
		if err := w.Shutdown(t.Context()); err != nil {
			t.Fatal(err)
		}
		got, notices := lines(dst)
		want(t, "lines", got, []string{numbered(0, 63), numbered(1, 63), numbered(2, 63), "error", "short, and now there is room"})
		want(t, "notices", notices, []string{notice(1, "buffer full")})
		settled(t, w, dst, 6)
	})
}

func TestReserveIsUsedByPlainWrites(t *testing.T) { fronts(t, testReserveIsUsedByPlainWrites) }

func testReserveIsUsedByPlainWrites(t *testing.T, on front) {
	synctest.Test(t, func(t *testing.T) {
		w, dst := on.open(t, slab.Options{SlabSize: 64, SlabCount: 8, Full: slab.Drop})
		dst.Stall()
		for i := range 20 {
			put(t, w, numbered(i, 63))
		}
		if got := w.Stats().Pending; got != 8 {
			t.Errorf("%d lines pending, want 8: nobody tells levels here", got)
		}
	})
}

func TestNoticeStandsWhereTheGapIs(t *testing.T) { fronts(t, testNoticeStandsWhereTheGapIs) }

func testNoticeStandsWhereTheGapIs(t *testing.T, on front) {
	synctest.Test(t, func(t *testing.T) {
		slabs := on.slabs(2)
		w, dst := on.open(t, slab.Options{SlabSize: 64, SlabCount: slabs, Full: slab.Drop})
		dst.Always(rollwaytest.Fault{Delay: time.Second, Take: 1 << 20})
		put(t, w, numbered(0, 63))
		synctest.Wait()
		for i := range slabs + 1 { // the last two have no room
			put(t, w, numbered(1+i, 63))
		}
		time.Sleep(1500 * time.Millisecond)
		put(t, w, numbered(9, 63)) // begins a slab after the gap
		if err := w.Close(); err != nil {
			t.Fatal(err)
		}
		all := dst.Lines()
		gap := slices.IndexFunc(all, isNotice)
		if gap != slabs || !strings.HasPrefix(all[slabs+1], "000009") || len(all) != slabs+2 {
			t.Errorf("the notice is line %d of %q, want it before 000009", gap+1, all)
		}
		settled(t, w, dst, slabs+3)
		if s := w.Stats(); s.Notices != 1 {
			t.Errorf("%d notices, want 1", s.Notices)
		}
	})
}

func TestNoticeSurvivesAShortWrite(t *testing.T) { fronts(t, testNoticeSurvivesAShortWrite) }

func testNoticeSurvivesAShortWrite(t *testing.T, on front) {
	synctest.Test(t, func(t *testing.T) {
		w, dst := on.open(t, slab.Options{SlabSize: 64, SlabCount: on.slabs(2), MaxLine: 64, GiveUp: time.Second})
		put(t, w, "one")
		dst.Next(rollwaytest.Fault{Take: 1 << 20}, rollwaytest.Fault{Take: 10})
		dst.Fail(nil)
		if _, err := w.Write(make([]byte, 100)); !errors.Is(err, line.ErrTooLarge) {
			t.Fatal(err)
		}
		time.Sleep(5 * time.Second) // it is tried for longer than GiveUp
		synctest.Wait()
		dst.Heal()
		put(t, w, "two")
		if err := w.Close(); err != nil {
			t.Fatal(err)
		}
		got, notices := lines(dst)
		want(t, "lines", got, []string{"one", "two"})
		want(t, "notices", notices, []string{notice(1, "line too large")})
		settled(t, w, dst, 3)
	})
}

// TestLossIsAnnouncedAtCloseAfterAnError loses a line while the last Write of
// all takes the rest and reports an error with it: nothing is left to be tried
// again, which would have shown that the destination works.
func TestLossIsAnnouncedAtCloseAfterAnError(t *testing.T) {
	fronts(t, testLossIsAnnouncedAtCloseAfterAnError)
}

func testLossIsAnnouncedAtCloseAfterAnError(t *testing.T, on front) {
	for _, tc := range []struct {
		name    string
		faults  []rollwaytest.Fault // after the error
		notices int
	}{
		{"healthy", nil, 1},
		{"in two parts", []rollwaytest.Fault{{Take: 20, Err: rollwaytest.ErrFault}, {Err: rollwaytest.ErrFault}}, 1},
		{"dead", []rollwaytest.Fault{{Err: rollwaytest.ErrFault}, {Take: 1 << 20}}, 0},
	} {
		t.Run(tc.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				slabs := on.slabs(2)
				w, dst := on.open(t, slab.Options{SlabSize: 64, SlabCount: slabs, Full: slab.Drop})
				for range slabs - 1 {
					dst.Next(rollwaytest.Fault{Take: 64, Delay: time.Millisecond}) // until all was put
				}
				dst.Next(rollwaytest.Fault{Take: 64, Err: rollwaytest.ErrFault})
				dst.Next(tc.faults...)
				var wanted []string
				for i := range slabs {
					wanted = append(wanted, numbered(i, 63))
				}
				put(t, w, wanted...)
				put(t, w, numbered(slabs, 63)) // has no room
				began := time.Now()
				if err := w.Close(); err != nil {
					t.Fatal(err)
				}
				if took := time.Since(began); took > time.Second {
					t.Errorf("Close took %v", took)
				}
				got, notices := lines(dst)
				want(t, "lines", got, wanted)
				want(t, "notices", notices, []string{notice(1, "buffer full")}[:tc.notices])
				settled(t, w, dst, slabs+1)
				if s := w.Stats(); s.Notices != uint64(tc.notices) {
					t.Errorf("%d notices counted, want %d", s.Notices, tc.notices)
				}
			})
		})
	}
}

func TestNoNotice(t *testing.T) { fronts(t, testNoNotice) }

func testNoNotice(t *testing.T, on front) {
	synctest.Test(t, func(t *testing.T) {
		w, dst := on.open(t, slab.Options{SlabSize: 64, SlabCount: 4, Full: slab.Drop, NoNotice: true})
		dst.Stall()
		for i := range 7 {
			put(t, w, numbered(i, 63))
		}
		dst.Heal()
		if err := w.Close(); err != nil {
			t.Fatal(err)
		}
		want(t, "lines", dst.Lines(), []string{numbered(0, 63), numbered(1, 63), numbered(2, 63), numbered(3, 63)})
		settled(t, w, dst, 7)
	})
}

func TestCloseReleasesWaitingProducers(t *testing.T) { fronts(t, testCloseReleasesWaitingProducers) }

func testCloseReleasesWaitingProducers(t *testing.T, on front) {
	synctest.Test(t, func(t *testing.T) {
		w, dst := on.open(t, slab.Options{SlabSize: 64, SlabCount: 4, Full: slab.Block})
		dst.Stall()
		put(t, w, numbered(4, 63), numbered(5, 63), numbered(0, 63))
		p := []byte(numbered(1, 63) + "\n" + numbered(2, 63) + "\n" + numbered(3, 63) + "\n")
		var (
			wg   sync.WaitGroup
			ns   [3]int
			errs [3]error
		)
		for i := range 3 {
			wg.Go(func() { ns[i], errs[i] = w.Write(p) })
			synctest.Wait()
			if got := w.Stats().Waiting; got != i+1 {
				t.Fatalf("%d producers are waiting, want %d", got, i+1)
			}
		}
		go w.Shutdown(t.Context())
		wg.Wait()
		for i, n := range []int{64, 0, 0} { // the first had placed a line
			if ns[i] != n || !errors.Is(errs[i], os.ErrClosed) {
				t.Errorf("Write %d = %d, %v, want %d, os.ErrClosed", i, ns[i], errs[i], n)
			}
		}
		dst.Heal()
		if err := w.Close(); err != nil {
			t.Fatal(err)
		}
		settled(t, w, dst, 4)
		if got := w.Stats().Rejected; got != 8 {
			t.Errorf("%d lines rejected, want 8", got)
		}
	})
}
