package file

import (
	"context"
	"os"
	"time"
)

// OpenChecking is Open with another time between two checks of the path.
func OpenChecking(path string, o Options, every time.Duration) (*File, error) {
	f, err := newFile(path, o)
	if err != nil {
		return nil, err
	}
	f.every = every
	return f, f.start()
}

// SyncContext is Sync with a context.
func (f *File) SyncContext(ctx context.Context) error { return f.barrier(ctx, "sync", f.sync) }

// SetSync replaces the fsync of files.
func (f *File) SetSync(fsync func(*os.File) error) { f.maintenance.fsync = fsync }

// SetFree replaces disk.Free, by which removed files are released.
func (f *File) SetFree(free func(*os.File, int64) (bool, error)) { f.maintenance.free = free }

// FailWith makes the next Write find that the file has failed.
func (f *File) FailWith(err error) {
	f.turn <- struct{}{}
	f.worthRetry(err, time.Now())
	f.unlock()
}

// Told waits until OnError has returned from all that it was told.
func (f *File) Told() { <-f.teller.Idle() }

// Tell passes err on to OnError.
func (f *File) Tell(err error) { f.tell(0, err) }

// Current returns the open file.
func (f *File) Current() *os.File {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.io.f
}

// ReleasePiece is how many bytes of a removed file are freed at a time.
const ReleasePiece = releasePiece

// SlowSync is how long an fsync in the background may take before it is told.
const SlowSync = slowSync

// WriteHasFailed makes the latest write one that failed.
func (f *File) WriteHasFailed() {
	f.turn <- struct{}{}
	f.io.failed = true
	f.unlock()
}
