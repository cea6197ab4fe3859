package direct

import (
	"sync"

	"github.com/rollway/rollway/internal/direct"
	"github.com/rollway/rollway/internal/goid"
)

// mutexLogger is where the publication began: a buffer under a lock, written by
// the caller that finds it full. With more than one shard there are as many
// locks, and another one for the file.
type mutexLogger struct {
	shards []mutexShard
	memory int
	fileMu sync.Mutex
	out    Output // guarded by fileMu
}

type mutexShard struct {
	mu     sync.Mutex
	memory *direct.MemorySet
	data   []byte // guarded by mu; len is what is filled
	_      [64]byte
}

func openMutex(single bool) func(Config) (Logger, error) {
	return func(c Config) (Logger, error) {
		out, err := openOutput(c)
		if err != nil {
			return nil, err
		}
		shards := c.Shards
		if single {
			shards = 1
		}
		l := &mutexLogger{shards: make([]mutexShard, shards), memory: c.BufferSize, out: out}
		for i := range l.shards {
			s := &l.shards[i]
			if s.memory, err = direct.NewMemorySet(1, c.BufferSize/shards); err != nil {
				return nil, err
			}
			s.data = s.memory.Bytes(0)[:0]
		}
		return l, nil
	}
}

func (l *mutexLogger) LogBytes(p []byte) error {
	s := &l.shards[goid.Hash(uint32(len(l.shards)))]
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.data)+len(p)+1 > len(s.memory.Bytes(0)) {
		if err := l.writeLocked(s); err != nil {
			return err
		}
	}
	s.data = append(append(s.data, p...), '\n')
	return nil
}

func (l *mutexLogger) writeLocked(s *mutexShard) error {
	if len(s.data) == 0 {
		return nil
	}
	l.fileMu.Lock()
	defer l.fileMu.Unlock()
	err := l.out.WriteSet([][]byte{s.data})
	s.data = s.data[:0]
	return err
}

func (l *mutexLogger) Close() error {
	var first error
	keep := func(err error) {
		if first == nil {
			first = err
		}
	}
	for i := range l.shards {
		keep(l.writeLocked(&l.shards[i]))
		keep(l.shards[i].memory.Free())
	}
	keep(l.out.Close())
	return first
}

func (l *mutexLogger) Figures() Figures {
	f := l.out.Figures()
	f.Memory += l.memory
	return f
}
