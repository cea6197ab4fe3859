package journal

import (
	"errors"
	"io"
	"os"

	"github.com/rollway/rollway/collector/filters"
	"github.com/rollway/rollway/internal/disk"
	"github.com/rollway/rollway/internal/recordlog"
)

// maxAhead bounds the packed frames, with their filters, that are held in memory.
const maxAhead = 16 << 20

// An aheadPart is the packed frames of the segment that is being written. Readers with
// [Reader.SetUnpack] may read them instead of the lines in its file; once it is sealed, its packed file begins
// with them. They are in memory alone, so that a crash leaves nothing that recovery would have to know.
// It is immutable: with more frames it is another one.
type aheadPart struct {
	file    []byte // a packed file up to here; its header is zeros
	end     uint64 // offset after the records
	marks   marks  // all frames
	filters []filters.Frame
	held    int // bytes in memory
}

// excluded returns the frames that do not pass t.
func (a *aheadPart) excluded(t *filters.Test) (parts []Excluded) {
	for i := range a.marks {
		if a.filters[i].Passes(t) {
			continue
		}
		to := a.end
		if i+1 < len(a.marks) {
			to = a.marks[i+1].first
		}
		parts = appendExcluded(parts, a.marks[i].first, to)
	}
	return parts
}

// nextAhead returns the segment that is being written, if it has lines for half a packed frame that were
// not looked at: the packer is woken for each whole one, and may have seen a part of it before.
func (j *Journal) nextAhead() *segment {
	j.mu.Lock()
	defer j.mu.Unlock()
	if len(j.segs) == 0 {
		return nil
	}
	s, p, pos := j.segs[len(j.segs)-1], j.packing, int64(segmentHeaderSize)
	if p != nil && p.seg != s && (p.seg.gone || p.seg.settled && !p.seg.sealed) { // it will not be packed
		p.seg.ahead, j.packing, p = nil, nil, nil
	}
	if p != nil {
		if pos = p.pos; p.seg != s || p.failed || p.ahead.held > maxAhead {
			return nil
		}
	}
	if s.retired || s.size-pos < packBytes/2 {
		return nil
	}
	return s
}

// packAhead packs what was added to s, the segment that is being written. If it cannot, s is packed as a
// whole once it is sealed. The error is that there is no packer, or that the journal is closing.
func (j *Journal) packAhead(s *segment) error {
	if j.packing == nil {
		p, err := j.newPacker()
		if err != nil {
			return err
		}
		p.begin(s.id, s.first)
		p.seg, p.pos, p.ahead = s, segmentHeaderSize, &aheadPart{file: make([]byte, segmentHeaderSize)}
		j.packing = p
	}
	p, path := j.packing, j.path(s.first, extOpen)
	f, err := j.fs.OpenFile(path, os.O_RDONLY, 0)
	if err == nil {
		err = j.packFrom(f, path, p)
		_ = f.Close() // only read from
	}
	if err == nil || errors.Is(err, os.ErrClosed) {
		return err
	}
	j.mu.Lock()
	retired := s.retired
	j.mu.Unlock()
	if retired && errors.Is(err, os.ErrNotExist) { // it was sealed meanwhile: p goes on there
		return nil
	}
	p.failed, p.ahead = true, nil
	j.showAhead(p)
	return nil
}

// packFrom packs frames of f from p.pos on, in turns, and shows each to readers.
func (j *Journal) packFrom(f disk.File, path string, p *packer) error {
	var w walker
	j.mu.Lock()
	w.Open(f, path, p.seg.size)
	j.mu.Unlock()
	w.Expect(p.seg.id)
	w.Pos = p.pos
	rest := j.takeTurns()
	return w.each(func(h *recordlog.Frame, frame []byte) error {
		if err := rest(); err != nil {
			return err
		}
		if p.ahead.held > maxAhead {
			return io.EOF
		}
		before := p.ahead
		if err := p.addFrame(h, frame, &w.unpacked); err != nil {
			return err
		}
		if p.pos = w.Pos; p.ahead != before {
			j.showAhead(p)
		}
		return nil
	}, nil)
}

func (j *Journal) showAhead(p *packer) {
	j.mu.Lock()
	defer j.mu.Unlock()
	p.seg.ahead = p.ahead
}

// packerOf returns what packs s, a sealed segment: from the start, or from where it was packed ahead to.
func (j *Journal) packerOf(s *segment) (*packer, error) {
	p := j.packing
	if p != nil && p.seg == s {
		if j.packing = nil; !p.failed {
			return p, nil
		}
	}
	return j.newPacker()
}
