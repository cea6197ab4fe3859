package rollwaytest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"runtime"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/rollway/rollway/line"
)

func checkWrite(t *testing.T, su *suite) {
	su.write(t, lineOf(0, 0, 0))
	su.write(t, slices.Concat(lineOf(0, 1, 200), lineOf(0, 2, 0), lineOf(0, 3, 300)))
	var many []byte
	const n = 2000
	for seq := 4; seq < n; seq++ {
		many = append(many, lineOf(0, seq, 200)...)
	}
	su.write(t, many)
	su.write(t, nil)
	su.flush(t)
	su.wantAll(t, 1, n)
}

func checkKeeps(t *testing.T, su *suite) {
	n := su.some(500)
	buf := make([]byte, 0, 1000)
	for seq := range n {
		buf = append(buf[:0], lineOf(0, seq, 100+seq)...)
		su.write(t, buf)
		for i := range buf {
			buf[i] = 'X'
		}
	}
	su.flush(t)
	su.wantAll(t, 1, n)
}

func checkNewline(t *testing.T, su *suite) {
	bare := func(seq int) []byte { return bytes.TrimSuffix(lineOf(0, seq, 150), []byte("\n")) }
	su.write(t, bare(0))
	su.write(t, lineOf(0, 1, 150))
	su.write(t, slices.Concat(lineOf(0, 2, 150), bare(3)))
	su.write(t, bare(4))
	su.flush(t)
	su.wantAll(t, 1, 5)
}

func checkLong(t *testing.T, su *suite) {
	sizes := []int{0, su.long / 3, 0, su.long, su.long - 1, 0, su.long / 2}
	for seq, size := range sizes {
		su.write(t, lineOf(0, seq, size))
	}
	su.flush(t)
	su.wantAll(t, 1, len(sizes))
}

// delivers returns a rule: what producers have written is at the destination after end.
func delivers(producers, n int, end func(*suite, *testing.T)) func(*testing.T, *suite) {
	return func(t *testing.T, su *suite) {
		n := su.some(n)
		su.produceAll(t, producers, n, nil)
		end(su, t)
		su.wantAll(t, producers, n)
	}
}

func checkFlush(t *testing.T, su *suite) {
	rounds, others := 10, su.some(50) // lines of another producer while Flush runs
	for round := range rounds {
		var wg sync.WaitGroup
		wg.Go(func() {
			for i := range others {
				if _, err := su.Writer.Write(lineOf(1+round, i, 150)); err != nil {
					t.Errorf("Write = %v, want nil", err)
					return
				}
			}
		})
		su.write(t, lineOf(0, round, 150))
		su.flush(t)
		if next, _ := su.delivered(t); next[0] != round+1 {
			t.Errorf("after Flush line %d is not at the destination", round)
		}
		wg.Wait()
	}
}

func checkIdle(t *testing.T, su *suite) {
	for range 2 {
		su.flush(t)
		su.sync(t)
	}
	su.wantAll(t, 0, 0)
}

func checkSync(t *testing.T, su *suite) {
	for seq := range 2 {
		su.lines(t, seq, 1+seq)
		su.sync(t)
		su.wantAll(t, 1, 1+seq)
	}
}

func checkAfterClose(t *testing.T, su *suite) {
	su.closed(t, 3, 2, func(int) (int, error) {
		return su.Writer.Write(slices.Concat(lineOf(0, 1, 150), lineOf(0, 2, 150)))
	})
}

func checkLevelAfterClose(t *testing.T, su *suite) {
	su.closed(t, len(eachLevel), 1, func(i int) (int, error) {
		return su.Writer.(line.LevelWriter).WriteLevel(eachLevel[i], lineOf(0, 1, 150))
	})
}

// closed calls write after Close, times times, with some lines each.
func (su *suite) closed(t *testing.T, times, lines int, write func(i int) (int, error)) {
	t.Helper()
	su.lines(t, 0, 1)
	su.close(t)
	for i := range times {
		if n, err := write(i); n != 0 || !errors.Is(err, os.ErrClosed) {
			t.Errorf("call %d after Close = %d, %v, want 0, os.ErrClosed", i+1, n, err)
		}
	}
	su.wantAll(t, 1, 1)
	su.wantRejected(t, times*lines)
}

func checkCloseIdempotent(t *testing.T, su *suite) {
	su.lines(t, 0, 1)
	errs := make([]error, 4)
	var wg sync.WaitGroup
	for i := range errs {
		wg.Go(func() { errs[i] = su.Writer.Close() })
	}
	wg.Wait()
	errs = append(errs, su.Writer.Close(), su.Writer.Shutdown(within(t, limit)))
	for i, err := range errs {
		if err != nil {
			t.Errorf("call %d of Close = %v, want nil", i+1, err)
		}
	}
	su.wantAll(t, 1, 1)
}

