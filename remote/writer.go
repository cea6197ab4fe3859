package remote

import (
	"context"
	"fmt"
	"os"
	"sync"
	"time"

	"github.com/rollway/rollway/internal/aside"
	"github.com/rollway/rollway/internal/backoff"
	"github.com/rollway/rollway/line"
)

// A Writer sends lines to one peer. It is safe for concurrent use; one call at a time
// talks to the peer, in order of arrival. The code that opened it closes it.
//
//  1. Write takes whole lines and returns when they are delivered or lost. On an error the
//     first n bytes, always whole lines, are settled; the caller resumes at p[n:]. A
//     missing last line end is added.
//  2. An error of Write may be temporary: the peer is away, overloaded or misconfigured.
//     It has a RetryAfter method when the peer said how long to wait. Only os.ErrClosed
//     is permanent.
//  3. Lines that the peer refuses for their contents are dropped, counted and reported to
//     OnError: they would be refused again.
//  4. No call waits for the peer longer than its timeout or context. Stats never waits.
//
// With Options.Spill a Write stores the lines on disk and returns nil. They are sent from
// there. Write, Sync, Close and Shutdown wait for the disk without a bound.
type Writer struct {
	addr address
	opt  Options

	dialer *dialer
	teller aside.Teller
	out    sender // used by the holder of sem
	limits peerLimits

	compressing sync.Mutex  // held while Options.Compress is used
	spill       *spillQueue // nil without Options.Spill

	sem chan struct{} // holds a value while a call talks to the peer; waiters are served in order

	life context.Context // cancelled when Shutdown gives up on running Writes
	kill context.CancelFunc

	mu      sync.Mutex
	stats   Stats          // guarded by mu; what Stats adds is not set
	reports [topics]report // guarded by mu
	later   *time.Timer    // tells the rest of reports; nil when none is set; guarded by mu
	ended   bool           // nothing more is told; guarded by mu
	loss    loss           // guarded by mu
	running int            // Writes between start and end; guarded by mu
	closing bool           // guarded by mu
	idle    chan struct{}  // closed when closing and no Write runs
	done    chan struct{}  // closed when the Writer is closed
	err     error          // what Close returns; set before done is closed
}

// Open returns a Writer for rawURL, whose scheme says how to talk to the peer. It checks
// the URL and the options and does not dial, so that a service can start while its peer is
// down.
func Open(rawURL string, o Options) (*Writer, error) {
	a, err := parseURL(rawURL)
	if err != nil {
		return nil, fmt.Errorf("remote: %w", err)
	}
	if o, err = o.withDefaults(&a); err != nil {
		return nil, fmt.Errorf("remote: open %s: %w", a.name, err)
	}
	w := &Writer{
		addr:   a,
		opt:    o,
		dialer: newDialer(o.dial),
		sem:    make(chan struct{}, 1),
		idle:   make(chan struct{}),
		done:   make(chan struct{}),
	}
	w.teller.OnError = o.OnError
	w.limits.accepted.Store(int64(o.MaxBatch))
	w.limits.timely.Store(int64(o.MaxBatch))
	w.life, w.kill = context.WithCancel(context.Background())
	w.out = newSender(w)
	if err := w.openSpill(); err != nil {
		w.kill()
		return nil, fmt.Errorf("remote: open %s: %w", a.name, err)
	}
	return w, nil
}

// Write sends the lines in p; see Writer for its contract. It does not keep p.
func (w *Writer) Write(p []byte) (int, error) {
	lines := line.Count(p)
	if !w.begin(lines) {
		return 0, w.wrap(os.ErrClosed)
	}
	ctx, cancel := context.WithTimeout(w.life, w.opt.Timeout)
	defer cancel()
	n, left, err := w.write(ctx, p, lines)
	if err != nil {
		if w.life.Err() != nil {
			err = fmt.Errorf("%w while sending: %w", os.ErrClosed, err)
		}
		err = w.wrap(err)
	}
	w.end(left)
	w.tell(false)
	return n, err
}

// begin counts a Write in, unless the Writer is closing.
func (w *Writer) begin(lines uint64) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.closing {
		w.stats.Rejected += lines
		return false
	}
	w.running++
	w.stats.Pending += lines
	return true
}

// end counts a Write out; left lines are handed back.
func (w *Writer) end(left uint64) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.stats.Pending -= left
	w.stats.Returned += left
	w.running--
	if w.closing && w.running == 0 {
		close(w.idle)
	}
}

// write sends p, or stores it. It returns the bytes that are settled and the lines
// that are not.
func (w *Writer) write(ctx context.Context, p []byte, lines uint64) (n int, left uint64, err error) {
	whole := p
	if len(p) > 0 && p[len(p)-1] != '\n' {
		whole = append(append(make([]byte, 0, len(p)+1), p...), '\n')
	}
	if w.spill != nil {
		n, left, err = w.spill.write(ctx, whole, lines)
	} else {
		n, left, err = w.deliver(ctx, whole, lines)
	}
	return min(n, len(p)), left, err
}

// deliver waits for its turn and sends p, which holds whole lines only, piece by piece,
// and settles the ledger after each.
func (w *Writer) deliver(ctx context.Context, p []byte, left uint64) (n int, _ uint64, err error) {
	if err := w.lock(ctx); err != nil {
		w.countError(err)
		return 0, left, err
	}
	defer w.unlock()
	for attempt := 0; n < len(p); {
		done, err := w.out.send(ctx, p[n:])
		n += done.n
		left -= done.lines()
		w.count(done.count)
		if err == nil {
			attempt = 0
			w.countSuccess()
			continue
		}
		w.countError(err)
		if attempt >= w.opt.Retries || !pause(ctx, retryWait(attempt, backoff.Asked(err))) {
			return n, left, err
		}
		attempt++
		w.countRetry()
	}
	return n, left, nil
}

// pause waits d and reports whether ctx allowed it. It does not begin a wait that ctx will
// cut off.
func pause(ctx context.Context, d time.Duration) bool {
	end, ok := ctx.Deadline()
	return !(ok && time.Until(end) <= d) && ctx.Err() == nil && backoff.Sleep(ctx, d)
}

// lock waits until this call may talk to the peer.
func (w *Writer) lock(ctx context.Context) error { return acquire(ctx, w.sem) }

// acquire puts a value into the semaphore, which has room for one.
func acquire(ctx context.Context, sem chan struct{}) error {
	select {
	case sem <- struct{}{}:
		return nil
	default:
	}
	select {
	case sem <- struct{}{}:
		return nil
	case <-ctx.Done():
		return fmt.Errorf("wait for the call before this one: %w", ctx.Err())
	}
}

func (w *Writer) unlock() { <-w.sem }

// String names the peer, without query, token or header.
func (w *Writer) String() string { return "remote " + w.addr.name }

// GoString is String: %#v must not show the token either.
func (w *Writer) GoString() string { return w.String() }
