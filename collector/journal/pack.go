package journal

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"math"
	"os"
	"slices"
	"sync"
	"time"

	"github.com/klauspost/compress/zstd"

	"github.com/rollway/rollway/internal/disk"
)

// Codecs of a frame's payload.
const (
	codecNone = 0
	codecZstd = 1
)

// packBytes is how many bytes of lines a packed frame has, unless a frame that
// was written had more.
const packBytes = 256 << 10

// errNotSmaller says that a segment stays as it is.
var errNotSmaller = errors.New("packed, it would not be smaller")

var unpacker = sync.OnceValue(func() *zstd.Decoder {
	d, err := zstd.NewReader(nil, zstd.WithDecoderConcurrency(1), zstd.WithDecoderMaxMemory(maxBody), zstd.WithDecoderLowmem(true))
	if err != nil {
		panic("journal: " + err.Error()) // its options are constants
	}
	return d
})

// unpack appends the lines of a packed payload of the given unpacked length to
// dst, or returns errDamaged.
func unpack(dst, payload []byte, unpacked int) ([]byte, error) {
	var h zstd.Header
	if err := h.Decode(payload); err != nil || !h.HasFCS || h.FrameContentSize != uint64(unpacked) {
		return nil, errDamaged
	}
	dst = slices.Grow(dst, unpacked)
	out, err := unpacker().DecodeAll(payload, dst)
	if err != nil || len(out)-len(dst) != unpacked {
		return nil, errDamaged
	}
	return out, nil
}

// packAll packs the sealed segments, the oldest first, whenever one is sealed,
// until stop is closed.
func (j *Journal) packAll() {
	defer close(j.packerDone)
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

// pack replaces the file of a sealed segment by one with the same records in
// packed frames. Its name is the original's until the copy is durable and has
// been compared.
func (j *Journal) pack(s *segment) error {
	src, err := j.fs.OpenFile(j.path(s.first, extSealed), os.O_RDWR, 0) // written to by discard only
	if err != nil {
		return err
	}
	path := j.path(s.first, extPack)
	p, err := j.writePacked(s, src, path)
	if err == nil && p.size >= s.size {
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

// swap puts the packed copy in the segment's place.
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
	j.total -= s.size - p.size
	j.counters.PackedSegments++
	j.counters.PackedFrom += uint64(s.size)
	j.counters.PackedTo += uint64(p.size)
	s.size, s.marks, s.packed = p.size, p.marks, true
	if p.from <= s.first && p.next >= s.end {
		s.minTime, s.maxTime, s.timed = p.min, p.max, true
	}
	return nil
}

// packer writes the packed copy of a segment.
type packer struct {
	dst  disk.File
	enc  *zstd.Encoder
	h    frameHeader // of the frame being gathered
	keys []byte
	buf  []byte // lines
	out  []byte

	size       int64
	marks      marks
	from, next uint64 // offsets
	min, max   int64
	sum        uint32 // CRC-32C of all lines
}

// writePacked copies the records of s to a new durable file. It takes half of a
// processor at most.
func (j *Journal) writePacked(s *segment, src disk.File, path string) (p *packer, err error) {
	dst, err := j.fs.OpenFile(path, os.O_RDWR|os.O_CREATE|os.O_TRUNC, 0o640)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, dst.Close()) }()
	// The least level packs lines almost as well as the next one, in about 0.6 of
	// the time. A frame has a checksum of its own.
	enc, err := zstd.NewWriter(nil, zstd.WithEncoderLevel(zstd.SpeedFastest), zstd.WithEncoderCRC(false),
		zstd.WithEncoderConcurrency(1), zstd.WithLowerEncoderMem(true), zstd.WithWindowSize(packBytes))
	if err != nil {
		return nil, err
	}
	defer enc.Close()
	var w walker
	w.open(src, j.path(s.first, extSealed), s.size)
	sh, err := w.readSegmentHeader()
	if err != nil {
		return nil, err
	}
	sh.packed, sh.written = true, s.written.UnixNano()
	p = &packer{dst: dst, enc: enc, size: segmentHeaderSize, from: math.MaxUint64, min: math.MaxInt64, max: math.MinInt64}
	p.h.id = sh.id
	if _, err := dst.WriteAt(appendSegmentHeader(nil, sh), 0); err != nil {
		return nil, err
	}
	begin := time.Now()
	for w.pos < w.limit {
		h, err := w.header()
		if err != nil {
			return nil, err
		}
		if h.first >= s.end { // rolled back by a write error
			break
		}
		if what := h.unknown(); what != "" || h.codec != codecNone {
			return nil, fmt.Errorf("a frame has %s", what)
		}
		body, err := w.raw(&h)
		if err != nil {
			return nil, err
		}
		wrote := p.size
		if err := p.add(&h, body); err != nil {
			return nil, err
		}
		if p.size > wrote {
			if err := j.pause(time.Since(begin)); err != nil {
				return nil, err
			}
			begin = time.Now()
		}
	}
	if err := p.flush(); err != nil {
		return nil, err
	}
	return p, dst.Sync()
}

