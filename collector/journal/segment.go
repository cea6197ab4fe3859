package journal

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"
	"sort"
	"strings"
	"time"

	"github.com/rollway/rollway/internal/disk"
	"github.com/rollway/rollway/internal/recordlog"
)

const (
	extOpen   = ".open" // being written, or left by a crash
	extSealed = ".seg"  // complete and fsynced
	extFix    = ".fix"  // recovery's copy of an open segment's sound frames
	extPack   = ".pack" // unfinished copy of a sealed segment, packed
)

// markStep is the least distance in bytes between two marks of an unpacked segment.
const markStep = 1 << 20

type segment struct {
	first uint64
	id    uint64
	prev  uint64 // first offset of the segment before; first if none

	file disk.File // nil once sealed; closed by maintenance or Close

	// guarded by Journal.mu
	size       int64              // bytes that readers may see, up to the end of the frames; written by the writer role
	footer     int64              // bytes after them, if sealed
	keyed      int                // keys of its frames, while not settled
	end        uint64             // offset after the last record, or the next segment's first
	minTime    int64              // of all records, while timed
	maxTime    int64              // of all records, while timed
	timed      bool               // the times are known
	keyless    bool               // its key section is known to be empty; Open's
	begun      time.Time          // first write
	written    time.Time          // last write
	retired    bool               // no longer written
	uncut      bool               // a failed append is still in the file, beyond size
	sealed     bool               // renamed to extSealed
	packed     bool               // its file is rewritten with codecZstd; size and marks are that file's
	settled    bool               // retired, and maintenance has closed its file
	gone       bool               // deleted by retention
	unpackable bool               // not to be tried again
	named      bool               // its name is durable
	synced     uint64             // records below are durable
	syncErr    error              // of its fsync, which is never called again
	away       error              // why its file is not in its place, by ErrTakenAway
	tail       tail               // up to size
	refilled   bool               // its file has lost bytes before size
	busy       bool               // its file is about to get its last name, or is being saved: Look leaves it alone
	marks      marks              // of its file
	created    int64              // the time in the header of its file
	listed     bool               // packed, and tenants are known
	tenants    []recordlog.Tenant // whose records are in its file, while listed
	others     bool               // it may have records of tenants that are not in tenants
	droppable  time.Time          // when dropping blocks is tried again
	counts     segmentCounts      // of its file, while they are in Journal.counts
	pieces     []*Counts          // by index in marks, while it is not sealed; nil: not counted yet
	suspect    bool               // a reader has met damage in it
	ahead      *aheadPart         // until its file is packed; nil: there is none
}

// mark means that a frame with the first offset begins at pos.
type mark struct {
	first uint64
	pos   int64
}

// marks are some of a segment's frames, by offset.
type marks []mark

// add marks a frame if it is step bytes or more after the last mark.
func (m *marks) add(first uint64, pos, step int64) {
	if n := len(*m); n == 0 || pos-(*m)[n-1].pos >= step {
		*m = append(*m, mark{first, pos})
	}
}

// seek returns a position at or before the frame with offset.
func (m marks) seek(offset uint64) int64 {
	i := sort.Search(len(m), func(i int) bool { return m[i].first > offset })
	if i == 0 {
		return segmentHeaderSize
	}
	return m[i-1].pos
}

// bytesLocked returns the size of the file.
func (s *segment) bytesLocked() int64 { return s.size + s.footer }

// isNoSegment reports whether e is a file or folder of the journal, but no segment.
func isNoSegment(e disk.Entry) bool {
	switch name := strings.TrimSuffix(e.Name, recordlog.ExtNew); name {
	case recordlog.LockName, idFile, manifestFile, historyFile, ackFile:
		return !e.Dir
	case cursorFolder:
		return e.Dir
	}
	return false
}

func segmentName(first uint64, ext string) string { return recordlog.Name(first, ext) }

// parseName splits the name of a segment file. The extension of one that was set aside is
// ExtBad.
func parseName(name string) (first uint64, ext string, ok bool) {
	first, ext, ok = recordlog.ParseName(name)
	switch {
	case ok && recordlog.IsSetAside(ext):
		return first, recordlog.ExtBad, true
	case ok && slices.Contains([]string{extOpen, extSealed, extFix, extPack}, ext):
		return first, ext, true
	}
	return 0, "", false
}