func checkCloseAmid(t *testing.T, su *suite) {
	producers, before := 4, su.some(200) // lines of one producer
	amid, closing := make(chan struct{}), make(chan struct{})
	begin := sync.OnceFunc(func() { close(amid) })
	closed := make(chan error, 1)
	go func() {
		<-amid
		close(closing)
		closed <- su.Writer.Close()
	}()
	accepted, errs := su.produce(producers, 1<<30, func(accepted int) {
		switch {
		case accepted == before:
			begin()
		case accepted == 10*before: // enough to check
			<-closing
		case accepted > 10*before:
			runtime.Gosched() // to Close
		}
	})
	noError(t, "Close", <-closed)
	next, lines := su.delivered(t)
	total := 0
	for p := range producers {
		if !errors.Is(errs[p], os.ErrClosed) {
			t.Errorf("Write of producer %d ended with %v, want os.ErrClosed", p, errs[p])
		}
		if next[p] != accepted[p] {
			t.Errorf("producer %d: %d lines accepted, %d delivered", p, accepted[p], next[p])
		}
		total += accepted[p]
	}
	if su.Ledger != nil {
		su.Ledger().CheckSettled(t, total, lines)
		if got := su.Ledger().Rejected; got != uint64(producers) {
			t.Errorf("ledger: %d lines rejected, want %d", got, producers)
		}
	}
}

// shutdown calls Shutdown, after which Write must fail.
func (su *suite) shutdown(t *testing.T) {
	t.Helper()
	noError(t, "Shutdown", su.Writer.Shutdown(within(t, limit)))
	if _, err := su.Writer.Write(lineOf(0, 1<<20, 150)); !errors.Is(err, os.ErrClosed) {
		t.Errorf("Write after Shutdown = %v, want os.ErrClosed", err)
	}
}

func checkLedger(t *testing.T, su *suite) {
	producers, n := 4, su.some(300)
	su.produceAll(t, producers, n, func(int) { su.Ledger().Check(t) }) // amid the Writes of the others
	if l := su.Ledger(); l.Accepted != uint64(producers*n) {
		t.Errorf("ledger: accepted %d before Flush, want %d", l.Accepted, producers*n)
	}
	su.flush(t)
	su.wantAll(t, producers, n)
}

// stuck stalls the destination and writes n lines. It waits until the destination has
// the first, if Calls can tell.
func (su *suite) stuck(t *testing.T, n int) {
	t.Helper()
	su.Stall()
	su.lines(t, 0, 1)
	if su.Calls != nil {
		su.called(t)
	}
	su.lines(t, 1, n)
}

// called waits until the stalled destination is called. The writer need not do that
// before a Flush.
func (su *suite) called(t *testing.T) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), limit)
	defer cancel()
	flushed := make(chan error, 1)
	go func() { flushed <- su.Writer.Flush(ctx) }()
	for su.Calls() == 0 {
		select {
		case err := <-flushed:
			t.Fatalf("Flush = %v, but the destination was not called", err)
		case <-time.After(time.Millisecond):
		}
	}
	cancel()
	if err := <-flushed; !errors.Is(err, context.Canceled) {
		t.Errorf("Flush = %v, want context.Canceled", err)
	}
}

// stalled calls f while the destination is stuck with three lines.
func (su *suite) stalled(t *testing.T, f func()) {
	t.Helper()
	su.stuck(t, 3)
	f()
	su.Heal()
	su.flush(t)
	su.wantAll(t, 1, 3)
}

// returns fails t if f does not return. f must not use t: it may return after the test.
func returns(t *testing.T, what string, f func()) {
	t.Helper()
	done := make(chan struct{})
	go func() {
		defer close(done)
		f()
	}()
	select {
	case <-done:
	case <-time.After(time.Hour):
		t.Fatalf("%s does not return", what)
	}
}

func checkStallLedger(t *testing.T, su *suite) {
	su.stalled(t, func() {
		_ = su.Writer.Flush(within(t, soon))
		if su.Ledger != nil {
			returns(t, "the ledger", func() { su.Ledger() })
		}
		su.wantPending(t, 3)
	})
}

func checkStallFlush(t *testing.T, su *suite) {
	su.stalled(t, func() {
		if err := su.Writer.Flush(within(t, soon)); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("Flush = %v, want context.DeadlineExceeded", err)
		}
	})
}

func checkStallSync(t *testing.T, su *suite) {
	su.stalled(t, func() {
		var err error
		returns(t, "Sync", func() { err = su.Writer.Sync() })
		if err == nil {
			t.Error("Sync = nil, but no line is at the destination")
		}
		su.wantPending(t, 3)
	})
	su.sync(t)
}

