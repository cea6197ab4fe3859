package journal

import (
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"time"

	"github.com/klauspost/compress/zstd"

	"github.com/rollway/rollway/internal/disk"
	"github.com/rollway/rollway/internal/recordlog"
)

// packBytes is how many bytes of lines a packed frame has, unless a frame had more.
const packBytes = 256 << 10

// errNotSmaller leaves a segment as it is.
var errNotSmaller = errors.New("packed, it would not be smaller")

// packAll packs sealed segments, the oldest first, until stop is closed.
func (j *Journal) packAll() {
	for {
		for s := j.nextUnpacked(); s != nil; s = j.nextUnpacked() {
			err := j.pack(s)
			if errors.Is(err, os.ErrClosed) {
				return
			}
			j.mu.Lock()
			s.unpackable = err != nil
			if err != nil && !errors.Is(err, errNotSmaller) && !s.gone {
				j.noteLocked(fmt.Errorf("pack segment %s, which stays as it is: %w", segmentName(s.first, ""), err))
			}
			j.mu.Unlock()
		}
		select {
		case <-j.kickPacker:
		case <-j.stop:
			return
		}
	}
}

func (j *Journal) nextUnpacked() *segment {
	j.mu.Lock()
	defer j.mu.Unlock()
	for _, s := range j.segs {
		if s.sealed && s.settled && !s.packed && !s.unpackable {
			return s
		}
	}
	return nil
}

// pack replaces the file of a sealed segment by a copy with packed frames, once the copy is
// durable and compared.
func (j *Journal) pack(s *segment) error {
	src, err := j.fs.OpenFile(j.path(s.first, extSealed), os.O_RDWR, 0) // written to by discard only
	if err != nil {
		return err
	}
	path := j.path(s.first, extPack)
	p, err := j.writePacked(s, src, path)
	if err == nil && p.size+p.footer >= s.size+s.footer {
		err = errNotSmaller
	}
	if err == nil {
		err = j.comparePacked(s, p, path)
	}
	if err == nil {
		err = j.swap(s, p, path)
	}
	if err != nil {
		return errors.Join(err, j.removeFile(path), src.Close())
	}
	j.discard(src)
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
	before, after := s.bytesLocked(), p.size+p.footer
	j.total -= before - after
	j.counters.PackedSegments++
	j.counters.PackedFrom += uint64(before)
	j.counters.PackedTo += uint64(after)
	s.size, s.footer, s.marks, s.packed = p.size, p.footer, p.marks, true
	j.changedLocked()
	if p.from <= s.first && p.next >= s.end {
		s.minTime, s.maxTime, s.timed = p.min, p.max, true
	}
	return nil
}

type packer struct {
	dst  disk.File
	enc  *zstd.Encoder
	h    recordlog.Frame // of the frame being gathered
	keys []byte
	buf  []byte // lines
	out  []byte

	size       int64 // of the header and the frames
	footer     int64 // of what follows them
	summary    *summary
	marks      marks
	from, next uint64 // offsets
	min, max   int64
	sum        uint32 // CRC-32C of all lines
}

// writePacked copies the records of s to a new durable file. It takes at most half of a
// processor.
func (j *Journal) writePacked(s *segment, src disk.File, path string) (p *packer, err error) {
	var w walker
	w.Open(src, j.path(s.first, extSealed), s.size)
	sh, err := w.FileHeader(recordlog.JournalSegment)
	if err != nil {
		return nil, err
	}
	sh.Flags |= flagPacked
	dst, err := recordlog.Create(j.fs, path, sh)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, dst.Close()) }()
	// The least level packs lines almost as well as the next one, in 0.6 of the time. A
	// frame has its own checksum.
	enc, err := zstd.NewWriter(nil, zstd.WithEncoderLevel(zstd.SpeedFastest), zstd.WithEncoderCRC(false),
		zstd.WithEncoderConcurrency(1), zstd.WithLowerEncoderMem(true), zstd.WithWindowSize(packBytes))
	if err != nil {
		return nil, err
	}
	defer enc.Close()
	p = &packer{dst: dst, enc: enc, size: segmentHeaderSize, from: math.MaxUint64, min: math.MaxInt64, max: math.MinInt64}
	p.h.ID, p.summary = sh.ID, newSummary(sh.ID, s.first)
	p.summary.packed = true
	if err := w.each(j.pause, func(h *recordlog.Frame, frame []byte) error {
		if h.First >= s.end { // a write error that was rolled back
			return io.EOF
		}
		if what := h.Unknown(); what != "" {
			return fmt.Errorf("a frame has %s", what)
		}
		body := frame[frameHeaderSize:]
		lines, err := linesOf(h, body, &w.plain)
		if err != nil {
			return err
		}
		return p.add(h, body[:h.KeysLen], lines)
	}); err != nil {
		return nil, err
	}
	if err := p.flush(); err != nil {
		return nil, err
	}
	j.mu.Lock()
	keys := j.keys.between(s.first, s.end)
	j.mu.Unlock()
	end := p.summary.end(keys, s.written)
	if _, err := dst.WriteAt(end, p.size); err != nil {
		return nil, err
	}
	p.footer = int64(len(end))
	return p, dst.Sync()
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

