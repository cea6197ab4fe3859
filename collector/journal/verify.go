package journal

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"slices"

	"github.com/rollway/rollway/internal/disk"
	"github.com/rollway/rollway/internal/recordlog"
)

// Report is what Verify found.
type Report struct {
	Segments int
	Frames   int
	Records  int64
	Bytes    int64
	First    uint64    // offset of the first record
	Next     uint64    // offset behind the last record
	Findings []Finding // damage, torn tails and gaps, in the order of the files

	gaps []recordlog.Range // within segments
}

// Sound reports whether nothing is damaged or missing. The torn tail of an open
// segment is no damage: the next Open cuts it, or a running process is about to
// complete it. Files set aside are not part of the journal.
func (r *Report) Sound() bool {
	for _, f := range r.Findings {
		if !f.Harmless() {
			return false
		}
	}
	return true
}

// Verify reads every frame of the journal in dir and checks it against its
// checksums and its neighbours. It changes nothing and takes no lock, so it may
// run beside a process that writes; a segment that retention deletes meanwhile
// is no damage, and its records are not counted. The error says that the folder could not be read.
func Verify(dir string) (Report, error) { return verify(disk.Real{}, dir, 0, 0, nil) }

// verify does Verify's work on the segments that do not end before from, and
// tells each, if each is not nil, of every segment that can be read, with its
// last maxKeys keys.
func verify(fsys disk.FS, dir string, from uint64, maxKeys int, each func(candidate, *scanned)) (rep Report, err error) {
	m, merr := readManifest(fsys, dir) // first: what it lists is in the folder then
	files, err := rep.list(fsys, dir)
	if err != nil {
		return rep, fmt.Errorf("verify journal: %w", err)
	}
	if merr != nil && !errors.Is(merr, fs.ErrNotExist) {
		rep.find(Finding{Kind: recordlog.Damaged, File: manifestFile, Detail: merr.Error()})
	}
	for len(files) > 1 && files[1].first <= from {
		files = files[1:]
	}
	for i, c := range files {
		if i == 0 {
			rep.First, rep.Next = c.first, c.first
		}
		limit := uint64(math.MaxUint64)
		if i < len(files)-1 {
			limit = files[i+1].first
		}
		if rep.Next < c.first {
			rep.find(Finding{Kind: recordlog.Missing, File: c.name(), From: rep.Next, To: c.first, Detail: "before this segment"})
		}
		sc, err := verifyFile(fsys, dir, &c, limit, maxKeys)
		if errors.Is(err, fs.ErrNotExist) && deletedSince(fsys, dir, limit) {
			rep.find(Finding{Kind: recordlog.Deleted, File: c.name(), From: c.first, To: limit})
			if rep.Next = limit; rep.Segments == 0 {
				rep.First = limit
			}
			continue
		}
		if err != nil {
			rep.find(unreadable(c, err))
			continue
		}
		rep.add(c, &sc)
		if each != nil {
			each(c, &sc)
		}
	}
	if m != nil {
		last := int64(-1)
		if len(files) > 0 {
			last = int64(files[len(files)-1].first)
		}
		if f := m.lost(last, rep.Next); f.From < f.To {
			rep.find(f)
		}
	}
	return rep, nil
}

// deletedSince reports whether no segment before the one at next is left, as after
// retention, which deletes the oldest first.
func deletedSince(fsys disk.FS, dir string, next uint64) bool {
	files, err := new(Report).list(fsys, dir)
	return err == nil && len(files) > 0 && files[0].first >= next
}

// list returns the segments in dir in the order of their offsets, all that were
// there when it was called and some of those that came meanwhile, without a gap,
// and notes what else is there.
func (r *Report) list(fsys disk.FS, dir string) (files []candidate, err error) {
	// A listing may miss a file that is made or renamed meanwhile. None is renamed
	// twice, so of two listings one has what was there before both. The first two
	// tell up to where to look, and the others have all up to there.
	var last uint64
	for i := range 4 {
		entries, err := fsys.List(dir)
		if err != nil {
			return nil, err
		}
		r.Findings = r.Findings[:0]
		for _, e := range entries {
			first, ext, ok := parseName(e.Name)
			switch {
			case isNoSegment(e):
			case !ok || e.Dir:
				r.find(Finding{Kind: recordlog.Foreign, File: e.Name})
			case ext == recordlog.ExtBad:
				r.find(Finding{Kind: recordlog.SetAside, File: e.Name, Bytes: e.Size})
			case ext == extOpen || ext == extSealed:
				files = append(files, candidate{first, ext, e.Size, e.ModTime})
				if i < 2 {
					last = max(last, first)
				}
			}
		}
	}
	files = slices.DeleteFunc(files, func(c candidate) bool { return c.first > last })
	slices.SortStableFunc(files, func(a, b candidate) int { return cmp.Compare(a.first, b.first) })
	return slices.CompactFunc(files, func(a, b candidate) bool { return a.first == b.first }), nil
}

func (r *Report) find(f Finding) { r.Findings = append(r.Findings, f) }

// unreadable is the finding of a segment that could not be read for err.
func unreadable(c candidate, err error) Finding {
	var newer *UnsupportedError
	switch {
	case errors.As(err, &newer):
		return Finding{Kind: recordlog.Newer, File: c.name(), Detail: newer.What}
	case errors.Is(err, fs.ErrNotExist):
		return Finding{Kind: recordlog.Missing, File: c.name(), Detail: "deleted since the folder was listed"}
	}
	return Finding{Kind: recordlog.Damaged, File: c.name(), Detail: err.Error()}
}

// add adds what was found in a segment that could be read.
func (r *Report) add(c candidate, sc *scanned) {
	r.Segments++
	r.Frames += sc.Frames
	r.Records += sc.Records
	r.Bytes += sc.Size
	r.Next = max(r.Next, sc.End)
	r.gaps = append(r.gaps, sc.Jumps...)
	r.Findings = append(r.Findings, sc.Findings(c.name(), c.ext == extOpen)...)
	r.Findings = append(r.Findings, sc.sections...)
}

func verifyFile(fsys disk.FS, dir string, c *candidate, limit uint64, maxKeys int) (scanned, error) {
	f, path, err := c.open(fsys, dir)
	if err != nil {
		return scanned{}, err
	}
	defer f.Close()
	if c.size, err = f.Size(); err != nil {
		return scanned{}, err
	}
	sc, err := scan(f, path, *c, limit, maxKeys)
	if err == nil {
		err = sc.Err
	}
	if err == nil && sc.Footer != nil && len(sc.Damage()) == 0 {
		sc.sections = sc.Footer.Check(f, c.name())
	}
	return sc, err
}

// open opens a segment to read it, also if it was sealed since it was listed,
// which c says then.
func (c *candidate) open(fsys disk.FS, dir string) (f disk.File, path string, err error) {
	path = filepath.Join(dir, c.name())
	f, err = fsys.OpenFile(path, os.O_RDONLY, 0)
	if errors.Is(err, fs.ErrNotExist) && c.ext == extOpen {
		c.ext = extSealed
		path = filepath.Join(dir, c.name())
		f, err = fsys.OpenFile(path, os.O_RDONLY, 0)
	}
	return f, path, err
}
