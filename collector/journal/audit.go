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
	"strings"
	"time"

	"github.com/rollway/rollway/internal/disk"
	"github.com/rollway/rollway/internal/recordlog"
)

// AuditOptions of Audit; the zero value is the recommended setting.
type AuditOptions struct {
	// From is the least offset of interest: segments that end before it are left out,
	// with their findings.
	From uint64
	// KeysFrom is the offset from which a key must not come twice within KeyAge and the
	// last MaxKeys keys. 0 for either: Options' default.
	KeysFrom uint64
	MaxKeys  int
	KeyAge   time.Duration
}

// AuditReport is what Audit found.
type AuditReport struct {
	ID      string // of the journal; "": it cannot be read
	Records int64
	Deleted uint64 // records that the retention of their tenants has removed from segments
	Bytes   int64
	First   uint64 // offset of the first record
	Next    uint64 // offset after the last record
	// Acknowledged was found, and an operator knows it.
	Acknowledged []Finding
	Findings     []Finding // damage, torn tails and gaps, in the order of the files
	List         []SegmentReport
	Missing      []Gap // offsets in [First, Next) without a record, and not Deleted
	Keys         int   // in the segments read
	Twice        int   // keys that were stored again while they had to be known
	Cursors      []CursorReport
}

// SegmentReport is one segment file.
type SegmentReport struct {
	File    string `json:"file"`
	First   uint64 `json:"first_offset"`
	End     uint64 `json:"end_offset"` // after the last record
	Records int64  `json:"records"`
	Frames  int    `json:"frames"`
	Bytes   int64  `json:"bytes"`
	Keys    int    `json:"keys"`
	Packed  bool   `json:"packed"`
	Sealed  bool   `json:"sealed"`
}

// CursorReport is one file of a cursor.
type CursorReport struct {
	Name   string `json:"name"`
	Offset uint64 `json:"offset"`
	Error  string `json:"error,omitempty"` // why it has no offset
}

// Count returns the number of records found, or deleted by the retention of their tenants,
// at offsets in [from, to).
func (r *AuditReport) Count(from, to uint64) uint64 {
	from, to = max(from, r.First), min(to, r.Next)
	if from >= to {
		return 0
	}
	n := to - from
	for _, g := range r.Missing {
		if lo, hi := max(from, g.From), min(to, g.To); lo < hi {
			n -= hi - lo
		}
	}
	return n
}

// Damage returns the findings that no interrupted process leaves, without those of
// segments before the one with the offset from. What the history has counts in any case
// until it is acknowledged. A torn tail is not damage: the next Open
// cuts it, or a running process completes it.
func (r *AuditReport) Damage(from uint64) (list []Finding) {
	for _, f := range r.Findings {
		first, _, isSegment := parseName(f.File)
		before := isSegment && slices.ContainsFunc(r.List, func(s SegmentReport) bool { return first < s.First && s.First <= from })
		before = before || f.From < f.To && f.To <= from
		if !f.Harmless() && (!before || !f.Seen.IsZero()) {
			list = append(list, f)
		}
	}
	return list
}

// Audit reads every frame of the journal in dir, checks it against its checksums and its
// neighbours, and counts what a ledger is compared with. It changes nothing and takes no
// lock, so it may run beside a process that writes: what retention deletes meanwhile is
// no damage and is not counted. The error means that the folder could not be read, or that
// the system had no descriptor or no memory left.
func Audit(dir string, o AuditOptions) (AuditReport, error) {
	return audit(disk.Real{Owned: true}, dir, o)
}

func audit(fsys disk.FS, dir string, o AuditOptions) (r AuditReport, err error) {
	limits := Options{MaxKeys: o.MaxKeys, KeyAge: o.KeyAge}
	if err := limits.check(); err != nil {
		return r, err
	}
	// Cursors and manifest first: they are never ahead of what is read after them.
	look := &Journal{dir: dir, fs: fsys} // only for its folder
	id, idErr := look.readID()
	look.id, r.ID = id, id
	if err := r.readCursors(look); err != nil {
		return r, err
	}
	m, manifestErr := readManifest(fsys, dir)
	files, err := r.list(fsys, dir)
	if err != nil {
		return r, fmt.Errorf("audit journal: %w", err)
	}
	if err := errors.Join(manifestErr, idErr); disk.IsExhausted(err) {
		return r, fmt.Errorf("audit journal: %w", err)
	}
	r.check(manifestFile, manifestErr)
	r.check(idFile, idErr)
	if err := r.segments(fsys, dir, files, o, &limits); err != nil {
		return r, fmt.Errorf("audit journal: %w", err)
	}
	if m != nil {
		last := int64(-1)
		if len(files) > 0 {
			last = int64(files[len(files)-1].first)
		}
		if f := m.lost(last, r.Next); f.From < f.To {
			r.find(f)
		}
		if len(files) > 0 && m.closed { // otherwise retention may have deleted them since
			if f := m.lostOldest(files[0].first); f.From < f.To {
				r.find(f)
			}
		}
	}
	r.remember(look)
	return r, nil
}

