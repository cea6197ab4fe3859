package logger

import (
	"log/slog"
	"sync/atomic"
	"unsafe"
)

// Counter is the writer of the logger's scenarios: it counts lines and bytes.
// It is safe for concurrent use and says so in the way that package rollway
// understands, by a method WriteLevel; the rivals are told by leaving out
// their locks. Its counters are spread by the address of the line, which is in
// a buffer of the caller's processor, so that the cores do not share them.
type Counter struct{ shards [64]shard }

type shard struct {
	lines, bytes, broken atomic.Uint64
	_                    [40]byte // a shard is a cache line
}

// Write counts p, which must be one whole line.
func (c *Counter) Write(p []byte) (int, error) {
	if len(p) == 0 {
		c.shards[0].broken.Add(1)
		return 0, nil
	}
	s := &c.shards[uintptr(unsafe.Pointer(&p[0]))>>10%64]
	s.lines.Add(1)
	s.bytes.Add(uint64(len(p)))
	if p[0] != '{' || p[len(p)-1] != '\n' {
		s.broken.Add(1)
	}
	return len(p), nil
}

// WriteLevel is Write.
func (c *Counter) WriteLevel(_ slog.Level, p []byte) (int, error) { return c.Write(p) }

// Totals returns what was counted.
func (c *Counter) Totals() (lines, bytes, broken uint64) {
	for i := range c.shards {
		lines += c.shards[i].lines.Load()
		bytes += c.shards[i].bytes.Load()
		broken += c.shards[i].broken.Load()
	}
	return lines, bytes, broken
}