// pause waits for d, or returns os.ErrClosed when the journal is being closed.
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

// add adds the frame h, unless its first key's batch goes on behind it to one
// that is begun already.
func (p *packer) add(h *frameHeader, body []byte) error {
	goesOn := false
	for _, k := range parseKeys(nil, h, body) {
		goesOn = goesOn || k.first+uint64(k.records) > h.end()
	}
	lines := body[h.keysLen:]
	if p.h.records > 0 && (goesOn || h.first != p.h.end() || len(p.buf)+len(lines) > packBytes || p.h.keys+h.keys > math.MaxUint16) {
		if err := p.flush(); err != nil {
			return err
		}
	}
	if p.h.records == 0 {
		p.h.first, p.h.minTime, p.h.maxTime = h.first, h.minTime, h.maxTime
	}
	p.keys = appendShifted(p.keys, body[:h.keysLen], h.keys, p.h.records)
	p.buf = append(p.buf, lines...)
	p.h.keys += h.keys
	p.h.records += h.records
	p.h.minTime, p.h.maxTime = min(p.h.minTime, h.minTime), max(p.h.maxTime, h.maxTime)
	return nil
}

// appendShifted appends a key section of n keys with by added to their indexes.
func appendShifted(dst, section []byte, n, by int) []byte {
	start := len(dst)
	dst = append(dst, section...)
	for b := dst[start:]; n > 0 && len(b) >= keyHeaderSize; n-- {
		binary.LittleEndian.PutUint32(b[2:], binary.LittleEndian.Uint32(b[2:])+uint32(by))
		length, head := keyLength(b)
		b = b[min(len(b), head+length):]
	}
	return dst
}

// flush writes the frame gathered, if there is one.
func (p *packer) flush() error {
	if p.h.records == 0 {
		return nil
	}
	p.sum = crc32.Update(p.sum, castagnoli, p.buf)
	p.out = append(append(p.out[:0], make([]byte, frameHeaderSize)...), p.keys...)
	p.out = p.enc.EncodeAll(p.buf, p.out)
	body := p.out[frameHeaderSize:]
	p.h.codec, p.h.keysLen, p.h.unpacked = codecZstd, len(p.keys), len(p.buf)
	p.h.bodyLen, p.h.bodySum = len(body), crc32.Checksum(body, castagnoli)
	if p.h.bodyLen > maxBody {
		return errNotSmaller
	}
	putFrameHeader(p.out, &p.h)
	if _, err := p.dst.WriteAt(p.out, p.size); err != nil {
		return err
	}
	p.marks.add(p.h.first, p.size, packBytes)
	p.size += int64(len(p.out))
	p.from, p.next = min(p.from, p.h.first), p.h.end()
	p.min, p.max = min(p.min, p.h.minTime), max(p.max, p.h.maxTime)
	p.h, p.keys, p.buf = frameHeader{id: p.h.id}, p.keys[:0], p.buf[:0]
	return nil
}

// comparePacked reads the copy back: it is about to be the only one.
func (j *Journal) comparePacked(s *segment, p *packer, path string) error {
	f, err := j.fs.OpenFile(path, os.O_RDONLY, 0)
	if err != nil {
		return err
	}
	defer f.Close() // only read from
	var w walker
	w.open(f, path, p.size)
	if _, err := w.readSegmentHeader(); err != nil {
		return err
	}
	sum := uint32(0)
	for begin := time.Now(); w.pos < w.limit; begin = time.Now() {
		h, err := w.header()
		if err != nil {
			return err
		}
		lines, err := w.body(&h)
		if err != nil {
			return err
		}
		sum = crc32.Update(sum, castagnoli, lines)
		if err := j.pause(time.Since(begin)); err != nil {
			return err
		}
	}
	if sum != p.sum {
		return errors.New("the copy is not the same")
	}
	return nil
}
