package rollwaytest

import (
	"bytes"
	"context"
	"flag"
	"io"
	"log/slog"
	"os"
	"os/exec"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
)

// plain is a small line writer that obeys the contract: it buffers lines and
// writes them on Flush, Sync and Close. A fault makes it break one rule.
type plain struct {
	fault string
	late  time.Duration // after which dst is called
	dst   *Destination
	turn  chan struct{} // holds one value while somebody writes to dst

	mu     sync.Mutex
	held   []held
	closed bool
	closes int
	ledger Ledger

	done chan struct{} // closed when Shutdown has ended
	err  error         // of Shutdown; set before done is closed
}

// held is what one Write brought.
type held struct {
	p     []byte
	lines uint64
}

func (w *plain) Write(p []byte) (int, error) { return w.WriteLevel(slog.LevelInfo, p) }

func (w *plain) WriteLevel(level slog.Level, p []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	n := uint64(bytes.Count(p, []byte("\n")))
	if len(p) > 0 && p[len(p)-1] != '\n' {
		n++
	}
	levelTaken := w.fault == "takes levels after Close" && level != slog.LevelInfo
	if w.closed && w.fault != "takes lines after Close" && !levelTaken {
		if w.fault != "does not count rejected lines" {
			w.ledger.Rejected += n
		}
		if w.fault == "wrong error after Close" {
			return 0, io.ErrClosedPipe
		}
		return 0, os.ErrClosed
	}
	if len(p) == 0 || w.fault == "drops what is below INFO" && level < slog.LevelInfo {
		return len(p), nil
	}
	taken := len(p)
	w.ledger.Accepted += n
	w.ledger.Pending += n
	if w.fault == "counts one too few" && w.ledger.Accepted == 100 {
		w.ledger.Pending--
	}
	if w.fault != "keeps p" {
		p = bytes.Clone(p)
	}
	if p[len(p)-1] != '\n' && w.fault != "glues lines" {
		p = append(p, '\n')
	}
	if w.fault == "cuts long lines" && len(p) > 50_000 {
		p = append(p[:50_000], '\n')
	}
	if w.fault == "mixes lines" && len(p) > 20 {
		w.held = append(w.held, held{p[:20], 0})
		w.mu.Unlock()
		runtime.Gosched() // lets others come between
		w.mu.Lock()
		p = p[20:]
	}
	if w.fault == "lets errors overtake" && level >= slog.LevelError {
		w.held = append([]held{{p, n}}, w.held...)
		return taken, nil
	}
	w.held = append(w.held, held{p, n})
	return taken, nil
}

// drain writes what is held, again and again while that fails, until ctx ends.
func (w *plain) drain(ctx context.Context) error {
	select {
	case w.turn <- struct{}{}:
	case <-ctx.Done():
		return ctx.Err()
	}
	done := make(chan error, 1)
	go func() {
		err := w.writeHeld(ctx)
		<-w.turn
		done <- err
	}()
	select {
	case err := <-done:
		return err
	case <-ctx.Done():
		return ctx.Err()
	}
}

// writeHeld is called by the holder of the turn.
func (w *plain) writeHeld(ctx context.Context) error {
	time.Sleep(w.late)
	w.mu.Lock()
	n := len(w.held)
	if w.fault == "reorders" {
		slices.Reverse(w.held)
	}
	if w.fault == "repeats a line" && n > 0 {
		w.held = append(w.held, held{w.held[n-1].p, 0})
		n++
	}
	w.mu.Unlock()
	for n > 0 {
		if err := ctx.Err(); err != nil {
			return err
		}
		w.mu.Lock()
		first := w.held[0]
		w.mu.Unlock()
		if !w.pass(first.p) {
			time.Sleep(time.Millisecond)
			continue
		}
		w.mu.Lock()
		w.held = w.held[1:]
		w.ledger.Written += first.lines
		w.ledger.Pending -= first.lines
		w.mu.Unlock()
		n--
	}
	return nil
}

// pass reports whether the destination has taken p.
func (w *plain) pass(p []byte) (ok bool) {
	defer func() {
		if v := recover(); v != nil {
			ok = w.fault == "takes a panic for success"
		}
	}()
	_, err := w.dst.Write(p)
	return err == nil
}

func (w *plain) Flush(ctx context.Context) error {
	if w.fault == "Flush does nothing" {
		return nil
	}
	return w.drain(ctx)
}

func (w *plain) Sync() error {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	switch w.fault {
	case "Sync fails when idle":
		return io.ErrNoProgress
	case "Sync waits for ever":
		ctx = context.Background()
	}
	if w.fault != "Sync does not flush" {
		if err := w.drain(ctx); err != nil {
			if w.fault == "Sync takes the end of its time for success" {
				return nil
			}
			return err
		}
	}
	err := w.dst.Sync()
	switch {
	case err != nil && w.fault == "Sync hides that the destination's failed":
		return nil
	case err != nil && w.fault == "a Sync that fails counts a line as lost":
		w.mu.Lock()
		w.ledger.Written--
		w.ledger.Dropped.Full++
		w.mu.Unlock()
	}
	return err
}

func (w *plain) Close() error {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	return w.Shutdown(ctx)
}

