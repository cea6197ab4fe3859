// Package file writes lines to the end of a file. A File is a line writer
// that holds nothing back: when Write returns, its lines are with the operating
// system or still the caller's. It is made to sit behind slab.Writer, whose
// goroutine batches and retries, and can be used directly.
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

// A File appends lines to one file or, with rotation, to a series of them. It is
// safe for concurrent use; whoever opened it closes it.
//
//  1. A Write is one write(2). The file never holds part of a line for longer
//     than it takes to remove it: when a disk fills up within a line, the
//     part is taken back, Write returns an n that is a line end, and the
//     caller resumes at p[n:] once there is room. So the file sees each byte
//     once, whatever the caller does next.
//  2. A part that cannot be taken back (a pipe, a terminal, bytes of another
//     writer after it) is ended with a newline before the next line, which
//     OnError is told: one bad line, and none glued to it.
//  3. An unterminated last line, as a crash leaves it, is cut by the next Open,
//     counted in Stats.CutBytes and told to OnError. So is one that a power cut
//     has left at the end of a rotated file.
//  4. A file whose write or fsync has failed for good (EIO, a read-only file
//     system) is left: it gets a name of its own, as in a rotation, and the
//     lines go on in a new file, in Options.Failover if the first folder gives
//     nothing but errors. An fsync that failed is never repeated, as the kernel
//     may have dropped the pages and would call the next one a success: the
//     next Sync or Close returns the error. With SyncEachWrite the lines of
//     that Write are written again.
//  5. A Write never spans two files, except when the first one fails. If
//     rotation is due, Write rotates first, which costs a rename and an open;
//     what takes longer is done in the background until Close. If the rotation
//     fails, for a full disk or a missing folder, Write reports it to OnError,
//     keeps using the current file and tries again later.
//  6. The path always names the current file, and a rotated file gets a name that
//     was never given before: NAME-MOMENT-INODE.EXT. No file is replaced.
//  7. A crash at any point, also of compression, loses nothing and leaves nothing
//     twice once the next Open, with Options of a series, has tidied up. A power
//     cut loses at most what was written since the last fsync.
//  8. On Linux, darwin and the BSDs several Files, also of several processes,
//     may have one path open: lines stay whole and are in one file each, and
//     nobody compresses or removes what another still writes to. Elsewhere, and
//     with Options.Mode Direct, one File owns a path.
//
// /dev/null, pipes and terminals work: they are neither truncated nor fsynced.
// /dev/stdout and /dev/stderr mean os.Stdout and os.Stderr as they are at
// Open, which Close leaves open. Open of a named pipe that nobody reads fails.
type File struct {
	path   string
	places []*logfile.Path // the path, and the one in Options.Failover; to Look at with the turn
	opt    Options         // Mode is what was asked for; Stats.Mode is what it is
	every  time.Duration   // between two checks of the path

	turn chan struct{} // holds one value while a call uses the fields of io
	io   struct {
		target                     // replaced with mu held too
		series       series        // of target; guarded by mu too
		at           int           // index into places
		said         int           // at, of the lines that OnError was last told of
		unnamed      bool          // the folder has to be fsynced too
		pin          chan struct{} // closed by the Write that Prepare announced; nil without one
		due          time.Time     // of the next rotation by time
		nextCheck    time.Time     // whether the path still names the file
		nextHome     time.Time     // whether the first place works again
		missing      time.Time     // since when the path names nothing
		lastRotation time.Time     // as in the name
		nextTry      time.Time     // of a rotation that failed
		backoff      time.Duration
		todo         [][]byte // what is left of a Write or WriteBuffers
	}
	maintenance *maintenance
	teller      aside.Teller
	toldOwner   atomic.Bool // OnError was told of an owner that cannot be kept

	mu      sync.Mutex
	stats   Stats         // without Accepted; guarded by mu
	running int           // calls that have or wait for the turn; guarded by mu
	closing bool          // guarded by mu
	idle    chan struct{} // closed when closing and nothing runs
	quit    chan struct{} // closed when Shutdown gives up on what runs
	shut    chan struct{} // closed when the file is closed
	done    chan struct{} // closed when Shutdown has its result
	err     error         // that result; set before done is closed
}

// Open opens path for appending and creates it if need be, but not its folder.
// A relative path is relative to the current folder at Open.
func Open(path string, o Options) (*File, error) {
	f, err := newFile(path, o)
	if err != nil {
		return nil, err
	}
	return f, f.start()
}

// newFile returns a File that is not opened yet.
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
		path:   path,
		places: []*logfile.Path{logfile.NewPath(path)},
		opt:    o,
		every:  time.Second,
		turn:   make(chan struct{}, 1),
		idle:   make(chan struct{}),
		quit:   make(chan struct{}),
		shut:   make(chan struct{}),
		done:   make(chan struct{}),
	}
	if o.Failover != "" {
		f.places = append(f.places, logfile.NewPath(filepath.Join(o.Failover, filepath.Base(path))))
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
		f.maintenance.poke()
	}
	if f.opt.Sync == SyncInterval {
		f.maintenance.begin()
	}
	return nil
}