func (j *Journal) path(first uint64, ext string) string {
	return filepath.Join(j.dir, segmentName(first, ext))
}

// addLocked adds a committed frame of n bytes that ends at offset end and in these bytes.
func (s *segment) addLocked(first, end uint64, n int64, last *tail, minTime, maxTime int64, now time.Time) {
	if s.end == s.first {
		s.minTime, s.maxTime, s.timed, s.begun = minTime, maxTime, true, now
	}
	s.minTime, s.maxTime = min(s.minTime, minTime), max(s.maxTime, maxTime)
	s.marks.add(first, s.size, markStep)
	s.size += n
	s.tail = *last
	s.end = end
	s.written = now
}

// oldest returns the oldest segment that is so, or nil.
func (j *Journal) oldest(is func(*segment) bool) *segment {
	j.mu.Lock()
	defer j.mu.Unlock()
	if i := slices.IndexFunc(j.segs, is); i >= 0 {
		return j.segs[i]
	}
	return nil
}

// seekLocked returns a position at or before the frame with offset.
func (s *segment) seekLocked(offset uint64) int64 {
	if !s.sealed && offset >= s.end {
		return s.size
	}
	return s.marks.seek(offset)
}

// createSegment makes the file for records from offset first on. The caller has the writer
// role.
func (j *Journal) createSegment(first uint64) (*segment, error) {
	now := time.Now()
	h := recordlog.Header{Kind: recordlog.JournalSegment, ID: recordlog.NewID(), First: first, Prev: first, Created: now.UnixNano()}
	j.mu.Lock()
	if n := len(j.segs); n > 0 {
		h.Prev = j.segs[n-1].first
	}
	j.mu.Unlock()

	// A creation that failed may have left a header. Anything else is of others.
	name, path := segmentName(first, extOpen), j.path(first, extOpen)
	f, err := recordlog.Create(j.fs, path, h, false)
	if errors.Is(err, fs.ErrExist) || errors.Is(err, disk.ErrNotFile) || errors.Is(err, disk.ErrOwner) {
		var target string
		if target, err = recordlog.MoveAside(j.fs, j.dir, name); err == nil {
			j.keep(Finding{Kind: recordlog.Swapped, File: name, Detail: "it was there before the journal made it, and is set aside as " + target})
			f, err = recordlog.Create(j.fs, path, h, false)
		}
	}
	if err != nil {
		return nil, err
	}
	s := &segment{
		first: first, id: h.ID, prev: h.Prev, file: f, created: h.Created,
		size: segmentHeaderSize, end: first, synced: first, written: now,
		marks: make(marks, 0, min(j.o.SegmentBytes/markStep+1, 4096)),
	}
	s.tail = s.tailOf(f)
	j.mu.Lock()
	j.segs = append(j.segs, s)
	j.syncer.dirty = append(j.syncer.dirty, s)
	j.total += s.size
	j.changedLocked()
	j.mu.Unlock()
	return s, nil
}

// retire ends the current segment, if there is one, and removes one without records;
// maintenance seals it. The caller has the writer role.
func (j *Journal) retire() {
	s := j.writer.seg
	if s == nil {
		return
	}
	j.writer.seg = nil
	j.mu.Lock()
	s.retired = true
	empty := s.end == s.first
	if empty {
		s.gone = true
		j.segs = slices.DeleteFunc(j.segs, func(o *segment) bool { return o == s })
		j.total -= s.size
		j.changedLocked()
	}
	j.mu.Unlock()
	if !empty {
		wake(j.kick)
		return
	}
	if err := errors.Join(s.file.Close(), j.removeFile(j.path(s.first, extOpen))); err != nil {
		j.note(fmt.Errorf("remove empty segment: %w", err))
	}
}

func (j *Journal) removeFile(path string) error { return recordlog.Remove(j.fs, path) }

// lineEnd returns the length of the first line of b with its '\n'.
func lineEnd(b []byte) int { return bytes.IndexByte(b, '\n') + 1 }
