package file

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/rollway/rollway/internal/direct"
	"github.com/rollway/rollway/line"
)

// Write appends the lines in p; see File for its contract. A missing last newline is added.
// It does not keep p.
func (f *File) Write(p []byte) (int, error) {
	whole := p
	if len(p) > 0 && p[len(p)-1] != '\n' {
		whole = append(append(make([]byte, 0, len(p)+1), p...), '\n')
	}
	n, err := f.writeLines([][]byte{whole}, int64(len(p)), line.Count(p), false)
	return int(n), err
}

// WriteBuffers appends the lines in the buffers, which end with a newline each. It
// returns how many of their bytes are in the file: all of them, or up to a line end and an
// error; the caller writes the rest again. Buffers that fit one file are one write. Each
// buffer is in one file, as each Write is.
//
// With Mode Direct, a buffer of 1 MiB or more is written as it is, without a copy, if it
// begins at a multiple of 4096 bytes and has 4096 bytes of capacity after its end:
// WriteBuffers may overwrite these, and change the last byte while it runs. Before such a
// buffer, spaces before the last newline or a blank line of them may fill the file's last
// block.
//
// The caller gives the number of lines: counting takes a third of the time of a large
// write.
func (f *File) WriteBuffers(buffers [][]byte, lines uint64) (n int64, err error) {
	for i, b := range buffers {
		if len(b) > 0 && b[len(b)-1] != '\n' {
			return 0, f.fail("write", fmt.Errorf("buffer %d of %d does not end with a newline", i, len(buffers)))
		}
	}
	return f.writeLines(buffers, countBytes(buffers), lines, true)
}

// writeLines appends buffers and counts the result. The first size bytes and the lines are
// the caller's.
func (f *File) writeLines(buffers [][]byte, size int64, lines uint64, inPlace bool) (n int64, err error) {
	if !f.enter(lines) {
		return 0, f.fail("write", os.ErrClosed)
	}
	written := lines
	if err = f.lock(context.Background()); err == nil {
		f.io.todo = append(f.io.todo[:0], buffers...)
		n, err = f.write(f.io.todo, inPlace)
		f.unlock()
	}
	if err != nil {
		written -= min(written, countLines(direct.Skip(slices.Clone(buffers), n)))
	}
	n = min(n, size)
	f.mu.Lock()
	f.stats.Written += written
	f.stats.Bytes += uint64(n)
	if n > 0 || err != nil {
		f.stats.Failing = err != nil
	}
	f.mu.Unlock()
	err = f.failed("write", err)
	f.leave(lines, lines-written)
	return n, err
}

func countLines(buffers [][]byte) (lines uint64) {
	for _, b := range buffers {
		lines += line.Count(b)
	}
	return lines
}

// attempts is how many files a write tries: the one in use, a new one in the same folder,
// one in Options.Failover.
const attempts = 3

// write appends todo, which it changes, and returns how many bytes of whole lines are there
// to stay. The caller has the turn.
func (f *File) write(todo [][]byte, inPlace bool) (n int64, err error) {
	defer clear(todo)
	defer f.unpin()
	tries := 0
	for todo = direct.Skip(todo, 0); len(todo) > 0; {
		now := time.Now()
		if err = f.ready(now, f.spaceFor(len(todo[0]), inPlace)); err == nil {
			var m int64
			m, err = f.append(f.fitting(todo, inPlace), inPlace)
			todo = direct.Skip(todo, m)
			n += m
		} else if f.io.abandoned {
			return n, err // no other file can be opened
		}
		if err == nil {
			continue
		}
		if tries++; !f.worthRetry(err, now) || tries == attempts {
			return n, err
		}
	}
	return n, nil
}

// spaceFor returns how many bytes of a file a buffer of that length may take.
func (f *File) spaceFor(length int, inPlace bool) int64 {
	if inPlace && f.io.tracked && length >= direct.InPlace {
		length += 2 * direct.Align
	}
	return int64(length)
}

