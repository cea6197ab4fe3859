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
	"github.com/rollway/rollway/internal/recordlog"
)

// Recovery is what Open found and did.
type Recovery struct {
	Segments int           // kept
	Bytes    int64         // in them
	First    uint64        // offset of the oldest record
	Next     uint64        // offset of the next record
	Scanned  int64         // bytes that were read frame by frame
	Took     time.Duration // until appends were possible
	Findings []Finding     // in the order of the files
}

func (j *Journal) find(f Finding) { j.recovery.Findings = append(j.recovery.Findings, f) }

func (j *Journal) findAll(list []Finding) { j.recovery.Findings = append(j.recovery.Findings, list...) }

// recover fills j.segs, j.next and j.writer.seg from the folder. Nothing runs concurrently.
func (j *Journal) recover() error {
	begin := time.Now()
	j.scannedKeys = make(map[uint64][]keyed)
	files, lowest, err := j.listSegments()
	if err != nil {
		return err
	}
	h := j.recoverHistory()
	m, ends, err := j.recoverManifest(len(files), h)
	if err != nil {
		return err
	}
	unknown := h == nil && ends.next == 0 // how far the offsets went
	had := j.identify(h, unknown && len(files) == 0)
	if files, err = j.setAsideCopies(files, m); err != nil {
		return err
	}
	j.next = lowest
	for i, c := range files {
		limit, last := uint64(math.MaxUint64), i == len(files)-1
		if !last {
			limit = files[i+1].first
		}
		if c.ext == extSealed && !last {
			err = j.recoverSealed(c, limit, m.find(c.first))
		} else {
			err = j.recoverWhole(c, limit, last, m.find(c.first))
		}
		if err != nil {
			return err
		}
	}
	j.findMissing()
	// A new journal writes both before it has a record.
	if err := j.compare(m, ends, had && unknown); err != nil {
		return err
	}
	j.straightenTimes(begin)
	j.recoverKeys()
	for _, f := range j.recovery.Findings {
		j.keepLocked(f, begin)
	}
	j.recovery.Segments, j.recovery.Bytes = len(j.segs), j.total
	j.recovery.First, j.recovery.Next = j.firstLocked(), j.next
	j.recovery.Took = time.Since(begin)
	return nil
}

