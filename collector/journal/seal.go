package journal

import (
	"bytes"
	"errors"
	"fmt"
	"time"

	"github.com/rollway/rollway/internal/disk"
	"github.com/rollway/rollway/internal/levels"
	"github.com/rollway/rollway/internal/recordlog"
)

const (
	// markBytes is how many bytes of frames one mark of a footer is for.
	markBytes = 256 << 10
	// maxTenants bounds the list of tenants of a footer.
	maxTenants = 4 << 10
	// minute is the first step of the counts.
	minute = int64(time.Minute)
	// maxCounts bounds the counts of a footer: beyond, the step is doubled.
	maxCounts = 16 << 10
	// maxRecent is how many levels of a minute wait to be added to the counts.
	maxRecent = 8
)

type summary struct {
	foot    recordlog.Footer
	counts  map[recordlog.Count]uint32 // by step and level
	tenants map[string]int             // indexes in foot.Tenants
	sum     uint32                     // of the frames
	pos     int64                      // their end
	packed  bool                       // each frame has a mark

	// the line before: the next one mostly has the same minute, and a level that was there in it
	prefix [len(prefixOf)]byte // 0: it has no canonical time
	minute int64               // its time
	recent []levelCount
}

// levelCount is lines of the same minute that are not in counts yet.
type levelCount struct {
	level string
	count recordlog.Count
	n     uint32
}

// A canonical line begins with its time, prefixOf up to the minute, and its level.
const (
	prefixOf = `{"time":"2006-01-02T15:04`
	restOf   = `:05.000000000Z","level":"`
)

func newSummary(id, first uint64) *summary {
	s := &summary{counts: make(map[recordlog.Count]uint32), tenants: make(map[string]int), pos: segmentHeaderSize}
	s.foot = recordlog.Footer{ID: id, First: first, End: first, Step: minute}
	return s
}

// frame adds the frame h at s.pos, all whose bytes are frame.
func (s *summary) frame(h *recordlog.Frame, frame []byte) {
	f := &s.foot
	n := len(f.Marks)
	if n == 0 || s.pos-f.Marks[n-1].Pos >= markBytes || s.packed {
		f.Marks = append(f.Marks, recordlog.Mark{First: h.First, Pos: s.pos, MinTime: h.MinTime, MaxTime: h.MaxTime})
	}
	m := &f.Marks[len(f.Marks)-1]
	m.Records += uint32(h.Records)
	m.MinTime, m.MaxTime = min(m.MinTime, h.MinTime), max(m.MaxTime, h.MaxTime)
	if n == 0 {
		f.MinTime, f.MaxTime = h.MinTime, h.MaxTime
	}
	f.MinTime, f.MaxTime = min(f.MinTime, h.MinTime), max(f.MaxTime, h.MaxTime)
	f.End = h.End()
	s.sum = recordlog.Extend(s.sum, frame)
	s.pos += h.Size()
}

// lines adds lines of a frame; at is its least time.
func (s *summary) lines(lines []byte, records int, at int64) {
	s.foot.Records += uint64(records)
	s.foot.LineBytes += uint64(len(lines))
	for len(lines) > 0 {
		end := lineEnd(lines)
		s.count(lines[:end], at)
		lines = lines[end:]
	}
}

// tenant adds a block to the list of tenants.
func (s *summary) tenant(name string, records, bytes int) {
	f := &s.foot
	i, ok := s.tenants[name]
	if !ok {
		if i = len(f.Tenants); i == maxTenants {
			return
		}
		s.tenants[name] = i
		f.Tenants = append(f.Tenants, recordlog.Tenant{Name: name})
	}
	f.Tenants[i].Records += uint64(records)
	f.Tenants[i].Bytes += int64(bytes)
}

