package journal

import (
	"errors"
	"fmt"
	"io"
	"slices"

	"github.com/rollway/rollway/internal/disk"
	"github.com/rollway/rollway/internal/recordlog"
)

// repair sets aside an open segment that is damaged in its middle, and replaces it by a
// sealed one with its sound frames. If that cannot be written, the damaged one is sealed as
// it is.
func (j *Journal) repair(c candidate, f disk.File, sc *scanned, s *segment) error {
	j.findAll(sc.Findings(c.name(), false))
	s.retired, s.settled, s.sealed, s.marks = true, true, true, nil
	size, footer, err := j.copySpans(c, f, sc)
	if err != nil {
		j.find(Finding{Kind: recordlog.Damaged, File: c.name(), Detail: fmt.Sprintf("kept as it is, because a repaired copy cannot be written: %v", err)})
		if err := j.removeFile(j.path(c.first, extFix)); err != nil {
			return fmt.Errorf("remove unfinished repair: %w", err)
		}
		if err := j.fs.Rename(j.path(c.first, extOpen), j.path(c.first, extSealed)); err != nil {
			return fmt.Errorf("seal damaged segment: %w", err)
		}
		j.addSegment(s)
		return nil
	}
	if err := j.quarantine(c, "its sound frames were copied"); err != nil {
		return err
	}
	if err := j.fs.Rename(j.path(c.first, extFix), j.path(c.first, extSealed)); err != nil {
		return fmt.Errorf("put repaired segment in place: %w", err)
	}
	if err := j.fs.SyncDir(j.dir); err != nil {
		return fmt.Errorf("put repaired segment in place: %w", err)
	}
	s.size, s.footer = size, footer
	j.addSegment(s)
	return nil
}

// copySpans writes the sound frames of f and a footer to a new durable file. It returns
// where the frames end and the length of the footer.
func (j *Journal) copySpans(c candidate, f disk.File, sc *scanned) (size, footer int64, err error) {
	path := j.path(c.first, extFix)
	h := recordlog.Header{Kind: recordlog.JournalSegment, ID: sc.ID, First: c.first, Created: sc.created.UnixNano(), Prev: sc.Header.Prev}
	dst, err := recordlog.Create(j.fs, path, h, true)
	if err != nil {
		return 0, 0, err
	}
	defer func() { err = errors.Join(err, dst.Close()) }()
	out := io.NewOffsetWriter(dst, segmentHeaderSize)
	size = segmentHeaderSize
	for _, sp := range sc.Spans {
		n, err := io.Copy(out, io.NewSectionReader(f, int64(sp.From), int64(sp.To-sp.From)))
		if err != nil {
			return 0, 0, err
		}
		size += n
	}
	footer, err = j.writeFooter(dst, path, sc.ID, c.first, size, sc.keys, c.written)
	if err == nil {
		err = j.fs.SyncDir(j.dir) // the copy has a durable name before the original loses its own
	}
	return size, footer, err
}

// quarantine renames a file that is kept and not read.
func (j *Journal) quarantine(c candidate, why string) error {
	if j.readOnly {
		j.find(Finding{Kind: recordlog.Damaged, File: c.name(), Bytes: c.size, Detail: "left out: " + why})
		return nil
	}
	target, err := recordlog.MoveAside(j.fs, j.dir, c.name())
	if err == nil {
		j.find(Finding{Kind: recordlog.SetAside, File: c.name(), Bytes: c.size, Detail: "as " + target + ": " + why})
	}
	return err
}

// finishFix completes or undoes an interrupted repair: the copy counts once the original is
// set aside.
func (j *Journal) finishFix(files []candidate, c candidate) ([]candidate, error) {
	if slices.ContainsFunc(files, func(o candidate) bool { return o.first == c.first }) {
		if err := j.removeFile(j.path(c.first, extFix)); err != nil {
			return nil, fmt.Errorf("remove unfinished repair: %w", err)
		}
		return files, nil
	}
	if err := j.fs.Rename(j.path(c.first, extFix), j.path(c.first, extSealed)); err != nil {
		return nil, fmt.Errorf("finish repair: %w", err)
	}
	if err := j.fs.SyncDir(j.dir); err != nil {
		return nil, fmt.Errorf("finish repair: %w", err)
	}
	c.ext = extSealed
	return append(files, c), nil
}
