package rollwaytest

import (
	"bytes"
	"cmp"
	"errors"
	"io"
	"runtime"
	"slices"
	"strings"
	"sync"
	"time"
)

// ErrFault is the error of faults that name no other.
var ErrFault = errors.New("rollwaytest: injected fault")

// Fault changes what one call of a Destination's Write does.
type Fault struct {
	Delay time.Duration // wait before anything else
	Take  int           // keep at most so many bytes of p
	Err   error         // return this error; nil with a short Take is a silent short write
	Panic any           // panic with this after taking Take bytes
	Exit  bool          // end the goroutine after taking Take bytes, as t.FailNow does
}

// Destination is an io.WriteCloser with Sync that keeps its input and fails on
// demand. The zero value works. All methods are safe for concurrent use; a test sets
// faults while a writer runs.
type Destination struct {
	mu       sync.Mutex
	data     []byte
	starts   []int // offset in data at the start of each Write that took bytes
	calls    int
	syncs    int
	closes   int
	busy     bool
	overlaps int

	next      []Fault
	always    *Fault
	syncErr   error
	closeErr  error
	gate      chan struct{} // closed by Heal; nil when Write does not stall
	closeGate chan struct{} // closed by Heal; nil when Close does not stall
}

// Write keeps a copy of p, unless a fault is set.
func (d *Destination) Write(p []byte) (int, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.calls++
	if d.busy {
		d.overlaps++
	}
	d.busy = true
	defer func() { d.busy = false }()
	d.awaitLocked(&d.gate)
	if d.closes > 0 {
		return 0, io.ErrClosedPipe
	}
	f := Fault{Take: len(p)}
	switch {
	case len(d.next) > 0:
		f = d.next[0]
		d.next = d.next[1:]
	case d.always != nil:
		f = *d.always
	}
	if f.Delay > 0 {
		d.mu.Unlock()
		time.Sleep(f.Delay)
		d.mu.Lock()
	}
	n := max(0, min(f.Take, len(p)))
	if n > 0 {
		d.starts = append(d.starts, len(d.data))
		d.data = append(d.data, p[:n]...)
	}
	if f.Panic != nil {
		panic(f.Panic)
	}
	if f.Exit {
		runtime.Goexit()
	}
	return n, f.Err
}

// Sync counts the call and returns the error that FailSync set.
func (d *Destination) Sync() error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.busy {
		d.overlaps++
	}
	d.syncs++
	return d.syncErr
}

// Close makes later Writes fail and returns the error that FailClose set. After
// StallClose it waits for Heal.
func (d *Destination) Close() error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.busy {
		d.overlaps++
	}
	d.awaitLocked(&d.closeGate)
	d.closes++
	return d.closeErr
}

// awaitLocked waits until Heal has opened the gate. It releases the lock meanwhile.
func (d *Destination) awaitLocked(gate *chan struct{}) {
	for *gate != nil {
		opened := *gate
		d.mu.Unlock()
		<-opened
		d.mu.Lock()
	}
}

// locked calls f under the lock.
func (d *Destination) locked(f func()) {
	d.mu.Lock()
	defer d.mu.Unlock()
	f()
}

// Next gives the faults to the next Writes, one each.
func (d *Destination) Next(faults ...Fault) { d.locked(func() { d.next = append(d.next, faults...) }) }

// Fail makes every Write take nothing and return err, or ErrFault if err is nil,
// until Heal.
func (d *Destination) Fail(err error) { d.Always(Fault{Err: cmp.Or(err, ErrFault)}) }

// FailTimes makes the next n Writes take nothing and return ErrFault.
func (d *Destination) FailTimes(n int) { d.Next(slices.Repeat([]Fault{{Err: ErrFault}}, n)...) }

// Always gives f to every Write for which Next has no fault, until Heal.
func (d *Destination) Always(f Fault) { d.locked(func() { d.always = &f }) }

// Stall makes every Write wait for Heal.
func (d *Destination) Stall() { d.locked(func() { shut(&d.gate) }) }

// StallClose makes Close wait for Heal.
func (d *Destination) StallClose() { d.locked(func() { shut(&d.closeGate) }) }

func shut(gate *chan struct{}) {
	if *gate == nil {
		*gate = make(chan struct{})
	}
}

// FailSync makes Sync return err.
func (d *Destination) FailSync(err error) { d.locked(func() { d.syncErr = err }) }

// FailClose makes Close return err.
func (d *Destination) FailClose(err error) { d.locked(func() { d.closeErr = err }) }

// Heal ends all faults. Calls that stall continue.
func (d *Destination) Heal() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.next, d.always, d.syncErr, d.closeErr = nil, nil, nil, nil
	for _, gate := range []*chan struct{}{&d.gate, &d.closeGate} {
		if *gate != nil {
			close(*gate)
			*gate = nil
		}
	}
}

// Bytes returns a copy of everything taken so far.
func (d *Destination) Bytes() (data []byte) {
	d.locked(func() { data = bytes.Clone(d.data) })
	return data
}

// Lines returns everything taken so far as lines without their newlines, except an
// unfinished last one.
func (d *Destination) Lines() []string { return splitLines(d.Bytes()) }

// Writes returns what each call of Write took, without calls that took nothing.
func (d *Destination) Writes() []string {
	d.mu.Lock()
	defer d.mu.Unlock()
	writes := make([]string, len(d.starts))
	for i, start := range d.starts {
		end := len(d.data)
		if i+1 < len(d.starts) {
			end = d.starts[i+1]
		}
		writes[i] = string(d.data[start:end])
	}
	return writes
}

// Calls returns how often Write was called.
func (d *Destination) Calls() int { return d.count(&d.calls) }

// Syncs returns how often Sync was called.
func (d *Destination) Syncs() int { return d.count(&d.syncs) }

// Closes returns how often Close has returned.
func (d *Destination) Closes() int { return d.count(&d.closes) }

// Overlaps returns how many calls came during a Write: 0 if one goroutine at a time
// used the destination.
func (d *Destination) Overlaps() int { return d.count(&d.overlaps) }

func (d *Destination) count(n *int) (count int) {
	d.locked(func() { count = *n })
	return count
}

// splitLines returns the lines of p without their newlines, except an unfinished
// last one.
func splitLines(p []byte) []string {
	end := bytes.LastIndexByte(p, '\n')
	if end < 0 {
		return nil
	}
	return strings.Split(string(p[:end]), "\n")
}
