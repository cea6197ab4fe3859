package remote

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"

	"github.com/rollway/rollway/internal/disk"
)

const (
	deadLettersName = "dead-letters.log"
	maxDeadLetters  = 64 << 20 // bytes of that file
)

// A deadLetterFile is the file of refused lines. It is opened for each, so that it may be
// sent and removed at any time.
type deadLetterFile struct {
	dir  string
	sync bool
	mu   sync.Mutex // held while lines are appended
}

// add appends lines, with or without the last one's end.
func (d *deadLetterFile) add(lines []byte) (err error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	path := filepath.Join(d.dir, deadLettersName)
	defer func() {
		if err != nil {
			err = fmt.Errorf("refused lines are not kept in %s: %w", path, err)
		}
	}()
	f, err := disk.Real{}.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o640)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	size, err := f.Size()
	if err != nil {
		return err
	}
	if size+int64(len(lines)) > maxDeadLetters {
		return fmt.Errorf(`it has %d MiB: send it again with "rollway send", and remove it`, maxDeadLetters>>20)
	}
	if n := len(lines); n == 0 || lines[n-1] != '\n' {
		lines = append(lines[:n:n], '\n')
	}
	if last := []byte{'\n'}; size > 0 {
		if _, err := f.ReadAt(last, size-1); err != nil {
			return err
		}
		if last[0] != '\n' { // a process was killed here
			lines = append([]byte{'\n'}, lines...)
		}
	}
	if _, err := f.WriteAt(lines, size); err != nil {
		return errors.Join(err, f.Truncate(size))
	}
	if d.sync {
		return f.Sync()
	}
	return nil
}

// addDeadLetters appends n refused lines to the file of dead letters.
func (s *spillQueue) addDeadLetters(lines []byte, n uint64) {
	if err := s.deadLetters.add(lines); err != nil {
		s.w.note(diskFinding, 0, err)
		return
	}
	s.w.count(func(st *Stats) { st.Spill.DeadLetters += n })
}
