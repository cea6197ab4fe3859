package normalize

import (
	"bytes"
	"math"
	"runtime"
	"sync"
	"unsafe"

	"github.com/klauspost/compress/zstd"
)

const (
	// chunkBytes is how many bytes of lines a piece of memory has, unless a single line has
	// more.
	chunkBytes = 1 << 20
	// leastChunk is the size of the first one.
	leastChunk = 4 << 10
	// rawBytes is how many bytes of full chunks stay as they are, beyond what is free.
	// Requests with more lines than that for their size repeat what their events share.
	rawBytes = 2 << 20
)

// A Chunk is a part of a batch's lines.
type Chunk struct {
	Bytes   []byte // lines, or one frame of zstd that tells their length
	Packed  bool
	Size    int // length of the lines
	Records int // number of lines
}

// A Room bounds the memory of a Batch.
type Room interface {
	// Grow reports whether the batch may take up memory bytes, for lines of so many bytes
	// in all.
	Grow(memory, lines int) bool
}

// Within has the batch ask room, until it is reset, before it takes up more than free
// bytes. Once room has refused, the batch is of no use: what it holds is thrown away and
// what comes is counted only, as Overflowed tells. Of lines that are more than what is
// free and some MiB, full chunks are packed: those that repeat what events share take up
// little.
func (b *Batch) Within(room Room, free int) {
	b.room, b.free, b.start = room, free, free
}

// Overflowed reports whether the batch was refused room, see Within.
func (b *Batch) Overflowed() bool { return b.overflow }

// Chunks returns the lines before Lines.
func (b *Batch) Chunks() []Chunk { return b.chunks }

// Size is the length of all lines.
func (b *Batch) Size() int { return b.sealed + len(b.Lines) }

// Held is how many bytes lines and dead letters have.
func (b *Batch) Held() int { return b.Size() + b.HeldRejected() }

// HeldRejected is how many of them dead letters have.
func (b *Batch) HeldRejected() int {
	return len(b.deadText) + len(b.deadLetters)*int(unsafe.Sizeof(DeadLetter{}))
}

// AppendTo appends all lines to dst.
func (b *Batch) AppendTo(dst []byte) []byte {
	for _, c := range b.chunks {
		if !c.Packed {
			dst = append(dst, c.Bytes...)
			continue
		}
		var err error
		if dst, err = unpacker().DecodeAll(c.Bytes, dst); err != nil {
			panic("normalize: a chunk cannot be unpacked: " + err.Error())
		}
	}
	return append(dst, b.Lines...)
}

// memory is how many bytes the batch takes up, and what is asked for on its behalf.
func (b *Batch) memory() int {
	return b.taken + b.scratch + cap(b.Lines) + cap(b.deadText) + cap(b.deadLetters)*int(unsafe.Sizeof(DeadLetter{}))
}

// take asks for n bytes more than there are. It reports whether they may be taken.
func (b *Batch) take(n int) bool { return b.memory()+n <= b.free || b.ask(b.memory()+n) }

func (b *Batch) ask(memory int) bool {
	switch {
	case b.overflow:
	case b.room == nil:
		b.free = math.MaxInt
	case b.room.Grow(memory, b.Size()):
		b.free = max(b.free, memory)
	default:
		b.overflow = true
		b.cut(0, 0)
		b.deadLetters, b.deadText, b.hasDeadLetter = b.deadLetters[:0], b.deadText[:0], false
	}
	return !b.overflow
}

// fits reports whether there is room for n bytes more in Lines, and makes it.
func (b *Batch) fits(n int) bool { return len(b.Lines)+n <= cap(b.Lines) && !b.overflow || b.extend(n) }

// Expect has the batch begin with memory for n bytes of lines.
func (b *Batch) Expect(n int) {
	b.expected = n
	b.fits(min(n, chunkBytes))
}

// Drop throws the batch's memory away. It is empty then.
func (b *Batch) Drop() {
	b.Lines, b.chunks, b.deadText, b.deadLetters = nil, nil, nil, nil
	b.Reset()
}

// extend makes that room, if it may.
func (b *Batch) extend(n int) bool {
	for len(b.Lines) > 0 && len(b.Lines)+n > chunkBytes {
		if !b.seal() {
			return false
		}
	}
	if len(b.Lines)+n <= cap(b.Lines) {
		return !b.overflow
	}
	size := max(min(2*cap(b.Lines), chunkBytes), leastChunk, len(b.Lines)+n)
	if len(b.chunks) > 0 {
		size = max(size, chunkBytes)
	}
	if len(b.Lines) == 0 {
		b.Lines = nil
	}
	if !b.take(size) { // the old memory is there until its bytes are copied
		return false
	}
	b.Lines = append(make([]byte, 0, size), b.Lines...)
	return true
}

