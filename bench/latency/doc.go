// Package latency measures how long a call of a writer takes when lines come
// at a steady rate and the destination stalls for 50 ms once a second.
//
// Each producer has a plan: line k is due at a fixed time, whatever became of
// the lines before. Two times are taken of every call: its own, and the one
// from when it was due to its return. A producer that was held up is late for
// all the lines that came due meanwhile; the first time does not show that
// (coordinated omission), the second does. A null producer that calls nothing
// shows what the machine and the clock add.
package latency

import (
	"bufio"
	"cmp"
	"errors"
	"fmt"
	"hash/adler32"
	"io"
	"sync"
	"sync/atomic"
	"time"

	"github.com/phuslu/log"
	"github.com/rollway/rollway/bench/writers"
	"github.com/rollway/rollway/internal/plan"
	"github.com/rollway/rollway/slab"
	"github.com/rs/zerolog/diode"
	"go.uber.org/zap/zapcore"
)

// A Scenario is a rate and the writers that are compared at it.
type Scenario struct {
	Name string
	Rate int // lines per second, of all producers together

	// The targets of the call itself; 0 is none.
	CallP50, CallP99, CallP999, CallMax time.Duration

	// DueOfBest is set if p99.9 from due time to return must not exceed that of
	// the best rival that loses nothing.
	DueOfBest bool

	Writers []Writer
}

// Working is the null producer whose calls take some 0.1 µs, as those of a
// buffered writer do, and touch nothing that others do. A thread that loses its
// processor for some milliseconds loses it in the middle of one of them as
// often, and the longest call of a writer is to be seen beside that.
const Working = "null producer, sums the line up"

// A Writer is one contender. Each has the settings that it is documented with,
// and 100 ms as the age of a line where it has such a setting.
type Writer struct {
	Name string
	Own  bool // of this project: the targets are about it
	Null bool // calls nothing

	// Open puts the writer in front of dst; counted, if not nil, is how many
	// lines the writer itself says it has dropped.
	Open func(dst io.Writer) (w io.Writer, closeWriter func() error, counted func() uint64, err error)
}

// Producers lists how many goroutines write.
func Producers() []int { return []int{1, 10} }

// Mode names a number of producers.
func Mode(producers int) string {
	if producers == 1 {
		return "1 producer"
	}
	return fmt.Sprintf("%d producers", producers)
}

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
	slow := Scenario{
		Name: "10000 lines a second", Rate: 10_000, DueOfBest: true,
		CallP50: 400 * time.Nanosecond, CallP99: 3 * time.Microsecond, CallP999: 15 * time.Microsecond,
		Writers: []Writer{{Name: "slab 8 × 64 KiB", Own: true, Open: openSlab(slab.Options{})}},
	}
	if writers.CanPersist() {
		slow.Writers = append(slow.Writers, Writer{Name: "slab persisted 8 × 64 KiB", Own: true, Open: openPersisted(slab.Options{})})
	}
	slow.Writers = append(slow.Writers,
		Writer{Name: "slab, 4 shards, 8 × 16 MiB", Own: true,
			Open: openSlab(slab.Options{Shards: 4, SlabSize: 16 << 20, SlabCount: 8, Full: slab.Drop})},
		Writer{Name: "slab design as published 8 × 64 KiB", Open: openPublished},
		Writer{Name: "zap BufferedWriteSyncer 256 KiB", Open: openZap},
		Writer{Name: "mutex + bufio 64 KiB", Open: openBufio},
		Writer{Name: "zerolog diode 1000", Open: openDiode},
		Writer{Name: "phuslu AsyncWriter 4096", Open: openPhuslu},
		Writer{Name: "direct", Open: openDirect},
		Writer{Name: "null producer", Null: true, Open: openNull},
	)
	fast := Scenario{
		Name: "50000 lines a second", Rate: fastRate, CallMax: 500 * time.Microsecond,
		Writers: []Writer{
			{Name: fmt.Sprintf("slab %d × %d KiB, as planned", planned.SlabCount, planned.SlabSize>>10), Own: true,
				Open: openSlab(slab.Options{SlabSize: planned.SlabSize, SlabCount: planned.SlabCount})},
			{Name: "slab 8 × 64 KiB", Open: openSlab(slab.Options{})},
			{Name: "slab design as published 8 × 64 KiB", Open: openPublished},
			{Name: "zerolog diode 1000", Open: openDiode},
			{Name: Working, Null: true, Open: openWorking},
			{Name: "null producer", Null: true, Open: openNull},
		},
	}
	return []Scenario{slow, fast}, nil
}

