package journal

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"slices"
	"time"

	"github.com/rollway/rollway/collector/columns"
	"github.com/rollway/rollway/collector/filters"
	"github.com/rollway/rollway/internal/disk"
	"github.com/rollway/rollway/internal/recordlog"
)

const (
	// turn is the least time of work between two pauses: about that of a mebibyte.
	turn = 5 * time.Millisecond
	// mostWaiting is how many full segments may wait to be packed before that is done without pauses.
	mostWaiting = 4
)

// errNotSmaller leaves a segment as it is.
var errNotSmaller = errors.New("packed, it would not be smaller")

// packAll packs sealed segments, the oldest first, until stop is closed.
func (j *Journal) packAll() {
	for {
		for !j.folderMoved() {
			s, due := j.nextUnpacked(), map[string]bool(nil)
			work, what := j.pack, "pack segment"
			if s == nil {
				s, due = j.nextDue(time.Now())
				work, what = func(s *segment) error { return j.drop(s, due) }, "delete a tenant's blocks of segment"
			}
			if s == nil {
				if s = j.nextAhead(); s == nil || j.packAhead(s) != nil {
					break
				}
				continue
			}
			err := work(s)
			if errors.Is(err, os.ErrClosed) {
				return
			}
			j.mu.Lock()
			if due == nil {
				s.unpackable = err != nil
			} else if err != nil {
				s.droppable = time.Now().Add(dropRetry)
			}
			if err != nil && !errors.Is(err, errNotSmaller) && !s.gone {
				j.noteLocked(fmt.Errorf("%s %s, which stays as it is: %w", what, segmentName(s.first, ""), err))
			}
			j.mu.Unlock()
			wake(j.kick) // it may count for retention now
		}
		select {
		case <-j.kickPacker:
		case <-j.stop:
			return
		}
	}
}

func (j *Journal) nextUnpacked() *segment {
	return j.oldest(func(s *segment) bool { return s.sealed && s.settled && !s.packed && !s.unpackable })
}

// pack replaces the file of a sealed segment by a copy with packed frames.
func (j *Journal) pack(s *segment) error {
	p, err := j.packerOf(s)
	if err != nil {
		return err
	}
	err = j.replace(s, p)
	j.mu.Lock()
	defer j.mu.Unlock()
	s.ahead = nil
	return err
}

func (j *Journal) newPacker() (*packer, error) {
	enc, err := columns.NewEncoder()
	if err != nil {
		return nil, err
	}
	enc.Pause = j.o.Rest
	filter, err := filters.NewBuilder()
	if err != nil {
		return nil, err
	}
	enc.Text, enc.Value = filter.Text, filter.Value
	return &packer{enc: enc, filter: filter}, nil
}

// replace replaces the file of a sealed segment by what p makes of it, once that is durable
// and compared.
func (j *Journal) replace(s *segment, p *packer) error {
	src, err := j.fs.OpenFile(j.path(s.first, extSealed), os.O_RDWR, 0) // written to by discard only
	if err != nil {
		return err
	}
	path := j.path(s.first, extPack)
	err = j.rewrite(s, src, path, p)
	if err == nil && p.enc != nil && len(p.summary.foot.Tenants) == 0 && p.summary.pos+p.footer >= s.size+s.footer {
		err = errNotSmaller
	}
	if err == nil {
		err = j.comparePacked(p, path)
	}
	if err == nil {
		err = j.swap(s, p, path)
	}
	if err != nil {
		return errors.Join(err, j.removeFile(path), src.Close())
	}
	j.discard(src)
	for _, f := range p.found {
		j.keep(f)
	}
	return nil
}

