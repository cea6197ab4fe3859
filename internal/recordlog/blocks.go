package recordlog

import (
	"encoding/binary"
	"fmt"
	"math"
)

// FlagBlocks is the flag of a frame whose lines are in blocks, each of one tenant. The
// checksum of its body covers the head: the key section and the directory.
// docs/FORMAT.md has the same table.
//
//	Body of a frame with blocks
//	  the key section
//	  the length of the directory, 4 bytes
//	  the directory: unsigned varints, except names and checksums
//	    number of blocks
//	    of each block: length of the tenant's name, and the name
//	                   number of records
//	                   length of its lines when unpacked
//	                   length as it is stored; 0 = deleted by retention
//	                   checksum of what is stored, 4 bytes
//	    runs of records, in the order of their numbers: twice the index of the block,
//	    plus 1 if they are several; then how many, less 2
//	  the blocks: the lines of each, with the frame's codec
const FlagBlocks = 1

// Block is the lines of one tenant in a frame.
type Block struct {
	Tenant   string
	Records  int
	Unpacked int // bytes of its lines
	Len      int // bytes as it is stored; 0: deleted by retention
	Sum      uint32
	Pos      int // in the body; filled by ParseBlocks
}

// String names b in errors.
func (b Block) String() string { return fmt.Sprintf("the block of tenant %q", b.Tenant) }

// Of returns the checked bytes of b in body.
func (b *Block) Of(body []byte) ([]byte, error) {
	data := body[b.Pos:][:b.Len]
	if Checksum(data) != b.Sum {
		return nil, ErrDamaged
	}
	return data, nil
}

// Runs tells the blocks of a frame's records, in the order of their numbers.
type Runs []byte

// Append adds n records of a block.
func (r Runs) Append(block, n int) Runs {
	if n == 1 {
		return binary.AppendUvarint(r, 2*uint64(block))
	}
	return binary.AppendUvarint(binary.AppendUvarint(r, 2*uint64(block)+1), uint64(n-2))
}

// Next takes the first run off r; n is 0 at the end, or where r is not valid.
func (r *Runs) Next() (block, n int) {
	v, size := binary.Uvarint(*r)
	if size <= 0 || v > math.MaxInt32 {
		return 0, 0
	}
	*r, n = (*r)[size:], 1
	if v&1 != 0 {
		more, size := binary.Uvarint(*r)
		if size <= 0 || more > MaxBody {
			return 0, 0
		}
		*r, n = (*r)[size:], int(more)+2
	}
	return int(v / 2), n
}

// AppendBlocks appends the directory of a frame and its length to dst, which ends in the
// key section.
func AppendBlocks(dst []byte, blocks []Block, runs Runs) []byte {
	start := len(dst)
	dst = binary.AppendUvarint(append(dst, 0, 0, 0, 0), uint64(len(blocks)))
	for _, b := range blocks {
		dst = append(binary.AppendUvarint(dst, uint64(len(b.Tenant))), b.Tenant...)
		for _, n := range [...]int{b.Records, b.Unpacked, b.Len} {
			dst = binary.AppendUvarint(dst, uint64(n))
		}
		dst = binary.LittleEndian.AppendUint32(dst, b.Sum)
	}
	dst = append(dst, runs...)
	binary.LittleEndian.PutUint32(dst[start:], uint32(len(dst)-start-4))
	return dst
}

// headLen returns the length of the part of body that the frame's checksum covers. body may
// end after the length of the directory.
func (f *Frame) headLen(body []byte) (int, bool) {
	if f.Flags != FlagBlocks {
		return f.BodyLen, true
	}
	if len(body) < f.KeysLen+4 {
		return 0, false
	}
	n := int64(f.KeysLen) + 4 + int64(binary.LittleEndian.Uint32(body[f.KeysLen:]))
	return int(n), n <= int64(f.BodyLen)
}

// ParseBlocks returns the blocks of the frame f, whose body begins with the checked head,
// and the runs of its records, which refer to head.
func ParseBlocks(f *Frame, head []byte) ([]Block, Runs, error) {
	size, ok := f.headLen(head)
	if !ok || f.Flags != FlagBlocks || size > len(head) {
		return nil, nil, ErrDamaged
	}
	b, pos := head[f.KeysLen+4:size], size
	number := func() int {
		v, n := binary.Uvarint(b)
		if n <= 0 || v > MaxBody {
			ok = false
			return 0
		}
		b = b[n:]
		return int(v)
	}
	count := number()
	if count == 0 || count > f.Records || count > len(b) {
		return nil, nil, ErrDamaged
	}
	blocks, records, unpacked := make([]Block, count), 0, 0
	for i := range blocks {
		name := number()
		if name > len(b) {
			return nil, nil, ErrDamaged
		}
		k := &blocks[i]
		k.Tenant, b = string(b[:name]), b[name:]
		k.Records, k.Unpacked, k.Len, k.Pos = number(), number(), number(), pos
		if !ok || len(b) < 4 || k.Records > k.Unpacked || k.Len > f.BodyLen-pos {
			return nil, nil, ErrDamaged
		}
		k.Sum, b = binary.LittleEndian.Uint32(b), b[4:]
		pos, records, unpacked = pos+k.Len, records+k.Records, unpacked+k.Unpacked
	}
	if pos != f.BodyLen || records != f.Records || unpacked != f.Unpacked {
		return nil, nil, ErrDamaged
	}
	left := make([]int, count)
	for rest := Runs(b); len(rest) > 0; {
		i, n := rest.Next()
		if n == 0 || i >= count {
			return nil, nil, ErrDamaged
		}
		left[i] += n
	}
	for i := range blocks {
		if left[i] != blocks[i].Records {
			return nil, nil, ErrDamaged
		}
	}
	return blocks, Runs(b), nil
}
