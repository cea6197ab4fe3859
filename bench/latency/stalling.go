package latency

import (
	"sync"
	"time"

	"github.com/rollway/rollway/bench/internal/lines"
)

// The destination stalls for stall, once every stallEvery.
const (
	stall      = 50 * time.Millisecond
	stallEvery = time.Second
)

const lineBytes = 256

// stalling is the destination: it takes one Write at a time, delays the first one
// after each full period, and checks every line.
type stalling struct {
	mu     sync.Mutex
	next   time.Time // when it stalls again; guarded by mu
	stalls int       // guarded by mu
	parse  func(line []byte) (producer, sequence int, ok bool)
	last   []int // sequence number of each producer's latest line; guarded by mu
	lines  uint64
	broken uint64 // torn, repeated or out of order
}

func newStalling(producers int, first time.Time) *stalling {
	s := &stalling{next: first, parse: lines.Parser(lineBytes), last: make([]int, producers)}
	for i := range s.last {
		s.last[i] = -1
	}
	return s
}

func (s *stalling) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if now := time.Now(); !now.Before(s.next) {
		for !now.Before(s.next) {
			s.next = s.next.Add(stallEvery)
		}
		s.stalls++
		time.Sleep(stall)
	}
	n := len(p)
	for len(p) > 0 {
		line := p[:min(lineBytes, len(p))]
		p = p[len(line):]
		producer, sequence, ok := s.parse(line)
		if !ok || producer >= len(s.last) || sequence <= s.last[producer] {
			s.broken++
			continue
		}
		s.last[producer] = sequence
		s.lines++
	}
	return n, nil
}
