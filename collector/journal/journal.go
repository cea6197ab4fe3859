package journal

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"sync"
	"time"

	"github.com/rollway/rollway/internal/disk"
	"github.com/rollway/rollway/internal/recordlog"
)

// ErrFull is what Append's error wraps when the disk, a quota or Options.MaxBytes has no
// room. The batch is not stored; a later Append may succeed.
var ErrFull = errors.New("journal is full")

// ErrNotSynced is what the error of a Synced Append wraps when fdatasync failed after the
// batch was written: readers see it, but it may not survive a power cut.
var ErrNotSynced = errors.New("stored, but not made durable")

// Options of a Journal; the zero value is the recommended setting.
type Options struct {
	SegmentBytes  int64         // a segment is sealed at this size; 0: 128 MiB
	MaxGroupBytes int           // lines in one frame, unless a single line is larger; 0: 1 MiB
	MaxBytes      int64         // of all segments together, then ErrFull; 0: unlimited
	RetainBytes   int64         // of the files: oldest sealed segments are deleted beyond this; 0: kept. Those that wait to be packed count only beyond twice this
	RetainAge     time.Duration // sealed segments last written longer ago are deleted; 0: kept

	// Tenants have limits of their own, which delete their oldest blocks: see Retention.
	// They need Pack.
	Tenants map[string]Retention

	Pack bool // rewrite sealed segments as columns, in the background; both kinds are read in any case

	// Hold names the cursors that will be opened to hold. Retention respects them from
	// Open on.
	Hold []string

	MaxKeys int           // idempotency keys that are remembered; 0: 1,000,000, of about 100 bytes each
	KeyAge  time.Duration // time for which they are remembered; 0: 1 h

	Scrub time.Duration // each sealed segment is read again once in this time; 0: never

	Last End // as the caller knows it from elsewhere

	// Rest is called by the goroutine that packs, twice in a millisecond of its work or more often,
	// so that other goroutines do not wait for it. nil: nothing
	Rest func()

	// OnFinding gets what is found while the journal is open, if it is not nil. It must not
	// call the journal.
	OnFinding func(Finding)

	Disk disk.FS // nil: the operating system's, without files of other users
}

// End is where the journal of an ID ended at least.
type End struct {
	ID   string
	Next uint64 // no record had this offset yet
}

// Retention is what a tenant keeps in packed segments. What of it goes is its part of a
// segment.
type Retention struct {
	Bytes int64         // of its blocks as they are stored; 0: no limit of its own
	Age   time.Duration // since the last write to their segment; 0: RetainAge. It may be more: the segment then stays, without the blocks of others
}

// maxGroup leaves room for the keys of a frame.
const maxGroup = recordlog.MaxBody - math.MaxUint16*keyEntrySize

// maxKeys bounds Options.MaxKeys and what Open reads of keys.
const maxKeys = 100_000_000

func (o *Options) check() error {
	switch {
	case o.SegmentBytes < 0 || o.MaxGroupBytes < 0 || o.MaxBytes < 0 || o.RetainBytes < 0 || o.RetainAge < 0 || o.MaxKeys < 0 || o.KeyAge < 0 || o.Scrub < 0:
		return errors.New("journal options: a size, number or age is negative; use 0 for the default")
	case len(o.Tenants) > 0 && !o.Pack:
		return errors.New("journal options: Tenants have limits, and without Pack there are no blocks of a tenant")
	case o.MaxGroupBytes > maxGroup:
		return fmt.Errorf("journal options: MaxGroupBytes %d is above the format's limit of %d", o.MaxGroupBytes, maxGroup)
	}
	o.SegmentBytes = cmp.Or(o.SegmentBytes, 128<<20)
	o.MaxGroupBytes = cmp.Or(o.MaxGroupBytes, 1<<20)
	o.MaxKeys = min(cmp.Or(o.MaxKeys, 1_000_000), maxKeys)
	o.KeyAge = cmp.Or(o.KeyAge, time.Hour)
	if o.Rest == nil {
		o.Rest = func() {}
	}
	if o.Disk == nil {
		o.Disk = disk.Real{Owned: true}
	}
	return nil
}

// Journal is a write-ahead log in one folder. It is safe for concurrent use. The caller of
// Open closes it.
type Journal struct {
	dir      string
	o        Options
	fs       disk.FS
	lock     disk.Lock
	recovery Recovery
	id       string
	fresh    bool // made by Open
	readOnly bool // by OpenReadOnly
	opened   time.Time

	scannedKeys map[uint64][]keyed // keys by the first offset of their segment; recover's

	kick       chan struct{} // capacity 1; wakes maintenance
	kickPacker chan struct{} // capacity 1; wakes the packer
	workers    sync.WaitGroup
	stop       chan struct{} // closed by Close; ends the workers
	closed     chan struct{} // closed when Close has finished
	closeErr   error         // set before closed is closed

	packing  *packer    // of a segment that is packed ahead; the packer's alone
	saving   sync.Mutex // held while the manifest is written
	deleting sync.Mutex // held while segments are deleted or replaced
	trash    trash

	// writer is used only with the writer role; see queue.
	writer struct {
		seg *segment // the one being written; nil: created by the next group
		buf []byte   // the frame

		tail tail // before the frame, and then with it
		read [compareBytes]byte
	}

	// mu guards all below and the marked fields of segments. It is never held during a disk
	// operation.
	mu       sync.Mutex
	closing  bool
	done     bool       // Close has finished writing; readers end
	next     uint64     // offset of the next record
	total    int64      // bytes of all segments
	segs     []*segment // by first offset
	counts   [len(grains)]heldCounts
	queue    queue
	syncer   syncer
	keys     keyTable
	cursors  []*Cursor // open
	manifest struct {
		dirty   bool   // the file lists other segments than there are
		open    bool   // this process has written the file, which says that the journal is open
		refresh uint64 // the file is written again when next is here
	}
	moved    error // why the folder is not the one that was opened
	lost     error // why nothing may be stored
	scrubbed scrubbed
	findings struct {
		kept  []Finding // what was found, now or before, and is not acknowledged
		acked []Finding // acknowledged
	}
	committed chan struct{} // closed by the next commit; nil: no reader waits
	free      *waiter
	counters  counters
}

