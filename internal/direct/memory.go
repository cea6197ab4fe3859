package direct

import "unsafe"

// Align is the alignment of a buffer of a MemorySet in bytes, a multiple of what every
// known disk requires, and the number of bytes after its end.
const Align = 4096

// MemorySet is several buffers for direct I/O in one piece, covered by large pages except
// for the end. They are mapped and touched at once, so that no write causes a page fault,
// and outside the heap, so that the garbage collector does not scan them. With -race, and
// where memory cannot be mapped, they are on the heap: the detector does not see mapped
// memory.
type MemorySet struct {
	mapped []byte // for release
	used   []byte // the buffers, one after another
	size   int    // of a buffer
	step   int    // from one buffer to the next
}

func NewMemorySet(count, size int) (*MemorySet, error) {
	step := (size+Align-1)&^(Align-1) + Align
	mapped, used, err := allocate(count * step)
	if err != nil {
		return nil, err
	}
	return &MemorySet{mapped, used, size, step}, nil
}

// Bytes returns the buffer of that index, with at least Align bytes of capacity after its
// end.
func (s *MemorySet) Bytes(i int) []byte {
	whole := s.used[i*s.step:][:s.step:s.step]
	return whole[:s.size]
}

func (s *MemorySet) Free() error {
	mapped := s.mapped
	*s = MemorySet{}
	return release(mapped)
}

func address(b []byte) int { return int(uintptr(unsafe.Pointer(unsafe.SliceData(b)))) }

func aligned(b []byte, align int) bool { return address(b)&(align-1) == 0 }
