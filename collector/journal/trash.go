package journal

import (
	"errors"
	"fmt"
	"os"
	"sync"
	"time"

	"github.com/rollway/rollway/internal/disk"
)

const (
	// freePiece is how many bytes of a removed file are freed at once. More keep
	// the file system busy for so long that an fsync beside it is felt.
	freePiece = 4 << 20
	// freePause lies between two pieces of a file.
	freePause = 20 * time.Millisecond
	// freeTries is how often a file that somebody reads is looked at again.
	freeTries = 250
)

// trash holds large files without a name, whose room is given back a piece at a
// time. mu is held while a piece is freed.
type trash struct {
	mu    sync.Mutex
	files []trashed
	kick  chan struct{} // capacity 1; wakes the sweeper
	done  chan struct{} // closed when the sweeper has returned
}

type trashed struct {
	disk.File
	tries int
}

// remove removes the segment file at path; that it is not there is no error. A
// large one's room comes back in pieces.
func (j *Journal) remove(path string, size int64) error {
	var f disk.File
	if size > freePiece {
		f, _ = j.fs.OpenFile(path, os.O_RDWR, 0) // else its room comes back at once
	}
	err := j.removeFile(path)
	switch {
	case f == nil:
	case err != nil:
		err = errors.Join(err, f.Close())
	default:
		j.discard(f)
	}
	return err
}

// discard takes over a file without a name that is open for writing.
func (j *Journal) discard(f disk.File) {
	j.trash.mu.Lock()
	j.trash.files = append(j.trash.files, trashed{File: f})
	j.trash.mu.Unlock()
	select {
	case j.trash.kick <- struct{}{}:
	default:
	}
}

// sweep empties the trash in pieces until stop is closed.
func (j *Journal) sweep() {
	defer close(j.trash.done)
	for {
		select {
		case <-j.trash.kick:
		case <-j.stop:
			return
		}
		for n := j.freeOne(); n > 0; n = j.freeOne() {
			if j.pause(freePause/time.Duration(n)) != nil {
				return
			}
		}
	}
}

// freeOne frees a piece of one file and returns how many files are left.
func (j *Journal) freeOne() int {
	t := &j.trash
	t.mu.Lock()
	defer t.mu.Unlock()
	if len(t.files) == 0 {
		return 0
	}
	f := t.files[0]
	t.files = t.files[1:]
	done, err := disk.FreeFile(f.File, freePiece)
	if errors.Is(err, disk.ErrInUse) {
		f.tries++
		done, err = f.tries == freeTries, nil // then its last reader frees it
	}
	if done {
		err = errors.Join(err, f.Close())
	} else {
		t.files = append(t.files, f)
	}
	if err != nil {
		j.note(fmt.Errorf("give back the room of a removed segment: %w", err))
	}
	return len(t.files)
}

// emptyTrash frees all at once and reports whether there was anything.
func (j *Journal) emptyTrash() bool {
	t := &j.trash
	t.mu.Lock()
	defer t.mu.Unlock()
	some := len(t.files) > 0
	for _, f := range t.files {
		if err := f.Close(); err != nil {
			j.note(fmt.Errorf("give back the room of a removed segment: %w", err))
		}
	}
	t.files = nil
	return some
}