// count counts one line; at is its time if it has none.
func (s *summary) count(line []byte, at int64) {
	known := len(line) > len(prefixOf) && [len(prefixOf)]byte(line) == s.prefix
	level := levelText(line)
	for i := range s.recent {
		if r := &s.recent[i]; known && r.level == string(level) {
			r.n++
			return
		}
	}
	if !known || len(s.recent) == maxRecent {
		s.flush()
	}
	if !known {
		s.prefix, s.minute = [len(prefixOf)]byte{}, at
		if len(line) > len(prefixOf) {
			if t, err := time.Parse(prefixOf, string(line[:len(prefixOf)])); err == nil && t.Year() > 1677 && t.Year() < 2262 {
				s.prefix, s.minute = [len(prefixOf)]byte(line), t.UnixNano()
			}
		}
	}
	r := levelCount{string(level), recordlog.Count{Step: floorDiv(s.minute, s.foot.Step), Level: recordlog.NoLevel}, 1}
	var buf [16]byte
	if l, ok := levels.Parse(level); ok && s.prefix[0] != 0 && bytes.Equal(levels.Append(buf[:0], l), level) {
		r.count.Level = int32(l)
	}
	s.recent = append(s.recent, r)
}

// levelText returns the level of a line that is canonical up to it, or nothing. The part that
// prefixOf is for is not looked at.
func levelText(line []byte) []byte {
	if len(line) < len(prefixOf)+len(restOf) {
		return nil
	}
	line = line[len(prefixOf):]
	rest := [len(restOf)]byte(line)
	const second, fraction, end = len(":"), len(":05"), len(":05.000000000")
	if rest[0] != ':' || rest[second] > '5' || rest[fraction] != '.' || string(rest[end:]) != restOf[end:] {
		return nil
	}
	rest[fraction] = '0'
	for _, c := range rest[second:end] {
		if c-'0' > 9 {
			return nil
		}
	}
	line = line[len(restOf):]
	for i, c := range line[:min(len(line), 12)] {
		if c == '"' {
			return line[:i]
		}
	}
	return nil
}

// flush adds the recent lines to counts.
func (s *summary) flush() {
	for _, r := range s.recent {
		s.counts[r.count] += r.n
	}
	s.recent = s.recent[:0]
	for len(s.counts) > maxCounts {
		s.foot.Step *= 2
		wider := make(map[recordlog.Count]uint32, len(s.counts))
		for c, n := range s.counts {
			c.Step = floorDiv(c.Step, 2)
			wider[c] += n
		}
		s.counts = wider
	}
}

func floorDiv(a, b int64) int64 {
	q := a / b
	if a%b < 0 {
		q--
	}
	return q
}

// end returns what follows the frames: the sections of keys and filters, and the footer.
func (s *summary) end(keys []keyed, written time.Time, filters []byte) []byte {
	s.flush()
	f := &s.foot
	if len(f.Tenants) == 1 && f.Tenants[0].Name == "" && f.Records > 0 {
		f.Tenants = nil
	}
	var section []byte
	for i := range keys {
		section = keys[i].append(section)
	}
	f.Sealed, f.Written = time.Now().UnixNano(), written.UnixNano()
	f.Sections = []recordlog.Section{
		{Kind: recordlog.FramesSection, Sum: s.sum, Pos: segmentHeaderSize, Len: s.pos - segmentHeaderSize},
		{Kind: recordlog.KeysSection, Sum: recordlog.Checksum(section), Pos: s.pos, Len: int64(len(section))},
	}
	if len(filters) > 0 {
		f.Sections = append(f.Sections, recordlog.Section{
			Kind: recordlog.FiltersSection, Sum: recordlog.Checksum(filters), Pos: s.pos + int64(len(section)), Len: int64(len(filters)),
		})
		section = append(section, filters...)
	}
	f.Counts = listCounts(s.counts)
	return f.Append(section)
}

// maxFooter bounds the length of what end returns.
func maxFooter(records uint64, keys int, frames int64) int64 {
	marks := frames/markBytes + 1
	return recordlog.FooterSize(2, int(marks), int(min(records, maxCounts))) + keyEntrySize*int64(keys)
}

func readKeys(f disk.File, foot *recordlog.Footer) ([]keyed, error) {
	s := foot.Section(recordlog.KeysSection)
	if s.Len > keyEntrySize*int64(maxKeys) {
		return nil, recordlog.ErrDamaged
	}
	b := make([]byte, s.Len)
	if n, err := f.ReadAt(b, s.Pos); n < len(b) {
		return nil, err
	}
	if s.Len%keyEntrySize != 0 || recordlog.Checksum(b) != s.Sum {
		return nil, recordlog.ErrDamaged
	}
	keys := make([]keyed, 0, s.Len/keyEntrySize)
	for ; len(b) > 0; b = b[keyEntrySize:] {
		keys = append(keys, parseKey(b))
	}
	return keys, nil
}

