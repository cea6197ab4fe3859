package journal

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/rollway/rollway/internal/disk"
)

// Recovery is what Open found in the folder and what it did about it.
type Recovery struct {
	Segments int           // kept
	Bytes    int64         // in them
	First    uint64        // offset of the oldest record
	Next     uint64        // offset of the next record
	Scanned  int64         // bytes that were read frame by frame
	Took     time.Duration // until appends were possible
	Findings []Finding     // everything out of the ordinary, in the order of the files
}

// Finding is one thing out of the ordinary in a journal's folder.
type Finding struct {
	Kind     FindingKind
	File     string // name in the folder
	Pos      int64  // position in the file, bytes
	Bytes    int64  // concerned
	From, To uint64 // offsets known to be missing; equal: none, or not known
	Detail   string
}

// FindingKind says what a Finding is about.
type FindingKind string

// The kinds of findings.
const (
	TornTail     FindingKind = "torn tail cut"      // an append that a crash interrupted
	EmptyRemoved FindingKind = "empty file removed" // a segment without a record
	Damaged      FindingKind = "damaged"            // checksum or structure is wrong; readers skip it
	Quarantined  FindingKind = "quarantined"        // set aside as .bad, not read any more
	Missing      FindingKind = "records missing"
	Deleted      FindingKind = "deleted meanwhile" // by retention, while the journal was read
	Foreign      FindingKind = "foreign file"      // left alone
	Newer        FindingKind = "written by a newer version"
)

// String returns the finding as a sentence for a log.
func (f Finding) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s: %s", f.File, f.Kind)
	if f.Bytes > 0 {
		fmt.Fprintf(&b, ", %d bytes at byte %d", f.Bytes, f.Pos)
	}
	if f.From < f.To {
		fmt.Fprintf(&b, ", offsets %d to %d are not there", f.From, f.To-1)
	}
	if f.Detail != "" {
		fmt.Fprintf(&b, ", %s", f.Detail)
	}
	return b.String()
}

func (j *Journal) find(f Finding) { j.recovery.Findings = append(j.recovery.Findings, f) }

// candidate is a segment file as listed.
type candidate struct {
	first   uint64
	ext     string
	size    int64
	written time.Time
}

func (c candidate) name() string { return segmentName(c.first, c.ext) }

// recover fills j.segs, j.next and j.writer.seg from the folder. Nothing runs
// concurrently.
func (j *Journal) recover() error {
	begin := time.Now()
	j.scannedKeys, j.keyFiles = make(map[uint64][]keyed), make(map[uint64]bool)
	files, lowest, err := j.listSegments()
	if err != nil {
		return err
	}
	j.next = lowest
	for i, c := range files {
		limit, last := uint64(math.MaxUint64), i == len(files)-1
		if !last {
			limit = files[i+1].first
		}
		if c.ext == extSealed && !last {
			err = j.recoverSealed(c, limit)
		} else {
			err = j.recoverWhole(c, limit, last)
		}
		if err != nil {
			return err
		}
	}
	j.findMissing()
	j.straightenTimes(begin)
	j.recoverKeys()
	j.identify()
	j.recovery.Segments, j.recovery.Bytes = len(j.segs), j.total
	j.recovery.First, j.recovery.Next = j.firstLocked(), j.next
	j.recovery.Took = time.Since(begin)
	return nil
}

// listSegments returns the segment files by first offset, one per offset, and
// the least offset that new records may get as far as names tell.
func (j *Journal) listSegments() (files []candidate, lowest uint64, err error) {
	entries, err := j.fs.List(j.dir)
	if err != nil {
		return nil, 0, fmt.Errorf("list folder: %w", err)
	}
	var fixes []candidate
	for _, e := range entries {
		first, ext, ok := parseName(e.Name)
		switch {
		case isNoSegment(e):
			continue
		case !ok || e.Dir:
			j.find(Finding{Kind: Foreign, File: e.Name, Detail: "left alone"})
			continue
		}
		if ext == extPack { // the original is still there
			if err := j.removeFile(j.path(first, ext)); err != nil {
				j.find(Finding{Kind: Foreign, File: e.Name, Detail: err.Error()})
			}
			continue
		}
		if ext == extKeys {
			j.keyFiles[first] = true
			continue
		}
		lowest = max(lowest, first)
		c := candidate{first, ext, e.Size, e.ModTime}
		switch ext {
		case extFix:
			fixes = append(fixes, c)
		case extOpen, extSealed:
			files = append(files, c)
		}
	}
	for _, c := range fixes {
		if files, err = j.finishFix(files, c); err != nil {
			return nil, 0, err
		}
	}
	slices.SortFunc(files, func(a, b candidate) int {
		return cmp.Or(cmp.Compare(a.first, b.first), strings.Compare(b.ext, a.ext)) // .seg before .open
	})
	// Of two files with one name, the sealed one counts.
	for i := 1; i < len(files); i++ {
		if files[i].first == files[i-1].first {
			if err := j.quarantine(files[i], "the sealed segment of this name exists"); err != nil {
				return nil, 0, err
			}
			files = slices.Delete(files, i, i+1)
			i--
		}
	}
	return files, lowest, nil
}

