package slabfile

import (
	"bytes"
	"runtime/debug"
	"sync/atomic"
	"unsafe"

	"github.com/rollway/rollway/internal/recordlog"
)

// guard calls touch, which uses f.mem, and reports whether the pages were there. To
// touch a page of a file that was cut raises SIGBUS, which ends the process unless
// the goroutine has asked for a panic instead. So all that touches mapped memory
// runs under guard, or uses Covers as package slab's hot path does.
func (f *File) guard(touch func()) (ok bool) {
	old := debug.SetPanicOnFault(true)
	defer func() {
		debug.SetPanicOnFault(old)
		if !ok {
			if v := recover(); !f.Covers(v) {
				panic(v)
			}
		}
	}()
	touch()
	return true
}

// Covers reports whether v, with which a goroutine with debug.SetPanicOnFault has
// panicked, means that a page of the file is gone.
func (f *File) Covers(v any) bool {
	fault, ok := v.(interface{ Addr() uintptr })
	return ok && fault.Addr()-uintptr(unsafe.Pointer(unsafe.SliceData(f.mem))) < uintptr(len(f.mem))
}

// descriptor returns the descriptor of slab i as this process knows it: what Open has
// read and what was stored since, without the committed length, which others store.
func (f *File) descriptor(i int) []byte { return f.table[descriptorSize*i:][:descriptorSize] }

func (f *File) load(i, word int) uint64 { return native.Uint64(f.descriptor(i)[word:]) }

// mapped returns a word of descriptor i in the mapping.
func (f *File) mapped(i, word int) *uint64 {
	return (*uint64)(unsafe.Pointer(&f.mem[headerSize+descriptorSize*i+word]))
}

// store sets a word of descriptor i, here and in the file. It runs under guard.
func (f *File) store(i, word int, v uint64) {
	native.PutUint64(f.descriptor(i)[word:], v)
	atomic.StoreUint64(f.mapped(i, word), v)
}

// Slab returns the memory of slab i and its committed length. The caller of Begin
// copies whole lines after what is there and then stores what Committed returns, with
// a plain store after the copy. Both may fault, see Covers.
func (f *File) Slab(i int) (mem []byte, committed *uint64) {
	lo := f.geometry.slabAt(i)
	hi := lo + int64(f.geometry.SlabSize)
	return f.mem[lo:hi:hi], f.mapped(i, dCommitted)
}

// Begin takes slab i, which is free, into use. seq is greater than all before; see
// LastSeq. Slabs are recovered in the order of seq. Begin, Mark, Unmark, Delivered,
// Shrink, Seal and Free report whether the file was there; if not, it is of no use
// any more.
func (f *File) Begin(i int, seq uint64) bool {
	sound := false
	return f.guard(func() {
		sound = *f.mapped(i, dSeal) == f.load(i, dSeal)
		f.store(i, dSeq, seq) // the other words of a free slab are 0
	}) && sound
}

// Mark says that a Write of the bytes of slab i from delivered on is about to begin, at
// offset of the file that volume and inode name. An unmarked Write is repeated when the
// process is killed within it.
func (f *File) Mark(i int, delivered int, volume, inode uint64, offset int64) bool {
	return f.guard(func() {
		f.store(i, dMark, 0)
		f.store(i, dVolume, volume)
		f.store(i, dInode, inode)
		f.store(i, dOffset, uint64(offset))
		f.store(i, dMark, f.markWord(i, uint32(delivered)))
	})
}

// Unmark removes the mark of slab i: the next Write goes where no position is known.
func (f *File) Unmark(i int) bool { return f.guard(func() { f.store(i, dMark, 0) }) }

// Delivered says that the destination has taken the first n bytes of slab i. It comes
// after the Write and before the next Mark.
func (f *File) Delivered(i int, n int) bool {
	return f.guard(func() { f.store(i, dDelivered, f.load(i, dDelivered)>>32<<32|uint64(n)) })
}

// Shrink says that only so many bytes and lines of slab i are left to deliver.
func (f *File) Shrink(i, bytes, lines int) bool {
	return f.guard(func() {
		f.store(i, dMark, 0)
		f.store(i, dSeal, pair(0, f.tag(i)))
		f.store(i, dCommitted, Committed(bytes, lines))
	})
}

// SealStart returns the checksum of slab i, which is filled no more, before that of its
// bytes, with which Extend continues.
func (f *File) SealStart(i, bytes, lines int) uint32 {
	return recordlog.Checksum(native.AppendUint64(native.AppendUint64(nil, f.load(i, dSeq)), Committed(bytes, lines)))
}

