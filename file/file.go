// Package file appends lines to a file. A File does not buffer: when Write returns,
// its lines are with the operating system, or still the caller's. It is meant as the
// destination of a slab.Writer, whose goroutine batches and retries, and can be used
// directly.
//
//	f, err := file.Open("/var/log/payment-api.log", file.Options{
//		MaxSize:  100 << 20,
//		KeepSize: 2 << 30,
//		Compress: file.Gzip{},
//	})
//	out, err := slab.New(f, slab.Options{})
package file

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"time"

	"github.com/rollway/rollway/internal/aside"
	"github.com/rollway/rollway/internal/logfile"
)

// A File appends lines to one file or, with rotation, to a series of files. It is
// safe for concurrent use. The caller of Open closes it.
//
//  1. A Write is one write(2). When a disk fills up within a line, Write removes
//     the part of the line and returns an n that is a line end; the caller resumes
//     at p[n:] once there is room. So the file gets each byte once.
//  2. A part that cannot be removed (in a pipe, in a terminal, before bytes of
//     another writer) is ended with a newline before the next line, and OnError is
//     told: one bad line, and no line glued to it.
//  3. An unterminated last line, as a crash leaves it, is cut by the next Open,
//     counted in Stats.CutBytes and told to OnError. The same is done for one that a
//     power cut has left at the end of a rotated file.
//  4. A file whose write or fsync has failed for good (EIO, a read-only file
//     system) is abandoned: it gets a name of its own, as in a rotation, and the
//     next lines go to a new file, in Options.Failover if the first folder returns
//     only errors. An fsync that failed is never repeated, because the kernel may
//     have dropped the pages and would report the next one as a success: the next
//     Sync or Close returns the error. With SyncEachWrite the lines of that Write
//     are written again.
//  5. A Write never spans two files, except when the first one fails. If a
//     rotation is due, Write rotates first, which costs a rename and an open;
//     slower work is done in the background until Close. If the rotation fails,
//     for a full disk or a missing folder, Write reports it to OnError, keeps using
//     the current file and tries again later.
//  6. The path always names the current file, and a rotated file gets a name that
//     was never used before: NAME-MOMENT-INODE.EXT. No file is replaced.
//  7. A crash at any point, also during compression, loses nothing and duplicates
//     nothing once the next Open, with Options of a series, has cleaned up. A power
//     cut loses at most what was written since the last fsync.
//  8. On Linux, darwin and the BSDs several Files, also of several processes,
//     may have one path open: lines stay whole and are in one file each, and no
//     process compresses or removes a file that another still writes. Elsewhere, and
//     with Options.Mode Direct, one File owns a path.
//
// /dev/null, pipes and terminals work: they are neither truncated nor fsynced.
// /dev/stdout and /dev/stderr mean os.Stdout and os.Stderr as they are at
// Open, which Close leaves open. Open of a named pipe without a reader fails.
type File struct {
	path      string
	locations []*logfile.Path // the path, and the one in Options.Failover; Look needs the turn
	opt       Options         // Mode is as requested; Stats.Mode is the one in use
	every     time.Duration   // between two checks of the path

	turn chan struct{} // a mutex for io: holds one value while a call uses it
	io   struct {
		target                      // replaced with mu held too
		series        series        // of target; guarded by mu too
		at            int           // index into places
		reported      int           // the index that OnError was last told of
		unnamed       bool          // the folder has to be fsynced too
		pin           chan struct{} // closed by the Write that Prepare announced; nil without one
		due           time.Time     // of the next rotation by time
		nextCheck     time.Time     // whether the path still names the file
		nextRetryHome time.Time     // of the first location
		missing       time.Time     // when the path was first found to name nothing
		lastRotation  time.Time     // as in the name
		nextTry       time.Time     // of a rotation that failed
		backoff       time.Duration
		todo          [][]byte // the rest of a Write or WriteBuffers
	}
	maintenance *maintenance
	teller      aside.Teller
	toldOwner   atomic.Bool // OnError was told that the owner cannot be preserved

	mu      sync.Mutex
	stats   Stats         // without Accepted; guarded by mu
	running int           // calls that hold or await the turn; guarded by mu
	closing bool          // guarded by mu
	idle    chan struct{} // closed when closing is set and running is 0
	quit    chan struct{} // closed when Shutdown stops waiting for calls
	shut    chan struct{} // closed when the file is closed
	done    chan struct{} // closed when Shutdown has its result
	err     error         // that result; set before done is closed
}

// Open opens path for appending. It creates a missing file, but not its folder.
// A relative path is relative to the current folder at Open.
func Open(path string, o Options) (*File, error) {
	f, err := newFile(path, o)
	if err != nil {
		return nil, err
	}
	return f, f.start()
}

func newFile(path string, o Options) (*File, error) {
	o, err := o.withDefaults()
	if err != nil {
		return nil, fmt.Errorf("file: open %s: %w", path, err)
	}
	if path != "" && !filepath.IsAbs(path) && !os.IsPathSeparator(path[len(path)-1]) {
		if path, err = filepath.Abs(path); err != nil {
			return nil, fmt.Errorf("file: open: %w", err)
		}
	}
	f := &File{
		path:      path,
		locations: []*logfile.Path{logfile.NewPath(path)},
		opt:       o,
		every:     time.Second,
		turn:      make(chan struct{}, 1),
		idle:      make(chan struct{}),
		quit:      make(chan struct{}),
		shut:      make(chan struct{}),
		done:      make(chan struct{}),
	}
	if o.Failover != "" {
		f.locations = append(f.locations, logfile.NewPath(filepath.Join(o.Failover, filepath.Base(path))))
	}
	f.teller.OnError = o.OnError
	if o.OnError == nil && standard(path) != os.Stderr {
		f.teller.OnError = aside.ToStderr
	}
	f.stats.Mode = o.Mode
	f.maintenance = newMaintenance(f)
	return f, nil
}

