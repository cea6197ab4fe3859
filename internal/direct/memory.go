package direct

import "unsafe"

// Align is where Memory begins, in bytes: a multiple of what every known disk
// asks for. Memory has as much room behind its end.
const Align = 4096

// Memory is a buffer for direct I/O. It is mapped and touched at once, so that
// no later write meets a page fault, and lies outside the heap, so that no
// collection looks at it. In a program built with -race, and where memory
// cannot be mapped, it is on the heap: the detector does not see mapped memory.
type Memory struct{ set *MemorySet }

// NewMemory returns size bytes, more than 0.
func NewMemory(size int) (*Memory, error) {
	set, err := NewMemorySet(1, size)
	return &Memory{set}, err
}

// Bytes returns the memory. Its capacity is at least Align bytes more than its
// length.
func (m *Memory) Bytes() []byte { return m.set.Bytes(0) }

// Footprint returns how many bytes there are in all.
func (m *Memory) Footprint() int { return m.set.Footprint() }

// Free gives the memory back. Nobody may use it any more.
func (m *Memory) Free() error { return m.set.Free() }

// MemorySet is several buffers, each as Memory is, in one piece: so large pages
// hold all of them but the end, whatever the size of one is.
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

// Footprint returns how many bytes there are in all.
func (s *MemorySet) Footprint() int { return len(s.used) }

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