// fitting returns the buffers at the front of bufs that go to the file in use: at least
// one, and all of them after Prepare.
func (f *File) fitting(bufs [][]byte, inPlace bool) [][]byte {
	if f.opt.MaxSize == 0 || f.io.pin != nil {
		return bufs
	}
	size := f.io.size
	for i, b := range bufs {
		if size += f.spaceFor(len(b), inPlace); i > 0 && size > f.opt.MaxSize {
			return bufs[:i]
		}
	}
	return bufs
}

// append appends bufs to the file in use and returns how many bytes of whole lines are
// there to stay.
func (f *File) append(bufs [][]byte, inPlace bool) (n int64, err error) {
	from := f.io.size
	n, err = f.put(bufs, inPlace)
	if err != nil || f.io.failed {
		n = f.cutBack(bufs, n)
	}
	if f.opt.Sync == SyncEachWrite && n > 0 {
		if syncErr := f.syncFile(); syncErr != nil {
			f.withdraw(from, n)
			n, err = 0, errors.Join(err, syncErr)
		}
	}
	if n > 0 {
		f.io.keeps = true
		f.io.fsyncs.dirty.Store(f.io.regular)
		f.reportLocation()
	}
	return n, err
}

// cutBack returns the length of the whole lines in the first n bytes of bufs, which are in
// the file, and removes or notes the rest.
func (f *File) cutBack(bufs [][]byte, n int64) int64 {
	end := lineEnd(bufs, n)
	if torn := n - end; torn > 0 {
		f.count(func(s *Stats) { s.TornBytes += uint64(torn) })
		if f.io.truncateLast(torn) {
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

// withdraw removes the last n bytes of lines, from byte from on, which did not get to the
// disk.
func (f *File) withdraw(from, n int64) {
	var err error
	switch {
	case f.io.tail != nil:
		err = f.io.tail.Cut(from)
		f.io.size = f.io.tail.Size()
	case f.io.truncateLast(n):
		f.io.size = from
	default:
		err = errors.New("somebody else has written to it, or it cannot be truncated")
	}
	if err != nil {
		f.notice(doubling, "lines that may be on the disk in %s are written again elsewhere: %w", f.io.real, err)
	}
}

func (f *File) repairTail() error {
	if f.io.bad != nil {
		return nil
	}
	if err := f.inspect(); err != nil {
		return err
	}
	if f.io.torn == 0 {
		return nil
	}
	if f.io.truncateLast(f.io.torn) {
		f.io.size -= f.io.torn
	} else {
		if _, err := f.io.f.Write(newline); err != nil {
			return fmt.Errorf("end a torn line: %w", err)
		}
		f.io.size++
		f.notice(tearing, "%s: a failed write left %d bytes of a line, which could not be taken back: they are a line of their own now", f.io.real, f.io.torn)
	}
	f.io.torn = 0
	return nil
}

var newline = []byte{'\n'}

// syncFile forces the file in use and its name to the disk, unless an fsync has failed
// before. After a failure the file is not written any more.
func (f *File) syncFile() error {
	if !f.io.regular {
		return nil
	}
	err := f.maintenance.sync(f.io.fsyncs)
	if err == nil && f.io.unnamed {
		if err = syncFolders(filepath.Dir(f.io.real), f.io.series.folder); err != nil {
			f.io.fsyncs.lose(err)
		}
		f.io.unnamed = err != nil
	}
	f.io.bad = cmp.Or(f.io.bad, err)
	return err
}

func (f *File) sync() error {
	err := f.syncFile()
	f.maintenance.syncOwed(true)
	lost := f.maintenance.popFailure()
	if errors.Is(lost, err) {
		return lost
	}
	return errors.Join(err, lost)
}

func countBytes(bufs [][]byte) (n int64) {
	for _, b := range bufs {
		n += int64(len(b))
	}
	return n
}

// lineEnd returns the length of the whole lines in the first n bytes of bufs.
func lineEnd(bufs [][]byte, n int64) (end int64) {
	for _, b := range bufs {
		if n < int64(len(b)) {
			return end + int64(bytes.LastIndexByte(b[:n], '\n')) + 1
		}
		n -= int64(len(b))
		end += int64(len(b))
	}
	return end
}