// Extend returns the checksum of what check is of, followed by p.
func Extend(check uint32, p []byte) uint32 { return recordlog.Extend(check, p) }

// Seal gives slab i its checksum.
func (f *File) Seal(i int, check uint32) bool {
	return f.guard(func() { f.store(i, dSeal, pair(max(check, 1), f.tag(i))) })
}

// Matches reports whether no one else has written to slab i: whether the file has part
// there, from byte from on, and the descriptor that was stored, except for the committed
// length.
func (f *File) Matches(i, from int, part []byte) (same bool) {
	at, table := f.geometry.slabAt(i)+int64(from), headerSize+descriptorSize*i
	return f.guard(func() {
		told, found := f.descriptor(i), f.mem[table:][:descriptorSize]
		same = bytes.Equal(f.mem[at:][:len(part)], part) &&
			bytes.Equal(found[:dCommitted], told[:dCommitted]) && bytes.Equal(found[dDelivered:], told[dDelivered:])
	}) && same
}

// Free says that nothing of slab i has to be delivered any more. Its memory may be used
// again after the next Begin.
func (f *File) Free(i int) bool {
	line := f.load(i, dDelivered)>>32 == flagLine
	ok := f.guard(func() { f.clear(i) })
	if line {
		if f.lines--; f.lines == 0 {
			f.cutLines()
		}
	}
	return ok
}

// clear makes slab i free. A kill within it leaves words that do not count, and that the
// next Open clears.
func (f *File) clear(i int) {
	for word := dSeq; word < dSeal; word += 8 {
		f.store(i, word, 0)
	}
	f.store(i, dSeal, pair(0, f.tag(i)))
}

// tag returns the part of descriptor i that never changes.
func (f *File) tag(i int) uint32 { return uint32(native.Uint64(f.free[descriptorSize*i+dSeal:]) >> 32) }

// tagged reports whether descriptor i has its tag.
func (f *File) tagged(i int) bool { return uint32(f.load(i, dSeal)>>32) == f.tag(i) }

// markWord returns the word that makes the mark of slab i valid.
func (f *File) markWord(i int, base uint32) uint64 {
	d := f.descriptor(i)
	check := recordlog.Extend(recordlog.Checksum(d[dSeq:dSeq+8]), d[dVolume:dMark])
	check = recordlog.Extend(check, native.AppendUint32(nil, base))
	return pair(base, max(check, 1))
}

// mark returns the mark of slab i, if it has one.
func (f *File) mark(i int) (m Mark, ok bool) {
	w := f.load(i, dMark)
	base := uint32(w)
	if w == 0 || w != f.markWord(i, base) {
		return Mark{}, false
	}
	return Mark{Volume: f.load(i, dVolume), Inode: f.load(i, dInode), Offset: int64(f.load(i, dOffset)), Base: int64(base)}, true
}

// LastSeq returns the greatest sequence number in the file, or 0.
func (f *File) LastSeq() (last uint64) {
	for i := range f.geometry.SlabCount {
		if seq := f.load(i, dSeq); seq < maxSeq {
			last = max(last, seq)
		}
	}
	return last
}

// BeginLine is Begin for one line that is longer than a slab. It writes the line to the
// room that slab i has for it, with a system call. After an error, such as a full disk,
// slab i is free; after one that wraps ErrDamaged the file is of no use any more. The
// memory of Slab is not used.
func (f *File) BeginLine(i int, seq uint64, line []byte) error {
	g := f.geometry
	if len(line) > g.LineLimit {
		return f.errorf("a line of %d bytes, there is room for %d", len(line), g.LineLimit)
	}
	_, err := f.file.WriteAt(line, g.lineAt(i))
	if err == nil {
		f.end.Store(max(f.end.Load(), g.lineAt(i)+int64(len(line))))
	} else if f.lines == 0 {
		f.cutLines() // what there was room for
	}
	if err == nil && !f.guard(func() {
		f.store(i, dDelivered, pair(0, flagLine))
		f.store(i, dCommitted, Committed(len(line), 1))
		f.store(i, dSeq, seq)
	}) {
		err = ErrDamaged
	}
	if err != nil {
		return f.errorf("write a line: %w", err)
	}
	f.lines++
	return nil
}

// cutLines removes the line rooms from the file, and never makes it longer. If that
// fails, they keep their blocks.
func (f *File) cutLines() {
	n := f.geometry.mapped()
	f.end.Store(n)
	if info, err := f.file.Stat(); err == nil && info.Size() > n {
		_ = f.file.Truncate(n)
	}
}
