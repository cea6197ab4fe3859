package relay

import (
	"net/netip"
	"sync"
)

// sources counts the connections of each client address. Safe for concurrent
// use.
type sources struct {
	mu    sync.Mutex
	count map[netip.Addr]int // guarded by mu
}

// source is what the connections from an address are counted under; invalid if
// they are not.
func source(a netip.Addr) netip.Addr {
	a = a.Unmap()
	if !a.Is6() {
		return a
	}
	p, err := a.WithZone("").Prefix(64)
	if err != nil {
		return netip.Addr{}
	}
	return p.Addr()
}

// take counts one more connection; false: a has most already.
func (s *sources) take(a netip.Addr, most int) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.count == nil {
		s.count = map[netip.Addr]int{}
	}
	if s.count[a] >= most {
		return false
	}
	s.count[a]++
	return true
}

func (s *sources) give(a netip.Addr) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.count[a]--; s.count[a] == 0 {
		delete(s.count, a)
	}
}

// spareDescriptors are left for what is not a connection or a pipe.
const spareDescriptors = 64

// descriptorsAllow is how many connections the process's limit on descriptors
// leaves room for; negative: any number.
func descriptorsAllow(pipes int) int {
	limit := descriptorLimit()
	if limit < 0 {
		return -1
	}
	// A connection has a descriptor for each side, and so has a pipe.
	return max((limit-2*max(pipes, 0)-spareDescriptors)/2, 16)
}
