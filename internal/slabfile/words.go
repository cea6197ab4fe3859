package slabfile

import (
	"hash/crc32"
	"sync/atomic"
	"unsafe"
)

// word is the 8-byte word at offset of the file, which a multiple of 8 is.
func (f *File) word(offset int64) *uint64 {
	return (*uint64)(unsafe.Pointer(&f.mem[offset : offset+8][0]))
}

// field is a word of the descriptor of slab i.
func (f *File) field(i int, offset int64) *uint64 {
	if i < 0 || i >= f.geometry.SlabCount {
		panic("slabfile: no such slab")
	}
	return f.word(headerSize + descriptorSize*int64(i) + offset)
}

func (f *File) load(i int, offset int64) uint64     { return atomic.LoadUint64(f.field(i, offset)) }
func (f *File) store(i int, offset int64, v uint64) { atomic.StoreUint64(f.field(i, offset), v) }

// Slab returns the memory of slab i and its committed length. Who has begun the
// slab copies whole lines behind what is there and then stores how many bytes
// are whole lines now, with a plain store: it need not be atomic, and must come
// after the copy. Neither may be used after Close.
func (f *File) Slab(i int) (mem []byte, committed *uint64) {
	lo := f.geometry.slabAt(i)
	hi := lo + int64(f.geometry.SlabSize)
	return f.mem[lo:hi:hi], f.field(i, dCommitted)
}

// Begin takes slab i, which is free, into use. seq is greater than every one
// before; see NextSeq. Slabs are recovered in the order of seq.
func (f *File) Begin(i int, seq uint64) {
	f.store(i, dSeq, seq) // the other words of a free slab are 0
}

// Mark says that a Write of bytes delivered to committed of slab i is about to
// begin, at offset of the file that volume and inode name. Without a call of
// Mark a write under way when the process is killed is repeated.
func (f *File) Mark(i int, delivered int, volume, inode uint64, offset int64) {
	f.store(i, dMark, 0)
	f.store(i, dVolume, volume)
	f.store(i, dInode, inode)
	f.store(i, dOffset, uint64(offset))
	f.store(i, dMark, f.markWord(i, uint32(delivered)))
}

// Unmark takes back the mark of slab i: the next Write goes where no position
// is known.
func (f *File) Unmark(i int) { f.store(i, dMark, 0) }

// Delivered says that the destination has taken the first n bytes of slab i.
// It comes after the Write and before the next Mark.
func (f *File) Delivered(i int, n int) { f.store(i, dDelivered, uint64(n)) }

// Free says that slab i holds nothing any more that has to be delivered. Its
// memory may be used again from then on, with Begin first.
func (f *File) Free(i int) {
	seq, flags := f.load(i, dSeq), f.load(i, dFlags)
	if last := f.word(offDelivered); seq > atomic.LoadUint64(last) && seq < maxSeq {
		atomic.StoreUint64(last, seq)
	}
	f.clear(i)
	if flags&flagLine != 0 {
		f.freeLine()
	}
}

// clear makes slab i free. What is not 0 after a kill amid this is not looked
// at, and set to 0 by the next Open.
func (f *File) clear(i int) {
	f.store(i, dSeq, 0)
	for at := int64(dCommitted); at < descriptorSize; at += 8 {
		f.store(i, at, 0)
	}
}

// markWord is the word that makes the mark of slab i valid.
func (f *File) markWord(i int, base uint32) uint64 {
	d := f.descriptor(i)
	var b [8]byte
	native.PutUint32(b[:], base)
	check := crc32.Update(sum(d[dSeq:dSeq+8]), castagnoli, d[dVolume:dMark])
	check = crc32.Update(check, castagnoli, b[:4])
	native.PutUint32(b[4:], max(check, 1))
	return native.Uint64(b[:])
}

// mark returns the mark of slab i, if it has one.
func (f *File) mark(i int) (m Mark, ok bool) {
	w := f.load(i, dMark)
	var b [8]byte
	native.PutUint64(b[:], w)
	base := native.Uint32(b[:])
	if w == 0 || w != f.markWord(i, base) {
		return Mark{}, false
	}
	return Mark{
		Volume: f.load(i, dVolume),
		Inode:  f.load(i, dInode),
		Offset: int64(f.load(i, dOffset)),
		Base:   int64(base),
	}, true
}

func (f *File) descriptor(i int) []byte {
	at := headerSize + descriptorSize*int64(i)
	return f.mem[at : at+descriptorSize]
}

// NextSeq is a sequence number greater than all that the file knows of.
func (f *File) NextSeq() uint64 {
	last := f.LastDelivered()
	for i := range f.geometry.SlabCount {
		if seq := f.load(i, dSeq); seq < maxSeq {
			last = max(last, seq)
		}
	}
	return last + 1
}

// maxSeq is more than is ever reached: what is not below it is damage.
const maxSeq = 1 << 63

// LastDelivered is the greatest sequence number of a slab that was freed.
func (f *File) LastDelivered() uint64 {
	if f.mem == nil {
		return 0
	}
	if last := atomic.LoadUint64(f.word(offDelivered)); last < maxSeq {
		return last
	}
	return 0
}
