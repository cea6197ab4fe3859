package journal

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"

	"github.com/rollway/rollway/internal/disk"
	"github.com/rollway/rollway/internal/recordlog"
)

// ErrTakenAway is what Append's error wraps while the folder, or a file that is written, is
// not in its place: others removed, replaced or cut it. The system goes on writing to such
// a file without an error.
var ErrTakenAway = errors.New("taken away from the journal")

// tail is the last bytes of a file, from those that were compared last on: of its frames, or of its
// header if it has none. Who cuts the file takes some of them away, also if it is filled up again, by
// others or by the next write, before anybody looks at its size.
type tail struct {
	from, to    int64  // equal: nothing is known
	before, sum uint32 // checksum, CRC-32C, up to from and up to to
}

const (
	tailBytes    = 32       // what stays of a tail that was compared; fewer than a frame or a header has
	mostTail     = 64 << 10 // what is written on until a writer compares a tail by itself
	largeWrite   = 4 << 10  // from this length on a write is followed by that, too: to read it back later takes longer
	compareBytes = 16 << 10 // what is read at a time for that
)

// tailOf reads the tail of the file of s.
func (s *segment) tailOf(file disk.File) (t tail) {
	var b [tailBytes]byte
	if _, err := file.ReadAt(b[:], s.size-tailBytes); err != nil {
		return tail{from: s.size, to: s.size}
	}
	return tail{from: s.size - tailBytes, to: s.size, sum: recordlog.Checksum(b[:])}
}

// errRefilled says that a file has lost bytes for good.
var errRefilled = errors.New("it was cut and filled up again")

// check returns why the bytes of file are not those of t; if they are, what stays of t. buf is of
// use during the call.
func (t tail) check(file disk.File, buf []byte) (left tail, err error) {
	left, sum := t, t.before
	left.from = max(t.from, t.to-tailBytes)
	for at := t.from; at < t.to; {
		b := buf[:min(int64(len(buf)), t.to-at)]
		if _, err := file.ReadAt(b, at); err != nil {
			return t, err
		}
		if n := left.from - at; n >= 0 && n < int64(len(b)) {
			left.before = recordlog.Extend(sum, b[:n])
		}
		sum = recordlog.Extend(sum, b)
		at += int64(len(b))
	}
	if sum != t.sum {
		return t, errRefilled
	}
	return left, nil
}

// wrote adds b, which was written to the end of file. If there is much to compare now, it does that:
// after the write, since that fills up a file that was cut.
func (t *tail) wrote(file disk.File, b, buf []byte) (err error) {
	end := t.to + int64(len(b))
	if end-t.from <= mostTail && len(b) < largeWrite {
		t.to, t.sum = end, recordlog.Extend(t.sum, b)
		return nil
	}
	_, err = t.check(file, buf)
	*t = tail{from: end - tailBytes, to: end, sum: recordlog.Checksum(b[len(b)-tailBytes:])}
	return err
}

// compared leaves out what was compared of t when it was was, which left that.
func (t *tail) compared(was, left tail) {
	if t.from == was.from && t.before == was.before { // else others have compared more meanwhile
		t.from, t.before = left.from, left.before
	}
}

// inPlace returns why the file of t is not in its place with what was written to it; if it is, what
// stays of its tail.
func (t *syncTask) inPlace(buf []byte) (left tail, err error) {
	switch same, n, err := disk.SameSize(t.file); {
	case err != nil:
		return t.tail, err
	case !same:
		return t.tail, errors.New("it was removed or replaced")
	case n < t.size:
		return t.tail, fmt.Errorf("it was cut to %d of %d bytes", n, t.size)
	}
	return t.tail.check(t.file, buf)
}

// takenLocked notes why the file of s is not in its place; nil: it is.
func (s *segment) takenLocked(why error) {
	if s.refilled = s.refilled || errors.Is(why, errRefilled); s.refilled && why == nil {
		why = errRefilled
	}
	if s.away = nil; why != nil {
		s.away = fmt.Errorf("%w: %s: %w", ErrTakenAway, segmentName(s.first, extOpen), why)
	}
}

// Lost returns why nothing may be stored now, as Look found. It wraps ErrTakenAway.
func (j *Journal) Lost() error {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.lost
}

// Look compares the folder and the files that are written with their names. It returns why
// nothing may be stored now.
func (j *Journal) Look() error {
	j.mu.Lock()
	if j.closing {
		defer j.mu.Unlock()
		return j.lost
	}
	return j.lookLocked()
}

