package rollway

import (
	"context"
	"fmt"
	"io"
	"os"
	"sync"
	"time"

	"github.com/rollway/rollway/internal/aside"
)

// tellPause is how long nothing is told of an output after something was.
const tellPause = time.Minute

// What an output's field telling says.
const (
	quiet  = iota // nothing was told for tellPause: the next loss is told at once
	due           // tellLoss is queued
	silent        // something was told less than tellPause ago
)

// teller passes on what went wrong. What happens while it is stuck in OnError or
// in a write to standard error is counted and told later.
type teller struct {
	onError func(error) // nil: a line on standard error
	outputs []*output
	queue   aside.Queue
	mu      sync.Mutex // of fields of the outputs
}

// outputError is what one output failed in.
type outputError struct {
	o   *output
	err error
}

// lost is called for each line that is dropped, after it was counted.
func (t *teller) lost(o *output) {
	if o.telling.Load() == quiet && o.telling.CompareAndSwap(quiet, due) {
		t.tellLater(o)
	}
}

func (t *teller) tellLater(o *output) {
	if !t.queue.Do(func() { t.tellLoss(o) }) {
		o.telling.Store(quiet) // the next loss tries again
	}
}

// tellLoss tells how many lines were dropped since it last did, and why.
func (t *teller) tellLoss(o *output) {
	t.mu.Lock()
	if !o.telling.CompareAndSwap(due, silent) {
		t.mu.Unlock()
		return
	}
	t.pauseLocked(o)
	lost, f := o.lost(), o.lastError.Load()
	n := lost - o.told
	o.told = lost
	t.mu.Unlock()
	if n > 0 && f != nil {
		t.tell(fmt.Errorf("rollway: output %s: %s dropped: %w", o.name, linesOf(n), f.err), o)
	}
}

// pauseLocked begins the time in which nothing is told of o.
func (t *teller) pauseLocked(o *output) {
	if o.pausing {
		return
	}
	o.pausing = true
	time.AfterFunc(tellPause, func() {
		t.mu.Lock()
		defer t.mu.Unlock()
		o.pausing = false
		o.telling.CompareAndSwap(silent, quiet) // first: whoever drops a line counts it first
		if o.lost() != o.told && o.telling.CompareAndSwap(quiet, due) {
			t.tellLater(o)
		}
	})
}

// finish tells of errs and waits for that until ctx ends, and lastWords more. At
// the end of the process it tells of everything that was not told yet, else only
// of outputs of which nothing was told for tellPause.
func (t *teller) finish(ctx context.Context, errs []outputError, end bool) {
	t.mu.Lock()
	for _, o := range t.outputs {
		if end && o.lost() != o.told {
			o.telling.Store(due)
			t.tellLater(o)
		}
	}
	for _, e := range errs {
		if end || e.o.telling.CompareAndSwap(quiet, silent) {
			t.pauseLocked(e.o)
			t.queue.Do(func() { t.tell(fmt.Errorf("rollway: %w", e.err), e.o) })
		}
	}
	t.mu.Unlock()
	if !end {
		return
	}
	idle := t.queue.Idle()
	select {
	case <-idle:
	case <-ctx.Done():
		select {
		case <-idle:
		case <-time.After(lastWords):
		}
	}
}

// tell hands an error to OnError, or else to standard error as a line, unless
// that is the output which failed. o is nil where none has.
func (t *teller) tell(err error, o *output) {
	if t.onError != nil {
		t.onError(err)
	} else if o == nil || o.w != io.Writer(os.Stderr) {
		aside.ToStderr(err)
	}
}
