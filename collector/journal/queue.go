package journal

// waiter is one call that waits in a queue.
type waiter struct {
	next  *waiter
	ready chan struct{} // capacity 1; sent to once per wait
	batch Batch
	keyed bool
	key   keyHash
	solo  bool // wants the writer role, not to be written

	// guarded by Journal.mu while queued
	state waitState

	// the answer; set before ready
	first uint64
	seg   *segment
	err   error

	target uint64 // of a wait in the syncer's queue: sync seg to here
}

// entry returns what is remembered of w's key for records from first on.
func (w *waiter) entry(first uint64, at int64) keyed {
	return keyed{hash: w.key, owner: hashOwner(w.batch.Owner), first: first, at: at, records: uint32(w.batch.Records), events: uint32(w.batch.events())}
}

type waitState uint8

const (
	queued  waitState = iota
	grouped           // being written by the leader of its group
	leading           // has been handed the writer role
)

// queue is the calls that wait for a role, in order.
type queue struct {
	busy       bool // a call has the role
	head, tail *waiter
}

func (q *queue) push(w *waiter) {
	w.next, w.state = nil, queued
	if q.tail == nil {
		q.head = w
	} else {
		q.tail.next = w
	}
	q.tail = w
}

func (q *queue) pop() *waiter {
	w := q.head
	if w != nil {
		q.head = w.next
		w.next = nil
	}
	if q.head == nil {
		q.tail = nil
	}
	return w
}

func (q *queue) remove(w *waiter) {
	var prev *waiter
	for p := q.head; p != w; p = p.next {
		prev = p
	}
	if prev == nil {
		q.head = w.next
	} else {
		prev.next = w.next
	}
	if q.tail == w {
		q.tail = prev
	}
	w.next = nil
}

func (j *Journal) waiterLocked() *waiter {
	w := j.free
	if w == nil {
		return &waiter{ready: make(chan struct{}, 1)}
	}
	j.free = w.next
	w.next = nil
	return w
}

func (j *Journal) releaseLocked(w *waiter) {
	*w = waiter{ready: w.ready, next: j.free}
	j.free = w
}

// handOnLocked gives the writer role to the first in the queue.
func (j *Journal) handOnLocked() {
	if w := j.queue.pop(); w != nil {
		w.state = leading
		w.ready <- struct{}{}
		return
	}
	j.queue.busy = false
}

// acquire takes the writer role after those that wait already.
func (j *Journal) acquire() {
	j.mu.Lock()
	defer j.mu.Unlock()
	if !j.queue.busy {
		j.queue.busy = true
		return
	}
	w := j.waiterLocked()
	w.solo = true
	j.queue.push(w)
	j.mu.Unlock()
	<-w.ready
	j.mu.Lock()
	j.releaseLocked(w)
}

// release returns the writer role.
func (j *Journal) release() {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.handOnLocked()
}

// Turn returns when the write that is under way, those that wait already and the fsync that
// is under way have ended. It does not return while the disk hangs. The caller does not call
// it during Close.
func (j *Journal) Turn() {
	j.acquire()
	j.release()
	j.mu.Lock()
	defer j.mu.Unlock()
	if len(j.segs) > 0 {
		j.awaitRoundLocked(j.segs[0])
	}
}
