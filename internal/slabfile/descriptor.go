package slabfile

import (
	"bytes"
	"hash/crc32"
	"sync/atomic"
	"unsafe"
)

// descriptor is that of slab i as this process knows it: what Open has read, and
// what was stored since but for the committed length, which others store.
func (f *File) descriptor(i int) []byte { return f.table[descriptorSize*i:][:descriptorSize] }

func (f *File) load(i, word int) uint64 { return native.Uint64(f.descriptor(i)[word:]) }

// mapped is a word of descriptor i in the mapping.
func (f *File) mapped(i, word int) *uint64 {
	return (*uint64)(unsafe.Pointer(&f.mem[headerSize+descriptorSize*i+word]))
}

// store sets a word of descriptor i, here and in the file. It is called under
// guard.
func (f *File) store(i, word int, v uint64) {
	native.PutUint64(f.descriptor(i)[word:], v)
	atomic.StoreUint64(f.mapped(i, word), v)
}

// Slab returns the memory of slab i and its committed length. Whoever has begun
// the slab copies whole lines after what is there and then stores how many
// bytes are whole lines now, with a plain store of what Committed returns: it
// need not be atomic, and must come after the copy. Both may fault, see Covers.
func (f *File) Slab(i int) (mem []byte, committed *uint64) {
	lo := f.geometry.slabAt(i)
	hi := lo + int64(f.geometry.SlabSize)
	return f.mem[lo:hi:hi], f.mapped(i, dCommitted)
}

// Begin takes slab i, which is free, into use. seq is greater than every one
// before; see LastSeq. Slabs are recovered in the order of seq. Begin, Mark,
// Unmark, Delivered, Shrink, Seal and Free report whether the file was there;
// if not, it keeps nothing any more.
func (f *File) Begin(i int, seq uint64) bool {
	sound := false
	return f.guard(func() {
		sound = *f.mapped(i, dSeal) == f.load(i, dSeal)
		f.store(i, dSeq, seq) // the other words of a free slab are 0
	}) && sound
}

// Mark says that a Write of the bytes from delivered on of slab i is about to
// begin, at offset of the file that volume and inode name. Without a call of
// Mark a write under way when the process is killed is repeated.
func (f *File) Mark(i int, delivered int, volume, inode uint64, offset int64) bool {
	return f.guard(func() {
		f.store(i, dMark, 0)
		f.store(i, dVolume, volume)
		f.store(i, dInode, inode)
		f.store(i, dOffset, uint64(offset))
		f.store(i, dMark, f.markWord(i, uint32(delivered)))
	})
}

// Unmark takes back the mark of slab i: the next Write goes where no position
// is known.
func (f *File) Unmark(i int) bool { return f.guard(func() { f.store(i, dMark, 0) }) }

// Delivered says that the destination has taken the first n bytes of slab i.
// It comes after the Write and before the next Mark.
func (f *File) Delivered(i int, n int) bool {
	return f.guard(func() { f.store(i, dDelivered, f.load(i, dDelivered)>>32<<32|uint64(n)) })
}

// Shrink says that of slab i only so many bytes and lines are left to deliver.
func (f *File) Shrink(i, bytes, lines int) bool {
	return f.guard(func() {
		f.store(i, dMark, 0)
		f.store(i, dSeal, pair(0, f.tag(i)))
		f.store(i, dCommitted, Committed(bytes, lines))
	})
}

// SealStart is the checksum of slab i, which is filled no more, before that of
// its bytes, with which Extend continues.
func (f *File) SealStart(i, bytes, lines int) uint32 {
	var b [16]byte
	native.PutUint64(b[0:], f.load(i, dSeq))
	native.PutUint64(b[8:], Committed(bytes, lines))
	return sum(b[:])
}

// Extend is the checksum of what check is of, followed by p.
func Extend(check uint32, p []byte) uint32 { return crc32.Update(check, castagnoli, p) }

// Seal gives slab i its checksum.
func (f *File) Seal(i int, check uint32) bool {
	return f.guard(func() { f.store(i, dSeal, pair(max(check, 1), f.tag(i))) })
}

// Matches reports whether nothing else has written to slab i: whether the file has
// part there, from byte from on, and says of the slab what it was told. The
// committed length is not compared.
func (f *File) Matches(i, from int, part []byte) (same bool) {
	at, table := f.geometry.slabAt(i)+int64(from), headerSize+descriptorSize*i
	return f.guard(func() {
		told, found := f.descriptor(i), f.mem[table:][:descriptorSize]
		same = bytes.Equal(f.mem[at:][:len(part)], part) &&
			bytes.Equal(found[:dCommitted], told[:dCommitted]) && bytes.Equal(found[dDelivered:], told[dDelivered:])
	}) && same
}

// Free says that slab i holds nothing any more that has to be delivered. Its
// memory may be used again from then on, with Begin first.
func (f *File) Free(i int) bool {
	line := f.load(i, dDelivered)>>32 == flagLine
	ok := f.guard(func() { f.clear(i) })
	if line {
		f.freeLine()
	}
	return ok
}

// clear makes slab i free. What is not 0 after a kill amid this is not looked
// at, and cleared by the next Open.
func (f *File) clear(i int) {
	for word := dSeq; word < dSeal; word += 8 {
		f.store(i, word, 0)
	}
	f.store(i, dSeal, pair(0, f.tag(i)))
}

// tag is the part of descriptor i that never changes.
func (f *File) tag(i int) uint32 { return uint32(native.Uint64(f.free[descriptorSize*i+dSeal:]) >> 32) }

// markWord is the word that makes the mark of slab i valid.
func (f *File) markWord(i int, base uint32) uint64 {
	d := f.descriptor(i)
	check := crc32.Update(sum(d[dSeq:dSeq+8]), castagnoli, d[dVolume:dMark])
	check = crc32.Update(check, castagnoli, native.AppendUint32(nil, base))
	return pair(base, max(check, 1))
}

// mark returns the mark of slab i, if it has one.
func (f *File) mark(i int) (m Mark, ok bool) {
	w := f.load(i, dMark)
	base := uint32(w)
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

// LastSeq is the greatest sequence number in the file, or 0.
func (f *File) LastSeq() (last uint64) {
	for i := range f.geometry.SlabCount {
		if seq := f.load(i, dSeq); seq < maxSeq {
			last = max(last, seq)
		}
	}
	return last
}
