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
	// freePiece is how many bytes of a removed file are freed at once: more delay fsyncs.
	freePiece = 4 << 20
	// freePause follows each piece of a file.
	freePause = 20 * time.Millisecond
	// freeTries is how often a file with a reader is tried.
	freeTries = 250
)

// trash is large files without a name, whose blocks are freed piece by piece. mu is held
// meanwhile.
type trash struct {
	mu    sync.Mutex
	files []trashed
	kick  chan struct{} // capacity 1; wakes the sweeper
}

type trashed struct {
	disk.File
	tries int
}

// remove removes the segment file at path, if it is there. A large one's blocks are freed
// in pieces.
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
	wake(j.trash.kick)
}

// sweep empties the trash in pieces until stop is closed.
func (j *Journal) sweep() {
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
