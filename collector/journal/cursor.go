package journal

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/rollway/rollway/internal/recordlog"
)

// cursorFolder has one file per cursor, with two slots that are written in turn. The sound
// one with the greater count is valid. Each is a small file of package recordlog: its ID is
// the count of writes, odd in the second slot, its first record the offset, and its body the
// journal's ID.
const cursorFolder = "cursors"

// A Cursor is a named position in a journal that outlives the process. It may lag behind
// what its owner did, and never leads. It is safe for concurrent use.
type Cursor struct {
	j     *Journal
	name  string
	hold  bool
	waits bool // for OpenCursor to replace it; guarded by j.mu
	reset string

	saving sync.Mutex // held by Save
	count  uint64     // of the valid slot; 0 if the file is to be written anew; guarded by saving
	saved  uint64     // in the file; guarded by j.mu
}

// OpenCursor opens the cursor of that name, of 1 to 64 letters, digits, '-' and '_', at the
// saved offset. A new cursor begins at the oldest record, which is saved. While it is open
// with hold set, retention deletes nothing from the saved offset on: a full journal then
// refuses lines.
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
	// Otherwise the next process would not know of records that were deleted since. The ID,
	// which the cursor names, must be durable first. If that fails, as on a full disk, Save
	// will report it.
	if !found {
		if c.count = 0; j.fs.SyncDir(j.dir) == nil {
			_ = c.write(begin)
		}
	}
	return c, nil
}

// enter registers c. It returns where c begins and whether that is the saved offset.
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
	const allowed = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_"
	return name != "" && len(name) <= 64 && strings.Trim(name, allowed) == ""
}

// Reset returns why the cursor did not begin where it was saved, or "".
func (c *Cursor) Reset() string { return c.reset }

// Offset returns the saved offset.
func (c *Cursor) Offset() uint64 {
	c.j.mu.Lock()
	defer c.j.mu.Unlock()
	return c.saved
}

// Save saves offset for the next process. It first makes all records before it durable: a
// power cut would give their offsets to others. After an error the cursor is unchanged.
func (c *Cursor) Save(offset uint64) error {
	c.saving.Lock()
	defer c.saving.Unlock()
	j := c.j
	if offset == c.Offset() {
		return nil
	}
	if err := j.Lost(); err != nil {
		return fmt.Errorf("save cursor %s: %w", c.name, err)
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
		wake(j.kick) // it may delete more
	}
	return nil
}

// Close closes the cursor and saves nothing.
func (c *Cursor) Close() {
	c.j.mu.Lock()
	defer c.j.mu.Unlock()
	c.j.cursors = slices.DeleteFunc(c.j.cursors, func(o *Cursor) bool { return o == c })
}

func (j *Journal) holderLocked(s *segment) *Cursor {
	for _, c := range j.cursors {
		if c.hold && c.saved < s.end {
			return c
		}
	}
	return nil
}

func (c *Cursor) path() string { return filepath.Join(c.j.dir, cursorFolder, c.name) }

// write overwrites the older slot, which needs no room on a full disk: what was delivered can
// be deleted then. Only a file that is missing or damaged is written anew.
func (c *Cursor) write(offset uint64) error {
	f, err := c.j.fs.OpenFile(c.path(), os.O_RDWR, 0)
	if c.count == 0 || errors.Is(err, fs.ErrNotExist) {
		if err == nil {
			f.Close()
		}
		both := make([]byte, recordlog.SlotSize, 2*recordlog.SlotSize)
		copy(both, c.slot(2, offset))
		if err := recordlog.WriteFile(c.j.fs, c.path(), append(both, c.slot(3, offset)...)); err != nil {
			return err
		}
		c.count = 3
		return nil
	}
	if err != nil {
		return err
	}
	n := c.count + 1
	_, err = f.WriteAt(c.slot(n, offset), int64(n%2)*recordlog.SlotSize)
	if err == nil {
		err = f.Sync()
	}
	if err = errors.Join(err, f.Close()); err == nil {
		c.count = n
	}
	return err
}

func (c *Cursor) slot(count, offset uint64) []byte {
	h := recordlog.Header{Kind: recordlog.JournalCursor, ID: count, First: offset, Created: time.Now().UnixNano()}
	return recordlog.AppendFile(nil, h, []byte(c.j.id))
}

// read returns the saved offset and notes the count of its slot.
func (c *Cursor) read() (offset uint64, err error) {
	b, err := recordlog.ReadFile(c.j.fs, c.path(), 2*recordlog.SlotSize)
	if err != nil {
		return 0, err
	}
	err = fmt.Errorf("%s is damaged", c.path())
	for _, slot := range [][]byte{b, b[min(recordlog.SlotSize, len(b)):]} {
		h, id, bad := recordlog.ParseFile(slot, recordlog.JournalCursor, c.path())
		switch {
		case recordlog.IsDamage(bad):
		case bad != nil:
			return 0, bad
		case len(id) > 0 && c.j.id != "" && string(id) != c.j.id:
			return 0, fmt.Errorf("%s is of another journal", c.path())
		case err != nil || h.ID > c.count:
			offset, c.count, err = h.First, h.ID, nil
		}
	}
	return offset, err
}
