package receiver

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"
	"net/http"

	"github.com/andybalholm/brotli"
	"github.com/klauspost/compress/flate"
	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/s2"
	"github.com/klauspost/compress/snappy"
	"github.com/klauspost/compress/zlib"
	"github.com/klauspost/compress/zstd"
)

const (
	// maxWindow is what RFC 9659 allows an HTTP client of zstd.
	maxWindow = 8 << 20
	// maxZstdBlock is how many bytes a block of zstd unpacks to, at most.
	maxZstdBlock = 128 << 10
	// zstdScratch is more than a decoder needs beside its window.
	zstdScratch = 512 << 10
)

// unpackers are the decoders of one workspace, each nil until needed.
type unpackers struct {
	gzip  Gzip
	other [numCodings]io.Reader // zlib, flate, framed snappy
	zstd  *zstd.Decoder
	used  bool // zstd reads packed
	src   bytes.Reader
	end   endReader
}

// release makes the decoders forget the body.
func (u *unpackers) release() {
	if u.used {
		u.zstd.Reset(nil)
		u.used = false
	}
	u.src.Reset(nil)
	u.end = endReader{}
}

// reader returns what unpacks from as it arrives, and what closes it; nil: nothing has to be
// closed.
func (u *unpackers) reader(c coding, from *bufio.Reader) (src io.Reader, done func(), err error) {
	switch c {
	case asSent:
		return from, nil, nil
	case inBrotli:
		return brotli.NewReader(from), nil, nil
	case inZstd:
		z, err := zstd.NewReader(from, zstd.WithDecoderConcurrency(1), zstd.WithDecoderLowmem(true), zstd.WithDecoderMaxWindow(maxWindow))
		if err != nil {
			return nil, nil, err
		}
		return z, z.Close, nil
	}
	src, err = u.stream(c, from)
	return src, nil, err
}

// stream is reader for the codings whose readers are kept.
func (u *unpackers) stream(c coding, from *bufio.Reader) (_ io.Reader, err error) {
	switch c {
	case inGzip:
		return &u.gzip, u.gzip.Reset(from)
	case inFramed:
		if z, opened := u.other[c].(*s2.Reader); opened {
			z.Reset(from)
		} else {
			u.other[c] = s2.NewReader(from, s2.ReaderMaxBlockSize(64<<10))
		}
		return u.other[c], nil
	}
	if z, opened := u.other[c].(flate.Resetter); opened {
		err = z.Reset(from, nil)
	} else if c == inDeflate {
		u.other[c] = flate.NewReader(from)
	} else {
		u.other[c], err = zlib.NewReader(from)
	}
	u.end = endReader{u.other[c], from}
	return &u.end, err
}

// endReader reads src, after whose end rest must have nothing.
type endReader struct {
	src  io.Reader
	rest *bufio.Reader
}

func (r *endReader) Read(p []byte) (int, error) {
	n, err := r.src.Read(p)
	if err == io.EOF {
		if _, err = r.rest.Peek(1); err == nil {
			err = errors.New("there are bytes after its end")
		}
	}
	return n, err
}

// Gzip unpacks the members of a gzip one by one. Read together, a header that ends
// within its name would be taken for the end of all. Reset comes first.
type Gzip struct {
	member *gzip.Reader
	rest   *bufio.Reader
}

// Reset begins to read src.
func (g *Gzip) Reset(src *bufio.Reader) error {
	if g.rest = src; g.member == nil {
		g.member = new(gzip.Reader)
	}
	return g.next()
}

// next reads the header of a member.
func (g *Gzip) next() error {
	_, empty := g.rest.Peek(1)
	err := g.member.Reset(g.rest)
	if err == io.EOF && empty == nil {
		err = io.ErrUnexpectedEOF
	}
	g.member.Multistream(false)
	return err
}

