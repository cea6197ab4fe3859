package journal

import (
	"errors"
	"fmt"
	"io/fs"
	"math"
	"slices"
	"time"

	"github.com/rollway/rollway/internal/disk"
	"github.com/rollway/rollway/internal/recordlog"
)

// OpenReadOnly opens the journal in dir for readers alone. It writes nothing in the folder and
// repairs nothing: what a crash left is read as far as it is sound. It fails with
// disk.ErrLocked while a process has the journal open. It holds no lock itself; what a
// process that comes later deletes is a [*Gap]. Append fails, and Close does nothing.
func OpenReadOnly(dir string) (*Journal, error) {
	if used, err := recordlog.InUse(dir); err != nil {
		return nil, fmt.Errorf("read journal: %w", err)
	} else if used {
		return nil, fmt.Errorf("read journal: folder %s is in use by another process: %w", dir, disk.ErrLocked)
	}
	return openReadOnly(disk.Real{Owned: true}, dir)
}

func openReadOnly(fsys disk.FS, dir string) (*Journal, error) {
	o := Options{Disk: fsys}
	if err := o.check(); err != nil {
		return nil, err
	}
	j := &Journal{dir: dir, o: o, fs: fsys, readOnly: true, closing: true, closed: make(chan struct{}), opened: time.Now()}
	close(j.closed)
	m, err := readManifest(fsys, dir)
	switch _, unsupported := errors.AsType[*UnsupportedError](err); {
	case unsupported:
		return nil, fmt.Errorf("read journal: %w", err)
	case err != nil: // footers tell the same
		m = new(manifest)
	}
	if j.id, err = j.readID(); err != nil && !errors.Is(err, fs.ErrNotExist) {
		j.find(Finding{Kind: recordlog.Damaged, File: idFile, Detail: err.Error()})
	}
	files, err := new(AuditReport).list(fsys, dir)
	if err != nil {
		return nil, fmt.Errorf("read journal: %w", err)
	}
	if err := j.noRepair(files); err != nil {
		return nil, err
	}
	if files, err = j.setAsideCopies(files, m); err != nil {
		return nil, fmt.Errorf("read journal: %w", err)
	}
	for i, c := range files {
		limit, last := uint64(math.MaxUint64), i == len(files)-1
		if !last {
			limit = files[i+1].first
		}
		if c.ext == extSealed && !last {
			err = j.recoverSealed(c, limit, m.find(c.first))
		} else {
			err = j.addWhole(c, limit)
		}
		if err != nil {
			return nil, fmt.Errorf("read journal: %w", err)
		}
	}
	j.findMissing()
	j.recovery.First, j.recovery.Next, j.recovery.Segments, j.recovery.Bytes = j.firstLocked(), j.next, len(j.segs), j.total
	return j, nil
}

// noRepair fails if a crash has interrupted a repair after it set a segment aside.
func (j *Journal) noRepair(files []candidate) error {
	entries, err := j.fs.List(j.dir)
	if err != nil {
		return fmt.Errorf("read journal: %w", err)
	}
	for _, e := range entries {
		first, ext, _ := parseName(e.Name)
		if ext == extFix && !slices.ContainsFunc(files, func(c candidate) bool { return c.first == first }) {
			return fmt.Errorf("read journal: %s is a repair that was interrupted; open the journal for writing once, as a collector does", e.Name)
		}
	}
	return nil
}

// addWhole adds a segment that is read frame by frame. Readers leave out what is damaged.
func (j *Journal) addWhole(c candidate, limit uint64) error {
	sc, err := c.read(j.fs, j.dir, limit, j.o.MaxKeys)
	if err != nil && !recordlog.IsDamage(err) {
		return err
	}
	if c.ext == extOpen {
		sc.cutUnfinished()
	}
	s := &segment{
		first: c.first, id: sc.ID, prev: sc.Header.Prev, size: sc.GoodEnd(), end: sc.End, written: c.written, begun: sc.created,
		minTime: sc.MinTime, maxTime: sc.MaxTime, timed: sc.End > c.first, marks: sc.marks, created: sc.Header.Created,
		retired: true, settled: true, sealed: c.ext == extSealed, packed: sc.packed(), synced: sc.End,
	}
	j.findAll(sc.Findings(c.name(), false))
	j.addSegment(s)
	return nil
}
