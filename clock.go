package rollway

import (
	"sync/atomic"
	"time"
)

// clock returns the wall time at the price of a monotonic reading, about half that of
// time.Now. Between two steps of the wall clock both clocks run at the same rate (the
// kernel slews both), so their difference is read again only every renewEvery. A step
// appears in the lines at most that much later.
type clock struct {
	base   time.Time    // start of elapsed time
	offset atomic.Int64 // wall time in unix ns = offset + elapsed ns
	due    atomic.Int64 // elapsed ns at which offset must be read again
}

const renewEvery = 10 * time.Millisecond

func newClock() *clock {
	c := &clock{base: time.Now()}
	c.offset.Store(c.base.UnixNano())
	c.due.Store(int64(renewEvery))
	return c
}

// now returns the wall time in nanoseconds since 1970.
func (c *clock) now() int64 {
	elapsed := int64(time.Since(c.base))
	due := c.due.Load()
	if elapsed >= due || elapsed < due-int64(renewEvery) {
		return c.renew()
	}
	return c.offset.Load() + elapsed
}

// renew reads both clocks. time.Now reads the wall clock first: if the thread is
// delayed between its two readings, the difference is too small. So if it shrank,
// renew reads twice more and uses the largest.
func (c *clock) renew() int64 {
	old := c.offset.Load()
	offset, elapsed := c.read()
	for range 2 {
		if offset >= old {
			break
		}
		o, e := c.read()
		offset, elapsed = max(offset, o), e
	}
	c.offset.Store(offset)
	c.due.Store(elapsed + int64(renewEvery))
	return offset + elapsed
}

func (c *clock) read() (offset, elapsed int64) {
	t := time.Now()
	elapsed = int64(t.Sub(c.base))
	return t.UnixNano() - elapsed, elapsed
}
