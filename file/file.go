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
//	out, err := slab.New(f, slab.Options{CloseDestination: true})
package file

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/rollway/rollway/internal/logfile"
)

// A File appends lines to one file or, with rotation, to a series of them. It is
// safe for concurrent use; whoever opened it closes it.
//
//  1. A Write is one write(2). The file never holds part of a line for longer
//     than it takes to cut it off: when a disk fills up within a line, the
//     part is taken back, Write returns an n that is a line end, and the
//     caller resumes at p[n:] once there is room. So the file sees each byte
//     once, whatever the caller does next.
//  2. A part that cannot be taken back (a pipe, a terminal, another writer
//     behind it) is ended with a line end before the next line, and told to
//     OnNotice: one bad line, and none glued to it.
//  3. A part that a crash has left at the end is cut by the next Open, counted
//     in Stats.CutBytes and told to OnNotice. So is one that a power cut has
//     left at the end of a rotated file.
//  4. An fsync that failed is not tried again: the kernel may have dropped the
//     pages and would call the next one a success. Its error comes back from
//     every Sync, from every Write with Options.Sync EachWrite, and from Close,
//     until Reopen or a rotation.
//  5. A Write is in one file: rotation happens between Writes, and in the
//     goroutine of the Write that finds it due. It costs a rename and an open; what
//     takes longer is done in the background until Close. A rotation that
//     fails, for a full disk or a missing folder, is told to OnError and tried
//     again, and the Write goes to the file in use.
//  6. The path always names the current file, and a rotated one has a name that
//     was never given before: NAME-MOMENT-INODE.EXT. None is replaced.
//  7. A crash at any point, of packing too, loses nothing and leaves nothing
//     twice once the next Open, with Options of a series, has tidied up. A power
//     cut loses at most what was written since the last fsync.
//  8. On Linux, darwin and the BSDs several Files, also of several processes,
//     may have one path open: lines stay whole and are in one file each, and
//     nobody packs or removes what another still writes to. Elsewhere, and with
//     Options.Mode Direct, one File owns a path.
//
// /dev/null, pipes and terminals work: they are neither cut nor fsynced.
// /dev/stdout and /dev/stderr mean os.Stdout and os.Stderr as they are at
// Open, which Close leaves open. Opening a named pipe waits for its reader.
type File struct {
	path string
	name *logfile.Path // path, to look at; used by who has the turn
	opt  Options       // Mode is what was asked for; Stats.Mode is what it is

	turn chan struct{} // holds one value while a call uses the fields of io
	io   struct {
		target
		series       series
		size         int64         // bytes of a regular file, as far as is known
		torn         int64         // bytes of a torn line at the end; the next Write deals with them
		syncErr      error         // of a failed fsync
		unnamed      bool          // the folder has to be fsynced too
		pin          chan struct{} // closed by the Write that Prepare announced; nil without one
		due          time.Time     // of the next rotation by time
		nextCheck    time.Time     // whether the path still names the file
		missing      time.Time     // since when the path names nothing
		lastRotation time.Time     // as in the name
		nextTry      time.Time     // of a rotation that failed
		backoff      time.Duration
		toldOwner    bool // notice was given of an owner that cannot be kept
	}
	keeper *keeper

	mu        sync.Mutex
	stats     Stats          // without Accepted; guarded by mu
	current   *os.File       // io.target.f, to interrupt it; guarded by mu
	real      string         // io.target.real; guarded by mu
	names     series         // io.series; guarded by mu
	dirty     bool           // written to since the last fsync by interval; guarded by mu
	running   int            // calls that have or wait for the turn; guarded by mu
	closing   bool           // guarded by mu
	abandoned bool           // Shutdown has not waited: the last call closes the file; guarded by mu
	watchers  sync.WaitGroup // goroutines of ReopenOn; counted up under mu and before closing
	shut      chan struct{}  // closed when Shutdown begins
	idle      chan struct{}  // closed when closing and nothing runs
	quit      chan struct{}  // closed when Shutdown gives up on what runs
	done      chan struct{}  // closed when Shutdown has its result
	err       error          // that result; set before done is closed
}

// Open opens path for appending and creates it if need be, but not its folder.
// A relative path is of the folder that is the current one at Open.
func Open(path string, o Options) (*File, error) {
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
		path: path,
		name: logfile.NewPath(path),
		opt:  o,
		turn: make(chan struct{}, 1),
		shut: make(chan struct{}),
		idle: make(chan struct{}),
		quit: make(chan struct{}),
		done: make(chan struct{}),
	}
	f.stats.Mode = o.Mode
	f.keeper = newKeeper(f)
	if err := f.open(); err != nil {
		return nil, fmt.Errorf("file: open: %w", err)
	}
	if o.series() {
		f.keeper.poke()
	}
	if o.Sync == Interval {
		f.keeper.begin()
	}
	return f, nil
}

// open replaces f.io.target. On an error the old one stays.
func (f *File) open() error {
	for range 100 {
		if err := f.openOnce(true); !errors.Is(err, errOvertaken) {
			return err
		}
	}
	return f.openOnce(false) // a file system whose inode numbers mean nothing
}