func checkStallShutdown(t *testing.T, su *suite) {
	su.stuck(t, 3)
	first := su.Writer.Shutdown(within(t, soon))
	if !errors.Is(first, context.DeadlineExceeded) {
		t.Fatalf("Shutdown = %v, want context.DeadlineExceeded", first)
	}
	if err := su.Writer.Close(); err != first {
		t.Errorf("Close after Shutdown = %v, want the same error: %v", err, first)
	}
	if su.Ledger != nil {
		l := su.Ledger()
		l.Check(t)
		if l.Accepted != 3 || l.Written != 0 {
			t.Errorf("ledger: accepted %d, written %d, want 3 and 0", l.Accepted, l.Written)
		}
	}
	su.Heal()
	if !su.Keeps {
		su.settle(t)
	} else { // only the lines of the stuck call are written; the others stay, for the next writer
		su.await(t, func(l Ledger) bool { return l.Written > 0 })
	}
	_, lines := su.delivered(t)
	if su.Ledger == nil {
		return
	}
	l := su.Ledger()
	if !su.Keeps {
		l.CheckSettled(t, 3, lines)
	} else if l.Check(t); l.Written != uint64(lines) || l.Dropped.Total() != 0 || l.Accepted != 3 {
		t.Errorf("ledger: accepted %d, written %d, dropped %d, and %d lines delivered of 3", l.Accepted, l.Written, l.Dropped.Total(), lines)
	}
}

// await waits until the ledger satisfies done.
func (su *suite) await(t *testing.T, done func(Ledger) bool) {
	t.Helper()
	for end := time.Now().Add(limit); su.Ledger != nil && !done(su.Ledger()); time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("the destination is healed, but the ledger stays %+v", su.Ledger())
		}
	}
}

// settle waits until nothing is pending.
func (su *suite) settle(t *testing.T) {
	t.Helper()
	su.await(t, func(l Ledger) bool { return l.Pending == 0 })
}

func checkFailShutdown(t *testing.T, su *suite)  { su.shutdownBroken(t, su.Fail) }
func checkPanicShutdown(t *testing.T, su *suite) { su.shutdownBroken(t, su.Panic) }

// shutdownBroken calls Shutdown while the destination takes nothing.
func (su *suite) shutdownBroken(t *testing.T, damage func()) {
	t.Helper()
	damage()
	su.lines(t, 0, 5)
	if err := su.Writer.Shutdown(within(t, soon)); err == nil {
		t.Error("Shutdown = nil, want the error that lost the lines")
	}
	if !su.Keeps {
		su.settle(t)
	}
	_, lines := su.delivered(t)
	if lines != 0 {
		t.Errorf("%d lines at a destination that takes none", lines)
	}
	if su.Ledger == nil {
		return
	}
	l := su.Ledger()
	lost := l.Dropped.Total()
	if su.Keeps {
		lost = l.Pending
	}
	if l.Check(t); lost != 5 || l.Accepted != 5 {
		t.Errorf("ledger: accepted %d, dropped %d, pending %d, want 5 accepted and not delivered", l.Accepted, l.Dropped.Total(), l.Pending)
	}
}

func checkFail(t *testing.T, su *suite)  { su.healed(t, su.Fail) }
func checkPanic(t *testing.T, su *suite) { su.healed(t, su.Panic) }

// healed writes before, while and after the destination takes nothing.
func (su *suite) healed(t *testing.T, damage func()) {
	t.Helper()
	su.lines(t, 0, 1)
	su.flush(t)
	damage()
	su.lines(t, 1, 20)
	if err := su.Writer.Flush(within(t, soon)); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("Flush on a destination that takes nothing = %v, want context.DeadlineExceeded", err)
	}
	if su.Ledger != nil {
		su.Ledger().Check(t)
	}
	su.Heal()
	su.lines(t, 20, 30)
	su.flush(t)
	su.wantAll(t, 1, 30)
}

// eachLevel has the levels of the lines, in turn; some have no name.
var eachLevel = []slog.Level{slog.LevelDebug, slog.LevelInfo, slog.LevelError, slog.LevelWarn, slog.LevelInfo + 2, slog.LevelDebug - 4}

func checkLevels(t *testing.T, su *suite) {
	producers, n := 4, su.some(300)
	w := su.Writer.(line.LevelWriter)
	_, errs := su.produceBy(producers, n, func(seq int, p []byte) (int, error) {
		if seq%5 == 0 {
			p = bytes.TrimSuffix(p, []byte("\n"))
		}
		write := su.Writer.Write
		if seq%3 > 0 {
			write = func(p []byte) (int, error) { return w.WriteLevel(eachLevel[seq%len(eachLevel)], p) }
		}
		n, err := write(p)
		if err == nil && n != len(p) {
			err = fmt.Errorf("line %d: %d, nil, want %d", seq, n, len(p))
		}
		return n, err
	}, nil)
	noError(t, "WriteLevel", errors.Join(errs...))
	if n, err := w.WriteLevel(slog.LevelError, nil); n != 0 || err != nil {
		t.Errorf("WriteLevel of nothing = %d, %v, want 0, nil", n, err)
	}
	su.flush(t)
	su.wantAll(t, producers, n)
}

func checkFailSync(t *testing.T, su *suite) {
	const n = 30
	su.FailSync()
	for seq := range n {
		su.lines(t, seq, seq+1)
		if su.Writer.Sync() == nil {
			t.Errorf("line %d: Sync = nil, but the destination's fails", seq)
		}
	}
	su.flush(t)
	su.wantAll(t, 1, n)
	su.Heal()
	su.lines(t, n, n+1)
	su.sync(t)
	su.wantAll(t, 1, n+1)
}
