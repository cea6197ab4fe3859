package journal

import (
	"cmp"
	"encoding/binary"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"
	"time"

	"github.com/rollway/rollway/internal/disk"
	"github.com/rollway/rollway/internal/recordlog"
)

// The manifest lists the segments, so that Open notices one that is missing or was swapped.
// Its header's first record is an offset that no record reaches. Bit 0 of the flags means
// that it is the next one: the journal was closed. docs/FORMAT.md has the same table.
//
//	Entry of a manifest, 72 bytes, in the order of offsets
//	       0     8  first offset
//	       8     8  id of the segment
//	      16     8  offset after the last record; of an open segment, when this was written
//	      24     8  least time of a record
//	      32     8  greatest time of a record
//	      40     8  time of the last append
//	      48     8  length of the file in bytes
//	      56     8  position at which the frames end
//	      64     4  state: 1 = open, 2 = sealed, 3 = packed
//	      68     4  bit 0 = the times are known, bit 1 = the key section is empty
const (
	manifestFile = "MANIFEST"
	entrySize    = recordlog.ManifestEntrySize
	flagClosed   = 1

	// maxManifest bounds what is read of a manifest.
	maxManifest = 1 << 30
)

const (
	stateOpen   = 1
	stateSealed = 2
	statePacked = 3
)

type manifest struct {
	next   uint64 // no record has this offset or one above it
	closed bool   // next is the offset of the next record
	segs   []entry
}

type entry struct {
	First, ID, End   uint64
	MinTime, MaxTime int64
	Written          int64
	Size, FramesEnd  int64
	State, Flags     uint32
}

const (
	entryTimed   = 1
	entryKeyless = 2
)

func (m *manifest) append(dst []byte) []byte {
	h := recordlog.Header{Kind: recordlog.Manifest, First: m.next, Created: time.Now().UnixNano()}
	if m.closed {
		h.Flags = flagClosed
	}
	body, _ := binary.Append(nil, binary.LittleEndian, m.segs) // entries have a fixed size
	return recordlog.AppendFile(dst, h, body)
}

// parseManifest reads a manifest. The error is as from recordlog.ParseFile.
func parseManifest(b []byte, path string) (*manifest, error) {
	h, body, err := recordlog.ParseFile(b, recordlog.Manifest, path)
	if err != nil {
		return nil, err
	}
	if len(body)%entrySize != 0 {
		return nil, recordlog.ErrDamaged
	}
	m := &manifest{next: h.First, closed: h.Flags&flagClosed != 0, segs: make([]entry, len(body)/entrySize)}
	if _, err := binary.Decode(body, binary.LittleEndian, m.segs); err != nil {
		return nil, recordlog.ErrDamaged
	}
	for i, e := range m.segs {
		if e.First >= recordlog.MaxNumber || e.End < e.First || e.FramesEnd > e.Size || i > 0 && e.First <= m.segs[i-1].First {
			return nil, recordlog.ErrDamaged
		}
	}
	return m, nil
}

// readManifest returns the manifest of the folder.
func readManifest(fsys disk.FS, dir string) (*manifest, error) {
	path := filepath.Join(dir, manifestFile)
	b, err := recordlog.ReadFile(fsys, path, maxManifest)
	if err != nil {
		return nil, err
	}
	return parseManifest(b, path)
}

// find returns the entry of the segment that begins at first, or nil.
func (m *manifest) find(first uint64) *entry {
	i, ok := slices.BinarySearchFunc(m.segs, first, func(e entry, first uint64) int { return cmp.Compare(e.First, first) })
	if !ok {
		return nil
	}
	return &m.segs[i]
}

// lost returns what is missing from next on, where the folder's segments end; the last of
// them begins at last, or -1. From and To are equal if nothing is.
func (m *manifest) lost(last int64, next uint64) Finding {
	f := Finding{Kind: recordlog.Missing, File: manifestFile, From: next, To: next}
	n := len(m.segs)
	switch {
	case m.next <= next:
	case n > 0 && int64(m.segs[n-1].First) == last && !m.closed && next < m.segs[n-1].End:
		f.File, f.To = segmentName(uint64(last), ""), m.next
		f.Detail = fmt.Sprintf("the newest segment held records up to offset %d at least, and how many more is not known", m.segs[n-1].End-1)
	case n > 0 && int64(m.segs[n-1].First) > last:
		e := m.segs[n-1]
		f.File, f.To = segmentName(e.First, ""), m.next
		f.Detail = "the newest segment is missing"
		if !m.closed {
			f.Detail = fmt.Sprintf("the newest segment is missing: it held records up to offset %d at least, and how many more is not known", max(e.End, e.First+1)-1)
		}
	case m.closed:
		f.To, f.Detail = m.next, "they were there when the journal was closed"
	}
	return f
}

// lostOldest returns what is listed before the offset first, where the folder's segments
// begin. From and To are equal if nothing is.
func (m *manifest) lostOldest(first uint64) Finding {
	f := Finding{Kind: recordlog.Missing, From: first, To: first, Detail: "the oldest"}
	for _, e := range m.segs {
		if e.First < f.From && e.End <= first && e.End > e.First {
			f.File, f.From = segmentName(e.First, ""), e.First
		}
	}
	return f
}

// reserve is how many offsets the manifest of an open journal sets aside for the open
// segment: more than it is likely to need.
func (j *Journal) reserve() uint64 { return uint64(max(j.o.SegmentBytes/16, 1<<16)) }

