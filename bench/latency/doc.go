// Package latency measures how long a call of a writer takes when lines come
// at a steady rate and the destination stalls for 50 ms once a second.
//
// Each producer has a schedule: line k is due at a fixed time, however long the
// calls before it took. Two times are taken of every call: its duration, and the
// time from when it was due to its return. A producer that is delayed is late for
// all lines that come due meanwhile. The first time does not show that
// (coordinated omission), the second does. A null producer that calls nothing
// shows what the machine and the clock add.
package latency

import (
	"errors"
	"fmt"
	"hash/adler32"
	"io"
	"time"

	"github.com/rollway/rollway/bench/internal/rivals"
	"github.com/rollway/rollway/internal/plan"
	"github.com/rollway/rollway/slab"
)

// A Scenario is a rate and the writers that are compared at it.
type Scenario struct {
	Name    string
	Rate    int // lines per second, of all producers together
	Writers []Writer
}

// Working is a null producer whose calls take some 0.1 µs, as those of a buffered
// writer do, but share nothing. If the machine takes the processor from a thread in
// the middle of such a call, the call is long too: the longest call of a writer is
// to be compared with it.
const Working = "null producer, sums the line up"

// A Writer is one contender.
type Writer struct {
	Name string
	Own  bool // of this project: the targets are about it
	Null bool // calls nothing
	open rivals.Opener
}

// modes are the numbers of goroutines that write, and their names.
var modes = []struct {
	producers int
	name      string
}{{1, "1 producer"}, {10, "10 producers"}}

// Scenarios lists what is measured. At the higher rate our writer has the
// slabs that package plan chooses for the lines and the stalls there are; a Write
// of the destination takes some 10 µs, and the planner is told 1 ms.
func Scenarios() ([]Scenario, error) {
	const fastRate = 50_000
	planned, err := plan.Choose(plan.Workload{
		Rate: fastRate, LineSize: lineBytes, LineSizeP99: lineBytes, WriteLatency: time.Millisecond, Spike: stall,
	})
	if err != nil {
		return nil, err
	}
	blocking := slab.Options{Full: slab.Block}
	slabs := Writer{Name: "slab 8 × 64 KiB", Own: true, open: rivals.Slab(blocking)}
	published := Writer{Name: "slab design as published 8 × 64 KiB", open: rivals.Published}
	diode := Writer{Name: "zerolog diode 1000", open: rivals.Diode(1000)}
	null := Writer{Name: "null producer", Null: true, open: func(io.Writer) (*rivals.Writer, error) { return unbuffered(nil), nil }}
	slow := Scenario{Name: "10000 lines a second", Rate: 10_000, Writers: []Writer{slabs}}
	if rivals.CanPersist {
		slow.Writers = append(slow.Writers, Writer{Name: "slab persisted 8 × 64 KiB", Own: true, open: rivals.Persisted(blocking)})
	}
	slow.Writers = append(slow.Writers,
		Writer{Name: "slab, 4 shards, 8 × 16 MiB", Own: true, open: rivals.Slab(slab.Options{Shards: 4, SlabSize: 16 << 20, SlabCount: 8, Full: slab.Drop})},
		published,
		Writer{Name: "zap BufferedWriteSyncer 256 KiB", open: rivals.Zap},
		Writer{Name: "mutex + bufio 64 KiB", open: rivals.Bufio(64 << 10)},
		diode,
		Writer{Name: "phuslu AsyncWriter 4096", open: rivals.Phuslu},
		Writer{Name: "direct", open: func(dst io.Writer) (*rivals.Writer, error) { return unbuffered(dst), nil }},
		null,
	)
	fast := Scenario{Name: "50000 lines a second", Rate: fastRate, Writers: []Writer{
		{Name: fmt.Sprintf("slab %d × %d KiB, as planned", planned.SlabCount, planned.SlabSize>>10), Own: true,
			open: rivals.Slab(slab.Options{SlabSize: planned.SlabSize, SlabCount: planned.SlabCount, Full: slab.Block})},
		{Name: slabs.Name, open: slabs.open},
		published,
		diode,
		{Name: Working, Null: true, open: func(io.Writer) (*rivals.Writer, error) { return unbuffered(summing{}), nil }},
		null,
	}}
	return []Scenario{slow, fast}, nil
}

// unbuffered is a writer without a buffer; w is nil if it calls nothing.
func unbuffered(w io.Writer) *rivals.Writer {
	return &rivals.Writer{Writer: w, Close: func() error { return nil }}
}

type summing struct{}

// Write fails for a sum that no text has, or its work could be left out.
func (summing) Write(p []byte) (int, error) {
	if adler32.Checksum(p) == 0 {
		return 0, errors.New("no text")
	}
	return len(p), nil
}