func (f *File) start() error {
	if err := f.openFirst(); err != nil {
		return fmt.Errorf("file: open: %w", err)
	}
	if f.opt.series() {
		f.maintenance.request()
	}
	if f.opt.Sync == SyncInterval {
		f.maintenance.begin()
	}
	return nil
}

// open replaces f.io.target by the file at a location, or returns an error.
func (f *File) open(at int) error {
	for range 100 {
		if err := f.openOnce(at, true); !errors.Is(err, errOvertaken) {
			return err
		}
	}
	return f.openOnce(at, false) // a file system with unstable inode numbers
}

func (f *File) openOnce(at int, verify bool) error {
	path := f.locations[at].Text
	t, err := openTarget(path, f.opt.Perm, f.opt.exclusive())
	if err != nil {
		return err
	}
	if err = f.checkOptions(t, at); err == nil && t.regular {
		err = f.acquireTarget(&t, verify)
	}
	if err != nil {
		t.close()
		return fmt.Errorf("%s: %w", path, err)
	}
	if t.writeOnly {
		f.notice(note, "%s cannot be read: whether its last line is whole was not checked", path)
	}
	f.use(t, at)
	f.io.missing, f.io.nextCheck = time.Time{}, time.Now().Add(f.every)
	return nil
}

// acquireTarget locks a regular file, cuts its torn last line unless another writer
// has it open, and prepares it for its mode. With verify it must still have its name then.
func (f *File) acquireTarget(t *target, verify bool) error {
	err := f.lockWhole(*t)
	if verify && !logfile.StillNames(t.real, t.f) {
		return errOvertaken // it may be compressed already
	}
	if err != nil {
		return err
	}
	return f.prepareMode(t)
}

// lockWhole locks a file, and cuts its torn last line if no one else has it open.
func (f *File) lockWhole(t target) (err error) {
	if !f.opt.exclusive() {
		if !t.writeOnly && lockExclusive(t.f) {
			_, err = f.cutTorn(t)
		}
		if !tryFor(ownerWait, lockShared, t.f) {
			return errors.Join(err, errOwned)
		}
		return err
	}
	if !tryFor(ownerWait, lockExclusive, t.f) {
		return errHeld
	}
	if info, err := t.f.Stat(); err == nil {
		_ = t.f.Truncate(info.Size()) // frees blocks that a crash has left after the end
	}
	_, err = f.cutTorn(t)
	return err
}

// checkOptions returns an error if t cannot do what Options ask for.
func (f *File) checkOptions(t target, at int) error {
	switch {
	case !t.regular && f.opt.Mode != Buffered:
		return errNotDirect
	case !t.regular && (f.opt.rotates() || f.opt.Failover != ""):
		return errNotRegular
	case !t.regular || f.opt.Folder == "" || at > 0:
		return nil
	}
	info, err := os.Stat(f.opt.Folder)
	if err != nil {
		return fmt.Errorf("Options.Folder: %w", err)
	}
	if !info.IsDir() {
		return fmt.Errorf("Options.Folder %s is not a folder", f.opt.Folder)
	}
	dir := filepath.Dir(t.real)
	own, err := os.Stat(dir)
	if err != nil {
		return err
	}
	there, _, err1 := logfile.IdentityAt(f.opt.Folder, info)
	here, _, err2 := logfile.IdentityAt(dir, own)
	if err1 == nil && err2 == nil && here != there {
		return fmt.Errorf("Options.Folder %s is on another file system: files cannot be renamed to there", f.opt.Folder)
	}
	return nil
}

func (f *File) use(t target, at int) {
	io := &f.io
	f.mu.Lock()
	t.fsyncs = &fsyncs{f: t.f}
	io.target, io.series = t, f.seriesAt(at, t.real)
	f.stats.Path = f.locations[at].Text
	f.mu.Unlock()
	io.at = at
	io.size = t.measure()
	io.unnamed = io.unnamed || t.created && t.regular
	io.due = f.opt.due(t.written)
	if err := f.link(); err != nil {
		f.tell(linking, f.fail("link", err))
	}
}

func (f *File) seriesAt(at int, real string) series {
	o := f.opt
	if at > 0 {
		o.Folder = "" // it is on another file system
	}
	return newSeries(real, o)
}

// current returns the series and the fsyncs of the current file, for a goroutine without
// the turn.
func (f *File) current() (series, *fsyncs) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.io.series, f.io.fsyncs
}

// Name returns the path given to Open, made absolute.
func (f *File) Name() string { return f.path }

// Reopen opens the path again and then closes the old file: for logrotate's create mode,
// after it has renamed the file. Lines written before are in the old file, later ones in
// the new. From Options.Failover it returns to the path. If the path cannot be opened, the
// old file stays in use.
func (f *File) Reopen() error {
	return f.call("reopen", f.lockUnpinned, func() error { return f.reopen(0) })
}

func (f *File) reopen(at int) error {
	if f.io.tracked && f.io.at == at && !f.io.abandoned {
		if _, same, _ := f.locations[at].Look(f.io.f); same {
			return f.renew()
		}
	}
	var repairErr error
	if !f.io.tracked || f.io.failed { // otherwise it is whole, or another File's
		repairErr = f.repairTail()
	}
	old := f.io.target
	if err := f.open(at); err != nil {
		return fmt.Errorf("the old file stays in use: %w", err)
	}
	f.count(func(s *Stats) { s.Reopens++ })
	if err := errors.Join(repairErr, f.maintenance.finishOld(old)); err != nil {
		return fmt.Errorf("the new file is in use, the old one was not closed cleanly: %w", err)
	}
	return nil
}