// changedLocked requests that the manifest is written.
func (j *Journal) changedLocked() {
	j.manifest.dirty = true
	wake(j.kick)
}

// saveManifest writes the manifest if it lists other segments than there are.
func (j *Journal) saveManifest(closed bool) {
	j.saving.Lock()
	defer j.saving.Unlock()
	j.mu.Lock()
	if !j.manifest.dirty && !closed || j.moved != nil {
		j.mu.Unlock()
		return
	}
	j.manifest.dirty = false
	h := j.historyLocked()
	m := manifest{next: j.next, closed: closed, segs: make([]entry, 0, len(j.segs))}
	if !closed {
		m.next += j.reserve()
	}
	j.manifest.refresh = j.next + j.reserve()/2
	for _, s := range j.segs {
		m.segs = append(m.segs, s.entryLocked())
	}
	h.next, h.closed = m.next, closed
	if n := len(m.segs); n > 0 {
		h.oldest, h.newest = m.segs[0].First, m.segs[n-1].First
	}
	j.mu.Unlock()
	err := j.fs.SyncDir(j.dir) // what is listed has a durable name
	if err == nil {            // the findings first: the next start does not find them by the new manifest
		err = recordlog.WriteFile(j.fs, filepath.Join(j.dir, historyFile), h.append(nil))
	}
	if err == nil {
		err = recordlog.WriteFile(j.fs, filepath.Join(j.dir, manifestFile), m.append(nil))
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	if err != nil {
		j.manifest.dirty, j.manifest.refresh = true, j.next+manifestRetry
		j.noteLocked(fmt.Errorf("write manifest: %w", err))
		return
	}
	j.manifest.open = !closed
}

// manifestRetry is how many records are appended, if no segment changes, before a manifest
// that could not be written is tried again.
const manifestRetry = 1 << 10

func (s *segment) entryLocked() entry {
	e := entry{
		First: s.first, ID: s.id, End: s.end, MinTime: s.minTime, MaxTime: s.maxTime,
		Written: s.written.UnixNano(), Size: s.bytesLocked(), FramesEnd: s.size, State: stateOpen,
	}
	switch {
	case s.packed:
		e.State = statePacked
	case s.sealed:
		e.State = stateSealed
	}
	if s.timed {
		e.Flags |= entryTimed
	}
	if s.keyless {
		e.Flags |= entryKeyless
	}
	return e
}

// takeEntry fills s, a sealed segment whose file has e's id and length, from the manifest.
func (s *segment) takeEntry(e *entry) {
	s.end, s.size, s.footer = e.End, e.FramesEnd, e.Size-e.FramesEnd
	s.minTime, s.maxTime, s.timed = e.MinTime, e.MaxTime, e.Flags&entryTimed != 0
	s.written, s.keyless = time.Unix(0, e.Written), e.Flags&entryKeyless != 0
}

// recoverManifest reads the manifest. Without a sound one the footers are used, and ends,
// which tells where the journal ended, is of the history.
func (j *Journal) recoverManifest(segments int, h *history) (m, ends *manifest, err error) {
	m, err = readManifest(j.fs, j.dir)
	if newer := (*UnsupportedError)(nil); errors.As(err, &newer) {
		return nil, nil, err
	}
	if err == nil {
		return m, m, nil
	}
	switch {
	case !errors.Is(err, fs.ErrNotExist):
		j.find(Finding{Kind: recordlog.Rebuilt, File: manifestFile, Detail: fmt.Sprintf("from the segments: %v", err)})
	case segments > 0 || h != nil && h.next > 0:
		j.find(Finding{Kind: recordlog.Rebuilt, File: manifestFile, Detail: "from the segments: it is missing"})
	}
	ends = new(manifest)
	if h != nil {
		ends = &manifest{next: h.next, closed: h.closed, segs: []entry{{First: h.newest, End: h.newest}}}
		if h.oldest < h.newest {
			ends.segs = slices.Insert(ends.segs, 0, entry{First: h.oldest, End: h.oldest + 1})
		}
	}
	return &manifest{}, ends, nil
}

// compare reports listed segments that are missing at either end; findMissing reports those
// between. No offset is given twice: if nothing tells how far they went, they leap.
func (j *Journal) compare(m, ends *manifest, leap bool) error {
	last := int64(-1)
	if n := len(j.segs); n > 0 {
		last = int64(j.segs[n-1].first)
		if f := ends.lostOldest(j.segs[0].first); f.From < f.To {
			if retains := j.o.RetainBytes > 0 || j.o.RetainAge > 0 || len(j.o.Tenants) > 0; retains && !ends.closed {
				f.Kind, f.Detail = recordlog.Deleted, "the oldest: by retention just before the process ended, or by hand"
			}
			j.find(f)
		}
	} else if len(ends.segs) > 0 {
		j.next = max(j.next, ends.segs[0].First)
	}
	f := ends.lost(last, j.next)
	for name, at := range j.otherEnds() {
		if at > f.To {
			f.File, f.To, f.Detail = name, at, "they were there when it was written"
		}
	}
	if leap {
		f.File, f.To, f.Detail = manifestFile, f.To+offsetLeap, "it is missing, and "+historyFile+" too: how many records there were is not known, so that offsets go on far behind"
	}
	if f.From == f.To {
		return nil
	}
	j.find(f)
	j.next = f.To
	j.retire()
	var err error
	j.writer.seg, err = j.createSegment(f.To) // so that a name keeps the offset too
	return err
}

// offsetLeap is more than the offsets that a few segments can have.
const offsetLeap = 1 << 32