// segments adds what is in the segments that do not end before o.From. An error is one that
// says nothing about them.
func (r *AuditReport) segments(fsys disk.FS, dir string, files []candidate, o AuditOptions, limits *Options) error {
	var keys keyTable
	keys.init(limits.MaxKeys, limits.KeyAge)
	for len(files) > 1 && files[1].first <= o.From {
		files = files[1:]
	}
	for i, c := range files {
		if i == 0 {
			r.First, r.Next = c.first, c.first
		}
		limit := uint64(math.MaxUint64)
		if i < len(files)-1 {
			limit = files[i+1].first
		}
		if r.Next < c.first {
			r.find(Finding{Kind: recordlog.Missing, File: c.name(), From: r.Next, To: c.first, Detail: "before this segment"})
		}
		sc, err := c.read(fsys, dir, limit, limits.MaxKeys)
		if errors.Is(err, fs.ErrNotExist) && deletedSince(fsys, dir, limit) {
			r.find(Finding{Kind: recordlog.Deleted, File: c.name(), From: c.first, To: limit})
			if r.Next = limit; len(r.List) == 0 {
				r.First = limit
			}
			continue
		}
		if disk.IsExhausted(err) {
			return err
		}
		if err != nil {
			r.find(unreadable(c, err))
			continue
		}
		r.add(c, &sc)
		for _, k := range sc.keys {
			if _, known := keys.find(k.hash, k.at); known && k.first >= o.KeysFrom {
				r.Twice++
			}
			keys.add(k)
		}
	}
	if r.Next > r.end() {
		r.Missing = append(r.Missing, Gap{From: r.end(), To: r.Next})
	}
	return nil
}

// end returns the offset after the last segment that could be read.
func (r *AuditReport) end() uint64 {
	if len(r.List) == 0 {
		return r.First
	}
	return r.List[len(r.List)-1].End
}

// add adds a segment that could be read.
func (r *AuditReport) add(c candidate, sc *scanned) {
	if end := r.end(); end < c.first {
		r.Missing = append(r.Missing, Gap{From: end, To: c.first})
	}
	for _, g := range slices.Concat(sc.Jumps, sc.Lost) {
		r.Missing = append(r.Missing, Gap{From: g.From, To: g.To})
	}
	r.List = append(r.List, SegmentReport{
		File: c.name(), First: c.first, End: sc.End, Records: sc.Records, Frames: sc.Frames, Bytes: sc.Size,
		Keys: len(sc.keys), Packed: sc.packed(), Sealed: c.ext == extSealed,
	})
	r.Records += sc.Records
	r.Deleted += sc.Deleted
	r.Bytes += sc.Size
	r.Keys += len(sc.keys)
	r.Next = max(r.Next, sc.End)
	r.Findings = append(r.Findings, sc.Findings(c.name(), c.ext == extOpen)...)
	r.Findings = append(r.Findings, sc.sections...)
}

func (r *AuditReport) find(f Finding) { r.Findings = append(r.Findings, f) }

// check adds the error of a small file, which may be missing.
func (r *AuditReport) check(name string, err error) {
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		r.find(Finding{Kind: recordlog.Damaged, File: name, Detail: err.Error()})
	}
}

// unreadable returns the finding for a segment that could not be read.
func unreadable(c candidate, err error) Finding {
	if newer, ok := errors.AsType[*UnsupportedError](err); ok {
		return Finding{Kind: recordlog.Newer, File: c.name(), Detail: newer.What}
	}
	if errors.Is(err, fs.ErrNotExist) {
		return Finding{Kind: recordlog.Missing, File: c.name(), Detail: "deleted since the folder was listed"}
	}
	return Finding{Kind: recordlog.Damaged, File: c.name(), Detail: err.Error()}
}

func (r *AuditReport) readCursors(j *Journal) error {
	entries, err := j.fs.List(filepath.Join(j.dir, cursorFolder))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("audit journal: %w", err)
	}
	for _, e := range entries {
		if e.Dir || !isCursorName(e.Name) { // such as an unfinished NAME.new
			continue
		}
		c := CursorReport{Name: e.Name}
		if c.Offset, err = (&Cursor{j: j, name: e.Name}).read(); errors.Is(err, os.ErrNotExist) {
			continue
		} else if err != nil {
			c.Error = err.Error()
		}
		r.Cursors = append(r.Cursors, c)
	}
	return nil
}

// list returns the segments in dir in the order of their offsets, without a gap: all that
// are there now and some that come meanwhile. It notes what else is there.
func (r *AuditReport) list(fsys disk.FS, dir string) (files []candidate, err error) {
	// A listing may miss a file that is made or renamed meanwhile. None is renamed twice,
	// so of two listings one has what was there before both. The first two tell up to
	// where to look, and the others have all up to there.
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
	slices.SortStableFunc(files, func(a, b candidate) int {
		return cmp.Or(cmp.Compare(a.first, b.first), strings.Compare(b.ext, a.ext)) // .seg before .open
	})
	return slices.CompactFunc(files, func(a, b candidate) bool { return a.first == b.first }), nil
}