func (j *Journal) swap(s *segment, p *packer, path string) error {
	j.deleting.Lock()
	defer j.deleting.Unlock()
	j.mu.Lock()
	gone := s.gone
	j.mu.Unlock()
	if gone {
		return errors.New("it was deleted meanwhile")
	}
	if err := j.fs.Rename(path, j.path(s.first, extSealed)); err != nil {
		return err
	}
	err := j.fs.SyncDir(j.dir) // until then either file may be found, and both are whole
	j.mu.Lock()
	defer j.mu.Unlock()
	if err != nil {
		j.noteLocked(fmt.Errorf("pack segment: %w", err))
	}
	foot := &p.summary.foot
	before, after := s.bytesLocked(), p.summary.pos+p.footer
	j.total -= before - after
	if s.packed {
		j.counters.DroppedRecords += p.dropped
	} else {
		j.counters.PackedSegments++
		j.counters.PackedFrom += uint64(before)
		j.counters.PackedTo += uint64(after)
	}
	s.size, s.footer, s.packed, s.created = p.summary.pos, p.footer, true, p.created
	s.takeMarksLocked(foot)
	j.dropCountsLocked(s)
	j.changedLocked()
	if len(p.found) == 0 && len(foot.Marks) > 0 && foot.Marks[0].First == s.first && foot.End >= s.end {
		s.minTime, s.maxTime, s.timed = foot.MinTime, foot.MaxTime, true
	}
	return nil
}

type packer struct {
	enc    *columns.Encoder // nil: blocks are copied, except those of due
	filter *filters.Builder // nil without enc: the section is copied
	passes filters.Frame    // of the last frame
	due    map[string]bool  // tenants

	seg    *segment   // that is packed ahead
	failed bool       // to pack it ahead
	pos    int64      // in its file, up to which that was done
	ahead  *aheadPart // what came out

	dst    disk.File       // nil: frames go to ahead
	h      recordlog.Frame // of the frame being gathered
	keys   []byte
	bytes  int // of lines
	blocks []packBlock
	index  map[string]int // of blocks by their tenants
	runs   recordlog.Runs
	block  int // of the last run, which is not in runs yet
	run    int // its records
	data   []byte
	dir    []recordlog.Block
	out    []byte

	created int64 // time of the file's header
	summary *summary
	footer  int64     // length of what follows the frames
	sum     uint32    // CRC-32C of all lines
	dropped uint64    // records
	damaged uint64    // records that are damaged, and copied as they are
	found   []Finding // of those
	skipped bool      // damage was copied since the last frame
}

// packBlock is the lines of one tenant in the frame being gathered.
type packBlock struct {
	tenant  string
	lines   []byte
	records int
}

// rewrite makes a new durable file of the records of s, as p has them, from the frames of
// src, in turns.
func (j *Journal) rewrite(s *segment, src disk.File, path string, p *packer) (err error) {
	var w walker
	w.Open(src, j.path(s.first, extSealed), s.size)
	sh, err := w.FileHeader(recordlog.JournalSegment)
	if err != nil {
		return err
	}
	sh.Flags |= flagPacked
	sh.Created = max(time.Now().UnixNano(), s.created+1) // by which a reader tells the files apart
	if p.dst, err = recordlog.Create(j.fs, path, sh, true); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, p.dst.Close()) }()
	p.created = sh.Created
	if p.ahead == nil {
		p.begin(sh.ID, s.first)
	} else if _, err := p.dst.WriteAt(p.ahead.file[segmentHeaderSize:], segmentHeaderSize); err != nil {
		return err
	} else {
		w.Pos = p.pos
	}
	damaged := (func(from, to int64) error)(nil)
	if p.enc == nil {
		damaged = func(from, to int64) error { return p.copyDamaged(&w, from, to) }
	}
	rest := j.takeTurns()
	if err := w.each(func(h *recordlog.Frame, frame []byte) error {
		if h.First >= s.end { // a write error that was rolled back
			return io.EOF
		}
		if err := rest(); err != nil {
			return err
		}
		return p.addFrame(h, frame, &w.unpacked)
	}, damaged); err != nil {
		return err
	}
	if err := p.flush(); err != nil {
		return err
	}
	p.countSkipped(s.end)
	j.mu.Lock()
	keys := j.keys.between(s.first, s.end)
	j.mu.Unlock()
	var section []byte
	if p.filter != nil {
		section = p.filter.Append(nil)
	} else if section, err = filtersOf(src, w.Path()); err != nil {
		return err
	}
	end := p.summary.end(keys, s.written, section)
	if _, err := p.dst.WriteAt(end, p.summary.pos); err != nil {
		return err
	}
	p.footer = int64(len(end))
	return p.dst.Sync()
}