// recoverSealed takes in a sealed segment by its header alone. Damage is left
// to the readers.
func (j *Journal) recoverSealed(c candidate, end uint64) error {
	s := &segment{
		first: c.first, end: end, size: c.size, written: c.written,
		retired: true, settled: true, sealed: true, named: true, synced: end,
	}
	h, err := j.readHeader(c)
	var newer *UnsupportedError
	switch {
	case errors.As(err, &newer):
		j.find(Finding{Kind: Newer, File: c.name(), Detail: newer.What})
	case err == errDamaged && c.size < segmentHeaderSize, err == nil && h.first != c.first:
		return j.quarantine(c, "its header does not fit its name or length")
	case err != nil:
		j.find(Finding{Kind: Damaged, File: c.name(), Bytes: segmentHeaderSize, Detail: fmt.Sprintf("segment header: %v", err)})
	default:
		s.id, s.prev = h.id, h.prev
		if h.packed {
			s.packed, s.written = true, time.Unix(0, h.written)
		}
	}
	j.addSegment(s)
	return nil
}

func (j *Journal) addSegment(s *segment) {
	j.segs = append(j.segs, s)
	j.total += s.size
	j.next = max(j.next, s.end)
}

func (j *Journal) readHeader(c candidate) (segmentHeader, error) {
	path := j.path(c.first, c.ext)
	f, err := j.fs.OpenFile(path, os.O_RDONLY, 0)
	if err != nil {
		return segmentHeader{}, err
	}
	defer f.Close()
	if c.size < segmentHeaderSize {
		return segmentHeader{}, errDamaged
	}
	var b [segmentHeaderSize]byte
	if _, err := f.ReadAt(b[:], 0); err != nil {
		return segmentHeader{}, err
	}
	h, err := parseSegmentHeader(b[:])
	if err == nil && h.version != formatVersion {
		return h, &UnsupportedError{File: path, What: fmt.Sprintf("format version %d", h.version)}
	}
	return h, err
}

// recoverWhole reads a segment frame by frame: the last one, and those that a
// crash left unsealed.
func (j *Journal) recoverWhole(c candidate, limit uint64, last bool) error {
	flag := os.O_RDWR
	if c.ext == extSealed {
		flag = os.O_RDONLY
	}
	f, err := j.fs.OpenFile(j.path(c.first, c.ext), flag, 0)
	if err != nil {
		return fmt.Errorf("open segment: %w", err)
	}
	kept, err := j.recoverFile(c, f, limit, last)
	if !kept {
		err = errors.Join(err, f.Close())
	}
	return err
}

// recoverFile does recoverWhole's work; kept says that f belongs to a segment
// that is written on.
func (j *Journal) recoverFile(c candidate, f disk.File, limit uint64, last bool) (kept bool, err error) {
	sc, err := scan(f, j.path(c.first, c.ext), c, limit, j.o.MaxKeys)
	j.recovery.Scanned += c.size
	if err != nil {
		return false, err
	}
	if c.ext == extOpen {
		sc.cutUnfinished()
		sc.forgetDamaged()
	}
	if sc.packed {
		c.written = sc.written
	}
	j.scannedKeys[c.first] = sc.keys
	s := &segment{
		first: c.first, id: sc.id, prev: sc.prev, size: c.size, end: sc.end, written: c.written, begun: sc.created,
		minTime: sc.min, maxTime: sc.max, timed: sc.end > c.first, marks: sc.marks,
		named: true, synced: sc.end,
	}
	if sc.newer != "" {
		j.find(Finding{Kind: Newer, File: c.name(), Detail: sc.newer})
	}
	for _, g := range sc.jumps {
		j.find(Finding{Kind: Missing, File: c.name(), From: g.From, To: g.To})
	}
	switch {
	case len(sc.spans) == 0 && (c.ext == extSealed || sc.broken() || !last):
		return false, j.leaveOut(c, &sc, last)
	case c.ext == extSealed:
		s.retired, s.settled, s.sealed, s.packed = true, true, true, sc.packed
		j.findDamage(c, &sc)
		j.addSegment(s)
		return false, nil
	case sc.broken():
		return false, j.repair(c, f, &sc, s)
	}
	return j.writeOn(c, f, &sc, s, last)
}