// deletedSince reports whether no segment before the one at next is left: retention
// deletes the oldest first.
func deletedSince(fsys disk.FS, dir string, next uint64) bool {
	files, err := new(AuditReport).list(fsys, dir)
	return err == nil && len(files) > 0 && files[0].first >= next
}

// read scans a segment file to its end.
func (c *candidate) read(fsys disk.FS, dir string, limit uint64, maxKeys int) (sc scanned, err error) {
	f, path, err := c.open(fsys, dir)
	if err != nil {
		return sc, err
	}
	defer f.Close() // only read from
	if c.size, err = f.Size(); err != nil {
		return sc, err
	}
	if sc, err = scan(f, path, *c, limit, maxKeys); err == nil {
		err = sc.Err
	}
	if err == nil && sc.Footer != nil && len(sc.Damage()) == 0 {
		sc.sections, err = sc.Footer.Check(f, c.name())
	}
	return sc, err
}

// open opens a segment file, also one that was sealed since it was listed; c is then
// changed.
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

// EachFrame calls f with the sound frames of the journal in dir in the order of offsets,
// beginning with the segment that has the offset from, and returns what is wrong with them. A
// Frame is valid during the call. Like Audit it changes nothing and may run beside a process that
// writes. The error is f's or of reading.
func EachFrame(dir string, from uint64, f func(Frame) error) ([]Finding, error) {
	return eachFrame(disk.Real{Owned: true}, dir, from, f)
}

func eachFrame(fsys disk.FS, dir string, from uint64, f func(Frame) error) (found []Finding, err error) {
	files, err := new(AuditReport).list(fsys, dir)
	if err != nil {
		return nil, fmt.Errorf("read journal: %w", err)
	}
	next := uint64(math.MaxUint64) // unknown
	for i, c := range files {
		if i < len(files)-1 && files[i+1].first <= from {
			continue
		}
		if next < c.first {
			found = append(found, Finding{Kind: recordlog.Missing, File: c.name(), From: next, To: c.first, Detail: "before this segment"})
		}
		file, path, err := c.open(fsys, dir)
		if err == nil {
			var list []Finding
			list, next, err = eachIn(file, path, recordlog.JournalSegment, c.first, nil, f)
			found = append(found, list...)
			err = errors.Join(err, file.Close())
		}
		if errors.Is(err, fs.ErrNotExist) && i < len(files)-1 && deletedSince(fsys, dir, files[i+1].first) {
			next = files[i+1].first
			continue
		}
		if err != nil {
			return found, fmt.Errorf("read journal: %s: %w", c.name(), err)
		}
	}
	return found, nil
}

// EachFrameOf is EachFrame for one segment file, of a journal or of a spool.
func EachFrameOf(path string, kind recordlog.Kind, f func(Frame) error) ([]Finding, error) {
	file, err := disk.Real{}.OpenFile(path, os.O_RDONLY, 0)
	if err != nil {
		return nil, err
	}
	defer file.Close() // only read from
	h, err := recordlog.ReadHeader(file, kind, path)
	if err != nil && !recordlog.IsDamage(err) {
		return nil, err
	}
	found, _, err := eachIn(file, path, kind, h.First, nil, f)
	return found, err
}

// eachIn calls f with the sound frames in file, whose first offset is first. It returns what is
// wrong with the file, and the offset after its last record.
func eachIn(file disk.File, path string, kind recordlog.Kind, first uint64, pause func(), f func(Frame) error) ([]Finding, uint64, error) {
	size, err := file.Size()
	if err != nil {
		return nil, 0, err
	}
	var w walker
	w.Open(file, path, size)
	w.unpacked.columns.Pause, w.win.plain.columns.Pause = pause, pause
	leftOut := ""
	s, err := recordlog.Scan(file, path, kind, size, first, math.MaxUint64, func(pos int64, h *recordlog.Frame, body []byte) error {
		if what := h.Unknown(); what != "" {
			return &UnsupportedError{File: path, Pos: pos, What: what}
		}
		err := w.framesOf(h, body, pos, f, &leftOut)
		if recordlog.IsDamage(err) {
			leftOut, err = cmp.Or(leftOut, fmt.Sprintf("the frame at byte %d cannot be unpacked", pos)), nil
		}
		return err
	})
	found := s.Findings(filepath.Base(path), filepath.Ext(path) == extOpen)
	if len(found) == 0 && leftOut != "" { // its checksum is right
		found = append(found, Finding{Kind: recordlog.Damaged, File: filepath.Base(path), Detail: leftOut})
	}
	return found, s.End, cmp.Or(err, s.Err)
}