// seal makes a chunk of Lines, up to the mark if it is within them.
func (b *Batch) seal() bool {
	part := b.Lines
	if b.marked.lines > 0 && b.marked.chunks == len(b.chunks) {
		part = part[:b.marked.lines]
	}
	rest := b.Lines[len(part):]
	c := Chunk{Bytes: part, Size: len(part), Records: bytes.Count(part, newline)}
	if b.raw+cap(b.Lines) <= rawBytes || b.room == nil || b.memory()+chunkBytes <= b.start {
		size := chunkBytes
		if left := b.expected - b.sealed - len(part); left > 0 {
			size = max(min(left, chunkBytes), leastChunk, len(rest))
		}
		if !b.take(size) {
			return false
		}
		b.raw += cap(b.Lines)
		b.taken += cap(b.Lines)
		b.Lines = append(make([]byte, 0, max(size, len(rest))), rest...)
	} else {
		if !b.take(len(part) + len(part)/64 + 64) { // which may wait, so it holds no packer
			return false
		}
		p := <-packers()
		p.out = p.enc.EncodeAll(part, p.out[:0])
		c.Bytes, c.Packed = append(make([]byte, 0, len(p.out)), p.out...), true // cut gives back its capacity
		packers() <- p
		b.taken += len(c.Bytes)
		b.Lines = b.Lines[:copy(b.Lines, rest)]
	}
	if b.marked.chunks == len(b.chunks) && b.marked.lines > 0 {
		b.marked.chunks, b.marked.lines = b.marked.chunks+1, 0
	}
	b.chunks = append(b.chunks, c)
	b.sealed += c.Size
	return true
}

// cut takes out the lines after the first chunks and so many bytes of Lines, as they were
// when there were no more chunks.
func (b *Batch) cut(chunks, lines int) {
	for i := range b.chunks[chunks:] {
		c := &b.chunks[chunks+i]
		b.sealed -= c.Size
		b.taken -= cap(c.Bytes)
		if !c.Packed {
			b.raw -= cap(c.Bytes)
		}
		*c = Chunk{}
	}
	b.chunks = b.chunks[:chunks]
	b.Lines = b.Lines[:lines]
}

// lettersFit is fits for one more dead letter with n bytes of text.
func (b *Batch) lettersFit(n int) bool {
	if len(b.deadLetters) == cap(b.deadLetters) {
		size := max(2*cap(b.deadLetters), 8)
		if !b.take(size * int(unsafe.Sizeof(DeadLetter{}))) {
			return false
		}
		b.deadLetters = append(make([]DeadLetter, 0, size), b.deadLetters...)
	}
	return b.textFits(n)
}

// textFits is fits for n bytes of dead letters.
func (b *Batch) textFits(n int) bool {
	if len(b.deadText)+n > cap(b.deadText) {
		size := max(2*cap(b.deadText), len(b.deadText)+n, 1<<10)
		if !b.take(size) {
			return false
		}
		b.deadText = append(make([]byte, 0, size), b.deadText...)
	}
	return !b.overflow
}

// freeScratch is how many bytes an event may have until memory that it takes up besides
// its line is asked for, scratchTimes how many times its size that is: its attributes and
// the values of its slots, each in old and new memory while it grows, names and texts.
const (
	freeScratch  = 16 << 10
	scratchTimes = 3
)

// roomFor reports whether there is room for the scratch memory of an event of size bytes.
func (n *Normalizer) roomFor(size int) bool { return size <= n.body.granted || n.moreRoom(size) }

func (n *Normalizer) moreRoom(size int) bool {
	dst, granted := n.body.dst, size+size/4
	more := scratchTimes*granted - dst.scratch
	if !dst.take(more) {
		return false
	}
	dst.scratch += more
	n.body.granted = granted
	return true
}

// packers are what chunks are packed by. There are few, so that their memory is bounded.
var packers = sync.OnceValue(func() chan *packer {
	list := make(chan *packer, runtime.GOMAXPROCS(0))
	for range cap(list) {
		enc, err := zstd.NewWriter(nil, zstd.WithEncoderLevel(zstd.SpeedFastest), zstd.WithEncoderCRC(false),
			zstd.WithEncoderConcurrency(1), zstd.WithLowerEncoderMem(true), zstd.WithWindowSize(chunkBytes))
		if err != nil {
			panic("normalize: " + err.Error()) // its options are constants
		}
		list <- &packer{enc: enc}
	}
	return list
})

type packer struct {
	enc *zstd.Encoder
	out []byte
}

var unpacker = sync.OnceValue(func() *zstd.Decoder {
	d, err := zstd.NewReader(nil, zstd.WithDecoderConcurrency(1), zstd.WithDecoderLowmem(true))
	if err != nil {
		panic("normalize: " + err.Error()) // its options are constants
	}
	return d
})
