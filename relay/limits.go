package relay

import (
	"log/slog"
	"net/netip"
	"sync"
)

// sources counts the connections of each client address. Safe for concurrent
// use.
type sources struct {
	mu    sync.Mutex
	count map[netip.Addr]int // guarded by mu
}

// source returns the address that connections from a are counted under: a itself, or
// its /64. It is invalid for a client without an address.
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

// acquire counts one more connection, unless a has most already.
func (s *sources) acquire(a netip.Addr, most int) bool {
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

func (s *sources) release(a netip.Addr) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.count[a]--; s.count[a] == 0 {
		delete(s.count, a)
	}
}

// spareDescriptors are reserved for files other than connections and pipes.
const spareDescriptors = 64

// fitDescriptors sets the defaults of maxPipes and MaxConns by the process's limit on
// descriptors (negative: no limit), and logs what does not fit. A connection and a pipe
// have two descriptors each.
func (o *Options) fitDescriptors(limit int) {
	if limit < 0 {
		defaultTo(&o.maxPipes, 128)
		defaultTo(&o.MaxConns, -1)
		return
	}
	defaultTo(&o.maxPipes, min(max(limit/300, 4), 128))
	allowed := max((limit-2*o.maxPipes-spareDescriptors)/2, 1)
	raise := slog.String("raise_it_by", "ulimit -n, or LimitNOFILE of systemd")
	switch {
	case o.MaxConns > allowed:
		o.Log.Warn("MaxConns is more than the limit on descriptors allows", slog.Int("max_conns", o.MaxConns), slog.Int("allowed", allowed),
			slog.Int("descriptors", limit), slog.Int("descriptors_needed", 2*(o.MaxConns+o.maxPipes)+spareDescriptors), raise)
	case o.MaxConns == 0 && allowed < fewAllowed:
		o.Log.Warn("the limit on descriptors allows few connections", slog.Int("max_conns", allowed), slog.Int("descriptors", limit), raise)
	}
	defaultTo(&o.MaxConns, allowed)
}

// fewAllowed is the number of connections below which a limit on descriptors is
// probably unintended.
const fewAllowed = 1000
