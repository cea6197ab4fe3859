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

// tellPause is the time between two reports on one output.
const tellPause = time.Minute

// Values of output.telling.
const (
	quiet  = iota // no report for tellPause: the next loss is reported at once
	due           // tellLoss is queued
	silent        // the last report is less than tellPause ago
)

// teller reports errors of outputs. What happens while it is stuck in OnError or in a
// write to standard error is counted and reported later.
type teller struct {
	onError func(error) // nil: a line on standard error
	outputs []*output
	queue   aside.Queue
	mu      sync.Mutex // of fields of the outputs
}

// outputError is the error of one output.
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

// tellLoss reports how many lines were dropped since the last report, and why.
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

// pauseLocked begins the time without reports on o.
func (t *teller) pauseLocked(o *output) {
	if o.pausing {
		return
	}
	o.pausing = true
	time.AfterFunc(tellPause, func() {
		t.mu.Lock()
		defer t.mu.Unlock()
		o.pausing = false
		o.telling.CompareAndSwap(silent, quiet) // before the check: a line is counted before lost is called
		if o.lost() != o.told && o.telling.CompareAndSwap(quiet, due) {
			t.tellLater(o)
		}
	})
}

// finish reports errs and waits for that until ctx ends, and lastWords more. At the
// end of the process it reports everything that is outstanding, otherwise only
// outputs without a report in the last tellPause.
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
		aside.Await(idle, lastWords)
	}
}

// tell passes an error to OnError, or writes it to standard error unless that is the
// output that failed. o is nil if no output failed.
func (t *teller) tell(err error, o *output) {
	if t.onError != nil {
		t.onError(err)
	} else if o == nil || o.w != io.Writer(os.Stderr) {
		aside.ToStderr(err)
	}
}
