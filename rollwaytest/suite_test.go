package rollwaytest

import (
	"bytes"
	"context"
	"flag"
	"io"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"sync"
	"testing"
)

// plain is a small line writer that obeys the contract: it buffers lines and
// writes them on Flush, Sync and Close. A fault makes it break one rule.
type plain struct {
	fault string
	dst   *Destination

	mu     sync.Mutex
	held   [][]byte
	closed bool
	closes int
	ledger Ledger
}

func (w *plain) Write(p []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	n := uint64(bytes.Count(p, []byte("\n")))
	if len(p) > 0 && p[len(p)-1] != '\n' {
		n++
	}
	if w.closed && w.fault != "takes lines after Close" {
		if w.fault != "does not count rejected lines" {
			w.ledger.Rejected += n
		}
		if w.fault == "wrong error after Close" {
			return 0, io.ErrClosedPipe
		}
		return 0, os.ErrClosed
	}
	if len(p) == 0 {
		return 0, nil
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
		w.held = append(w.held, p[:20])
		w.mu.Unlock()
		runtime.Gosched() // lets others come between
		w.mu.Lock()
		p = p[20:]
	}
	w.held = append(w.held, p)
	return taken, nil
}

// flushLocked writes what is held.
func (w *plain) flushLocked() {
	if w.fault == "reorders" && len(w.held) > 2 {
		i := len(w.held) - 2
		w.held[i], w.held[i+1] = w.held[i+1], w.held[i]
	}
	if w.fault == "repeats a line" && len(w.held) > 0 {
		w.held = append(w.held, w.held[len(w.held)-1])
	}
	for _, p := range w.held {
		w.dst.Write(p)
	}
	w.held = nil
	w.ledger.Written += w.ledger.Pending
	w.ledger.Pending = 0
}

func (w *plain) Flush(context.Context) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.fault != "Flush does nothing" {
		w.flushLocked()
	}
	return nil
}

func (w *plain) Sync() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.fault != "Sync does not flush" {
		w.flushLocked()
	}
	if w.fault == "Sync fails when idle" {
		return io.ErrNoProgress
	}
	return nil
}

func (w *plain) SyncContext(context.Context) error { return w.Sync() }

func (w *plain) Close() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.closes++
	if w.closes > 1 && w.fault == "Close is not idempotent" {
		return os.ErrClosed
	}
	w.closed = true
	if w.fault == "Close discards" {
		w.ledger.Dropped += w.ledger.Pending
		w.ledger.Pending, w.held = 0, nil
	}
	w.flushLocked()
	return nil
}

func (w *plain) Shutdown(context.Context) error { return w.Close() }

func openPlain(fault string) Subject {
	return Subject{Open: func(t *testing.T) *Instance {
		w := &plain{fault: fault, dst: new(Destination)}
		return &Instance{
			Writer:    w,
			Delivered: w.dst.Bytes,
			Ledger: func() Ledger {
				w.mu.Lock()
				defer w.mu.Unlock()
				return w.ledger
			},
		}
	}}
}

func TestLineWriterPassesWhatObeys(t *testing.T) {
	TestLineWriter(t, openPlain(""))
}

var fault = flag.String("fault", "", "break the writer under TestBroken in this way")

// TestBroken is run by TestLineWriterFindsFaults in a process of its own.
func TestBroken(t *testing.T) {
	if *fault == "" {
		t.Log("it needs -fault, and then fails")
		return
	}
	TestLineWriter(t, openPlain(*fault))
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
		"Sync does not flush":           "Sync and SyncContext return when",
		"Sync fails when idle":          "Flush and Sync with nothing to do return nil",
		"Close is not idempotent":       "Close is idempotent",
		"Close discards":                "Close delivers what was accepted",
	} {
		t.Run(fault, func(t *testing.T) {
			pattern := "^TestBroken$/^" + strings.ReplaceAll(strings.ReplaceAll(rule, " ", "_"), "+", "\\+")
			out, err := exec.Command(os.Args[0], "-test.run", pattern, "-test.timeout", "30s", "-fault", fault).CombinedOutput()
			if err == nil || !bytes.Contains(out, []byte("--- FAIL: TestBroken/")) {
				t.Errorf("the rule %q passes a writer that %s: %v\n%s", rule, fault, err, out)
			}
		})
	}
}
