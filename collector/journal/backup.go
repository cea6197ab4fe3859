package journal

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"

	"github.com/rollway/rollway/internal/disk"
	"github.com/rollway/rollway/internal/recordlog"
)

// A BackupFile is a file of a copy of the journal.
type BackupFile struct {
	Name       string // in the journal's folder, with slashes
	Size       int64
	First, End uint64 // offsets in a segment
	Lines      uint64 // of a segment, as they were counted when it was written
	Content    io.ReaderAt
}

// Backup calls give with each file of a copy of the journal: all that was stored before the
// call and some that comes during it, up to the offset next. Opened, the copy is a journal that was closed
// at next.
//
// Nothing waits for a copy. The newest segments come first, and what retention deletes meanwhile is
// left out, from the oldest line on. Of files that are removed it keeps open the one that give
// reads, and those that were not sealed at the beginning.
func (j *Journal) Backup(give func(*BackupFile) error) (first, next uint64, err error) {
	b := backup{j: j, give: give}
	defer func() {
		for _, s := range b.segs {
			if s.file != nil {
				s.file.Close() // only read from
			}
		}
		if err != nil {
			err = fmt.Errorf("back up the journal: %w", err)
		}
	}()
	if err := j.Look(); err != nil {
		return 0, 0, err
	}
	// First what points into the journal: it is never ahead of what is read after it.
	small, err := b.pointers()
	if err == nil {
		err = b.freeze()
	}
	if err == nil {
		err = b.segments()
	}
	if err != nil {
		return 0, 0, err
	}
	for _, f := range append(small, b.summary()...) {
		if err := give(f); err != nil {
			return 0, 0, err
		}
	}
	if n := len(b.manifest.segs); n > 0 {
		return b.manifest.segs[0].First, b.manifest.next, nil
	}
	return b.manifest.next, b.manifest.next, nil
}

type backup struct {
	j        *Journal
	give     func(*BackupFile) error
	segs     []frozenSegment // the newest first
	manifest manifest
	history  history
}

// frozenSegment is a segment as a copy has it.
type frozenSegment struct {
	*segment
	entry
	live bool      // it was not sealed, and is not in the copy
	file disk.File // nil: not opened yet
}

func smallFile(name string, b []byte) *BackupFile {
	return &BackupFile{Name: name, Size: int64(len(b)), Content: bytes.NewReader(b)}
}

// pointers returns the files of cursors and what was acknowledged.
func (b *backup) pointers() (list []*BackupFile, err error) {
	entries, err := b.j.fs.List(filepath.Join(b.j.dir, cursorFolder))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	names := []string{ackFile}
	for _, e := range entries {
		if !e.Dir && isCursorName(e.Name) {
			names = append(names, path.Join(cursorFolder, e.Name))
		}
	}
	for _, name := range names {
		text, err := recordlog.ReadFile(b.j.fs, filepath.Join(b.j.dir, filepath.FromSlash(name)), maxHistory)
		switch {
		case err == nil:
			list = append(list, smallFile(name, text))
		case !errors.Is(err, fs.ErrNotExist):
			return nil, err
		}
	}
	return list, nil
}

// freeze notes the segments as they are now, and opens those that are not sealed.
func (b *backup) freeze() error {
	j := b.j
	j.deleting.Lock() // no file is removed or replaced meanwhile
	defer j.deleting.Unlock()
	j.mu.Lock()
	if j.closing {
		j.mu.Unlock()
		return os.ErrClosed
	}
	b.manifest = manifest{next: j.next, closed: true}
	b.history = j.historyLocked()
	for _, s := range slices.Backward(j.segs) {
		b.segs = append(b.segs, frozenSegment{segment: s, entry: s.entryLocked(), live: !s.settled})
	}
	j.mu.Unlock()
	for i := range b.segs {
		s := &b.segs[i]
		if !s.live {
			continue
		}
		c := candidate{first: s.First, ext: extOpen}
		var err error
		if s.file, _, err = c.open(j.fs, j.dir); err != nil && (!errors.Is(err, fs.ErrNotExist) || s.End > s.First) {
			return err
		}
	}
	return nil
}

// segments gives the segments and lists them in the manifest.
func (b *backup) segments() error {
	for i := range b.segs {
		s := &b.segs[i]
		f := &BackupFile{Name: segmentName(s.First, extOpen), Size: s.Size}
		if s.live && s.file == nil { // an empty one that was removed meanwhile
			continue
		}
		if !s.live {
			gone, err := b.open(s, f)
			if gone { // and so are all before it
				break
			}
			if errors.Is(err, fs.ErrNotExist) { // others have removed it; the manifest says that it is missing
				b.manifest.segs = append(b.manifest.segs, s.entry)
				continue
			}
			if err != nil {
				return err
			}
		}
		b.manifest.segs = append(b.manifest.segs, s.entry)
		f.First, f.End, f.Lines, f.Content = s.First, s.End, s.End-s.First, s.file
		if foot, err := footerOf(s.file, f.Name); err == nil && s.State != stateOpen {
			f.Lines = foot.Records
		}
		err := b.give(f)
		s.file.Close() // only read from
		if s.file = nil; err != nil {
			return err
		}
	}
	slices.Reverse(b.manifest.segs)
	return nil
}

// open opens a sealed segment as it is now.
func (b *backup) open(s *frozenSegment, f *BackupFile) (gone bool, err error) {
	j := b.j
	j.deleting.Lock()
	defer j.deleting.Unlock()
	j.mu.Lock()
	gone, s.entry = s.gone, s.entryLocked()
	if s.sealed {
		f.Name = segmentName(s.First, extSealed)
	}
	j.mu.Unlock()
	if gone {
		return true, nil
	}
	if s.file, err = j.fs.OpenFile(filepath.Join(j.dir, f.Name), os.O_RDONLY, 0); err != nil {
		return false, err
	}
	size, err := s.file.Size()
	if f.Size = size; s.State == stateOpen { // what follows is of an append that has failed
		f.Size = min(size, s.Size)
	}
	return false, err
}

// summary returns the files that say what belongs together, as a journal writes them that is closed.
func (b *backup) summary() []*BackupFile {
	h, m := &b.history, &b.manifest
	h.next, h.closed = m.next, true
	if n := len(m.segs); n > 0 {
		h.oldest, h.newest = m.segs[0].First, m.segs[n-1].First
	}
	list := []*BackupFile{smallFile(historyFile, h.append(nil)), smallFile(manifestFile, m.append(nil))}
	if b.j.id != "" {
		list = append(list, smallFile(idFile, []byte(b.j.id+"\n")))
	}
	return list
}