func (w *plain) Shutdown(ctx context.Context) error {
	w.mu.Lock()
	w.closes++
	first := w.closes == 1
	w.closed = true
	if w.fault == "Close discards" {
		w.dropLocked()
	}
	w.mu.Unlock()
	if !first {
		<-w.done
		if w.fault == "Close is not idempotent" {
			return os.ErrClosed
		}
		return w.err
	}
	err := w.drain(ctx)
	w.err = err
	close(w.done)
	if err != nil && w.fault != "Shutdown leaves lines pending" {
		go func() {
			w.turn <- struct{}{} // behind a call that hangs
			defer func() { <-w.turn }()
			w.mu.Lock()
			defer w.mu.Unlock()
			w.dropLocked()
		}()
	}
	return err
}

func (w *plain) dropLocked() {
	w.ledger.Dropped.Full += w.ledger.Pending
	w.ledger.Pending, w.held = 0, nil
}

func openPlain(fault string) Subject {
	return Subject{Open: func(t *testing.T) *Instance {
		w := &plain{fault: fault, dst: new(Destination), turn: make(chan struct{}, 1), done: make(chan struct{})}
		return &Instance{
			Writer:    w,
			Delivered: w.dst.Bytes,
			Ledger: func() Ledger {
				w.mu.Lock()
				defer w.mu.Unlock()
				return w.ledger
			},
			Stall:    w.dst.Stall,
			Fail:     func() { w.dst.Fail(nil) },
			Panic:    func() { w.dst.Always(Fault{Panic: "bang"}) },
			FailSync: func() { w.dst.FailSync(ErrFault) },
			Heal:     w.dst.Heal,
			Calls:    w.dst.Calls,
		}
	}}
}

func TestLineWriterPassesWhatObeys(t *testing.T) {
	s := openPlain("")
	t.Run("real time", func(t *testing.T) {
		t.Parallel()
		TestLineWriter(t, s)
	})
	t.Run("virtual time", func(t *testing.T) {
		t.Parallel()
		s := s
		s.Virtual = true
		TestLineWriter(t, s)
	})
}

// On a busy machine it may be long until a writer calls its destination. A rule
// about a stall waits for that: if Shutdown's deadline passed before, a writer that
// keeps its lines would never call the destination, and nothing be written after Heal.
func TestLineWriterWaitsForTheStuckCall(t *testing.T) {
	t.Parallel()
	s := openPlain("Shutdown leaves lines pending")
	s.Virtual = true
	open := s.Open
	s.Open = func(t *testing.T) *Instance {
		const late = 100 * time.Millisecond
		t.Cleanup(func() { time.Sleep(2 * late) }) // who has not called yet gives up
		in := open(t)
		in.Keeps = true
		in.Writer.(*plain).late = late
		return in
	}
	TestLineWriter(t, s)
}

var fault = flag.String("fault", "", "break the writer under TestBroken in this way")

// TestBroken is run by TestLineWriterFindsFaults in a process of its own.
func TestBroken(t *testing.T) {
	if *fault == "" {
		t.Log("it needs -fault, and then fails")
		return
	}
	s := openPlain(*fault)
	s.Virtual = true // what hangs is found at once
	TestLineWriter(t, s)
}

func TestLineWriterFindsFaults(t *testing.T) {
	for fault, rule := range map[string]string{
		"takes lines after Close":       "after Close Write returns os.ErrClosed",
		"wrong error after Close":       "after Close Write returns os.ErrClosed",
		"does not count rejected lines": "after Close Write returns os.ErrClosed",
		"counts one too few":            "accepted = written + dropped + pending",
		"keeps p":                       "Write never keeps p",
		"glues lines":                   "Write adds a missing last newline",
		"cuts long lines":               "a line travels whole, however long",
		"mixes lines":                   "a line is never mixed with another",
		"reorders":                      "a line is never mixed with another and lines of one producer keep their order",
		"repeats a line":                "Write takes one or more whole lines",
		"Flush does nothing":            "Flush returns when",
		"Sync does not flush":           "Sync returns when",
		"Sync fails when idle":          "Flush and Sync with nothing to do return nil",
		"Close is not idempotent":       "Close is idempotent",
		"Close discards":                "Close delivers what was accepted",

		"Shutdown leaves lines pending":              "Shutdown on a failing destination counts what was lost",
		"takes a panic for success":                  "a destination that panics and heals gets each byte once",
		"drops what is below INFO":                   "WriteLevel is Write with a level",
		"lets errors overtake":                       "WriteLevel is Write with a level",
		"takes levels after Close":                   "after Close WriteLevel returns os.ErrClosed",
		"Sync takes the end of its time for success": "Sync on a stalled destination ends within its bound",
		"Sync waits for ever":                        "Sync on a stalled destination ends within its bound",
		"Sync hides that the destination's failed":   "Sync tells",
		"a Sync that fails counts a line as lost":    "Sync tells",
	} {
		t.Run(fault, func(t *testing.T) {
			t.Parallel()
			pattern := "^TestBroken$/^" + strings.ReplaceAll(strings.ReplaceAll(rule, " ", "_"), "+", "\\+")
			out, err := exec.Command(os.Args[0], "-test.run", pattern, "-test.timeout", "5m", "-fault", fault).CombinedOutput()
			if err == nil || !bytes.Contains(out, []byte("--- FAIL: TestBroken/")) {
				t.Errorf("the rule %q passes a writer that %s: %v\n%s", rule, fault, err, out)
			}
		})
	}
}
