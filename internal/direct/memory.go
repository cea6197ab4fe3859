package direct

import "unsafe"

// Align is where a buffer of a MemorySet begins, in bytes: a multiple of what
// every known disk asks for. There is as much room behind its end.
const Align = 4096

// MemorySet is several buffers for direct I/O in one piece: so large pages hold
// all of them but the end, whatever the size of one is. They are mapped and
// touched at once, so that no later write meets a page fault, and lie outside
// the heap, so that no collection looks at them. In a program built with -race,
// and where memory cannot be mapped, they are on the heap: the detector does not
// see mapped memory.
type MemorySet struct {
	mapped []byte // what is to be released
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

// Free gives the memory back. Nobody may use it any more.
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
