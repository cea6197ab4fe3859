//go:build rollway_poison || race

package pool

import (
	"bytes"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"unicode/utf8"
)

// Poisons tells whether this build looks for use after return.
const Poisons = true

// poison is no text: as UTF-8 it begins a character that does not go on.
const poison = 0xDB

// quarantined is how many values of a Pool wait for their memory to be checked.
const quarantined = 16

var (
	keepNothing atomic.Bool
	faults      atomic.Int64
	pattern     = bytes.Repeat([]byte{poison}, 64<<10)
	run         = pattern[:8] // what is taken for overwritten memory
)

// KeepNothing says whether every Get of every Pool is to give a new value.
func KeepNothing(on bool) { keepNothing.Store(on) }

// Faults is how often this package has panicked, as some recover from that.
func Faults() int { return int(faults.Load()) }

func fail(format string, args ...any) {
	faults.Add(1)
	panic("pool: " + fmt.Sprintf(format, args...))
}

// A Pool holds values that are not in use. It is safe for concurrent use.
type Pool[T Value] struct {
	New func() T // required

	mu      sync.Mutex
	waiting []returned[T] // guarded by mu; the oldest first
}

type returned[T any] struct {
	value  T
	memory Memory
	where  [12]uintptr
	depth  int
}

// Get returns a value that was returned before, or a new one.
func (p *Pool[T]) Get() T {
	if r, ok := p.oldest(); ok {
		r.check()
		if !keepNothing.Load() {
			return r.value
		}
	}
	return p.New()
}

// oldest takes a value out of the quarantine if there are more than it is for.
func (p *Pool[T]) oldest() (r returned[T], ok bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.waiting) <= quarantined {
		return r, false
	}
	r = p.waiting[0]
	p.waiting = slices.Delete(p.waiting, 0, 1)
	return r, true
}

// Put returns a value, which the caller must not use any more.
func (p *Pool[T]) Put(v T) {
	r := returned[T]{value: v, memory: v.Memory()}
	if !Kept(&r.memory) {
		return
	}
	r.depth = runtime.Callers(2, r.where[:])
	p.mu.Lock()
	defer p.mu.Unlock()
	for i := range p.waiting {
		if first := &p.waiting[i]; first.value == v {
			fail("a %T is returned that was returned already at\n%s", v, first.place())
		}
	}
	for _, b := range r.memory {
		Overwrite(b)
	}
	p.waiting = append(p.waiting, r)
}

// Check checks all that wait now.
func (p *Pool[T]) Check() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for i := range p.waiting {
		p.waiting[i].check()
	}
}

// check panics if the memory of a value was written to since it was returned.
func (r *returned[T]) check() {
	for i, b := range r.memory {
		b = b[:cap(b)]
		for at := 0; at < len(b); at += len(pattern) {
			part := b[at:min(len(b), at+len(pattern))]
			if !bytes.Equal(part, pattern[:len(part)]) {
				fail("memory %d of a %T was written to after it was returned; it holds %.100q; it was returned at\n%s", i, r.value, bytes.Trim(part, "\xdb"), r.place())
			}
		}
	}
}

// place is where a value was returned.
func (r *returned[T]) place() string {
	var b strings.Builder
	frames := runtime.CallersFrames(r.where[:r.depth])
	for {
		f, more := frames.Next()
		fmt.Fprintf(&b, "\t%s\n\t\t%s:%d\n", f.Function, f.File, f.Line)
		if !more {
			return b.String()
		}
	}
}

// Overwrite overwrites b up to its capacity: for memory
// that is used again without a Pool.
func Overwrite(b []byte) {
	b = b[:cap(b)]
	for len(b) > 0 {
		b = b[copy(b, pattern):]
	}
}

// CheckText panics if text holds overwritten memory or is otherwise not UTF-8.
func CheckText(text []byte) {
	CheckBytes(text)
	if !utf8.Valid(text) {
		fail("text that is not UTF-8: %.200q", text)
	}
}

// CheckBytes panics if b holds overwritten memory.
func CheckBytes(b []byte) {
	if at := bytes.Index(b, run); at >= 0 {
		fail("memory is used that was returned: %.200q", b[max(0, at-50):])
	}
}
