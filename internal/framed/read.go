package framed

import (
	"errors"
	"fmt"
	"io"
	"time"
)

// ErrNotSegment is what the error for a file without any trace of this format
// wraps.
var ErrNotSegment = errors.New("not a framed segment")

// Options configures a Reader.
type Options struct {
	// MaxRecord is the longest record that is delivered, in bytes: default
	// 64 MiB. A longer one is reported. Memory is that and 1 MiB at most.
	MaxRecord int
	// CheckOnly leaves Record.Data empty: all is checked, and memory is 1 MiB
	// for records of any length.
	CheckOnly bool
}

// Record is what was given to the writer in one piece.
type Record struct {
	Data   []byte    // valid until the next call of Next
	Batch  uint64    // number of its batch
	Offset int       // in its batch, bytes; with Batch it names the record, also where the batch was written twice
	Sealed time.Time // when its batch was
}

// A Reader reads the records of one segment in their order. It is not safe for
// concurrent use. The segment may be one that is being written: what is there
// when NewReader is called counts.
type Reader struct {
	win      window
	opt      Options
	sum      Summary
	findings []Finding
	err      error // sticks

	next   int64  // where the next batch is expected
	before uint64 // records before it
	open   bool   // batch is being read

	batch batchHeader
	seed  Seed
	pos   int64 // of the next record
	got   int   // sound records of batch
	hurt  hurt  // of batch, or of the one before while none is open
}

// hurt is what of one batch cannot be read.
type hurt struct {
	pos, bytes int64  // the first such place, and how much in all
	records    uint64 // lost
	atEnd      bool   // nothing of the batch is sound behind it
}

// NewReader reads the segment of size bytes in src. The error wraps
// ErrNotSegment or an UnsupportedError, or is one of src.
func NewReader(src io.ReaderAt, size int64, o Options) (*Reader, error) {
	if o.MaxRecord <= 0 {
		o.MaxRecord = 64 << 20
	}
	r := &Reader{opt: o, next: SegmentHeaderSize, win: window{src: src, size: size}}
	r.win.buf = make([]byte, 0, min(windowSize, max(size, 0)))
	if err := r.begin(); err != nil {
		return nil, err
	}
	r.sum.End = r.next
	return r, nil
}

// begin finds out which batches are the segment's: by its header, or if that is
// lost, or older than what stands behind it, by the batches.
func (r *Reader) begin() error {
	h, err := ParseHeader(r.win.view(0, headerFields))
	var newer *UnsupportedError
	if errors.As(err, &newer) {
		return err
	}
	sound := err == nil
	first, found := r.look(SegmentHeaderSize, func(b *batchHeader) bool { return !sound || b.generation > h.Generation })
	if !sound && !found {
		for off := int64(SegmentHeaderSize); off < r.win.size; off += MinBlock {
			if b, ok := r.look(off, func(*batchHeader) bool { return true }); ok && (!found || b.generation > first.generation) {
				first, found = b, true
			}
		}
	}
	if r.win.err != nil {
		return r.win.err
	}
	switch {
	case found:
		old := h
		h = Header{Block: first.block, ID: first.id, Generation: first.generation}
		f := Finding{Kind: OldHead, Bytes: headerFields}
		if sound {
			f.Detail = fmt.Sprintf("it is of generation %d, the batches are of generation %d", old.Generation, h.Generation)
		}
		r.find(f)
	case !sound && IsSegment(r.win.view(0, headerFields)):
		h.Block = MaxBlock
		r.find(Finding{Kind: OldHead, Bytes: min(headerFields, r.win.size), Detail: "no batch either"})
	case !sound:
		return ErrNotSegment
	}
	r.sum.Header = h
	return nil
}

// Latest returns the generation of the segment that a Reader would find in src:
// that of its header, or of the batch behind it if that is newer. It is 0 for a
// file without a sound header.
func Latest(src io.ReaderAt) uint64 {
	b := make([]byte, SegmentHeaderSize+BatchHeaderSize)
	n, _ := src.ReadAt(b, 0)
	h, err := ParseHeader(b[:n])
	if err != nil {
		return 0
	}
	if n == len(b) {
		if first, err := parseBatchHeader(b[SegmentHeaderSize:]); err == nil && first.offset == SegmentHeaderSize {
			return max(h.Generation, first.generation)
		}
	}
	return h.Generation
}

