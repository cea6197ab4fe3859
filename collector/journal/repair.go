package journal

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"

	"github.com/rollway/rollway/internal/disk"
)

// repair sets aside an open segment that is damaged in its middle, and puts a
// sealed one with its sound frames in its place. When that cannot be written,
// the damaged one is sealed as it is.
func (j *Journal) repair(c candidate, f disk.File, sc *scanned, s *segment) error {
	j.findDamage(c, sc)
	s.retired, s.settled, s.sealed, s.marks = true, true, true, nil
	size, err := j.copySpans(c, f, sc)
	if err != nil {
		j.find(Finding{Kind: Damaged, File: c.name(), Detail: fmt.Sprintf("kept as it is, because a repaired copy cannot be written: %v", err)})
		if err := j.removeFile(j.path(c.first, extFix)); err != nil {
			return fmt.Errorf("remove unfinished repair: %w", err)
		}
		if err := j.fs.Rename(j.path(c.first, extOpen), j.path(c.first, extSealed)); err != nil {
			return fmt.Errorf("seal damaged segment: %w", err)
		}
		j.addSegment(s)
		return nil
	}
	if err := j.writeKeyFile(s, sc.keys); err != nil {
		j.find(Finding{Kind: Damaged, File: segmentName(c.first, extKeys), Detail: fmt.Sprintf("keys are forgotten at the next start: %v", err)})
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
	s.size = size
	j.addSegment(s)
	return nil
}

func (j *Journal) findDamage(c candidate, sc *scanned) {
	detail := ""
	if sc.readErr != nil {
		detail = sc.readErr.Error()
	}
	for _, d := range sc.damage() {
		j.find(Finding{Kind: Damaged, File: c.name(), Pos: d.pos, Bytes: d.end - d.pos, Detail: detail})
	}
}

// copySpans writes the sound frames of f to a new durable file and returns its
// size.
func (j *Journal) copySpans(c candidate, f disk.File, sc *scanned) (size int64, err error) {
	dst, err := j.fs.OpenFile(j.path(c.first, extFix), os.O_RDWR|os.O_CREATE|os.O_TRUNC, 0o640)
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, dst.Close()) }()
	h := segmentHeader{version: formatVersion, id: sc.id, first: c.first, created: sc.created.UnixNano(), prev: sc.prev}
	if _, err := dst.WriteAt(appendSegmentHeader(nil, h), 0); err != nil {
		return 0, err
	}
	out := io.NewOffsetWriter(dst, segmentHeaderSize)
	size = segmentHeaderSize
	for _, sp := range sc.spans {
		n, err := io.Copy(out, io.NewSectionReader(f, sp.pos, sp.end-sp.pos))
		if err != nil {
			return 0, err
		}
		size += n
	}
	return size, dst.Sync()
}

// quarantine renames a file so that it is kept but not read.
func (j *Journal) quarantine(c candidate, why string) error {
	target := segmentName(c.first, extBad)
	for n := 2; ; n++ {
		f, err := j.fs.OpenFile(filepath.Join(j.dir, target), os.O_RDONLY, 0)
		if err != nil {
			break
		}
		f.Close()
		target = fmt.Sprintf("%020d-%d%s", c.first, n, extBad)
	}
	if err := j.fs.Rename(j.path(c.first, c.ext), filepath.Join(j.dir, target)); err != nil {
		return fmt.Errorf("quarantine %s: %w", c.name(), err)
	}
	if err := j.fs.SyncDir(j.dir); err != nil {
		return fmt.Errorf("quarantine %s: %w", c.name(), err)
	}
	j.find(Finding{Kind: Quarantined, File: c.name(), Bytes: c.size, Detail: "as " + target + ": " + why})
	return nil
}

// finishFix completes or undoes a repair that a crash interrupted: the copy
// counts once the original has been set aside.
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
