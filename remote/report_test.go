package remote_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
	"weak"

	"github.com/rollway/rollway/line"
	"github.com/rollway/rollway/remote"
)

// tooLong opens a Writer that drops and tells each line of more than 10 bytes.
func tooLong(t *testing.T, onError func(error)) *remote.Writer {
	return open(t, "udp://127.0.0.1:9", remote.Options{MaxDatagram: 10, OnError: onError})
}

// An OnError that never returns holds up no call, Close neither.
func TestNothingWaitsForOnError(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		hang := make(chan struct{})
		var calls atomic.Int32
		w := tooLong(t, func(error) {
			calls.Add(1)
			<-hang
		})
		began := time.Now()
		for i := range 100 {
			write(t, w, numbered(i, i+1))
			time.Sleep(time.Minute)
		}
		if err := errors.Join(w.Flush(t.Context()), w.Close()); !errors.Is(err, line.ErrLost) {
			t.Errorf("Flush and Close = %v", err)
		}
		if d := time.Since(began) - 100*time.Minute; d > time.Second {
			t.Errorf("OnError held up the calls for %v", d)
		}
		settled(t, w, 100, 0)
		if n := calls.Load(); n != 1 {
			t.Errorf("%d calls of OnError, want 1", n)
		}
		close(hang)
		w.Told()
		if n := calls.Load(); n != 1+64 {
			t.Errorf("%d calls of OnError, want those that were kept", n)
		}
	})
}

// A loss is told at once, and the rest of it within a minute or by Close.
func TestLossesAreToldOnceAMinute(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		var at []time.Duration
		var told []string
		w := tooLong(t, func(err error) {
			at, told = append(at, time.Since(began)), append(told, err.Error())
			panic("a careless callback")
		})
		for i := range 10 {
			write(t, w, numbered(i, i+1))
			time.Sleep(time.Second)
		}
		time.Sleep(5 * time.Minute)
		write(t, w, numbered(10, 11))
		write(t, w, numbered(11, 14))
		wantLoss(t, "Close", w.Close(), 14, "MaxDatagram")
		w.Told()
		if len(told) != 4 || at[0] != 0 || at[1] < time.Minute || at[1] > 62*time.Second || at[3] != at[2] {
			t.Fatalf("OnError was called after %v: %q", at, told)
		}
		for i, n := range []string{"1", "9", "1", "3"} {
			if !strings.Contains(told[i], ": "+n+" lines refused") {
				t.Errorf("OnError was told %q, want %s lines", told[i], n)
			}
		}
		time.Sleep(5 * time.Minute)
		if w.Told(); len(told) != 4 {
			t.Errorf("after Close OnError was told %q", told[4:])
		}
		settled(t, w, 14, 0)
	})
}

// Close gives OnError a moment for the rest, as the process may end next. It may
// call the Writer.
func TestCloseAwaitsTheLastReport(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var w *remote.Writer
		var told []string
		opened := make(chan struct{})
		w = tooLong(t, func(err error) {
			<-opened
			w.Flush(t.Context())
			w.Close()
			time.Sleep(5 * time.Millisecond)
			told = append(told, err.Error())
		})
		for i := range 2 {
			write(t, w, numbered(i, i+1))
		}
		time.AfterFunc(time.Millisecond, func() { close(opened) })
		wantLoss(t, "Close", w.Close(), 2, "MaxDatagram")
		if len(told) != 2 || !strings.Contains(told[1], ": 1 lines refused") {
			t.Errorf("after Close OnError has been told %q", told)
		}
	})
}

// A Writer that is closed is let go of, whatever it had still to tell.
func TestClosedWriterIsLetGoOf(t *testing.T) {
	t.Parallel()
	w, err := remote.Open("udp://127.0.0.1:9", remote.Options{MaxDatagram: 10, OnError: func(error) {}})
	if err != nil {
		t.Fatal(err)
	}
	for i := range 2 { // the second is to be told in a minute
		write(t, w, numbered(i, i+1))
	}
	wantLoss(t, "Close", w.Close(), 2, "MaxDatagram")
	w.Told()
	closed := weak.Make(w)
	w = nil
	eventually(t, "a closed Writer is no longer in memory", func() bool {
		runtime.GC()
		return closed.Value() == nil
	})
}

// What a peer says of a refusal is told without secrets, and not at any length.
func TestToldRefusalIsShort(t *testing.T) {
	t.Parallel()
	peer := startHTTPPeer(t)
	var told told
	w := open(t, peer.URL+"/", remote.Options{Token: "secret-token", OnError: told.note})
	peer.answer(refuser("secret-token " + strings.Repeat("why ", 100_000)))
	write(t, w, numbered(0, 1))
	w.Told()
	if text := told.text(); !strings.Contains(text, "[redacted] why") || len(text) > 2<<10 {
		t.Errorf("OnError was told %d bytes %.200q", len(text), text)
	}
}

// Without OnError a line is written to standard error.
func TestWithoutOnErrorStandardErrorIsTold(t *testing.T) {
	t.Parallel()
	if os.Getenv("REMOTE_TEST_STDERR") != "" {
		w := tooLong(t, nil)
		write(t, w, numbered(0, 1))
		w.Told()
		return
	}
	cmd := exec.Command(os.Args[0], "-test.run", "^"+t.Name()+"$")
	cmd.Env = append(os.Environ(), "REMOTE_TEST_STDERR=1")
	var said strings.Builder
	cmd.Stderr = &said
	if err := cmd.Run(); err != nil {
		t.Error(err)
	}
	if s := said.String(); strings.Count(s, "\n") != 1 || !strings.HasPrefix(s, `{"time":"`) || !strings.Contains(s, `"level":"ERROR","msg":"remote udp`) || !strings.Contains(s, "1 lines refused or too large") {
		t.Errorf("standard error got %q", s)
	}
}

