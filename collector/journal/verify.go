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

	gaps []Gap // within segments
}

// Sound reports whether nothing is damaged or missing. The torn tail of an open
// segment is no damage: the next Open cuts it, or a running process is about to
// complete it. Files set aside are not part of the journal.
func (r *Report) Sound() bool {
	for _, f := range r.Findings {
		if !f.harmless() {
			return false
		}
	}
	return true
}

func (f *Finding) harmless() bool {
	return f.Kind == TornTail || f.Kind == Foreign || f.Kind == Quarantined
}

// Verify reads every frame of the journal in dir and checks it against its
// checksums and its neighbours. It changes nothing and takes no lock, so it may
// run beside a process that writes; a segment that retention deletes meanwhile
// is then reported missing. The error says that the folder could not be read.
func Verify(dir string) (Report, error) { return verify(disk.Real{}, dir, 0, 0, nil) }

// verify does Verify's work on the segments that do not end before from, and
// tells each, if each is not nil, of every segment that can be read, with its
// last maxKeys keys.
func verify(fsys disk.FS, dir string, from uint64, maxKeys int, each func(candidate, *scanned)) (Report, error) {
	var rep Report
	// A listing may miss a file that is renamed meanwhile. None is renamed twice,
	// so a second one has what the first missed.
	var files []candidate
	for range 2 {
		entries, err := fsys.List(dir)
		if err != nil {
			return rep, fmt.Errorf("verify journal: %w", err)
		}
		rep.Findings = rep.Findings[:0]
		for _, e := range entries {
			first, ext, ok := parseName(e.Name)
			switch {
			case e.Name == "LOCK", e.Name == idFile, e.Name == cursorFolder && e.Dir:
			case !ok || e.Dir:
				rep.Findings = append(rep.Findings, Finding{Kind: Foreign, File: e.Name})
			case ext == extBad:
				rep.Findings = append(rep.Findings, Finding{Kind: Quarantined, File: e.Name, Bytes: e.Size})
			case ext == extOpen || ext == extSealed:
				files = append(files, candidate{first, ext, e.Size, e.ModTime})
			}
		}
	}
	slices.SortStableFunc(files, func(a, b candidate) int { return cmp.Compare(a.first, b.first) })
	files = slices.CompactFunc(files, func(a, b candidate) bool { return a.first == b.first })
	for len(files) > 1 && files[1].first <= from {
		files = files[1:]
	}
	for i, c := range files {
		if i == 0 {
			rep.First, rep.Next = files[0].first, files[0].first
		}
		limit := uint64(math.MaxUint64)
		if i < len(files)-1 {
			limit = files[i+1].first
		}
		if rep.Next < c.first {
			rep.Findings = append(rep.Findings, Finding{Kind: Missing, File: c.name(), From: rep.Next, To: c.first, Detail: "before this segment"})
		}
		sc, err := verifyFile(fsys, filepath.Join(dir, c.name()), c, limit, maxKeys)
		if errors.Is(err, fs.ErrNotExist) && c.ext == extOpen { // sealed since
			c.ext = extSealed
			sc, err = verifyFile(fsys, filepath.Join(dir, c.name()), c, limit, maxKeys)
		}
		var newer *UnsupportedError
		switch {
		case errors.As(err, &newer):
			rep.Findings = append(rep.Findings, Finding{Kind: Newer, File: c.name(), Detail: newer.What})
			continue
		case errors.Is(err, fs.ErrNotExist):
			rep.Findings = append(rep.Findings, Finding{Kind: Missing, File: c.name(), Detail: "deleted since the folder was listed"})
			continue
		case err != nil:
			rep.Findings = append(rep.Findings, Finding{Kind: Damaged, File: c.name(), Detail: err.Error()})
			continue
		}
		rep.Segments++
		rep.Frames += sc.frames
		rep.Records += sc.records
		rep.Bytes += sc.size
		rep.Next = max(rep.Next, sc.end)
		rep.gaps = append(rep.gaps, sc.jumps...)
		if each != nil {
			each(c, &sc)
		}
		if sc.newer != "" {
			rep.Findings = append(rep.Findings, Finding{Kind: Newer, File: c.name(), Detail: sc.newer})
		}
		for _, g := range sc.jumps {
			rep.Findings = append(rep.Findings, Finding{Kind: Missing, File: c.name(), From: g.From, To: g.To})
		}
		for _, d := range sc.damage() {
			kind := Damaged
			if c.ext == extOpen && sc.header && d.end == sc.size {
				kind = TornTail
			}
			rep.Findings = append(rep.Findings, Finding{Kind: kind, File: c.name(), Pos: d.pos, Bytes: d.end - d.pos})
		}
	}
	return rep, nil
}

func verifyFile(fsys disk.FS, path string, c candidate, limit uint64, maxKeys int) (scanned, error) {
	f, err := fsys.OpenFile(path, os.O_RDONLY, 0)
	if err != nil {
		return scanned{}, err
	}
	defer f.Close()
	if c.size, err = f.Size(); err != nil {
		return scanned{}, err
	}
	sc, err := scan(f, path, c, limit, maxKeys)
	if err == nil {
		err = sc.readErr
	}
	return sc, err
}