// openSlab opens a Writer that blocks, or that does what o says.
func openSlab(o slab.Options) func(io.Writer) (io.Writer, func() error, func() uint64, error) {
	o.Full = cmp.Or(o.Full, slab.Block)
	return func(dst io.Writer) (io.Writer, func() error, func() uint64, error) {
		w, err := slab.New(dst, o)
		if err != nil {
			return nil, nil, nil, err
		}
		return w, w.Close, func() uint64 { return w.Stats().Dropped.Total() }, nil
	}
}

func openPersisted(o slab.Options) func(io.Writer) (io.Writer, func() error, func() uint64, error) {
	return func(dst io.Writer) (io.Writer, func() error, func() uint64, error) {
		w, err := writers.OpenPersisted(o)(dst)
		if err != nil {
			return nil, nil, nil, err
		}
		return w, w.Close, nil, nil
	}
}

func openPublished(dst io.Writer) (io.Writer, func() error, func() uint64, error) {
	w := writers.NewPublishedSlab(dst, 64<<10, 8, 100*time.Millisecond)
	return w, w.Close, nil, nil
}

func openZap(dst io.Writer) (io.Writer, func() error, func() uint64, error) {
	w := &zapcore.BufferedWriteSyncer{WS: zapcore.AddSync(dst), FlushInterval: 100 * time.Millisecond}
	return w, w.Stop, nil, nil
}

func openBufio(dst io.Writer) (io.Writer, func() error, func() uint64, error) {
	w := &lockedBufio{w: bufio.NewWriterSize(dst, 64<<10)}
	return w, w.w.Flush, nil, nil
}

type lockedBufio struct {
	mu sync.Mutex
	w  *bufio.Writer // guarded by mu
}

func (l *lockedBufio) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.w.Write(p)
}

func openDiode(dst io.Writer) (io.Writer, func() error, func() uint64, error) {
	var missed atomic.Uint64
	w := diode.NewWriter(dst, 1000, 10*time.Millisecond, func(n int) { missed.Add(uint64(n)) })
	return w, w.Close, missed.Load, nil
}

func openPhuslu(dst io.Writer) (io.Writer, func() error, func() uint64, error) {
	w := &log.AsyncWriter{Writer: log.IOWriter{Writer: dst}, ChannelSize: 4096}
	return cloning{w}, w.Close, nil, nil
}

// cloning hands AsyncWriter a copy of each line, as it keeps what it is given.
type cloning struct{ w *log.AsyncWriter }

func (c cloning) Write(p []byte) (int, error) { return c.w.Write(append([]byte(nil), p...)) }

func openDirect(dst io.Writer) (io.Writer, func() error, func() uint64, error) {
	return dst, func() error { return nil }, nil, nil
}

func openWorking(io.Writer) (io.Writer, func() error, func() uint64, error) {
	return summing{}, func() error { return nil }, nil, nil
}

type summing struct{}

// Write fails for a sum that no text has, or its work could be left out.
func (summing) Write(p []byte) (int, error) {
	if adler32.Checksum(p) == 0 {
		return 0, errors.New("no text")
	}
	return len(p), nil
}

func openNull(io.Writer) (io.Writer, func() error, func() uint64, error) {
	return nil, func() error { return nil }, nil, nil
}
