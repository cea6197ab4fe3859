package file

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"syscall"

	"github.com/rollway/rollway/internal/linecount"
)

// Write appends the lines in p; see File for its contract. A missing last line
// end is added. It does not keep p. With Options.Sync EachWrite it may return
// len(p) and an error: the lines are in the file, but not safe on the disk.
func (f *File) Write(p []byte) (int, error) {
	lines := linecount.Of(p)
	if !f.enter(lines) {
		return 0, f.fail("write", os.ErrClosed)
	}
	n, err := f.write(p)
	written := lines
	if n < len(p) {
		written = linecount.Of(p[:n])
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
	n, err := f.put(whole)
	f.unpin()
	if n < len(whole) || f.io.failed {
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
	if f.io.failed {
		_ = f.inspect() // else the next call does it, and says why it cannot
	}
	return end
}

// mend makes sure that the file ends in a line end.
func (f *File) mend() error {
	if err := f.inspect(); err != nil {
		return err
	}
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
