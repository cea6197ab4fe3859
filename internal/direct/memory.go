package direct

import "unsafe"

// Align is the alignment of a buffer of a MemorySet in bytes: a multiple of what every
// known disk requires. The buffer has the same number of bytes after its end.
const Align = 4096

// MemorySet is several buffers for direct I/O in one piece, which large pages cover
// except for the end. They are mapped and touched at once, so that no later write causes
// a page fault, and are outside the heap, so that the garbage collector does not scan
// them. In a program built with -race, and where memory cannot be mapped, they are on the
// heap: the detector does not see mapped memory.
type MemorySet struct {
	mapped []byte // for release
	used   []byte // the buffers, one after another
	size   int    // of a buffer
	step   int    // from one buffer to the next
}

// NewMemorySet returns count buffers of size bytes, both more than 0.
func NewMemorySet(count, size int) (*MemorySet, error) {
	step := (size+Align-1)&^(Align-1) + Align
	mapped, used, err := allocate(count * step)
	if err != nil {
		return nil, err
	}
	return &MemorySet{mapped, used, size, step}, nil
}

// Bytes returns the buffer of that index. Its capacity is at least Align bytes
// more than its length.
func (s *MemorySet) Bytes(i int) []byte {
	whole := s.used[i*s.step:][:s.step:s.step]
	return whole[:s.size]
}

// Free unmaps the memory, which must not be used afterwards.
func (s *MemorySet) Free() error {
	mapped := s.mapped
	*s = MemorySet{}
	return release(mapped)
}

// address returns where b begins.
func address(b []byte) int { return int(uintptr(unsafe.Pointer(unsafe.SliceData(b)))) }

// aligned reports whether b begins at a multiple of align.
func aligned(b []byte, align int) bool {
	return address(b)&(align-1) == 0
}
