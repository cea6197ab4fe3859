package journal

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/rollway/rollway/internal/disk"
	"github.com/rollway/rollway/internal/recordlog"
)

// AuditOptions of Audit; the zero value is the recommended setting.
type AuditOptions struct {
	// From is the least offset that is looked at: segments that end before it
	// are left out, and their findings with them.
	From uint64
	// KeysFrom is the offset from which on a key must not come twice within
	// KeyAge and the last MaxKeys keys. 0 for either: Options' default.
	KeysFrom uint64
	MaxKeys  int
	KeyAge   time.Duration
}

// AuditReport is what Audit found, beside what Verify does.
type AuditReport struct {
	Report
	ID      string // of the journal; "": it cannot be read
	List    []SegmentReport
	Missing []Gap // offsets in [First, Next) without a record, in their order
	Keys    int   // in the segments read
	Twice   int   // of them, those that were stored again while they had to be known
	Cursors []CursorReport
}

// SegmentReport is one segment file.
type SegmentReport struct {
	File    string `json:"file"`
	First   uint64 `json:"first_offset"`
	End     uint64 `json:"end_offset"` // behind the last record
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

// Count returns the number of records that were found at offsets in [from, to),
// of those that Audit has looked at.
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

// Audit is Verify, and counts what a ledger is compared with: the records of
// each segment, idempotency keys, cursors.
func Audit(dir string, o AuditOptions) (AuditReport, error) { return audit(disk.Real{}, dir, o) }

func audit(fsys disk.FS, dir string, o AuditOptions) (AuditReport, error) {
	limits := Options{MaxKeys: o.MaxKeys, KeyAge: o.KeyAge}
	if err := limits.check(); err != nil {
		return AuditReport{}, err
	}
	var a AuditReport
	var keys keyTable
	keys.init(limits.MaxKeys, limits.KeyAge)
	// The cursors first: they are never ahead of what is read after them.
	look := &Journal{dir: dir, fs: fsys} // only its folder is looked at
	id, idErr := look.readID()
	look.id, a.ID = id, id
	if err := a.readCursors(look); err != nil {
		return a, err
	}
	rep, err := verify(fsys, dir, o.From, limits.MaxKeys, func(c candidate, sc *scanned) {
		a.List = append(a.List, SegmentReport{
			File: c.name(), First: c.first, End: sc.End, Records: sc.Records, Frames: sc.Frames, Bytes: sc.Size,
			Keys: len(sc.keys), Packed: sc.packed(), Sealed: c.ext == extSealed,
		})
		a.Keys += len(sc.keys)
		for _, k := range sc.keys {
			if _, known := keys.find(k.hash, k.at); known && k.first >= o.KeysFrom {
				a.Twice++
			}
			keys.add(k)
		}
	})
	a.Report = rep
	if err != nil {
		return a, err
	}
	a.findGaps(rep.gaps)
	if idErr != nil && !errors.Is(idErr, fs.ErrNotExist) {
		a.Findings = append(a.Findings, Finding{Kind: recordlog.Damaged, File: idFile, Detail: idErr.Error()})
	}
	return a, nil
}

// Damage returns the findings that no interrupted process leaves, without those
// of segments before the one that holds the offset from.
func (r *AuditReport) Damage(from uint64) []Finding {
	var list []Finding
	for _, f := range r.Findings {
		first, _, isSegment := parseName(f.File)
		before := isSegment && slices.ContainsFunc(r.List, func(s SegmentReport) bool { return first < s.First && s.First <= from })
		before = before || f.From < f.To && f.To <= from
		if !f.Harmless() && !before {
			list = append(list, f)
		}
	}
	return list
}

// findGaps fills Missing: what lies within segments, and between them.
func (r *AuditReport) findGaps(ranges []recordlog.Range) {
	var within []Gap
	for _, g := range ranges {
		within = append(within, Gap{From: g.From, To: g.To})
	}
	at := r.First
	for _, s := range r.List {
		if at < s.First {
			within = append(within, Gap{From: at, To: s.First})
		}
		at = max(at, s.End)
	}
	slices.SortFunc(within, func(x, y Gap) int { return cmp.Compare(x.From, y.From) })
	r.Missing = within
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
		if e.Dir || !isCursorName(e.Name) { // such as NAME.new, which is not in its place yet
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
