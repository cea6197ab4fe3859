package filters

import (
	"bytes"
	"encoding/binary"
	"math/bits"

	"github.com/cespare/xxhash/v2"
	"github.com/klauspost/compress/zstd"

	"github.com/rollway/rollway/internal/jsonwalk"
	"github.com/rollway/rollway/internal/recordlog"
)

// A Builder makes the section of one segment. It is for one goroutine at a time. It holds up
// to 20 MB for the group that it gathers, and the stored pages of the others.
type Builder struct {
	zstd *zstd.Encoder

	frames []Frame            // of the group
	bytes  int                // of its lines
	values values             // of the frame
	seen   *[trigramRows]byte // 1: the frame has the trigram. A byte is set without being read, as a bit is not
	text   []byte

	head, pages []byte
	groups      int
	last        uint64 // first record of the frame before
}

// A Frame is one that was gathered. It is immutable.
type Frame struct {
	first    uint64
	trigrams *[trigramRows / 64]uint64
	values   []uint64 // hashes
	unknown  bool     // the values
}

// Bytes is what f takes in memory.
func (f *Frame) Bytes() int { return 8 * (len(f.trigrams) + len(f.values)) }

// NewBuilder returns a Builder.
func NewBuilder() (*Builder, error) {
	enc, err := zstd.NewWriter(nil, zstd.WithEncoderLevel(zstd.SpeedFastest), zstd.WithEncoderCRC(false), zstd.WithEncoderConcurrency(1), zstd.WithLowerEncoderMem(true), zstd.WithWindowSize(zstd.MinWindowSize), zstd.WithSingleSegment(true))
	if err != nil {
		return nil, err
	}
	return &Builder{zstd: enc, seen: new([trigramRows]byte)}, nil
}

// Lines says how many bytes of lines the frame has more.
func (b *Builder) Lines(size int) { b.bytes += size }

// Text adds the trigrams of a part of a line to the frame.
func (b *Builder) Text(part []byte) {
	if len(part) < 3 {
		return
	}
	seen, three := b.seen, uint32(part[0])<<8|uint32(part[1])<<16
	for _, c := range part[2:] {
		three = three>>8 | uint32(c)<<16
		seen[rowOf(three)] = 1
	}
}

// trigrams takes the rows of the frame's trigrams, as bits, out of seen.
func (b *Builder) trigrams() *[trigramRows / 64]uint64 {
	set := new([trigramRows / 64]uint64)
	for i := range set {
		for n := 0; n < 64; n += 8 {
			eight := binary.LittleEndian.Uint64(b.seen[64*i+n:])
			set[i] |= eight * 0x0102040810204080 >> 56 << n
		}
	}
	clear(b.seen[:])
	return set
}

// Value adds the JSON value of a field to the frame, and the scalars that are inside of it.
func (b *Builder) Value(raw []byte) {
	if len(raw) == 0 {
		return
	}
	escaped := bytes.IndexByte(raw, '\\') >= 0
	if escaped {
		b.text = jsonwalk.AppendText(b.text[:0], raw)
		b.Text(b.text)
	}
	switch raw[0] {
	case '"':
		if len(raw) < 2 {
			return
		}
		text := raw[1 : len(raw)-1]
		if escaped {
			b.text = jsonwalk.AppendText(b.text[:0], text)
			text = b.text
		}
		b.add(text)
	case '{', '[':
		b.scalars(raw)
	default:
		b.add(raw)
	}
}

// scalars adds what is inside of an object or an array.
func (b *Builder) scalars(raw []byte) {
	for i := 0; i < len(raw); {
		switch raw[i] {
		case '"':
			end, _ := jsonwalk.SkipString(raw, i)
			if end < 0 {
				return
			}
			if end == len(raw) || raw[end] != ':' {
				b.Value(raw[i:end])
			}
			i = end
		case '{', '}', '[', ']', ',', ':', ' ', '\n', '\r', '\t':
			i++
		default:
			end := jsonwalk.SkipScalar(raw, i)
			if end <= i {
				return
			}
			b.add(raw[i:end])
			i = end
		}
	}
}

func (b *Builder) add(text []byte) {
	if hash, ok := hashOf(text); ok {
		b.values.add(hash)
	}
}

// hashOf returns the hash of a value, which is not 0; false: it is too long for the set.
func hashOf(text []byte) (hash uint64, ok bool) {
	if len(text) > 0 && (text[0] == '-' || jsonwalk.IsDigit(text[0])) && !isPlain(text) {
		if d, ok := jsonwalk.ParseDecimal(text); ok {
			var buf [2 * maxValue]byte
			text = d.AppendTo(buf[:0])
		}
	}
	return max(xxhash.Sum64(text), 1), len(text) <= maxValue
}

// isPlain reports whether text is a number as [jsonwalk.Decimal.AppendTo] writes it: no more than digits.
func isPlain(text []byte) bool {
	if len(text) > 20 || text[0] == '0' && len(text) > 1 {
		return false
	}
	for _, c := range text {
		if !jsonwalk.IsDigit(c) {
			return false
		}
	}
	return true
}

