package rollwaytest

import (
	"bytes"
	"errors"
	"io"
	"runtime"
	"strings"
	"sync"
	"time"
)

// ErrFault is the error of faults that name no other.
var ErrFault = errors.New("rollwaytest: injected fault")

// Fault is what one call of a Destination's Write does instead of its work.
type Fault struct {
	Delay time.Duration // wait before anything else
	Take  int           // keep so many bytes of p; more than len(p) is len(p)
	Err   error         // return this error; nil with a short Take is a silent short write
	Panic any           // panic with this after taking Take bytes
	Exit  bool          // end the goroutine after taking Take bytes, as runtime.Goexit and t.FailNow do
}

// Destination is an io.WriteCloser with Sync that keeps what it is given and
// fails when told to. The zero value works. All methods are safe for
// concurrent use; faults are meant to be set by a test while a writer runs.
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
	for d.gate != nil {
		gate := d.gate
		d.mu.Unlock()
		<-gate
		d.mu.Lock()
	}
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

// Close makes later Writes fail and returns the error that FailClose set. It
// waits for Heal after StallClose.
func (d *Destination) Close() error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.busy {
		d.overlaps++
	}
	for d.closeGate != nil {
		gate := d.closeGate
		d.mu.Unlock()
		<-gate
		d.mu.Lock()
	}
	d.closes++
	return d.closeErr
}

// Next gives the faults to the next Writes, one each.
func (d *Destination) Next(faults ...Fault) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.next = append(d.next, faults...)
}

// Fail makes every Write take nothing and return err, or ErrFault if err is
// nil, until Heal.
func (d *Destination) Fail(err error) {
	if err == nil {
		err = ErrFault
	}
	d.Always(Fault{Err: err})
}

// FailTimes makes the next n Writes take nothing and return ErrFault.
func (d *Destination) FailTimes(n int) {
	for range n {
		d.Next(Fault{Err: ErrFault})
	}
}

// Always gives f to every Write that Next has no fault for, until Heal.
func (d *Destination) Always(f Fault) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.always = &f
}

// Stall makes every Write wait for Heal.
func (d *Destination) Stall() {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.gate == nil {
		d.gate = make(chan struct{})
	}
}

// StallClose makes Close wait for Heal.
func (d *Destination) StallClose() {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.closeGate == nil {
		d.closeGate = make(chan struct{})
	}
}

// FailSync makes Sync return err.
func (d *Destination) FailSync(err error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.syncErr = err
}

// FailClose makes Close return err.
func (d *Destination) FailClose(err error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.closeErr = err
}

// Heal ends all faults and lets the calls that stall go on.
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
func (d *Destination) Bytes() []byte {
	d.mu.Lock()
	defer d.mu.Unlock()
	return bytes.Clone(d.data)
}

// Lines returns everything taken so far as lines without their newlines. A
// last line without one is left out.
func (d *Destination) Lines() []string {
	return splitLines(d.Bytes())
}

// Writes returns what each call of Write took, calls that took nothing left
// out.
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

// Closes returns how often Close was called and has returned.
func (d *Destination) Closes() int { return d.count(&d.closes) }

// Overlaps returns how many calls came while a Write was under way: 0 if the
// destination was used by one goroutine at a time.
func (d *Destination) Overlaps() int { return d.count(&d.overlaps) }

func (d *Destination) count(n *int) int {
	d.mu.Lock()
	defer d.mu.Unlock()
	return *n
}

// splitLines returns the lines of p without their newlines, and without a last
// one that has none.
func splitLines(p []byte) []string {
	end := bytes.LastIndexByte(p, '\n')
	if end < 0 {
		return nil
	}
	return strings.Split(string(p[:end]), "\n")
}
