// Package file writes lines to the end of a file. A File is a line writer
// that holds nothing back: when Write returns, its lines are with the operating
// system or still the caller's. It is made to sit behind slab.Writer, whose
// goroutine batches and retries, and can be used directly.
//
//	f, err := file.Open("/var/log/payment-api.log", file.Options{})
//	out, err := slab.New(f, slab.Options{CloseDestination: true})
package file

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"sync"
	"syscall"
	"time"
)

// A File appends lines to one file. It is safe for concurrent use; whoever
// opened it closes it. At any time one File, in one process, owns a path.
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
//     in Stats.CutBytes and told to OnNotice.
//  4. An fsync that failed is not tried again: the kernel may have dropped the
//     pages and would call the next one a success. Its error comes back from
//     every Sync, from every Write with Options.Sync EachWrite, and from Close,
//     until Reopen.
//
// /dev/null, pipes and terminals work: they are neither cut nor fsynced.
// /dev/stdout and /dev/stderr mean os.Stdout and os.Stderr as they are at
// Open, which Close leaves open. Opening a named pipe waits for its reader.
type File struct {
	path string
	opt  Options

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

// Stats is a snapshot of a File's counters; lines unless said otherwise. A
// File drops nothing: at every moment Accepted = Written + Pending.
//
// A line is accepted when a Write takes it up and Pending while that Write
// runs. A Write that fails hands the lines beyond its n back to the caller:
// they leave Pending, and with it Accepted, and are counted in Returned. Sent
// again, they are accepted again. So Accepted may fall.
type Stats struct {
	Accepted uint64 // Written + Pending
	Written  uint64 // whole lines that the operating system took
	Pending  uint64 // in a Write that has not returned

	Returned uint64 // handed back by a Write that failed
	Rejected uint64 // offered after Close, never accepted

	Bytes     uint64 // of the lines in Written
	CutBytes  uint64 // of torn lines: cut by Open and Reopen
	TornBytes uint64 // of torn lines: left by a failed Write, taken back or ended
	Syncs     uint64 // calls of fsync

	Reopens     uint64 // times the path was opened anew
	Followed    uint64 // of these without a call, as the path no longer named the file
	Truncations uint64 // times the file was found shorter than it was left
	Rotations   uint64 // files that were given a name of their own
	Packed      uint64 // rotated files that were packed,
	PackedBytes uint64 // their bytes before
	PackedTo    uint64 // and after
	Pruned      uint64 // rotated files that were removed,
	PrunedBytes uint64 // and their bytes on the disk
	Recovered   uint64 // leftovers of a crash that were finished or removed

	Errors uint64 // failed writes, syncs, rotations, reopens, closes and work of the background

	LastError     string    // text of the latest error, "" if there was none
	LastErrorTime time.Time // when it happened
}

// Open opens path for appending and creates it if need be, but not its folder.
func Open(path string, o Options) (*File, error) {
	o, err := o.withDefaults()
	if err != nil {
		return nil, fmt.Errorf("file: open %s: %w", path, err)
	}
	f := &File{
		path: path,
		opt:  o,
		turn: make(chan struct{}, 1),
		shut: make(chan struct{}),
		idle: make(chan struct{}),
		quit: make(chan struct{}),
		done: make(chan struct{}),
	}
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
	t, err := openTarget(f.path, f.opt.Perm)
	if err != nil {
		return err
	}
	if err := f.suits(t); err != nil {
		t.close()
		return fmt.Errorf("%s: %w", f.path, err)
	}
	written := t.modTime()
	cut, head, err := t.cutTail()
	if cut > 0 {
		f.count(func(s *Stats) { s.CutBytes += uint64(cut) })
		f.notice("%s ended within a line, as after a crash: %d bytes cut, beginning with %q", f.path, cut, head)
	}
	if err == nil && verify && t.regular && !t.std && !stillNames(t.real, t.f) {
		err = errOvertaken // renamed before it was locked, it may be packed by now
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

// suits reports what Options ask for that t cannot do.
func (f *File) suits(t target) error {
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
	if volume, _, err := identity(t.f); err == nil && (!info.IsDir() || !onVolume(f.opt.Folder, info, volume)) {
		return fmt.Errorf("Options.Folder %s is not a folder on the same file system", f.opt.Folder)
	}
	return nil
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

// Name returns the path given to Open.
func (f *File) Name() string { return f.path }

// Write appends the lines in p; see File for its contract. A missing last line
// end is added. It does not keep p. With Options.Sync EachWrite it may return
// len(p) and an error: the lines are in the file, but not safe on the disk.
func (f *File) Write(p []byte) (int, error) {
	lines := countLines(p)
	if !f.enter(lines) {
		return 0, f.fail("write", os.ErrClosed)
	}
	n, err := f.write(p)
	written := lines
	if n < len(p) {
		written = countLines(p[:n])
	}
	f.mu.Lock()
	f.stats.Written += written
	f.stats.Bytes += uint64(n)
	f.dirty = f.dirty || n > 0
	f.mu.Unlock()
	if err != nil {
		err = f.fail("write", err)
		f.countError(err)
	}
	f.leave(lines, lines-written)
	return n, err
}

// countLines is the number of lines in p; an unterminated last one counts.
func countLines(p []byte) uint64 {
	n := bytes.Count(p, newline)
	if len(p) > 0 && p[len(p)-1] != '\n' {
		n++
	}
	return uint64(n)
}

var newline = []byte{'\n'}

func (f *File) write(p []byte) (int, error) {
	if len(p) == 0 {
		return 0, nil
	}
	whole := p
	if p[len(p)-1] != '\n' {
		whole = append(append(make([]byte, 0, len(p)+1), p...), '\n')
	}
	if err := f.lock(context.Background()); err != nil {
		return 0, err
	}
	defer f.unlock()
	if err := f.mend(); err != nil {
		return 0, err
	}
	if f.io.pin == nil {
		f.ready(len(whole))
	}
	n, err := f.io.f.Write(whole)
	f.unpin()
	f.io.size += int64(n)
	if n < len(whole) {
		n = f.cutBack(whole, n)
	}
	if errors.Is(err, syscall.ENOSPC) && f.opt.keeps() {
		f.keeper.poke() // what may go, goes now
	}
	if f.opt.Sync == EachWrite && n > 0 {
		if syncErr := f.sync(); syncErr != nil {
			err = errors.Join(err, syncErr)
		}
	}
	return min(n, len(p)), err
}

// cutBack deals with the first n bytes of p being in the file. It returns the
// length of the whole lines.
func (f *File) cutBack(p []byte, n int) int {
	end := bytes.LastIndexByte(p[:n], '\n') + 1
	if torn := int64(n - end); torn > 0 {
		f.count(func(s *Stats) { s.TornBytes += uint64(torn) })
		if f.io.takeBack(torn) {
			f.io.size -= torn
		} else {
			f.io.torn = torn
		}
	}
	return end
}

// mend makes sure that the file ends in a line end.
func (f *File) mend() error {
	if f.io.torn == 0 {
		return nil
	}
	if f.io.takeBack(f.io.torn) {
		f.io.size -= f.io.torn
	} else {
		if _, err := f.io.f.Write(newline); err != nil {
			return fmt.Errorf("end a torn line: %w", err)
		}
		f.io.size++
		f.notice("%s: a failed write left %d bytes of a line, which could not be taken back: they are a line of their own now", f.path, f.io.torn)
	}
	f.io.torn = 0
	return nil
}

// sync calls fsync unless it has failed before, for rotated files and names
// too where that was not done yet.
func (f *File) sync() error {
	if f.io.syncErr != nil || !f.io.regular {
		return f.io.syncErr
	}
	f.io.syncErr = f.keeper.syncCurrent(f.io.f)
	f.keeper.syncBehind(true)
	err := errors.Join(f.io.syncErr, f.keeper.takeFailure())
	if f.io.unnamed {
		dir := filepath.Dir(f.io.real)
		syncErr := syncFolder(dir)
		if f.io.series.folder != dir {
			syncErr = errors.Join(syncErr, syncFolder(f.io.series.folder))
		}
		f.io.unnamed = syncErr != nil
		err = errors.Join(err, syncErr)
	}
	return err
}

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

// Stats returns the counters. It never waits for the disk.
func (f *File) Stats() Stats {
	f.mu.Lock()
	defer f.mu.Unlock()
	s := f.stats
	s.Accepted = s.Written + s.Pending
	return s
}

func (f *File) count(change func(*Stats)) {
	f.mu.Lock()
	change(&f.stats)
	f.mu.Unlock()
}

func (f *File) countError(err error) {
	text, now := err.Error(), time.Now()
	f.count(func(s *Stats) { s.Errors++; s.LastError, s.LastErrorTime = text, now })
}

// fail names the call and the file before err, which may name the file already.
func (f *File) fail(call string, err error) error {
	if pe, ok := errors.AsType[*fs.PathError](err); ok && pe == err {
		return fmt.Errorf("file: %w", err)
	}
	return fmt.Errorf("file: %s %s: %w", call, f.path, err)
}

// tell counts an error that fails no call and passes it on.
func (f *File) tell(err error) {
	f.countError(err)
	if f.opt.OnError != nil {
		f.guard("OnError", func() { f.opt.OnError(err) })
	}
}

func (f *File) notice(format string, args ...any) {
	if f.opt.OnNotice != nil {
		f.guard("OnNotice", func() { f.opt.OnNotice(fmt.Sprintf(format, args...)) })
	}
}

// guard calls one of the functions in Options.
func (f *File) guard(name string, call func()) {
	defer func() {
		if v := recover(); v != nil {
			f.countError(fmt.Errorf("file: Options.%s panicked: %v", name, v))
		}
	}()
	call()
}
