package shard_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rollway/rollway/rollwaytest"
	"github.com/rollway/rollway/shard"
)

func log(t *testing.T, w *shard.Writer, records ...string) {
	t.Helper()
	for _, r := range records {
		if err := w.LogBytes([]byte(r)); err != nil {
			t.Fatalf("LogBytes(%.40q) = %v", r, err)
		}
	}
}

// settled wants everything dealt with: so many records given, so many of them
// written.
func settled(t *testing.T, w *shard.Writer, accepted, written int) {
	t.Helper()
	ledger(w).CheckSettled(t, accepted, written)
}

// small is one shard with terms of 64 KiB.
var small = shard.Options{BufferSize: 64 << 10, Shards: 1, Full: shard.Block}

// A record of which the destination has a part is never given up, however often
// the time for that comes.
func TestGiveUpNeverTearsARecord(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := small
		o.NoLossNotice = true
		o.Retry = shard.Retry{Min: time.Millisecond, GiveUp: time.Second}
		w, dst := open(t, o)
		log(t, w, "aaaa", "bb", "cc")
		dst.Next(rollwaytest.Fault{Take: 2, Err: rollwaytest.ErrFault})
		dst.Fail(nil)
		time.Sleep(10 * time.Second) // gives up again and again
		if s := w.Stats(); s.Dropped.GaveUp != 2 || s.Pending != 1 {
			t.Errorf("Stats %+v, want 2 records given up and one pending", s)
		}
		dst.Heal()
		log(t, w, "dd")
		if err := w.Flush(t.Context()); err != nil {
			t.Fatal(err)
		}
		if got := string(dst.Bytes()); got != "aaaa\ndd\n" {
			t.Errorf("the destination has %q", got)
		}
		settled(t, w, 4, 2)
		if err := w.Close(); err == nil || !strings.Contains(err.Error(), "gave up 2 records") {
			t.Errorf("Close = %v", err)
		}
	})
}

func TestGoexitIsAFailure(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var reports []string
		o := small
		o.OnError = func(err error) { reports = append(reports, err.Error()) }
		w, dst := open(t, o)
		for round := range 20 {
			dst.Next(rollwaytest.Fault{Exit: true}, rollwaytest.Fault{Take: 5}, rollwaytest.Fault{Exit: true}, rollwaytest.Fault{Panic: "too"})
			log(t, w, fmt.Sprint("one ", round), fmt.Sprint("two ", round))
			if err := w.Flush(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
		if err := w.Close(); err != nil {
			t.Fatal(err)
		}
		for i, l := range dst.Lines() {
			if want := fmt.Sprint([]string{"one ", "two "}[i%2], i/2); l != want {
				t.Fatalf("line %d is %q, want %q", i, l, want)
			}
		}
		settled(t, w, 40, 40)
		if len(reports) == 0 || !strings.Contains(reports[0], "ended its goroutine in write") {
			t.Errorf("OnError got %q", reports)
		}
	})
}

// exits ends the goroutine in the methods named.
type exits struct {
	*rollwaytest.Destination
	sync, close bool
}

func (e exits) Sync() error {
	if e.sync {
		e.Next(rollwaytest.Fault{Exit: true})
		e.Write(nil)
	}
	return e.Destination.Sync()
}

func (e exits) Close() error {
	if e.close {
		e.Next(rollwaytest.Fault{Exit: true})
		e.Write(nil)
	}
	return e.Destination.Close()
}

func TestGoexitInSyncAndClose(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		dst := new(rollwaytest.Destination)
		o := small
		o.CloseDestination = true
		w, err := shard.New(exits{dst, true, true}, o)
		if err != nil {
			t.Fatal(err)
		}
		log(t, w, "one")
		if err := w.Sync(); err == nil || !strings.Contains(err.Error(), "ended its goroutine in Sync") {
			t.Errorf("Sync = %v", err)
		}
		log(t, w, "two")
		if err := w.Close(); err == nil || !strings.Contains(err.Error(), "ended its goroutine in Close") {
			t.Errorf("Close = %v", err)
		}
		settled(t, w, 2, 2)
	})
}

// consumer takes its buffers as net.Buffers does: they are gone afterwards.
type consumer struct{ *rollwaytest.Destination }

func (c consumer) WriteBuffers(bufs [][]byte) (int64, error) {
	b := net.Buffers(bufs)
	return b.WriteTo(c.Destination)
}

func TestVectoredDestinationMayConsumeItsBuffers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		dst := new(rollwaytest.Destination)
		o := small
		o.TermsPerShard = 8
		o.Retry.Min = time.Millisecond
		w, err := shard.New(consumer{dst}, o)
		if err != nil {
			t.Fatal(err)
		}
		var want strings.Builder
		dst.Stall()
		for i := range 200 {
			if i == 100 {
				synctest.Wait()
				dst.Heal()
				dst.Next(rollwaytest.Fault{Take: 1000, Err: rollwaytest.ErrFault}, rollwaytest.Fault{Take: 60_000, Err: rollwaytest.ErrFault})
			}
			record := fmt.Sprint(i, strings.Repeat("r", 3000))
			want.WriteString(record + "\n")
			log(t, w, record)
		}
		if err := w.Close(); err != nil {
			t.Fatal(err)
		}
		if got := string(dst.Bytes()); got != want.String() {
			t.Errorf("%d bytes, want %d", len(got), want.Len())
		}
		settled(t, w, 200, 200)
	})
}

// A Sync whose context ends does not fail another that has time.
func TestSyncsOfDifferentPatience(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		dst := &slowSync{Destination: new(rollwaytest.Destination), takes: 2 * time.Second}
		w, err := shard.New(dst, small)
		if err != nil {
			t.Fatal(err)
		}
		defer w.Close()
		log(t, w, "one")
		dst.Stall()
		var wg sync.WaitGroup
		for _, patience := range []time.Duration{time.Second, 10 * time.Second} {
			wg.Go(func() {
				ctx, cancel := context.WithTimeout(t.Context(), patience)
				defer cancel()
				if err := w.SyncContext(ctx); errors.Is(err, context.DeadlineExceeded) != (patience == time.Second) {
					t.Errorf("SyncContext with %v: %v", patience, err)
				}
			})
			synctest.Wait()
		}
		dst.Heal()
		wg.Wait()
	})
}

type slowSync struct {
	*rollwaytest.Destination
	takes time.Duration
}

func (s *slowSync) SyncContext(ctx context.Context) error {
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(s.takes):
		return nil
	}
}