func (f *File) openOnce(verify bool) error {
	t, err := openTarget(f.path, f.opt.Perm, f.opt.alone())
	if err != nil {
		return err
	}
	if err := f.suits(t); err != nil {
		t.close()
		return fmt.Errorf("%s: %w", f.path, err)
	}
	written := t.modTime()
	if t.regular {
		err = f.takeOver(t)
	}
	locked := err == nil || errors.Is(err, errHeld) || errors.Is(err, errOwned)
	if locked && verify && t.regular && !logfile.StillNames(t.real, t.f) {
		err = errOvertaken // renamed before it was locked, it may be packed by now
	}
	if err == nil {
		err = f.equip(&t)
	}
	if err != nil {
		t.close()
		return fmt.Errorf("%s: %w", f.path, err)
	}
	if t.regular && t.blind {
		f.notice("%s cannot be read: whether its last line is whole was not checked", f.path)
	}
	f.use(t, written)
	return nil
}

// takeOver locks a regular file and cuts its torn last line, unless somebody
// else writes to it too.
func (f *File) takeOver(t target) error {
	alone := f.opt.alone()
	if alone && !t.lock(true) {
		return errHeld
	}
	var err error
	if alone || !t.blind && lockAlone(t.f) {
		var cut int64
		var head []byte
		if cut, head, err = t.cutTail(); cut > 0 {
			f.count(func(s *Stats) { s.CutBytes += uint64(cut) })
			f.notice("%s ended within a line, as after a crash: %d bytes cut, beginning with %q", f.path, cut, head)
		}
	}
	if !alone && !t.lock(false) {
		return errors.Join(err, errOwned)
	}
	return err
}

// suits reports what Options ask for that t cannot do.
func (f *File) suits(t target) error {
	if f.opt.Mode != Buffered && (!t.regular || t.std) {
		return errNotDirect
	}
	if f.opt.rotates() && (!t.regular || t.std) {
		return errNotRegular
	}
	if f.opt.Folder == "" || !t.regular {
		return nil
	}
	info, err := os.Stat(f.opt.Folder)
	if err != nil {
		return fmt.Errorf("Options.Folder: %w", err)
	}
	if !info.IsDir() {
		return fmt.Errorf("Options.Folder %s is not a folder", f.opt.Folder)
	}
	there, err1 := volumeOf(f.opt.Folder)
	here, err2 := volumeOf(filepath.Dir(t.real))
	if err1 == nil && err2 == nil && here != there {
		return fmt.Errorf("Options.Folder %s is on another file system: files cannot be renamed to there", f.opt.Folder)
	}
	return nil
}

func volumeOf(folder string) (uint64, error) {
	d, err := os.Open(folder)
	if err != nil {
		return 0, err
	}
	defer d.Close()
	volume, _, err := logfile.Identity(d)
	return volume, err
}

// use makes t the current file, whose latest line is of the time written.
func (f *File) use(t target, written time.Time) {
	f.io.target, f.io.torn, f.io.syncErr = t, 0, nil
	f.io.size = t.size()
	f.io.unnamed = f.io.unnamed || t.made && t.regular
	f.io.series = newSeries(t.real, f.opt)
	f.io.due = f.opt.due(written)
	f.io.missing = time.Time{}
	f.io.nextCheck = time.Now().Add(max(f.opt.CheckEvery, 0))
	f.mu.Lock()
	f.current, f.real, f.names, f.dirty = t.f, t.real, f.io.series, false
	f.mu.Unlock()
	if err := f.link(); err != nil {
		f.tell(f.fail("link", err))
	}
}

// where returns the names of the series and the path of the current file.
func (f *File) where() (series, string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.names, f.real
}

// takeDirty returns the current file if it was written to since the last call.
func (f *File) takeDirty() *os.File {
	f.mu.Lock()
	defer f.mu.Unlock()
	if !f.dirty {
		return nil
	}
	f.dirty = false
	return f.current
}

// Name returns the path given to Open, made absolute.
func (f *File) Name() string { return f.path }

// Reopen opens the path anew and then closes the old file: for logrotate's
// create mode, after it has renamed the file. Lines written before are in the
// old file, later ones in the new. If the path cannot be opened the old file
// stays in use.
func (f *File) Reopen() error {
	if !f.enter(0) {
		return f.fail("reopen", os.ErrClosed)
	}
	defer f.leave(0, 0)
	err := f.lockUnpinned(context.Background())
	if err == nil {
		err = f.reopen()
		f.unlock()
	}
	if err != nil {
		err = f.fail("reopen", err)
		f.countError(err)
	}
	return err
}

func (f *File) reopen() error {
	if f.io.tracked && f.inPlace() {
		return f.renew()
	}
	mendErr := f.mend() // the old file is not left torn, if that can be helped
	old := f.io.target
	if err := f.open(); err != nil {
		return fmt.Errorf("the old file stays in use: %w", err)
	}
	f.count(func(s *Stats) { s.Reopens++ })
	if err := errors.Join(mendErr, f.keeper.retired(old, "", nil)); err != nil {
		return fmt.Errorf("the new file is in use, the old one was not closed cleanly: %w", err)
	}
	return nil
}