// listSegments returns the segment files by first offset, one per offset, and the least
// possible next offset as far as names tell.
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
		case ok && e.Refused != nil:
			lowest = max(lowest, first)
			j.find(Finding{Kind: recordlog.Foreign, File: e.Name, Detail: "left alone: " + e.Refused.Error()})
			continue
		case !ok || e.Dir:
			j.find(Finding{Kind: recordlog.Foreign, File: e.Name, Detail: "left alone"})
			continue
		}
		if ext == extPack { // the original is still there
			if err := j.removeFile(j.path(first, ext)); err != nil {
				j.find(Finding{Kind: recordlog.Foreign, File: e.Name, Detail: err.Error()})
			}
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

// setAsideCopies sets aside files that the manifest does not list and whose header has
// another name: they would end the segments before them.
func (j *Journal) setAsideCopies(files []candidate, m *manifest) (left []candidate, err error) {
	for _, c := range files {
		if m.find(c.first) == nil {
			path := j.path(c.first, c.ext)
			f, err := j.fs.OpenFile(path, os.O_RDONLY, 0)
			if err != nil { // what adds it reports that
				left = append(left, c)
				continue
			}
			h, err := recordlog.ReadHeader(f, recordlog.JournalSegment, path)
			f.Close() // only read from
			if err == nil && h.First != c.first {
				if err := j.quarantine(c, "its header does not fit its name"); err != nil {
					return nil, err
				}
				continue
			}
		}
		left = append(left, c)
	}
	return left, nil
}

// recoverSealed adds a sealed segment by its header and the manifest, or its footer.
// Readers find damage.
func (j *Journal) recoverSealed(c candidate, end uint64, listed *entry) error {
	s := &segment{
		first: c.first, end: end, size: c.size, written: c.written,
		retired: true, settled: true, sealed: true, named: true, synced: end,
	}
	path := j.path(c.first, c.ext)
	f, err := j.fs.OpenFile(path, os.O_RDONLY, 0)
	if err != nil {
		j.find(Finding{Kind: recordlog.Damaged, File: c.name(), Bytes: segmentHeaderSize, Detail: fmt.Sprintf("segment header: %v", err)})
		j.addSegment(s)
		return nil
	}
	defer f.Close() // only read from
	h, err := recordlog.ReadHeader(f, recordlog.JournalSegment, path)
	var newer *UnsupportedError
	switch {
	case errors.As(err, &newer):
		j.find(Finding{Kind: recordlog.Newer, File: c.name(), Detail: newer.What})
		j.addSegment(s)
		return nil
	case err == recordlog.ErrTorn, err == nil && h.First != c.first:
		return j.quarantine(c, "its header does not fit its name or length")
	case err != nil:
		j.find(Finding{Kind: recordlog.Damaged, File: c.name(), Bytes: segmentHeaderSize, Detail: fmt.Sprintf("segment header: %v", err)})
	default:
		s.id, s.prev, s.packed, s.created = h.ID, h.Prev, h.Flags&flagPacked != 0, h.Created
	}
	if listed != nil && err == nil && listed.ID != h.ID {
		j.find(Finding{Kind: recordlog.Swapped, File: c.name()})
		listed = nil
	}
	if listed != nil && err == nil && listed.Size == c.size && listed.State != stateOpen && listed.End <= end {
		s.takeEntry(listed)
	} else if foot, err := recordlog.ReadFooter(f, path, c.size); err == nil && foot.First == c.first && foot.End <= end && (s.id == 0 || foot.ID == s.id) {
		s.take(foot)
	} else {
		j.find(sizeFinding(c, listed, s.packed))
	}
	j.addSegment(s)
	return nil
}

// sizeFinding is of a sealed segment without a sound footer.
func sizeFinding(c candidate, listed *entry, packed bool) Finding {
	f := Finding{Kind: recordlog.NoFooter, File: c.name()}
	if listed != nil && listed.State != stateOpen && packed == (listed.State == statePacked) && listed.Size != c.size {
		if f.Kind, f.Pos, f.Bytes = recordlog.Shorter, c.size, listed.Size-c.size; f.Bytes < 0 {
			f.Kind, f.Pos, f.Bytes = recordlog.Longer, listed.Size, -f.Bytes
		}
	}
	return f
}

// take fills s from its footer.
func (s *segment) take(foot *recordlog.Footer) {
	s.id, s.end = foot.ID, foot.End
	s.size, s.footer = foot.FramesEnd(), s.size-foot.FramesEnd()
	s.minTime, s.maxTime, s.timed = foot.MinTime, foot.MaxTime, foot.Records > 0
	s.written = time.Unix(0, foot.Written)
	s.keyless = foot.Section(recordlog.KeysSection).Len == 0
	s.takeMarksLocked(foot)
}

func (s *segment) takeMarksLocked(foot *recordlog.Footer) {
	step := int64(markBytes)
	if s.packed {
		s.takeTenantsLocked(foot)
		step = 1 // each frame has packBytes of lines, however few bytes it has
	}
	s.marks = nil
	for _, m := range foot.Marks {
		s.marks.add(m.First, m.Pos, step)
	}
}

func (j *Journal) addSegment(s *segment) {
	j.segs = append(j.segs, s)
	j.total += s.bytesLocked()
	j.next = max(j.next, s.end)
}

// recoverWhole reads a segment frame by frame: the last one, and those that a crash left
// unsealed.
func (j *Journal) recoverWhole(c candidate, limit uint64, last bool, listed *entry) error {
	flag := os.O_RDWR
	if c.ext == extSealed {
		flag = os.O_RDONLY
	}
	f, err := j.fs.OpenFile(j.path(c.first, c.ext), flag, 0)
	if err != nil {
		return fmt.Errorf("open segment: %w", err)
	}
	kept := false
	if err = recordlog.LockFile(f, j.path(c.first, c.ext)); err == nil {
		kept, err = j.recoverFile(c, f, limit, last, listed)
	}
	if !kept {
		err = errors.Join(err, f.Close())
	}
	return err
}

// recoverFile does recoverWhole's work; kept: the caller does not close f.
func (j *Journal) recoverFile(c candidate, f disk.File, limit uint64, last bool, listed *entry) (kept bool, err error) {
	sc, err := scan(f, j.path(c.first, c.ext), c, limit, j.o.MaxKeys)
	j.recovery.Scanned += c.size
	if err != nil {
		return false, err
	}
	if listed != nil && sc.Sound && listed.ID != sc.Header.ID && listed.End > listed.First {
		j.find(Finding{Kind: recordlog.Swapped, File: c.name()})
	}
	if c.ext == extOpen {
		sc.cutUnfinished()
	}
	sc.forgetDamaged()
	j.scannedKeys[c.first] = sc.keys
	s := &segment{
		first: c.first, id: sc.ID, prev: sc.Header.Prev, size: c.size, end: sc.End, written: c.written, begun: sc.created,
		minTime: sc.MinTime, maxTime: sc.MaxTime, timed: sc.End > c.first, marks: sc.marks, created: sc.Header.Created,
		named: true, synced: sc.End,
	}
	switch {
	case len(sc.Spans) == 0 && (c.ext == extSealed || sc.Broken() || !last):
		return true, errors.Join(f.Close(), j.leaveOut(c, &sc, last))
	case c.ext == extSealed:
		s.retired, s.settled, s.sealed, s.packed = true, true, true, sc.packed()
		if sc.Footer != nil {
			s.take(sc.Footer)
		} else {
			j.find(sizeFinding(c, listed, s.packed))
		}
		j.findAll(sc.Findings(c.name(), false))
		j.addSegment(s)
		return false, nil
	case sc.Broken():
		return false, j.repair(c, f, &sc, s)
	}
	return j.writeOn(c, f, &sc, s, last)
}

// leaveOut removes or quarantines a segment with nothing to keep. Its name still counts,
// see listSegments.
func (j *Journal) leaveOut(c candidate, sc *scanned, last bool) error {
	if c.size > segmentHeaderSize && !sc.Zero {
		return j.quarantine(c, "it holds no whole frame")
	}
	j.find(Finding{Kind: recordlog.EmptyRemoved, File: c.name(), Bytes: c.size})
	if err := j.removeFile(j.path(c.first, c.ext)); err != nil {
		return fmt.Errorf("remove empty segment: %w", err)
	}
	if last && c.ext == extOpen && c.first == j.next { // perhaps no other name holds the offset
		j.writer.seg, _ = j.createSegment(c.first) // else the next append makes it
	}
	return nil
}

// writeOn cuts the torn tail of an open segment. The last one is written on if it may be;
// others are sealed. kept: f belongs to it from now on.
func (j *Journal) writeOn(c candidate, f disk.File, sc *scanned, s *segment, last bool) (kept bool, err error) {
	good := sc.GoodEnd()
	if sc.Newer != "" {
		j.find(Finding{Kind: recordlog.Newer, File: c.name(), Detail: sc.Newer})
	}
	if good < c.size {
		if sc.Footer == nil || good != sc.Footer.FramesEnd() { // else it was about to be sealed
			j.find(Finding{Kind: recordlog.TornTail, File: c.name(), Pos: good, Bytes: c.size - good})
		}
		if err := f.Truncate(good); err != nil {
			return false, fmt.Errorf("cut torn tail: %w", err)
		}
		s.size = good
		if s.end == s.first {
			// Another id, by which frames that were cut from it are known.
			s.id = recordlog.NewID()
			h := recordlog.Header{Kind: recordlog.JournalSegment, ID: s.id, First: s.first, Created: sc.created.UnixNano(), Prev: s.prev}
			if _, err := f.WriteAt(h.Append(nil), 0); err != nil {
				return false, fmt.Errorf("cut torn tail: %w", err)
			}
		}
	}
	// The next fsync makes it and its name durable: on a busy disk an fsync here would take
	// longer than all the rest.
	s.synced, s.named = s.first, false
	j.addSegment(s)
	s.file, s.tail = f, s.tailOf(f)
	j.syncer.dirty = append(j.syncer.dirty, s)
	if last && s.size < j.o.SegmentBytes && (good == c.size || s.end == s.first) {
		j.writer.seg = s
		return true, nil
	}
	// Maintenance seals it. What was cut is not overwritten: a power cut might leave a
	// mixture.
	s.retired = true
	return true, nil
}

// straightenTimes corrects times in the future, from a clock that was ahead: retention
// would keep the segment, and those after it, for too long.
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
			j.find(Finding{Kind: recordlog.Missing, File: segmentName(s.first, ""), From: from, To: s.first, Detail: "before this segment"})
		}
	}
}