func (g *Gzip) Read(p []byte) (int, error) {
	n, err := g.member.Read(p)
	if err == io.EOF {
		if _, err = g.rest.Peek(1); err == nil {
			err = g.next()
		}
	}
	return n, err
}

// announced returns how many bytes a body says at its beginning that it unpacks to; below 0:
// it does not say so. size is its own length, or -1.
func (w *workspace) announced(c coding, size int64) int64 {
	switch c {
	case asSent:
		return size
	case inSnappy:
		head, _ := w.peek.Peek(binary.MaxVarintLen32)
		if n, err := snappy.DecodedLen(head); err == nil {
			return int64(n)
		}
	case inZstd:
		var h zstd.Header
		head, _ := w.peek.Peek(zstd.HeaderMaxSize)
		if h.Decode(head) == nil && h.HasFCS {
			return int64(min(h.FrameContentSize, math.MaxInt64))
		}
	}
	return -1
}

// unpackWhole unpacks w.packed, of a coding that tells in advance how much memory
// it takes, into w.buf.
func (r *Receiver) unpackWhole(w *workspace, c coding) failure {
	switch c {
	case inSnappy:
		return r.unpackSnappy(w)
	case inBrotli:
		return r.unpackBrotli(w)
	}
	return r.unpackZstd(w)
}

// unpackBrotli has a decoder of its own for each body: few clients pack so, and
// a decoder keeps its window.
func (r *Receiver) unpackBrotli(w *workspace) failure {
	w.base += brotliMemory(w.packed)
	w.src.Reset(w.packed)
	return r.fill(w, inBrotli, brotli.NewReader(&w.src), -1)
}

// brotliMemory bounds the memory that unpacking p takes besides p and the result: the
// window, whose size the first byte tells (RFC 7932, section 9.1), half of it again
// while it grows, and tables.
func brotliMemory(p []byte) int64 {
	const tables = 4 << 20
	bits := 16
	if len(p) > 0 && p[0]&1 != 0 {
		bits = 17
		if n := int(p[0] >> 1 & 7); n > 0 {
			bits += n
		}
	}
	return tables + (3<<bits)/2
}

func (r *Receiver) unpackSnappy(w *workspace) failure {
	size, err := snappy.DecodedLen(w.packed)
	if err != nil {
		return r.invalid(w, inSnappy, errors.New("it does not begin with its unpacked length"))
	}
	if f := r.overUnpacked(w, int64(size)); f.code != 0 {
		return f
	}
	// No element of the format unpacks to more than 64 bytes per two of its own.
	if size/32 > len(w.packed) {
		return r.invalid(w, inSnappy, fmt.Errorf("%d bytes cannot unpack to %d", len(w.packed), size))
	}
	if !r.acquire(w, w.base+2*int64(size)) {
		return r.busy()
	}
	if cap(w.buf) < size {
		w.buf = make([]byte, 0, size)
	}
	if w.buf, err = snappy.Decode(w.buf[:cap(w.buf)], w.packed); err != nil {
		w.buf = w.buf[:0]
		return r.invalid(w, inSnappy, errors.New("it is corrupt"))
	}
	return failure{}
}

func (r *Receiver) unpackZstd(w *workspace) failure {
	size, err := measureZstd(w.packed)
	if err != nil {
		return r.invalid(w, inZstd, err)
	}
	if size.window > maxWindow {
		return closing(http.StatusBadRequest, "the body wants a zstd window of %d bytes, at most %d are allowed (RFC 9659); compress it without --long, or send smaller requests", size.window, maxWindow)
	}
	if f := r.overUnpacked(w, size.least); f.code != 0 {
		return f
	}
	if w.zstd == nil {
		if w.zstd, err = zstd.NewReader(nil, zstd.WithDecoderConcurrency(1), zstd.WithDecoderLowmem(true),
			zstd.WithDecoderMaxWindow(maxWindow), zstd.WithDecodeAllCapLimit(true)); err != nil {
			panic("receiver: options of zstd: " + err.Error())
		}
	}
	if size.most > keepBuffer {
		return r.streamZstd(w, size)
	}
	if !r.acquire(w, w.base+2*size.most+zstdScratch) {
		return r.busy()
	}
	if int64(cap(w.buf)) < size.most {
		w.buf = make([]byte, 0, size.most)
	}
	if w.buf, err = w.zstd.DecodeAll(w.packed, w.buf[:0]); err != nil {
		return r.invalid(w, inZstd, err)
	}
	return r.overUnpacked(w, int64(len(w.buf)))
}

