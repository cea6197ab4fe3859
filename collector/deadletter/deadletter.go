// Package deadletter stores events that the collector has rejected, to be read and sent
// again.
//
//  1. [Store.Add] copies what is kept and returns: one goroutine writes it, for a quarter
//     of the time at most. Between them wait 4 MiB at most, and no principal takes so much
//     that a newcomer has no share; what has no room there is dropped.
//  2. Events that are alike (of one principal, receiver, reason, text and context) are one
//     dead letter with a count, as long as it is among the newest ones of its principal
//     and reason, and of this process.
//  3. While there is room anybody may use it. Beyond, the oldest file goes of the reason
//     with the most bytes of the principal with the most.
//  4. In Stats, Start + Rejected = Kept + the sum of Dropped + Pending, at any moment.
//  5. What is no regular file is neither opened nor written through.
//
// The files are described in docs/FORMAT.md.
package deadletter

import (
	"errors"
	"fmt"
	"maps"
	"os"
	"sync"
	"time"

	"github.com/rollway/rollway/collector/normalize"
	"github.com/rollway/rollway/collector/ulid"
	"github.com/rollway/rollway/internal/aside"
	"github.com/rollway/rollway/internal/disk"
)

// MaxBatch is how many bytes of the events of one batch a Store should get.
const MaxBatch = 1 << 20

const (
	maxHeld      = 4 << 20 // bytes between Add and the files
	itemSize     = 512     // bytes of an item besides its events
	closeTimeout = 5 * time.Second

	// After each round of writing run rests for so many times as long, and maxRest at most:
	// who rejects without end takes a quarter of a processor's time and of the disk's.
	rest    = 3
	maxRest = 5 * time.Second
)

// Reasons for which a rejected event has no dead letter, or no longer.
const (
	DroppedLimit = "limit" // its request had too many, or it has no text
	DroppedQueue = "queue" // too much was waiting to be written
	DroppedDisk  = "disk"  // a file could not be written
	DroppedQuota = "quota" // it went for newer ones
)

// A Store is a folder of dead letters. It is safe for concurrent use. The caller of Open
// closes it.
type Store struct {
	dir     string
	max     int64 // bytes of all files, each at least floor
	floor   int64
	fs      disk.FS
	onError func(error)
	work    chan struct{} // something is in waiting, or the Store is closing
	quit    chan struct{} // closed by Close
	done    chan struct{} // closed when run returns

	mu      sync.Mutex
	closing bool              // Close was called; guarded by mu
	ended   bool              // run has returned, or will without looking again; guarded by mu
	waiting []item            // guarded by mu
	forget  []string          // ids that get no more events; guarded by mu
	held    int               // bytes of items that are not settled; guarded by mu
	heldBy  map[string]int    // the same by principal; guarded by mu
	stats   Stats             // guarded by mu
	groups  map[string]*group // by their names; run changes it, with mu held
	sizes   map[string]int64  // bytes by principal, as it is in names; likewise
	total   int64             // their sum; likewise

	ids     ulid.Source
	touched []*group  // with something to write; owned by run
	buf     []byte    // owned by run
	told    time.Time // onError, last; owned by run
}

// item is what one Add has left.
type item struct {
	Origin
	batch *normalize.Batch
	size  int
}

// Stats count events. All but Kept, Bytes and Pending only rise.
type Stats struct {
	Start    uint64            // that dead letters were of when the Store was opened
	Rejected uint64            // given to Add
	Kept     uint64            // that dead letters are of now
	Dropped  map[string]uint64 // by reason, those of Start too
	Pending  uint64            // not written yet
	Bytes    int64             // that the files take up
}

// Options of a Store.
type Options struct {
	MaxBytes int64       // of all files together; at least 1 MiB
	OnError  func(error) // gets what is wrong with files; nil: nobody does
	Disk     disk.FS     // default: the operating system's, without files of other users
}

