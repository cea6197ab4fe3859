package rollway

import (
	"io"
	"log/slog"
	"reflect"
	"sync/atomic"
	"time"

	"github.com/rollway/rollway/line"
)

// output is one destination. Its methods are safe for concurrent use.
type output struct {
	name   string
	w      io.Writer
	buffer line.LevelWriter // w, if it is one; else nil and w is written under lock
	tries  line.TryWriter   // w, if it is one
	lock   *stallLock       // outputs with the same Writer share it
	shares bool             // shares its lock
	counts bool             // handed counts the lines; else the lock does
	again  bool             // an earlier output with the same Writer flushes and closes it
	users  []*output        // unless again: the outputs with this Writer, itself first
	format *format          // set once all formats are known
	closes bool             // the Logger closes the Writer

	level  slog.Leveler
	filter interface{ Admits(slog.Level) bool } // level, if it is one; else nil
	fixed  bool                                 // level never changes
	min    slog.Level                           // if fixed

	handed      counter // lines written
	dropped     struct{ full, tooLarge, gaveUp atomic.Uint64 }
	rejected    atomic.Uint64
	unannounced atomic.Uint64 // of a direct output: dropped lines without a notice yet

	lastError atomic.Pointer[failure]
	telling   atomic.Int32 // quiet, due or silent; see teller
	told      uint64       // guarded by teller.mu; dropped lines reported to OnError
	pausing   bool         // guarded by teller.mu; a timer that ends silent is running
}

// failure is why a line was dropped.
type failure struct {
	err     error
	at      time.Time
	written uint64 // lines before
}

// counter is an atomic counter in parts, so that goroutines on different processors
// do not share a cache line.
type counter [8]struct {
	n atomic.Uint64
	_ [56]byte
}

func (c *counter) add(part uint32) { c[part%uint32(len(c))].n.Add(1) }

func (c *counter) load() (sum uint64) {
	for i := range c {
		sum += c[i].n.Load()
	}
	return sum
}

func newOutput(o Output, named bool) *output {
	out := &output{name: o.Name, w: o.Writer, level: o.Level, lock: new(stallLock)}
	out.users = []*output{out}
	out.buffer, _ = o.Writer.(line.LevelWriter)
	out.tries, _ = o.Writer.(line.TryWriter)
	out.closes = !o.KeepOpen && isClosable(o.Writer)
	if out.level == nil && named {
		out.level = lowestLevel
	} else if out.level == nil {
		out.level = slog.LevelInfo
	}
	out.filter, _ = out.level.(interface{ Admits(slog.Level) bool })
	switch l := out.level.(type) {
	case slog.Level:
		out.fixed, out.min = true, l
	case LevelRange:
		out.fixed, out.min = true, l.Min
	}
	return out
}

// sameWriter reports whether both outputs write to one Writer.
func (o *output) sameWriter(p *output) bool {
	t := reflect.TypeOf(o.w)
	return t == reflect.TypeOf(p.w) && t.Comparable() && o.w == p.w
}

// admits reports whether the output takes records of level l.
func (o *output) admits(l slog.Level) bool {
	if o.fixed && o.filter == nil {
		return l >= o.min
	}
	return o.asks(l)
}

// asks is admits for a level that is code of the user's. If that panics, the record
// is taken.
func (o *output) asks(l slog.Level) (ok bool) {
	defer func() {
		if recover() != nil {
			ok = true
		}
	}()
	if o.filter != nil {
		return o.filter.Admits(l)
	}
	return l >= o.level.Level()
}