// streamZstd unpacks a body whose size is not known in advance.
func (r *Receiver) streamZstd(w *workspace, size zstdSize) failure {
	w.base += size.window + zstdScratch
	w.src.Reset(w.packed)
	w.used = true
	err := w.zstd.Reset(&w.src)
	if err != nil {
		return r.invalid(w, inZstd, err)
	}
	f := r.fill(w, inZstd, w.zstd, size.least)
	if size.window > keepBuffer { // nor does its window go back to the pool
		w.zstd.Close()
		w.zstd, w.used = nil, false
	}
	return f
}

// zstdSize is what the headers of frames and blocks tell without unpacking.
type zstdSize struct {
	window int64 // the largest
	least  int64 // bytes that it says it unpacks to, as far as it says it
	most   int64 // bytes that it can unpack to
}

// measureZstd walks over the frames of a body and the blocks in them.
func measureZstd(p []byte) (size zstdSize, err error) {
	for len(p) > 0 {
		var h zstd.Header
		if err := h.Decode(p); err != nil {
			return size, err
		}
		p = p[h.HeaderSize:]
		if h.Skippable {
			if int64(h.SkippableSize) > int64(len(p)) {
				return size, io.ErrUnexpectedEOF
			}
			p = p[h.SkippableSize:]
			continue
		}
		if h.DictionaryID != 0 {
			return size, fmt.Errorf("it needs dictionary %d, which is not known here", h.DictionaryID)
		}
		window := min(h.WindowSize, 1<<62)
		if h.SingleSegment {
			window = min(h.FrameContentSize, 1<<62)
		}
		size.window = max(size.window, int64(window))
		least, most, rest, err := measureBlocks(p, int64(window))
		if err != nil {
			return size, err
		}
		if h.HasFCS {
			if h.FrameContentSize > uint64(most) {
				return size, fmt.Errorf("a frame says that it unpacks to %d bytes, but cannot be more than %d", h.FrameContentSize, most)
			}
			least, most = int64(h.FrameContentSize), int64(h.FrameContentSize)
		}
		size.least += least
		size.most += most
		p = rest
		if h.HasCheckSum {
			if len(p) < 4 {
				return size, io.ErrUnexpectedEOF
			}
			p = p[4:]
		}
	}
	return size, nil
}

// measureBlocks walks over the blocks of a frame and returns what follows.
func measureBlocks(p []byte, window int64) (least, most int64, rest []byte, err error) {
	for {
		if len(p) < 3 {
			return 0, 0, nil, io.ErrUnexpectedEOF
		}
		head := uint32(p[0]) | uint32(binary.LittleEndian.Uint16(p[1:]))<<8
		kind, size := head>>1&3, int64(head>>3)
		p = p[3:]
		stored := size
		switch kind {
		case 0: // raw
			least, most = least+size, most+size
		case 1: // one byte repeated
			stored = 1
			least, most = least+size, most+size
		case 2:
			most += min(maxZstdBlock, max(window, 1<<10))
		default:
			return 0, 0, nil, errors.New("a block is of a reserved kind")
		}
		if stored > int64(len(p)) {
			return 0, 0, nil, io.ErrUnexpectedEOF
		}
		p = p[stored:]
		if head&1 != 0 {
			return least, most, p, nil
		}
	}
}