// begin makes p ready for the first frame of a segment.
func (p *packer) begin(id, first uint64) {
	p.index, p.h.ID, p.summary = make(map[string]int), id, newSummary(id, first)
	p.summary.packed = true
}

// addFrame adds the frame h, all whose bytes are frame, as add or copy does.
func (p *packer) addFrame(h *recordlog.Frame, frame []byte, buf *lineBuffer) error {
	if what := h.Unknown(); what != "" {
		return fmt.Errorf("a frame has %s", what)
	}
	add := p.add
	if p.enc == nil {
		add = p.copy
	}
	return add(h, frame[frameHeaderSize:], buf)
}

// takeTurns returns a function to be called between the steps of a work. It pauses now and
// then for as long as they took, so that the work takes at most half of a processor, unless too
// many segments wait.
func (j *Journal) takeTurns() func() error {
	begin := time.Now()
	return func() error {
		took := time.Since(begin)
		if took < turn {
			return nil
		}
		j.mu.Lock()
		if waiting, _ := j.waitingLocked(); waiting > mostWaiting {
			took = 0
		}
		j.mu.Unlock()
		err := j.pause(took)
		begin = time.Now()
		return err
	}
}

// pause waits for d, or returns os.ErrClosed when the journal is closing.
func (j *Journal) pause(d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-j.stop:
		return os.ErrClosed
	}
}

// add adds the frame h, which has the checked body; buf is memory for its lines. A batch
// that continues in the next frame begins a packed frame.
func (p *packer) add(h *recordlog.Frame, body []byte, buf *lineBuffer) error {
	lines, err := linesOf(h, body, buf)
	if err != nil {
		return err
	}
	keys, goesOn := body[:h.KeysLen], false
	for _, k := range parseKeys(nil, h, keys) {
		goesOn = goesOn || k.first+uint64(k.records) > h.End()
	}
	if p.h.Records > 0 && (goesOn || h.First != p.h.End() || p.bytes+len(lines) > mostPacked || p.h.Keys+h.Keys > math.MaxUint16) {
		if err := p.flush(); err != nil {
			return err
		}
	}
	if p.h.Records == 0 {
		p.h.First, p.h.MinTime, p.h.MaxTime = h.First, h.MinTime, h.MaxTime
	}
	p.keys = append(p.keys, keys...)
	p.sum = recordlog.Extend(p.sum, lines)
	p.bytes += len(lines)
	p.h.Keys += h.Keys
	p.h.Records += h.Records
	p.h.MinTime, p.h.MaxTime = min(p.h.MinTime, h.MinTime), max(p.h.MaxTime, h.MaxTime)
	p.split(lines, h.Records)
	return nil
}

// split adds lines to the blocks of their tenants.
func (p *packer) split(lines []byte, records int) {
	if !mayHaveTenant(lines) {
		p.put(nil, lines, records)
		return
	}
	start, n := 0, 0 // of the lines of tenant before end
	var tenant []byte
	for end := 0; end < len(lines); n++ {
		next := end + lineEnd(lines[end:])
		if t := TenantOf(lines[end:next]); n == 0 {
			tenant = t
		} else if !bytes.Equal(t, tenant) {
			p.put(tenant, lines[start:end], n)
			tenant, start, n = t, end, 0
		}
		end = next
	}
	p.put(tenant, lines[start:], n)
}