// open replaces f.io.target by the file at a place. On an error the old one
// stays.
func (f *File) open(at int) error {
	for range 100 {
		if err := f.openOnce(at, true); !errors.Is(err, errOvertaken) {
			return err
		}
	}
	return f.openOnce(at, false) // a file system whose inode numbers mean nothing
}

func (f *File) openOnce(at int, verify bool) error {
	path := f.places[at].Text
	t, err := openTarget(path, f.opt.Perm, f.opt.alone())
	if err != nil {
		return err
	}
	if err = f.suits(t, at); err == nil && t.regular {
		err = f.takeOver(&t, verify)
	}
	if err != nil {
		t.close()
		return fmt.Errorf("%s: %w", path, err)
	}
	if t.blind {
		f.notice(note, "%s cannot be read: whether its last line is whole was not checked", path)
	}
	f.use(t, at)
	f.io.missing, f.io.nextCheck = time.Time{}, time.Now().Add(f.every)
	return nil
}

// takeOver locks a regular file, cuts its torn last line, unless somebody else
// writes to it too, and gives it what its mode needs. With verify the file must
// still have its name once it is locked.
func (f *File) takeOver(t *target, verify bool) error {
	err := f.lockWhole(*t)
	if verify && !logfile.StillNames(t.real, t.f) {
		return errOvertaken // it may be compressed by now
	}
	if err != nil {
		return err
	}
	return f.equip(t)
}

// lockWhole locks a file, and cuts its torn last line if it can have it alone.
func (f *File) lockWhole(t target) (err error) {
	if !f.opt.alone() {
		if !t.blind && lockAlone(t.f) {
			_, err = f.cutTorn(t)
		}
		if !within(ownerWait, lockNow, t.f) {
			return errors.Join(err, errOwned)
		}
		return err
	}
	if !within(ownerWait, lockAlone, t.f) {
		return errHeld
	}
	if info, err := t.f.Stat(); err == nil {
		_ = t.f.Truncate(info.Size()) // releases what a crash has left allocated after the end
	}
	_, err = f.cutTorn(t)
	return err
}

// suits reports what Options ask for that t cannot do.
func (f *File) suits(t target, at int) error {
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

// use makes t the current file.
func (f *File) use(t target, at int) {
	io := &f.io
	f.mu.Lock()
	t.fsyncs = &fsyncs{f: t.f}
	io.target, io.series = t, f.seriesAt(at, t.real)
	f.stats.Path = f.places[at].Text
	f.mu.Unlock()
	io.at = at
	io.size = t.measure()
	io.unnamed = io.unnamed || t.made && t.regular
	io.due = f.opt.due(t.written)
	if err := f.link(); err != nil {
		f.tell(linking, f.fail("link", err))
	}
}

// seriesAt returns the names of files rotated at a place, where the current one
// is real.
func (f *File) seriesAt(at int, real string) series {
	o := f.opt
	if at > 0 {
		o.Folder = "" // it is on another file system
	}
	return newSeries(real, o)
}

// where returns the names of the series, for a goroutine without the turn.
func (f *File) where() series {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.io.series
}

// current returns what fsync said of the current file, for a goroutine without the
// turn.
func (f *File) current() *fsyncs {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.io.fsyncs
}

// Name returns the path given to Open, made absolute.
func (f *File) Name() string { return f.path }

// Reopen opens the path again and then closes the old file: for logrotate's
// create mode, after it has renamed the file. Lines written before are in the
// old file, later ones in the new. From Options.Failover it returns to the path.
// If the path cannot be opened the old file stays in use.
func (f *File) Reopen() error {
	return f.call("reopen", f.lockUnpinned, func() error { return f.reopen(0) })
}

// reopen opens a place again, which may be the one in use.
func (f *File) reopen(at int) error {
	if f.io.tracked && f.io.at == at && !f.io.left {
		if _, same, _ := f.places[at].Look(f.io.f); same {
			return f.renew()
		}
	}
	var mendErr error
	if !f.io.tracked || f.io.failed { // else it is whole, or somebody else's
		mendErr = f.mend()
	}
	old := f.io.target
	if err := f.open(at); err != nil {
		return fmt.Errorf("the old file stays in use: %w", err)
	}
	f.count(func(s *Stats) { s.Reopens++ })
	if err := errors.Join(mendErr, f.maintenance.retired(old)); err != nil {
		return fmt.Errorf("the new file is in use, the old one was not closed cleanly: %w", err)
	}
	return nil
}
