package columns

import (
	"encoding/binary"
	"slices"

	"github.com/klauspost/compress/huff0"
)

// A frame of literals is a zstd frame (RFC 8878) with one block, of Huffman codes and without matches.
//
//	28 B5 2F FD, 60, the number of bytes less 256 (2 bytes)
//	header of the block, 3 bytes: 5 + 8 * its length
//	header of its literals, 3 or 4 bytes: 2 for one stream of codes, 6 or 10 for four of them;
//	from bit 4 on, in 10 or with 10 in 14 bits each, the number of bytes and the length of the codes
//	the table and the codes, as huff0 makes them
//	00: no matches

const (
	literalsMagic = "\x28\xb5\x2f\xfd\x60"
	minLiterals   = 256
	maxLiterals   = 1<<14 - 1
)

// literals reads a frame of literals, whose n bytes replace dst. It takes less than a zstd decoder, which
// has to read the others, and those that are damaged: false.
func (b *Block) literals(dst, frame []byte, n int) ([]byte, bool) {
	last := len(frame) - 1
	if n < minLiterals || n > maxLiterals || last < 14 || string(frame[:5]) != literalsMagic || frame[last] != 0 {
		return dst, false
	}
	kind, at, bits := frame[10]&15, 13, 10
	if kind == 2|2<<2 {
		at, bits = 14, 14
	} else if kind != 2 && kind != 2|1<<2 {
		return dst, false
	}
	size := int(binary.LittleEndian.Uint16(frame[5:])) + minLiterals
	block := int(binary.LittleEndian.Uint32(frame[6:]) >> 8)
	literals := int(binary.LittleEndian.Uint32(frame[10:])) >> 4
	if size != n || block != 5|(last-9)<<3 || literals&(1<<bits-1) != n || literals>>bits&(1<<bits-1) != last-at {
		return dst, false
	}
	s, codes, err := huff0.ReadTable(frame[at:last], b.huffman)
	if err != nil {
		return dst, false
	}
	b.huffman = s
	dst = slices.Grow(dst[:0], n)[:n]
	decompress := s.Decoder().Decompress4X
	if kind == 2 {
		decompress = s.Decoder().Decompress1X
	}
	out, err := decompress(dst[:0:n], codes)
	return dst, err == nil && len(out) == n
}

// packIntegers is pack for the bytes of integers: it makes a frame of literals if that saves a sixteenth of
// them, and is at most a sixteenth longer than a frame with matches.
func (e *Encoder) packIntegers(b []byte) []byte {
	packed, n := e.pack(b), len(b)
	if n < minLiterals || n > maxLiterals || len(packed) < n/9 { // a code has a bit
		return packed
	}
	compress, at, bits, kind := huff0.Compress4X, 14, 14, 2|2<<2
	if n < 1024 {
		compress, at, bits, kind = huff0.Compress1X, 13, 10, 2
	}
	codes, _, err := compress(b, &e.huffman)
	if size := len(codes) + at + 1; err != nil || size > len(packed)+len(packed)/16 || size > n-n/16 {
		return packed
	}
	out := append(e.bytes[:0], literalsMagic...)
	out = binary.LittleEndian.AppendUint16(out, uint16(n-minLiterals))
	out = binary.LittleEndian.AppendUint32(out, uint32(5|(at-9+len(codes))<<3))[:10]
	out = binary.LittleEndian.AppendUint32(out, uint32(kind|n<<4|len(codes)<<(4+bits)))[:at]
	e.bytes = append(append(out, codes...), 0)
	return e.bytes
}
