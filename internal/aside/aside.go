// Package aside runs what nobody is to wait for: above all the functions of a
// user that are told of errors.
package aside

import (
	"cmp"
	"os"
	"sync"
	"time"

	"github.com/rollway/rollway/internal/jsonline"
)

const most = 64 // unless Queue.Most says otherwise

// A Queue runs functions one after another, in a goroutine that lives while there
// are some. One that panics or calls runtime.Goexit does not keep the next ones
// from running. The zero value is ready; all methods are safe for concurrent use.
type Queue struct {
	Most int // read-only; how many functions may wait; 0 means 64

	mu      sync.Mutex
	waiting []func()      // guarded by mu
	ended   chan struct{} // guarded by mu; closed when the goroutine ends; nil while there is none
}

// Do queues f, and reports false if too many wait already.
func (q *Queue) Do(f func()) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	if len(q.waiting) >= cmp.Or(q.Most, most) {
		return false
	}
	q.waiting = append(q.waiting, f)
	if q.ended == nil {
		q.ended = make(chan struct{})
		go q.run()
	}
	return true
}

// Idle returns a channel that is closed once nothing is left to run.
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

// next returns the function whose turn it is. If there is none the goroutine is
// to end.
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

// Note is the topic of what a Teller tells each time. There are few of these.
const Note = 0

// TellEvery is the shortest time between two errors of one of the other topics.
const TellEvery = time.Minute

// A Teller passes errors on to a function such as Options.OnError. All methods
// are safe for concurrent use.
type Teller struct {
	Queue
	OnError func(error) // read-only; nil: nobody is told

	mu    sync.Mutex
	told  map[int]time.Time // guarded by mu; when, of each topic
	ended bool              // guarded by mu
}

// Tell queues a call of OnError. It reports false if it is not time for the topic,
// if too many calls wait already, or after End.
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

// End makes Tell queue nothing more, and awaits soon what is queued, as the process
// may end next.
func (t *Teller) End() {
	t.mu.Lock()
	t.ended = true
	t.mu.Unlock()
	Await(t.Idle(), Soon)
}

// Soon is less than a Logger waits for its outputs at the end.
const Soon = 20 * time.Millisecond

// Await waits until done is closed, or for limit.
func Await(done <-chan struct{}, limit time.Duration) {
	select {
	case <-done:
	case <-time.After(limit):
	}
}

// ToStderr writes err to standard error, as a JSON line at level ERROR.
func ToStderr(err error) {
	b := append(make([]byte, 0, 256), `{"time":"`...)
	b = jsonline.AppendTime(b, time.Now())
	b = append(b, `","level":"ERROR","msg":`...)
	b = jsonline.AppendString(b, err.Error())
	_, _ = os.Stderr.Write(append(b, "}\n"...)) // there is nobody left to tell
}