// leaveOut removes or quarantines a segment of which there is nothing to keep. The
// name still holds the offset, see listSegments.
func (j *Journal) leaveOut(c candidate, sc *scanned, last bool) error {
	if c.size > segmentHeaderSize && !sc.zero {
		return j.quarantine(c, "it holds no whole frame")
	}
	j.find(Finding{Kind: EmptyRemoved, File: c.name(), Bytes: c.size})
	if last && c.ext == extOpen && c.first == j.next { // perhaps no other name holds the offset
		var err error
		if j.writer.seg, err = j.createSegment(c.first); err == nil {
			return nil
		}
	}
	if err := j.removeFile(j.path(c.first, c.ext)); err != nil {
		return fmt.Errorf("remove empty segment: %w", err)
	}
	return nil
}

// writeOn cuts the torn tail of an open segment and makes it the one that is written
// to if it is the last and may be, or else has it sealed. kept says that f belongs
// to it from now on.
func (j *Journal) writeOn(c candidate, f disk.File, sc *scanned, s *segment, last bool) (kept bool, err error) {
	good := sc.goodEnd()
	if good < c.size {
		j.find(Finding{Kind: TornTail, File: c.name(), Pos: good, Bytes: c.size - good})
		if err := f.Truncate(good); err != nil {
			return false, fmt.Errorf("cut torn tail: %w", err)
		}
		s.size = good
		if s.end == s.first {
			if err := j.renewHeader(s, f, sc.created); err != nil {
				return false, fmt.Errorf("cut torn tail: %w", err)
			}
		}
	}
	// Whether it is durable, and its name, is for the next fsync: behind a disk
	// that is busy one would take longer than all the rest.
	s.synced, s.named = s.first, false
	j.addSegment(s)
	s.file = f
	j.syncer.dirty = append(j.syncer.dirty, s)
	if last && s.size < j.o.SegmentBytes && (good == c.size || s.end == s.first) {
		j.writer.seg = s
		return true, nil
	}
	// The keeper seals it. What was cut is not written over: without an fsync a
	// power cut might leave a mixture of both.
	s.retired = true
	return true, nil
}

// renewHeader gives a segment without records another id, by which frames that
// were cut from it are known.
func (j *Journal) renewHeader(s *segment, f disk.File, created time.Time) (err error) {
	if s.id, err = newSegmentID(); err != nil {
		return err
	}
	h := segmentHeader{version: formatVersion, id: s.id, first: s.first, created: created.UnixNano(), prev: s.prev}
	_, err = f.WriteAt(appendSegmentHeader(nil, h), 0)
	return err
}

// straightenTimes corrects times that have not come yet, as of a clock that was
// ahead: by them a segment would be kept for long, and those behind it with it.
func (j *Journal) straightenTimes(now time.Time) {
	limit := now
	for _, s := range slices.Backward(j.segs) {
		if s.written.After(now) {
			s.written = limit
		}
		if s.begun.After(now) {
			s.begun = limit
		}
		limit = s.written
	}
}

// findMissing compares neighbours: a segment names the one before it.
func (j *Journal) findMissing() {
	for i := 1; i < len(j.segs); i++ {
		s, before := j.segs[i], j.segs[i-1]
		from := max(before.end, before.first)
		if before.end == s.first && s.prev > before.first && s.prev < s.first {
			from = s.prev
			before.end = s.prev // readers then report the gap as a missing segment
		}
		if from < s.first {
			j.find(Finding{Kind: Missing, File: segmentName(s.first, ""), From: from, To: s.first, Detail: "before this segment"})
		}
	}
}