// lookLocked releases mu.
func (j *Journal) lookLocked() error {
	var open []syncTask
	for _, s := range j.segs {
		if s.file != nil && s.syncErr == nil && !s.busy {
			open = append(open, syncTask{s: s, file: s.file, size: s.size, tail: s.tail})
		}
	}
	j.mu.Unlock()
	same, moved := j.lock.Same()
	if moved == nil && !same {
		moved = errors.New("the folder was removed or replaced; put it back or restart the collector")
	}
	if moved != nil {
		moved = fmt.Errorf("%w: %w", ErrTakenAway, moved)
	}
	errs, left, buf := make([]error, len(open)), make([]tail, len(open)), make([]byte, compareBytes)
	for i := range open {
		left[i], errs[i] = open[i].inPlace(buf)
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	j.moved, j.lost = moved, moved
	for i, t := range open {
		if t.s.file != t.file || t.s.busy || t.s.gone { // meanwhile
			continue
		}
		if t.s.takenLocked(errs[i]); errs[i] == nil {
			t.s.tail.compared(t.tail, left[i])
		}
	}
	for _, s := range j.segs {
		j.lost = cmp.Or(j.lost, s.away)
	}
	return j.lost
}

func (j *Journal) folderMoved() bool {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.moved != nil
}

// Check is Look, and saves what was taken away: a file that is not in its place is written
// again from what is still open, and later records go to a new segment. A folder that was
// removed is made again with what is open, and one that was replaced is left alone: both
// take a restart. The caller calls it about once a second, and not during Close.
func (j *Journal) Check() error {
	j.readAcknowledged()
	if j.Look() == nil {
		return nil
	}
	j.acquire()
	defer j.release()
	j.saveTaken()
	return j.Look()
}

// saveTaken saves what Look found away. The caller has the writer role.
func (j *Journal) saveTaken() {
	var away []*segment
	j.mu.Lock()
	moved := j.moved != nil
	for _, s := range j.segs {
		if s.file != nil && s.away != nil {
			away = append(away, s)
		}
	}
	j.mu.Unlock()
	if moved {
		if _, err := j.fs.List(j.dir); !errors.Is(err, fs.ErrNotExist) || len(away) == 0 || !disk.Removed(away[0].file) {
			return // it is elsewhere with all that is in it
		}
		if err := j.fs.MkdirAll(j.dir, 0o750); err != nil {
			j.note(err)
			return
		}
	}
	for _, s := range away {
		if err := j.saveSegment(s); err != nil {
			j.note(fmt.Errorf("save segment %s, which was taken away: %w", segmentName(s.first, extOpen), err))
		}
	}
	if moved && j.id != "" {
		if err := j.writeID(j.id); err != nil {
			j.note(err)
		}
		j.mu.Lock()
		j.moved = nil // for the manifest, which the next start compares
		j.mu.Unlock()
		j.saveManifest(false)
	}
}

// saveSegment writes what s has in its open file to a file of its name. What has that name is
// set aside.
func (j *Journal) saveSegment(s *segment) (err error) {
	j.mu.Lock()
	if s.away == nil { // it is back
		j.mu.Unlock()
		return nil
	}
	s.busy = true
	defer func() {
		if err != nil {
			j.mu.Lock()
			s.busy = false
			j.mu.Unlock()
		}
	}()
	j.awaitRoundLocked(s) // later ones leave it out
	file, size, away, refilled := s.file, s.size, s.away, s.refilled
	j.mu.Unlock()
	name := segmentName(s.first, extOpen)
	f := Finding{Kind: recordlog.Gone, File: name, Detail: "written again from what was open"}
	n, err := file.Size()
	if err != nil {
		return err
	}
	if same, err := file.Same(); err == nil && same && (n < size || refilled) {
		f = Finding{Kind: recordlog.Shorter, File: name, Pos: n, Bytes: size - n, Detail: "cut by another process while it was written"}
		if refilled {
			f = Finding{Kind: recordlog.Damaged, File: name, Detail: "cut by another process while it was written, and filled up again"}
		}
		j.mu.Lock()
		s.syncErr, s.away = fmt.Errorf("make segment %s durable: %w: %w", segmentName(s.first, ""), ErrNotSynced, away), nil
		s.busy = false
		j.mu.Unlock()
	} else {
		switch target, err := recordlog.MoveAside(j.fs, j.dir, name); {
		case err == nil:
			f.Detail += "; what was in its place is " + target
		case !errors.Is(err, fs.ErrNotExist):
			return err
		}
		again, err := j.copyOpen(file, size, j.path(s.first, extOpen))
		if err != nil {
			return err
		}
		j.mu.Lock()
		s.file, s.away, s.busy, s.synced, s.named = again, nil, false, s.end, true
		j.mu.Unlock()
		if err := file.Close(); err != nil {
			j.note(err)
		}
	}
	if j.writer.seg == s {
		j.retire() // its readers have the old file
	} else {
		wake(j.kick)
	}
	j.keep(f)
	return nil
}

// copyOpen makes a durable file at path of the first size bytes of file.
func (j *Journal) copyOpen(file disk.File, size int64, path string) (again disk.File, err error) {
	again, err = j.fs.OpenFile(path, os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o640)
	if err != nil {
		return nil, err
	}
	if err = recordlog.LockFile(again, path); err == nil {
		_, err = io.Copy(io.NewOffsetWriter(again, 0), io.NewSectionReader(file, 0, size))
	}
	if err == nil {
		err = again.Sync()
	}
	if err == nil {
		err = j.fs.SyncDir(j.dir)
	}
	if err != nil {
		return nil, errors.Join(err, again.Close(), j.removeFile(path))
	}
	return again, nil
}