// look returns the header of a batch at off, if there is one that is wanted.
func (r *Reader) look(off int64, wanted func(*batchHeader) bool) (batchHeader, bool) {
	h, err := parseBatchHeader(r.win.view(off, BatchHeaderSize))
	ok := err == nil && h.offset == off && off%int64(h.block) == 0 && wanted(&h)
	return h, ok
}

// Next returns the next record, or io.EOF.
func (r *Reader) Next() (Record, error) {
	for r.err == nil {
		if !r.open {
			r.err = r.nextBatch()
			continue
		}
		n, ok := r.nextRecord()
		if r.err = r.win.err; r.err != nil {
			break
		}
		if !ok {
			r.endBatch()
			continue
		}
		rec := Record{Batch: r.batch.number, Offset: int(r.pos - r.batch.offset), Sealed: time.Unix(0, r.batch.sealed)}
		at := r.pos
		r.pos += RecordHeaderSize + int64(n)
		r.got++
		r.sum.Records++
		r.sum.RecordBytes += int64(n)
		switch {
		case r.opt.CheckOnly:
		case n > r.opt.MaxRecord:
			r.find(Finding{Kind: TooLong, Pos: at, Bytes: int64(n), Records: 1})
			continue
		default:
			if rec.Data, r.err = r.win.record(r.seed, at, n); r.err != nil {
				continue
			}
		}
		return rec, nil
	}
	return Record{}, r.err
}

// nextBatch opens the next batch and books what is missing before it. At the
// end it returns io.EOF.
func (r *Reader) nextBatch() error {
	if r.sum.Complete {
		return io.EOF
	}
	at, h, found := r.next, batchHeader{}, false
	for ; at < r.win.size && !found; at += int64(r.sum.Block) {
		h, found = r.look(at, func(b *batchHeader) bool { return b.id == r.sum.ID && b.before >= r.before })
	}
	if r.win.err != nil {
		return r.win.err
	}
	if !found {
		r.endSegment()
		return io.EOF
	}
	r.bookHurt(Damaged)
	if h.offset > r.next || h.before > r.before {
		r.find(Finding{Kind: Damaged, Pos: r.next, Bytes: h.offset - r.next, Records: h.before - r.before, Detail: "no sound batch header"})
	}
	r.batch, r.seed, r.pos, r.got, r.open = h, SeedOf(h.number), h.offset+BatchHeaderSize, 0, true
	r.sum.Batches++
	r.sum.Last = time.Unix(0, h.sealed)
	if r.sum.First.IsZero() {
		r.sum.First = r.sum.Last
	}
	r.next = roundUp(h.end(), r.sum.Block)
	r.before = h.before + uint64(h.records)
	r.sum.End = r.next
	r.sum.Complete = h.records == 0
	return nil
}

// endBatch books what is missing in the batch, but for what kind it is of.
func (r *Reader) endBatch() {
	r.open = false
	if lost := uint64(r.batch.records - r.got); lost > 0 || r.hurt.bytes > 0 {
		r.hurt.records = lost
		if r.hurt.bytes == 0 {
			r.hurt.pos = r.pos
		}
	} else {
		r.hurt = hurt{}
	}
}

func (r *Reader) bookHurt(kind FindingKind) {
	if h := r.hurt; h != (hurt{}) {
		f := Finding{Kind: kind, Pos: h.pos, Bytes: h.bytes, Records: h.records}
		if kind == TornTail {
			f.Detail = fmt.Sprintf("%d of %d records of the last batch are whole", r.got, r.batch.records)
		}
		r.find(f)
		r.hurt = hurt{}
	}
}

// endSegment books what the last batch lacks, and a batch of which there is
// something, but no sound header.
func (r *Reader) endSegment() {
	b := r.win.view(r.next, BatchHeaderSize)
	trace := len(b) > 0 && r.win.size%MinBlock != 0
	f := Finding{Kind: TornTail, Pos: r.next, Bytes: int64(len(b)), Detail: "the batch header is not whole"}
	if len(b) == BatchHeaderSize {
		h := batchFields(b)
		magic := string(b[:4]) == string(batchMagic)
		if _, err := parseBatchHeader(b); err != nil && (h.id == r.sum.ID || magic && h.generation == r.sum.Generation) {
			trace = true
			f.Kind, f.Detail = Damaged, "its header, the last one, is damaged"
			if h.sensible() && h.end() <= r.win.size {
				f.Bytes, f.Records, f.Estimated = int64(h.size), uint64(h.records), true
			}
		}
	}
	kind := TornTail
	if trace || !r.hurt.atEnd {
		kind = Damaged
	}
	r.bookHurt(kind)
	if trace {
		r.find(f)
	}
}