// While the peer is away, Sync does not wait for it: what is on disk is safe
// there, and gets to the peer once it is back.
func TestSyncOfLinesOnDisk(t *testing.T) {
	t.Parallel()
	peer := newKeyedPeer(t)
	o := remote.Options{Spill: spillTo(t)}
	w := open(t, peer.url(), o)
	quickest := time.Hour
	for i := range 5 {
		write(t, w, numbered(i*10, i*10+10))
		began := time.Now()
		wantWaiting(t, "Sync", w.Sync(), (i+1)*10)
		quickest = min(quickest, time.Since(began))
	}
	if quickest > 10*time.Second { // one that waits for the peer takes a minute
		t.Errorf("the quickest Sync took %v", quickest)
	}
	if s := balanced(t, w); s.Accepted != 50 || s.Pending != 50 || s.Spill.Lines != 50 || s.Written != 0 {
		t.Errorf("Stats = %+v", s)
	}
	wantWaiting(t, "Shutdown", w.Shutdown(ended(t)), 50)

	w = open(t, peer.url(), o)
	wantWaiting(t, "the first Sync", w.Sync(), 50) // which may wait for the first attempt
	peer.up()
	eventually(t, "the peer is seen to be back", func() bool { return w.Sync() == nil })
	peer.want(t, numbered(0, 50))
	if s := balanced(t, w); s.Recovered != 50 || s.Written != 50 || s.Pending != 0 || s.Failing {
		t.Errorf("Stats = %+v", s)
	}
	if err := w.Close(); err != nil {
		t.Error(err)
	}
	settled(t, w, 50, 50)
}

// However often Sync is called, a peer that is away is asked less and less often.
func TestSyncDoesNotHurryTheReplay(t *testing.T) {
	t.Parallel()
	peer := newKeyedPeer(t)
	peer.fail()
	peer.up()
	w := open(t, peer.url(), remote.Options{Spill: spillTo(t)})
	write(t, w, numbered(0, 3))
	began := time.Now()
	for time.Since(began) < 1500*time.Millisecond {
		wantWaiting(t, "Sync", w.Sync(), 3)
		time.Sleep(5 * time.Millisecond)
	}
	// Waits of at least 50, 100, 200, 400 and 800 ms; at the shortest wait it would be 15.
	if n := len(peer.seen()); n > 9 {
		t.Errorf("%d requests in %v", n, time.Since(began))
	}
	peer.heal()
	flush(t, w)
	peer.want(t, numbered(0, 3))
}

// A Sync whose time ends while a peer keeps silent has called fsync: also then
// line.ErrPending says that the lines are safe.
func TestSyncOfASilentPeer(t *testing.T) {
	t.Parallel()
	if runtime.GOOS == "windows" {
		t.Skip("Windows does not rename a folder that is in use")
	}
	peer := newKeyedPeer(t)
	o := remote.Options{Spill: spillTo(t)}
	w := open(t, peer.url(), o)
	write(t, w, numbered(0, 10))
	wantWaiting(t, "Shutdown", w.Shutdown(ended(t)), 10)

	peer.stall()
	peer.up()
	w = open(t, peer.url(), o)
	eventually(t, "the lines are on the way", func() bool { return w.Stats().Requests > 0 })
	away := o.Spill.Dir + ".away" // so that fsync of the folder fails
	if err := os.Rename(o.Spill.Dir, away); err != nil {
		t.Fatal(err)
	}
	err := hurried(w)
	if !errors.Is(err, line.ErrPending) || !errors.Is(err, context.DeadlineExceeded) || !strings.Contains(err.Error(), "sync spool") {
		t.Errorf("Sync = %v, want that 10 lines wait, the end of its time, and that fsync failed", err)
	}
	if err := os.Rename(away, o.Spill.Dir); err != nil {
		t.Fatal(err)
	}
	if err := hurried(w); !errors.Is(err, line.ErrPending) || !errors.Is(err, context.DeadlineExceeded) || strings.Contains(err.Error(), "sync spool") {
		t.Errorf("Sync = %v, want that 10 lines wait and the end of its time", err)
	}
	peer.heal()
	flush(t, w)
	peer.want(t, numbered(0, 10))
}

// A Sync that waits for the peer ends when the peer begins to fail.
func TestSyncAsThePeerGoes(t *testing.T) {
	t.Parallel()
	peer := newKeyedPeer(t)
	o := remote.Options{Spill: spillTo(t)}
	w := open(t, peer.url(), o)
	write(t, w, numbered(0, 10))
	wantWaiting(t, "Shutdown", w.Shutdown(ended(t)), 10)

	peer.stall()
	peer.up()
	w = open(t, peer.url(), o)
	eventually(t, "the lines are on the way", func() bool { return w.Stats().Requests > 0 })
	synced := make(chan error)
	go func() { synced <- w.Sync() }()
	peer.down()
	wantWaiting(t, "Sync", <-synced, 10)
	peer.heal()
	peer.up()
	flush(t, w)
	peer.want(t, numbered(0, 10))
	settled(t, w, 10, 10)
}

// wantWaiting wants err to say at once that so many lines are on disk.
func wantWaiting(t *testing.T, call string, err error, lines int) {
	t.Helper()
	if !errors.Is(err, line.ErrPending) || !strings.Contains(err.Error(), fmt.Sprint(lines, " lines wait in")) || call != "Shutdown" && errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("%s = %v, want that %d lines wait", call, err, lines)
	}
}

// ended returns a context that has ended.
func ended(t *testing.T) context.Context {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	return ctx
}