// Open opens the journal in dir, creates the folder if necessary, and repairs what a crash
// left: see [Journal.Recovery]. It reads the manifest, the headers of sealed segments and
// the whole last segment. It fails when another process has the journal open, the folder is
// not writable, or a newer version wrote the last segment.
func Open(dir string, o Options) (*Journal, error) {
	if err := o.check(); err != nil {
		return nil, err
	}
	j := &Journal{
		dir: dir, o: o, fs: o.Disk,
		kick:       make(chan struct{}, 1),
		kickPacker: make(chan struct{}, 1),
		stop:       make(chan struct{}),
		closed:     make(chan struct{}),
		opened:     time.Now(),
		trash:      trash{kick: make(chan struct{}, 1)},
	}
	j.keys.init(o.MaxKeys, o.KeyAge)
	if err := j.fs.MkdirAll(dir, 0o750); err != nil {
		return nil, fmt.Errorf("open journal: create folder %s: %w", dir, err)
	}
	var err error
	switch j.lock, err = recordlog.LockFolder(j.fs, dir); {
	case errors.Is(err, disk.ErrLocked):
		return nil, fmt.Errorf("open journal: folder %s is in use by another process; stop it or choose another folder: %w", dir, err)
	case errors.Is(err, disk.ErrNotFile), errors.Is(err, disk.ErrOwner):
		return nil, fmt.Errorf("open journal: %w", err)
	case err != nil:
		return nil, fmt.Errorf("open journal: folder %s must be writable: %w", dir, err)
	}
	if err := j.recover(); err != nil {
		return nil, errors.Join(fmt.Errorf("open journal in %s: %w", dir, err), j.closeFiles())
	}
	for _, s := range j.segs {
		if !s.settled {
			s.keyed = len(j.keys.between(s.first, s.end))
		}
	}
	for _, name := range o.Hold {
		c, err := j.OpenCursor(name, true)
		if err != nil {
			return nil, errors.Join(fmt.Errorf("open journal in %s: %w", dir, err), j.closeFiles())
		}
		c.waits = true
	}
	if j.fresh { // what is missing later was removed
		j.saveManifest(true)
	}
	j.manifest.dirty = true
	j.workers.Go(j.maintain)
	j.workers.Go(j.sweep)
	if o.Pack {
		j.workers.Go(j.packAll)
	}
	if o.Scrub > 0 {
		j.workers.Go(j.scrub)
	}
	wake(j.kick)
	return j, nil
}

// Next returns the offset of the next record.
func (j *Journal) Next() uint64 {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.next
}

// First returns the offset of the oldest record kept, or Next.
func (j *Journal) First() uint64 {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.firstLocked()
}

func (j *Journal) firstLocked() uint64 {
	if len(j.segs) == 0 {
		return j.next
	}
	return j.segs[0].first
}

// Recovery returns what Open found and repaired.
func (j *Journal) Recovery() Recovery { return j.recovery }

// Close waits for current appends, makes everything durable and releases the folder.
// Readers get io.EOF after the last record. It returns the error that may have cost stored
// data its durability, if any. Later calls return the same.
func (j *Journal) Close() error {
	j.mu.Lock()
	if j.closing {
		j.mu.Unlock()
		<-j.closed
		return j.closeErr
	}
	j.closing = true
	j.mu.Unlock()

	close(j.stop)
	j.workers.Wait()
	j.acquire() // for good: nobody writes after this
	j.emptyTrash()
	j.mu.Lock()
	if j.lookLocked() != nil {
		j.saveTaken()
	}
	err := j.Sync()
	j.saveManifest(true)
	j.mu.Lock()
	err = errors.Join(j.counters.lostSync, err)
	j.done = true
	j.wakeReadersLocked()
	j.mu.Unlock()
	j.closeErr = errors.Join(err, j.closeFiles())
	close(j.closed)
	return j.closeErr
}

// closeFiles closes the files of unsealed segments and releases the lock.
func (j *Journal) closeFiles() error {
	var errs []error
	for _, s := range j.segs {
		if s.file != nil {
			errs = append(errs, s.file.Close())
			s.file = nil
		}
	}
	return errors.Join(append(errs, j.lock.Close())...)
}
