package direct

import "unsafe"

// Align is where Memory begins, in bytes: a multiple of what every known disk
// asks for. Memory has as much room behind its end.
const Align = 4096

// Memory is a buffer for direct I/O. It is mapped and touched at once, so that
// no later write meets a page fault, and lies outside the heap, so that no
// collection looks at it. In a program built with -race, and where memory
// cannot be mapped, it is on the heap: the detector does not see mapped memory.
type Memory struct {
	whole []byte
	size  int
}

// NewMemory returns size bytes, more than 0.
func NewMemory(size int) (*Memory, error) {
	whole, err := allocate((size+Align-1)&^(Align-1) + Align)
	if err != nil {
		return nil, err
	}
	return &Memory{whole, size}, nil
}

// Bytes returns the memory. Its capacity is at least Align bytes more than its
// length.
func (m *Memory) Bytes() []byte { return m.whole[:m.size] }

// Footprint returns how many bytes there are in all.
func (m *Memory) Footprint() int { return len(m.whole) }

// Free gives the memory back. Nobody may use it any more.
func (m *Memory) Free() error {
	whole := m.whole
	m.whole, m.size = nil, 0
	return release(whole)
}

// aligned reports whether b begins at a multiple of align.
func aligned(b []byte, align int) bool {
	return uintptr(unsafe.Pointer(unsafe.SliceData(b)))%uintptr(align) == 0
}
