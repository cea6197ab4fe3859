// Package aside runs functions that no caller may wait for: above all OnError of the
// options, which are the user's.
package aside

import (
	"cmp"
	"os"
	"sync"
	"time"

	"github.com/rollway/rollway/internal/jsonline"
)

const maxWaiting = 64 // the default of Queue.Most

// A Queue runs functions one after another, on a goroutine that exists while there are
// some. One that panics or calls runtime.Goexit does not stop the next ones. The zero
// value is ready to use; all methods are safe for concurrent use.
type Queue struct {
	Most int // read-only; how many functions may wait; 0 means 64

	mu      sync.Mutex
	waiting []func()      // guarded by mu
	ended   chan struct{} // guarded by mu; closed when the goroutine ends; nil while there is none
}

// Do queues f. It returns false if too many functions wait.
func (q *Queue) Do(f func()) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	if len(q.waiting) >= cmp.Or(q.Most, maxWaiting) {
		return false
	}
	q.waiting = append(q.waiting, f)
	if q.ended == nil {
		q.ended = make(chan struct{})
		go q.run()
	}
	return true
}

// Idle returns a channel that is closed when no function is left to run.
func (q *Queue) Idle() <-chan struct{} {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.ended != nil {
		return q.ended
	}
	idle := make(chan struct{})
	close(idle)
	return idle
}

func (q *Queue) run() {
	exited := true
	defer func() {
		if exited { // by runtime.Goexit in a function
			go q.run()
		}
	}()
	for f := q.next(); f != nil; f = q.next() {
		guard(f)
	}
	exited = false
}

// next returns the next function, or nil if the goroutine is to end.
func (q *Queue) next() (f func()) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if len(q.waiting) == 0 {
		close(q.ended)
		q.ended = nil
		return nil
	}
	f, q.waiting = q.waiting[0], q.waiting[1:]
	return f
}

func guard(f func()) {
	defer func() { _ = recover() }()
	f()
}

// Note is the topic of errors that a Teller passes on each time. They are rare.
const Note = 0

// TellEvery is the shortest time between two errors of any other topic.
const TellEvery = time.Minute

// A Teller passes errors on to a function such as Options.OnError. All methods
// are safe for concurrent use.
type Teller struct {
	Queue
	OnError func(error) // read-only; nil: errors are discarded

	mu    sync.Mutex
	told  map[int]time.Time // guarded by mu; when, of each topic
	ended bool              // guarded by mu
}

// Tell queues a call of OnError. It returns false if the topic was told recently, if too
// many calls wait, or after End.
func (t *Teller) Tell(topic int, err error) bool {
	if t.OnError == nil {
		return true
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	now := time.Now()
	told, again := t.told[topic]
	if t.ended || topic != Note && again && now.Sub(told) < TellEvery || !t.Do(func() { t.OnError(err) }) {
		return false
	}
	if t.told == nil {
		t.told = map[int]time.Time{}
	}
	t.told[topic] = now
	return true
}

// End makes Tell discard errors, and waits for queued calls for up to Soon, because the
// process may end next.
func (t *Teller) End() {
	t.mu.Lock()
	t.ended = true
	t.mu.Unlock()
	Await(t.Idle(), Soon)
}

// Soon is shorter than a Logger waits for its outputs at the end.
const Soon = 20 * time.Millisecond

// Await waits until done is closed, or for limit.
func Await(done <-chan struct{}, limit time.Duration) {
	select {
	case <-done:
	case <-time.After(limit):
	}
}

// Signal leaves word in c, which has room for one value, if none is there.
func Signal(c chan<- struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}

// ToStderr writes err to standard error, as a JSON line at level ERROR.
func ToStderr(err error) {
	b := append(make([]byte, 0, 256), `{"time":"`...)
	b = jsonline.AppendTime(b, time.Now())
	b = append(b, `","level":"ERROR","msg":`...)
	b = jsonline.AppendString(b, err.Error())
	_, _ = os.Stderr.Write(append(b, "}\n"...)) // no one is left to tell
}
