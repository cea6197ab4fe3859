package slab_test

import (
	"errors"
	"log/slog"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rollway/rollway/rollwaytest"
	"github.com/rollway/rollway/slab"
)

func TestWaitingProducersGetInFirstComeFirstServed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, dst := open(t, slab.Options{SlabSize: 128, SlabCount: 2})
		dst.Stall()
		put(t, w, numbered(0, 120), numbered(1, 120)) // both slabs
		const n = 40
		var wanted []string
		for i := range n {
			l := numbered(2+i, 20+i*7%100)
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
		want(t, "lines", dst.Lines()[2:], wanted)
		settled(t, w, dst, 2+n)
	})
}

func TestShortLineDoesNotOvertakeAWaitingLongOne(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, dst := open(t, slab.Options{SlabSize: 128, SlabCount: 2})
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

func TestOneWriteLargerThanAllSlabs(t *testing.T) {
	for _, full := range []slab.Policy{slab.Block, slab.Drop} {
		t.Run(full.String(), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w, dst := open(t, slab.Options{SlabSize: 100, SlabCount: 3, Full: full})
				dst.Always(rollwaytest.Fault{Delay: time.Millisecond, Take: 1 << 20})
				var p strings.Builder
				var all []string
				for i := range 100 {
					l := numbered(i, 10+i*13%80)
					if i%10 == 9 {
						l = numbered(i, 400) // oversized, in the middle of the others
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
						t.Errorf("%d lines delivered, want what three slabs hold", len(got))
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

func TestLineSizesAroundTheLimits(t *testing.T) {
	w, dst := open(t, slab.Options{SlabSize: 128, SlabCount: 2, OversizeLimit: 256, NoLossNotice: true})
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
			if size+1 > 256 {
				if n != 0 || !errors.Is(err, slab.ErrTooLarge) {
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

func TestTooLargeLineAmongOthers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, dst := open(t, slab.Options{SlabSize: 64, OversizeLimit: 128})
		huge := strings.Repeat("h", 500)
		p := "one\n" + huge + "\ntwo\n"
		n, err := w.Write([]byte(p))
		if n != len("one\ntwo\n") || !errors.Is(err, slab.ErrTooLarge) {
			t.Fatalf("Write = %d, %v, want 8, ErrTooLarge", n, err)
		}
		if msg := err.Error(); !strings.Contains(msg, "501 bytes") || !strings.Contains(msg, "128") {
			t.Errorf("the error %q does not name the sizes", msg)
		}
		time.Sleep(time.Hour) // the writer is asleep
		if _, err := w.Write([]byte(huge)); !errors.Is(err, slab.ErrTooLarge) {
			t.Fatalf("Write = %v, want ErrTooLarge", err)
		}
		synctest.Wait()
		got, notices := lines(dst)
		want(t, "lines", got, []string{"one", "two"})
		want(t, "notices", notices, []string{notice(1, "line too large"), notice(1, "line too large")})
		settled(t, w, dst, 4)
	})
}

func TestReserveIsKeptForImportantLines(t *testing.T) {
	for _, tc := range []struct{ slabs, reserve int }{{2, 0}, {3, 0}, {4, 1}, {8, 1}, {16, 2}} {
		synctest.Test(t, func(t *testing.T) {
			w, dst := open(t, slab.Options{SlabSize: 64, SlabCount: tc.slabs, Full: slab.Drop})
			dst.Stall()
			level := func(l slog.Level, i int) {
				t.Helper()
				p := numbered(i, 63) + "\n"
				if n, err := w.WriteLevel(l, []byte(p)); n != len(p) || err != nil {
					t.Fatalf("WriteLevel = %d, %v", n, err)
				}
			}
			var wanted []string
			n := 0
			for range 3 * tc.slabs {
				level(slog.LevelInfo, n)
				if n < tc.slabs-tc.reserve {
					wanted = append(wanted, numbered(n, 63))
				}
				n++
			}
			for i := range 3 * tc.slabs {
				level(slog.LevelWarn, n)
				if i < tc.reserve {
					wanted = append(wanted, numbered(n, 63))
				}
				n++
			}
			if s := w.Stats(); s.Pending != uint64(tc.slabs) || s.Dropped.BufferFull != uint64(n-tc.slabs) {
				t.Errorf("%d slabs: %d lines pending, %d dropped, want %d and %d", tc.slabs, s.Pending, s.Dropped.BufferFull, tc.slabs, n-tc.slabs)
			}
			dst.Heal()
			if err := w.Flush(t.Context()); err != nil {
				t.Fatal(err)
			}
			level(slog.LevelInfo, n) // there is room for all again
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

func TestOpenReserveSlabIsGivenBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, dst := open(t, slab.Options{SlabSize: 64, SlabCount: 4, Full: slab.Drop, FlushInterval: time.Hour})
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

func TestReserveIsUsedByPlainWrites(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, dst := open(t, slab.Options{SlabSize: 64, SlabCount: 8, Full: slab.Drop})
		dst.Stall()
		for i := range 20 {
			put(t, w, numbered(i, 63))
		}
		if got := w.Stats().Pending; got != 8 {
			t.Errorf("%d lines pending, want 8: nobody tells levels here", got)
		}
	})
}

func TestNoticeStandsWhereTheGapIs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, dst := open(t, slab.Options{SlabSize: 64, SlabCount: 2, Full: slab.Drop})
		dst.Always(rollwaytest.Fault{Delay: time.Second, Take: 1 << 20})
		put(t, w, numbered(0, 63))
		synctest.Wait()
		put(t, w, numbered(1, 63), numbered(2, 63), numbered(3, 63)) // the last two have no room
		time.Sleep(1500 * time.Millisecond)
		put(t, w, numbered(4, 63)) // begins a slab after the gap
		if err := w.Close(); err != nil {
			t.Fatal(err)
		}
		all := dst.Lines()
		gap := slices.IndexFunc(all, isNotice)
		if gap != 2 || !strings.HasPrefix(all[3], "000004") || len(all) != 4 {
			t.Errorf("the notice is line %d of %q, want it between 000001 and 000004", gap+1, all)
		}
		settled(t, w, dst, 5)
		if s := w.Stats(); s.Notices != 1 {
			t.Errorf("%d notices, want 1", s.Notices)
		}
	})
}

func TestNoticeSurvivesAShortWrite(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, dst := open(t, slab.Options{SlabSize: 64, SlabCount: 2, OversizeLimit: 64, Retry: slab.Retry{GiveUp: time.Second}})
		put(t, w, "one")
		dst.Next(rollwaytest.Fault{Take: 1 << 20}, rollwaytest.Fault{Take: 10})
		dst.Fail(nil)
		if _, err := w.Write(make([]byte, 100)); !errors.Is(err, slab.ErrTooLarge) {
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
				w, dst := open(t, slab.Options{SlabSize: 64, SlabCount: 2, Full: slab.Drop})
				put(t, w, numbered(0, 63), numbered(1, 63), numbered(2, 63)) // the last has no room
				dst.Next(rollwaytest.Fault{Take: 64}, rollwaytest.Fault{Take: 64, Err: rollwaytest.ErrFault})
				dst.Next(tc.faults...)
				began := time.Now()
				if err := w.Close(); err != nil {
					t.Fatal(err)
				}
				if took := time.Since(began); took > time.Second {
					t.Errorf("Close took %v", took)
				}
				got, notices := lines(dst)
				want(t, "lines", got, []string{numbered(0, 63), numbered(1, 63)})
				want(t, "notices", notices, []string{notice(1, "buffer full")}[:tc.notices])
				settled(t, w, dst, 3)
				if s := w.Stats(); s.Notices != uint64(tc.notices) {
					t.Errorf("%d notices counted, want %d", s.Notices, tc.notices)
				}
			})
		})
	}
}

func TestNoLossNotice(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, dst := open(t, slab.Options{SlabSize: 64, SlabCount: 2, Full: slab.Drop, NoLossNotice: true})
		dst.Stall()
		for i := range 5 {
			put(t, w, numbered(i, 63))
		}
		dst.Heal()
		if err := w.Close(); err != nil {
			t.Fatal(err)
		}
		want(t, "lines", dst.Lines(), []string{numbered(0, 63), numbered(1, 63)})
		settled(t, w, dst, 5)
	})
}

func TestCloseReleasesWaitingProducers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, dst := open(t, slab.Options{SlabSize: 64, SlabCount: 2})
		dst.Stall()
		put(t, w, numbered(0, 63))
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
		settled(t, w, dst, 2)
		if got := w.Stats().Rejected; got != 8 {
			t.Errorf("%d lines rejected, want 8", got)
		}
	})
}