// add adds the frame h. A batch that continues in the next frame begins a packed frame.
func (p *packer) add(h *recordlog.Frame, keys, lines []byte) error {
	goesOn := false
	for _, k := range parseKeys(nil, h, keys) {
		goesOn = goesOn || k.first+uint64(k.records) > h.End()
	}
	if p.h.Records > 0 && (goesOn || h.First != p.h.End() || len(p.buf)+len(lines) > packBytes || p.h.Keys+h.Keys > math.MaxUint16) {
		if err := p.flush(); err != nil {
			return err
		}
	}
	if p.h.Records == 0 {
		p.h.First, p.h.MinTime, p.h.MaxTime = h.First, h.MinTime, h.MaxTime
	}
	p.keys = append(p.keys, keys...)
	p.buf = append(p.buf, lines...)
	p.h.Keys += h.Keys
	p.h.Records += h.Records
	p.h.MinTime, p.h.MaxTime = min(p.h.MinTime, h.MinTime), max(p.h.MaxTime, h.MaxTime)
	return nil
}

// flush writes the gathered frame, if there is one.
func (p *packer) flush() error {
	if p.h.Records == 0 {
		return nil
	}
	p.sum = recordlog.Extend(p.sum, p.buf)
	p.out = append(append(p.out[:0], make([]byte, frameHeaderSize)...), p.keys...)
	p.out = p.enc.EncodeAll(p.buf, p.out)
	if len(p.out)-frameHeaderSize > recordlog.MaxBody {
		return errNotSmaller
	}
	p.h.Codec, p.h.KeysLen, p.h.Unpacked = recordlog.CodecZstd, len(p.keys), len(p.buf)
	p.h.Put(p.out)
	if _, err := p.dst.WriteAt(p.out, p.size); err != nil {
		return err
	}
	p.marks.add(p.h.First, p.size, packBytes)
	p.summary.add(&p.h, p.out, p.buf)
	p.size += int64(len(p.out))
	p.from, p.next = min(p.from, p.h.First), p.h.End()
	p.min, p.max = min(p.min, p.h.MinTime), max(p.max, p.h.MaxTime)
	p.h, p.keys, p.buf = recordlog.Frame{ID: p.h.ID}, p.keys[:0], p.buf[:0]
	return nil
}

// comparePacked reads the copy back before it becomes the only one.
func (j *Journal) comparePacked(s *segment, p *packer, path string) error {
	f, err := j.fs.OpenFile(path, os.O_RDONLY, 0)
	if err != nil {
		return err
	}
	defer f.Close() // only read from
	var w walker
	w.Open(f, path, p.size)
	if _, err := w.FileHeader(recordlog.JournalSegment); err != nil {
		return err
	}
	sum := uint32(0)
	if err := w.each(j.pause, func(h *recordlog.Frame, frame []byte) error {
		lines, err := linesOf(h, frame[frameHeaderSize:], &w.plain)
		sum = recordlog.Extend(sum, lines)
		return err
	}); err != nil {
		return err
	}
	if sum != p.sum {
		return errors.New("the copy is not the same")
	}
	return nil
}