// End ends a frame, whose first record has that number, and returns it.
func (b *Builder) End(first uint64) Frame {
	f := Frame{first: first, trigrams: b.trigrams(), unknown: b.values.n > maxValues}
	if !f.unknown {
		f.values = b.values.list()
	}
	b.frames = append(b.frames, f)
	b.values.reset()
	if len(b.frames) == groupFrames {
		b.group()
	}
	return f
}

// group stores the gathered frames, if that pays.
func (b *Builder) group() {
	head, pages, last := len(b.head), len(b.pages), b.last
	b.encode()
	if b.groups++; len(b.head) > maxHead || (len(b.pages)-pages)*worth > b.bytes {
		b.head, b.pages, b.last, b.groups = b.head[:head], b.pages[:pages], last, b.groups-1
	}
	b.frames, b.bytes = b.frames[:0], 0
}

// encode appends the head and the pages of the gathered frames.
func (b *Builder) encode() {
	most, unknown := 0, uint64(0)
	b.head = binary.AppendUvarint(b.head, uint64(len(b.frames)))
	for i, f := range b.frames {
		b.head = binary.AppendUvarint(b.head, f.first-b.last)
		b.last = f.first
		most = max(most, len(f.values))
		if f.unknown {
			unknown |= 1 << i
		}
	}
	b.head = binary.LittleEndian.AppendUint64(b.head, unknown)
	pages := (most*valueBits + pageRows - 1) / pageRows
	b.head = binary.AppendUvarint(b.head, uint64(trigramPages+pages))
	b.page(b.trigramsOf())
	b.page(b.valuesOf(pages))
}

// trigramsOf returns the rows of the trigrams.
func (b *Builder) trigramsOf() []uint64 {
	rows := make([]uint64, trigramRows)
	for i, f := range b.frames {
		for at, word := range f.trigrams {
			for ; word != 0; word &= word - 1 {
				rows[64*at+bits.TrailingZeros64(word)] |= 1 << i
			}
		}
	}
	return rows
}

// valuesOf returns the rows of the values, on so many pages.
func (b *Builder) valuesOf(pages int) []uint64 {
	rows := make([]uint64, pages*pageRows)
	for i, f := range b.frames {
		for _, hash := range f.values {
			page, at := valueAt(hash, pages)
			for _, row := range at {
				rows[page*pageRows+row] |= 1 << i
			}
		}
	}
	return rows
}

// valueAt returns the page of a value and its rows there.
func valueAt(hash uint64, pages int) (page int, rows [valueRows]int) {
	hi, _ := bits.Mul64(hash, uint64(pages))
	hash *= 0x9E3779B97F4A7C15
	for i := range rows {
		rows[i] = int(hash % pageRows)
		hash /= pageRows
	}
	return int(hi), rows
}

// page stores pages.
func (b *Builder) page(rows []uint64) {
	var page [pageBytes]byte
	for ; len(rows) > 0; rows = rows[pageRows:] {
		for i, row := range rows[:pageRows] {
			binary.LittleEndian.PutUint64(page[8*i:], row)
		}
		start := len(b.pages)
		if b.pages = b.zstd.EncodeAll(page[:], b.pages); len(b.pages)-start >= pageBytes {
			b.pages = append(b.pages[:start], page[:]...)
		}
		stored := b.pages[start:]
		b.head = binary.AppendUvarint(b.head, uint64(len(stored)))
		b.head = binary.LittleEndian.AppendUint32(b.head, recordlog.Checksum(stored))
	}
}

// Append appends the section to dst, if there is one, and forgets all frames.
func (b *Builder) Append(dst []byte) []byte {
	if len(b.frames) > 0 {
		b.group()
	}
	if b.groups > 0 {
		head := append(binary.AppendUvarint(nil, uint64(b.groups)), b.head...)
		dst = binary.LittleEndian.AppendUint32(dst, uint32(len(head)))
		dst = binary.LittleEndian.AppendUint32(dst, recordlog.Checksum(head))
		dst = append(append(dst, head...), b.pages...)
	}
	b.head, b.pages, b.groups, b.last = b.head[:0], b.pages[:0], 0, 0
	return dst
}

// values is a set of hashes.
type values struct {
	slots []uint64 // a power of two of them; 0: free
	n     int
}

func (v *values) add(hash uint64) {
	if v.n > maxValues {
		return
	}
	if 2*v.n >= len(v.slots) {
		old := v.slots
		v.slots, v.n = make([]uint64, max(1024, 2*len(old))), 0
		for _, h := range old {
			if h != 0 {
				v.add(h)
			}
		}
	}
	mask := uint64(len(v.slots) - 1)
	for at := hash & mask; ; at = (at + 1) & mask {
		switch v.slots[at] {
		case hash:
			return
		case 0:
			v.slots[at] = hash
			v.n++
			return
		}
	}
}

func (v *values) list() []uint64 {
	list := make([]uint64, 0, v.n)
	for _, h := range v.slots {
		if h != 0 {
			list = append(list, h)
		}
	}
	return list
}

func (v *values) reset() {
	clear(v.slots)
	v.n = 0
}
