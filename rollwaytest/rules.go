package rollwaytest

import (
	"bytes"
	"context"
	"errors"
	"os"
	"runtime"
	"slices"
	"sync"
	"testing"
	"time"
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

func checkOrder(t *testing.T, su *suite) {
	producers, n := 8, su.some(500)
	su.produceAll(t, producers, n, nil)
	su.flush(t)
	su.wantAll(t, producers, n)
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
		if err := su.Writer.Flush(su.ctx(t)); err != nil {
			t.Errorf("Flush = %v, want nil", err)
		}
		if err := su.Writer.Sync(); err != nil {
			t.Errorf("Sync = %v, want nil", err)
		}
	}
	su.wantAll(t, 0, 0)
}

func checkSync(t *testing.T, su *suite) {
	for seq := range 2 {
		su.write(t, lineOf(0, seq, 150))
		if err := su.Writer.Sync(); err != nil {
			t.Fatalf("Sync = %v, want nil", err)
		}
		su.wantAll(t, 1, 1+seq)
	}
}

func checkAfterClose(t *testing.T, su *suite) {
	su.write(t, lineOf(0, 0, 150))
	su.close(t)
	for range 3 {
		if n, err := su.Writer.Write(slices.Concat(lineOf(0, 1, 150), lineOf(0, 2, 150))); n != 0 || !errors.Is(err, os.ErrClosed) {
			t.Fatalf("Write after Close = %d, %v, want 0, os.ErrClosed", n, err)
		}
	}
	su.wantAll(t, 1, 1)
	su.wantRejected(t, 6)
}

func checkCloseDelivers(t *testing.T, su *suite) {
	producers, n := 4, su.some(200)
	su.produceAll(t, producers, n, nil)
	su.close(t)
	su.wantAll(t, producers, n)
}

func checkCloseIdempotent(t *testing.T, su *suite) {
	su.write(t, lineOf(0, 0, 150))
	errs := make([]error, 4)
	var wg sync.WaitGroup
	for i := range errs {
		wg.Go(func() { errs[i] = su.Writer.Close() })
	}
	wg.Wait()
	errs = append(errs, su.Writer.Close(), su.Writer.Shutdown(su.ctx(t)))
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
	if err := <-closed; err != nil {
		t.Fatalf("Close = %v, want nil", err)
	}
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

func checkShutdown(t *testing.T, su *suite) {
	producers, n := 2, su.some(100)
	su.produceAll(t, producers, n, nil)
	if err := su.Writer.Shutdown(su.ctx(t)); err != nil {
		t.Fatalf("Shutdown = %v, want nil", err)
	}
	su.wantAll(t, producers, n)
	if _, err := su.Writer.Write(lineOf(0, n, 150)); !errors.Is(err, os.ErrClosed) {
		t.Errorf("Write after Shutdown = %v, want os.ErrClosed", err)
	}
}

func checkLedger(t *testing.T, su *suite) {
	producers, n := 4, su.some(300)
	_, errs := su.produce(producers, n, func(int) { su.Ledger().Check(t) }) // amid the Writes of the others
	if err := errors.Join(errs...); err != nil {
		t.Fatalf("Write = %v, want nil", err)
	}
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
	for seq := range n {
		su.write(t, lineOf(0, seq, 150))
		if seq == 0 && su.Calls != nil {
			su.called(t)
		}
	}
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

func checkStallLedger(t *testing.T, su *suite) {
	su.stuck(t, 3)
	_ = su.Writer.Flush(within(t, 50*time.Millisecond))
	got := make(chan Ledger, 1)
	go func() { got <- su.Ledger() }()
	select {
	case l := <-got:
		l.Check(t)
		if l.Accepted != 3 || l.Pending != 3 {
			t.Errorf("ledger: accepted %d, pending %d, want 3 and 3", l.Accepted, l.Pending)
		}
	case <-time.After(limit):
		t.Fatal("the ledger waits for the destination")
	}
	su.Heal()
	su.flush(t)
	su.wantAll(t, 1, 3)
}

func checkStallFlush(t *testing.T, su *suite) {
	su.stuck(t, 3)
	if err := su.Writer.Flush(within(t, 50*time.Millisecond)); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("Flush = %v, want context.DeadlineExceeded", err)
	}
	su.Heal()
	su.flush(t)
	su.wantAll(t, 1, 3)
}

func checkStallShutdown(t *testing.T, su *suite) {
	su.stuck(t, 3)
	first := su.Writer.Shutdown(within(t, 50*time.Millisecond))
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
	if su.Keeps && su.Ledger != nil {
		su.settleStuck(t)
		return
	}
	su.settle(t)
	_, lines := su.delivered(t)
	if su.Ledger != nil {
		su.Ledger().CheckSettled(t, 3, lines)
	}
}

// settleStuck waits until the lines of the stuck call are counted as written. The
// others stay pending, for the next writer.
func (su *suite) settleStuck(t *testing.T) {
	t.Helper()
	for end := time.Now().Add(limit); su.Ledger().Written == 0; time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			t.Fatal("nothing of the stuck call is written")
		}
	}
	l := su.Ledger()
	l.Check(t)
	_, lines := su.delivered(t)
	if l.Written != uint64(lines) || l.Dropped.Total() != 0 || l.Accepted != 3 {
		t.Errorf("ledger: accepted %d, written %d, dropped %d, and %d lines delivered of 3", l.Accepted, l.Written, l.Dropped.Total(), lines)
	}
}

// settle waits until nothing is pending.
func (su *suite) settle(t *testing.T) {
	t.Helper()
	for end := time.Now().Add(limit); su.Ledger != nil && su.Ledger().Pending > 0; time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("ledger: %d lines still pending", su.Ledger().Pending)
		}
	}
}

func checkFailShutdown(t *testing.T, su *suite)  { su.shutdownBroken(t, su.Fail) }
func checkPanicShutdown(t *testing.T, su *suite) { su.shutdownBroken(t, su.Panic) }

// shutdownBroken calls Shutdown while the destination takes nothing.
func (su *suite) shutdownBroken(t *testing.T, damage func()) {
	t.Helper()
	damage()
	for seq := range 5 {
		su.write(t, lineOf(0, seq, 150))
	}
	if err := su.Writer.Shutdown(within(t, 50*time.Millisecond)); err == nil {
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
	su.write(t, lineOf(0, 0, 150))
	su.flush(t)
	damage()
	for seq := 1; seq < 20; seq++ {
		su.write(t, lineOf(0, seq, 150))
	}
	if err := su.Writer.Flush(within(t, 50*time.Millisecond)); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("Flush on a destination that takes nothing = %v, want context.DeadlineExceeded", err)
	}
	if su.Ledger != nil {
		su.Ledger().Check(t)
	}
	su.Heal()
	for seq := 20; seq < 30; seq++ {
		su.write(t, lineOf(0, seq, 150))
	}
	su.flush(t)
	su.wantAll(t, 1, 30)
}
