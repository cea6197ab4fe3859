package journal

import (
	"errors"
	"fmt"
	"hash/crc32"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"sync"
)

// cursorFolder is below the journal's folder. It has one file per cursor, of one
// line: version, the journal's ID or "-", offset, checksum of what is before it.
const cursorFolder = "cursors"

// maxCursorFile bounds what is read of a cursor's file.
const maxCursorFile = 200

// A Cursor is a named position in a journal that outlives the process. It may
// lag behind what its owner did, and never leads. Its methods are safe for
// concurrent use.
type Cursor struct {
	j     *Journal
	name  string
	hold  bool
	waits bool // for OpenCursor to take its place; guarded by j.mu
	reset string

	saving sync.Mutex // held by Save
	saved  uint64     // in the file; guarded by j.mu
}

// OpenCursor opens the cursor of that name, of 1 to 64 letters, digits, '-' and
// '_', at the offset last saved, or makes it at the oldest record kept, which is
// then saved. While it is open with hold set, retention deletes nothing at or behind
// what it has saved: a full journal then refuses lines.
func (j *Journal) OpenCursor(name string, hold bool) (*Cursor, error) {
	if !isCursorName(name) {
		return nil, fmt.Errorf("open cursor: %.70q is no name: use 1 to 64 letters, digits, - and _", name)
	}
	c := &Cursor{j: j, name: name, hold: hold}
	if err := j.fs.MkdirAll(filepath.Join(j.dir, cursorFolder), 0o750); err != nil {
		return nil, fmt.Errorf("open cursor %s: %w", name, err)
	}
	offset, err := c.read()
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		c.reset = err.Error()
	}
	begin, found, err := j.enter(c, offset, err)
	if err != nil {
		return nil, err
	}
	// A new cursor is saved at once: else the next process would begin at what is the
	// oldest record by then, and nobody would know of those deleted since. The
	// journal's ID, which it names, is made durable before. Where that fails, as on a
	// full disk, Save will say so.
	if !found && j.fs.SyncDir(j.dir) == nil {
		_ = c.write(begin)
	}
	return c, nil
}

// enter makes c one of the journal's cursors, and returns where it begins and
// whether that is where it was saved.
func (j *Journal) enter(c *Cursor, offset uint64, err error) (begin uint64, found bool, failed error) {
	j.mu.Lock()
	defer j.mu.Unlock()
	name := c.name
	j.cursors = slices.DeleteFunc(j.cursors, func(o *Cursor) bool { return o.waits && o.name == name })
	if slices.ContainsFunc(j.cursors, func(o *Cursor) bool { return o.name == name }) {
		return 0, false, fmt.Errorf("open cursor %s: it is open", name)
	}
	switch {
	case err != nil:
		offset = j.firstLocked()
	case offset > j.next:
		c.reset = fmt.Sprintf("it was at %d, and the journal ends at %d", offset, j.next)
		offset = j.firstLocked()
	default:
		found = true
	}
	c.saved = offset
	j.cursors = append(j.cursors, c)
	return offset, found, nil
}

func isCursorName(name string) bool {
	for i := range len(name) {
		c := name[i]
		if !(c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || c == '-' || c == '_') {
			return false
		}
	}
	return name != "" && len(name) <= 64
}

// Reset says why the cursor did not begin where it was saved; "": it did, or is
// new.
func (c *Cursor) Reset() string { return c.reset }

// Offset returns the offset that is saved.
func (c *Cursor) Offset() uint64 {
	c.j.mu.Lock()
	defer c.j.mu.Unlock()
	return c.saved
}

// Save makes offset the one at which the next process begins. It first makes
// durable what is before: offsets that a power cut takes away are given again.
// After an error the cursor is where it was.
func (c *Cursor) Save(offset uint64) error {
	c.saving.Lock()
	defer c.saving.Unlock()
	j := c.j
	if offset == c.Offset() {
		return nil
	}
	if j.Stats().Synced < offset {
		if err := j.Sync(); err != nil {
			return fmt.Errorf("save cursor %s: %w", c.name, err)
		}
	}
	if err := c.write(offset); err != nil {
		return fmt.Errorf("save cursor %s: %w", c.name, err)
	}
	j.mu.Lock()
	c.saved = offset
	j.mu.Unlock()
	if c.hold {
		j.wakeKeeper() // it may delete more
	}
	return nil
}

// Close lets go of what the cursor holds. It saves nothing.
func (c *Cursor) Close() {
	c.j.mu.Lock()
	defer c.j.mu.Unlock()
	c.j.cursors = slices.DeleteFunc(c.j.cursors, func(o *Cursor) bool { return o == c })
}

// holderLocked returns a cursor that keeps s from being deleted, or nil.
func (j *Journal) holderLocked(s *segment) *Cursor {
	for _, c := range j.cursors {
		if c.hold && c.saved < s.end {
			return c
		}
	}
	return nil
}

func (c *Cursor) path() string { return filepath.Join(c.j.dir, cursorFolder, c.name) }

func (c *Cursor) line(id string, offset uint64) string {
	if id == "" {
		id = "-"
	}
	s := fmt.Sprintf("1 %s %d", id, offset)
	return fmt.Sprintf("%s %08x\n", s, crc32.Checksum([]byte(s), castagnoli))
}

func (c *Cursor) write(offset uint64) error {
	fs, temp := c.j.fs, c.path()+".new"
	f, err := fs.OpenFile(temp, os.O_RDWR|os.O_CREATE|os.O_TRUNC, 0o640)
	if err != nil {
		return err
	}
	_, err = f.WriteAt([]byte(c.line(c.j.id, offset)), 0)
	if err == nil {
		err = f.Sync()
	}
	if err = errors.Join(err, f.Close()); err != nil {
		return err
	}
	if err := fs.Rename(temp, c.path()); err != nil {
		return err
	}
	return fs.SyncDir(filepath.Join(c.j.dir, cursorFolder))
}

func (c *Cursor) read() (offset uint64, err error) {
	f, err := c.j.fs.OpenFile(c.path(), os.O_RDONLY, 0)
	if err != nil {
		return 0, err
	}
	defer f.Close() // only read from
	size, err := f.Size()
	if err != nil {
		return 0, err
	}
	b := make([]byte, min(size, maxCursorFile))
	if _, err := f.ReadAt(b, 0); err != nil && len(b) > 0 {
		return 0, err
	}
	var version, id, sum string
	if _, err := fmt.Sscan(string(b), &version, &id, &offset, &sum); err != nil || c.line(id, offset) != string(b) {
		return 0, fmt.Errorf("%s is damaged", c.path())
	}
	if id != "-" && c.j.id != "" && id != c.j.id {
		return 0, fmt.Errorf("%s is of another journal", c.path())
	}
	return offset, nil
}