// writeFooter reads the frames of f, a segment of that size, and writes and syncs its
// footer, whose length it returns. It does so in turns until the journal is closing.
func (j *Journal) writeFooter(f disk.File, path string, id, first uint64, size int64, keys []keyed, written time.Time) (n int64, err error) {
	var w walker
	w.Open(f, path, size)
	w.Expect(id)
	s, rest := newSummary(id, first), j.takeTurns()
	if err := s.read(&w, func() { _ = rest() }); err != nil { // a journal that is closing does not wait
		return 0, err
	}
	end := s.end(keys, written, nil)
	if _, err := f.WriteAt(end, size); err != nil {
		return 0, err
	}
	return int64(len(end)), f.Sync()
}

// read adds the frames of w up to its limit. It calls rest before each.
func (s *summary) read(w *walker, rest func()) error {
	return w.each(func(h *recordlog.Frame, frame []byte) error {
		rest()
		if what := h.Unknown(); what != "" {
			return fmt.Errorf("a frame has %s", what)
		}
		lines, err := linesOf(h, frame[frameHeaderSize:], &w.unpacked)
		if err == nil {
			s.frame(h, frame)
			s.lines(lines, h.Records, h.MinTime)
		}
		return err
	}, nil)
}

// settleAll seals every retired segment: fsync, footer, fsync, rename, fsync of the folder.
// One that cannot be synced or cut keeps its name, so that the next Open checks it.
func (j *Journal) settleAll() {
	for {
		s := j.nextRetired()
		if s == nil {
			return
		}
		if err := j.settle(s); err != nil {
			j.note(fmt.Errorf("seal segment %s: %w", segmentName(s.first, ""), err))
		}
		wake(j.kickPacker)
	}
}

func (j *Journal) nextRetired() *segment {
	return j.oldest(func(s *segment) bool { return s.retired && !s.settled && s.away == nil })
}

func (j *Journal) settle(s *segment) error {
	j.mu.Lock()
	w := j.waiterLocked()
	err := j.syncToLocked(w, s, s.end)
	j.releaseLocked(w)
	keys, uncut, size, written := j.keys.between(s.first, s.end), s.uncut, s.size, s.written
	taken := s.away != nil
	s.busy = s.busy || !taken
	j.mu.Unlock()
	if taken {
		return err // Check saves it first
	}
	renamed, footer := false, int64(0)
	if err == nil && uncut { // a sealed segment is believed to its end
		if err = s.file.Truncate(size); err == nil {
			err = s.file.Sync()
		}
	}
	if err == nil {
		if footer, err = j.writeFooter(s.file, j.path(s.first, extOpen), s.id, s.first, size, keys, written); err != nil {
			j.note(fmt.Errorf("segment %s is sealed without a footer: %w", segmentName(s.first, ""), err))
			if recordlog.IsDamage(err) { // others have written to it, or the disk fails
				j.keep(Finding{Kind: recordlog.Damaged, File: segmentName(s.first, extSealed), Detail: "its frames, as it was sealed"})
			}
			footer, err = 0, s.file.Truncate(size)
		}
	}
	if err == nil {
		if _, away := (&syncTask{file: s.file, size: size}).inPlace(nil); away != nil { // the footer has compared all frames
			j.mu.Lock()
			defer j.mu.Unlock()
			s.busy = false
			s.takenLocked(away)
			j.lost = s.away
			return s.away
		}
	}
	if err == nil {
		err = j.fs.Rename(j.path(s.first, extOpen), j.path(s.first, extSealed))
		renamed = err == nil
		if renamed {
			err = j.fs.SyncDir(j.dir)
		}
	}
	err = errors.Join(err, s.file.Close())
	j.mu.Lock()
	defer j.mu.Unlock()
	s.file, s.busy = nil, false
	s.pieces = nil
	s.settled, s.sealed, s.footer, s.keyless = true, renamed, footer, footer > 0 && len(keys) == 0
	j.changedLocked()
	j.total += footer
	return err
}
