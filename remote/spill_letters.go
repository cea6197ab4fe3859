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

// deadLetters is the file for lines that the peer refuses by themselves. It is
// opened for each, so that it may be sent and removed at any time.
type deadLetters struct {
	dir string
	mu  sync.Mutex // held while a line is appended
}

// add appends line, with or without its end.
func (d *deadLetters) add(line []byte) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	path := filepath.Join(d.dir, deadLettersName)
	if err := appendTo(path, line); err != nil {
		return fmt.Errorf("a refused line is not kept in %s: %w", path, err)
	}
	return nil
}

func appendTo(path string, line []byte) (err error) {
	f, err := disk.Real{}.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o640)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	size, err := f.Size()
	if err != nil {
		return err
	}
	if size+int64(len(line)) > maxDeadLetters {
		return fmt.Errorf(`it has %d MiB: send it again with "rollway send", and remove it`, maxDeadLetters>>20)
	}
	if n := len(line); n == 0 || line[n-1] != '\n' {
		line = append(line[:n:n], '\n')
	}
	_, err = f.WriteAt(line, size)
	return err
}

// refuse counts a line that is dropped for reason, and keeps it beside the queue
// if there is one.
func (w *Writer) refuse(line []byte, reason string) {
	w.noteRefused(1, reason)
	if w.spill == nil {
		return
	}
	if err := w.spill.letters.add(line); err != nil {
		w.note(found, 0, err)
		return
	}
	w.count(func(s *Stats) { s.Spill.DeadLetters++ })
}