// put adds the n lines of a tenant to its block.
func (p *packer) put(tenant, lines []byte, n int) {
	i, ok := p.index[string(tenant)]
	if !ok {
		i = len(p.blocks)
		p.blocks = slices.Grow(p.blocks, 1)[:i+1]
		p.blocks[i] = packBlock{tenant: string(tenant), lines: p.blocks[i].lines[:0]}
		p.index[p.blocks[i].tenant] = i
	}
	b := &p.blocks[i]
	b.lines = append(b.lines, lines...)
	b.records += n
	if i != p.block && p.run > 0 {
		p.runs, p.run = p.runs.Append(p.block, p.run), 0
	}
	p.block = i
	p.run += n
}

// flush writes the gathered frame, if there is one.
func (p *packer) flush() error {
	if p.h.Records == 0 {
		return nil
	}
	p.out = append(append(p.out[:0], make([]byte, frameHeaderSize)...), p.keys...)
	p.h.Codec, p.h.KeysLen, p.h.Unpacked = recordlog.CodecColumns, len(p.keys), p.bytes
	if len(p.blocks) == 1 && p.blocks[0].tenant == "" {
		p.out = p.encode(p.out, p.blocks[0].lines)
	} else {
		p.h.Flags = recordlog.FlagBlocks
		p.data, p.dir = p.data[:0], p.dir[:0]
		for _, b := range p.blocks {
			start := len(p.data)
			p.data = p.encode(p.data, b.lines)
			packed := p.data[start:]
			p.dir = append(p.dir, recordlog.Block{Tenant: b.tenant, Records: b.records, Unpacked: len(b.lines), Len: len(packed), Sum: recordlog.Checksum(packed)})
		}
		p.out = append(recordlog.AppendBlocks(p.out, p.dir, p.runs.Append(p.block, p.run)), p.data...)
	}
	if len(p.out)-frameHeaderSize > recordlog.MaxBody {
		return errNotSmaller
	}
	p.passes = p.filter.End(p.h.First)
	p.h.Put(p.out)
	if err := p.write(); err != nil {
		return err
	}
	for i, b := range p.blocks {
		p.summary.lines(b.lines, b.records, p.h.MinTime)
		size := p.h.BodyLen - p.h.KeysLen
		if p.h.Flags != 0 {
			size = p.dir[i].Len
		}
		p.summary.tenant(b.tenant, b.records, size)
	}
	clear(p.index)
	if len(p.blocks) > 8 {
		p.blocks = nil // each may have had a window's lines
	}
	p.h, p.keys, p.blocks, p.runs = recordlog.Frame{ID: p.h.ID}, p.keys[:0], p.blocks[:0], p.runs[:0]
	p.bytes, p.block, p.run = 0, 0, 0
	return nil
}

// encode appends a block with the lines to dst.
func (p *packer) encode(dst, lines []byte) []byte {
	p.filter.Lines(len(lines))
	return p.enc.Append(dst, lines)
}

// write writes the frame h, which is in out.
func (p *packer) write() error {
	if a := p.ahead; p.dst == nil {
		a = &aheadPart{append(a.file, p.out...), p.h.End(), a.marks, append(a.filters, p.passes), a.held + len(p.out) + p.passes.Bytes()} // appends after what readers of a see
		a.marks.add(p.h.First, p.summary.pos, 1)
		p.ahead = a
	} else if _, err := p.dst.WriteAt(p.out, p.summary.pos); err != nil {
		return err
	}
	p.summary.frame(&p.h, p.out)
	return nil
}

// comparePacked reads the copy back before it becomes the only one.
func (j *Journal) comparePacked(p *packer, path string) error {
	f, err := j.fs.OpenFile(path, os.O_RDONLY, 0)
	if err != nil {
		return err
	}
	defer f.Close() // only read from
	sum, records, rest := uint32(0), uint64(0), j.takeTurns()
	if _, _, err := eachIn(f, path, recordlog.JournalSegment, p.summary.foot.First, j.o.Rest, func(f Frame) error {
		records += uint64(f.Records)
		sum = recordlog.Extend(sum, f.Lines)
		return rest()
	}); err != nil {
		return err
	}
	if p.enc != nil && sum != p.sum || records != p.summary.foot.Records-p.damaged {
		return errors.New("the copy is not the same")
	}
	return nil
}