// Open opens the store in dir, which it creates if necessary.
func Open(dir string, o Options) (*Store, error) {
	if o.MaxBytes < 1<<20 {
		return nil, fmt.Errorf("dead letters: %d bytes are too few, at least 1 MiB is needed", o.MaxBytes)
	}
	s := &Store{
		dir: dir, max: o.MaxBytes, floor: max(4<<10, o.MaxBytes/4096), fs: o.Disk, onError: o.OnError,
		work: make(chan struct{}, 1), quit: make(chan struct{}), done: make(chan struct{}),
		heldBy: map[string]int{}, groups: map[string]*group{}, sizes: map[string]int64{},
		stats: Stats{Dropped: map[string]uint64{DroppedLimit: 0, DroppedQueue: 0, DroppedDisk: 0, DroppedQuota: 0}},
	}
	if s.fs == nil {
		s.fs = disk.Real{Owned: true}
	}
	if s.onError == nil {
		s.onError = func(error) {}
	}
	if err := s.recover(); err != nil {
		return nil, fmt.Errorf("dead letters: %w", err)
	}
	go s.run()
	return s, nil
}

// Add takes the dead letters of a batch. It never waits for the disk.
func (s *Store) Add(o Origin, batch *normalize.Batch) {
	n := uint64(batch.RejectedTotal)
	if n == 0 {
		return
	}
	letters, size := batch.DeadLetters(), batch.HeldRejected()+itemSize
	s.mu.Lock()
	s.stats.Rejected += n
	reason := ""
	switch {
	case len(letters) == 0:
		reason = DroppedLimit
	case s.closing || !s.fitsLocked(o.principal(), size):
		reason = DroppedQueue
	}
	if reason != "" {
		s.stats.Dropped[reason] += n
		s.mu.Unlock()
		return
	}
	s.held += size
	s.heldBy[o.principal()] += size
	s.stats.Pending += n
	s.mu.Unlock()
	it := item{o, batch.CloneRejected(), size}
	s.mu.Lock()
	ended := s.ended
	if !ended {
		s.waiting = append(s.waiting, it)
	}
	s.mu.Unlock()
	if ended {
		s.settle(n, DroppedQueue)
		return
	}
	aside.Signal(s.work)
}

// fitsLocked reports whether a principal may have n bytes more waiting. In the second half
// of the room each has an equal share, and one is left for a newcomer.
func (s *Store) fitsLocked(principal string, n int) bool {
	if s.held+n <= maxHeld/2 {
		return true
	}
	users := len(s.heldBy) + 1
	if s.heldBy[principal] == 0 {
		users++
	}
	return s.held+n <= maxHeld && s.heldBy[principal]+n <= maxHeld/users
}

// run writes what Add has left until the Store is closed.
func (s *Store) run() {
	defer close(s.done)
	for range s.work {
		begin := time.Now()
		s.mu.Lock()
		items, forget := s.waiting, s.forget
		s.waiting, s.forget = nil, nil
		s.mu.Unlock()
		s.drop(forget)
		for i := range items {
			s.take(&items[i])
		}
		s.flush()
		if s.release(items) {
			return
		}
		aside.Await(s.quit, min(rest*time.Since(begin), maxRest))
	}
}

// release gives back what items have held, and reports whether run is to end.
func (s *Store) release(items []item) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	for i := range items {
		it := &items[i]
		s.held -= it.size
		if s.heldBy[it.principal()] -= it.size; s.heldBy[it.principal()] == 0 {
			delete(s.heldBy, it.principal())
		}
	}
	s.ended = s.closing && len(s.waiting) == 0
	return s.ended
}

// settle counts n pending events as kept, for reason "", or as dropped.
func (s *Store) settle(n uint64, reason string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.stats.Pending -= n
	if reason == "" {
		s.stats.Kept += n
	} else {
		s.stats.Dropped[reason] += n
	}
}

// Stats returns a snapshot. It never waits for the disk.
func (s *Store) Stats() Stats {
	s.mu.Lock()
	defer s.mu.Unlock()
	stats := s.stats
	stats.Bytes, stats.Dropped = s.total, maps.Clone(s.stats.Dropped)
	return stats
}

// Close writes what is left, for at most 5 s, and drops what is not written then. What
// Add gets later is dropped.
func (s *Store) Close() error {
	s.mu.Lock()
	if !s.closing {
		close(s.quit)
	}
	s.closing = true
	s.mu.Unlock()
	aside.Signal(s.work)
	timeout := time.NewTimer(closeTimeout)
	defer timeout.Stop()
	select {
	case <-s.done:
		return nil
	case <-timeout.C:
		return errors.Join(fmt.Errorf("the disk did not take all dead letters within %v", closeTimeout), os.ErrDeadlineExceeded)
	}
}
