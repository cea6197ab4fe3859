package writers

import (
	"fmt"
	"sync/atomic"

	"github.com/rollway/rollway/bench/internal/lines"
	"github.com/rollway/rollway/bench/internal/measure"
)

// LineBytes is the length of each line, its newline included.
const LineBytes = 256

// The cases.
const (
	Raw       = "raw"
	File      = "file"
	Published = "published"
)

// A RawMode is a number of goroutines and the GOMAXPROCS that they run with.
type RawMode struct{ Callers, Procs int }

func (m RawMode) String() string { return fmt.Sprintf("%d on %d", m.Callers, m.Procs) }

// RawModes lists how raw writes are measured: one goroutine, and one for each
// processor, with 1, 2, 4 and 8 of them.
func RawModes() []RawMode {
	return []RawMode{{1, 1}, {1, 2}, {1, 4}, {1, 8}, {2, 2}, {4, 4}, {8, 8}}
}

// counter is the destination of raw writes. All lines have the same length, so
// bytes tell their number; looking for line ends would cost as much as a good
// writer does, and hide what differs between them. Writers call it from one
// goroutine at a time or from several.
type counter struct{ bytes atomic.Uint64 }

func (c *counter) Write(p []byte) (int, error) {
	c.bytes.Add(uint64(len(p)))
	return len(p), nil
}

// RawSubjects lists every writer in every mode.
func RawSubjects() []measure.Subject {
	var subjects []measure.Subject
	for _, m := range RawModes() {
		for _, w := range Writers() {
			subjects = append(subjects, measure.Subject{
				Case: Raw, Library: w.Name, Mode: m.String(), Goroutines: m.Callers, Procs: m.Procs, Prepare: prepareRaw(w, m.Callers),
			})
		}
	}
	return subjects
}

func prepareRaw(w Writer, goroutines int) func() (measure.Run, error) {
	return func() (measure.Run, error) {
		dst := new(counter)
		out, err := w.Open(dst)
		if err != nil {
			return measure.Run{}, err
		}
		own := make([][]byte, goroutines)
		for g := range own {
			own[g] = lines.Append(nil, LineBytes, g, 0)
		}
		var refused atomic.Uint64
		return measure.Run{
			Loop: func(goroutine, n int) {
				line := own[goroutine]
				for range n {
					if _, err := out.Write(line); err != nil {
						refused.Add(1)
					}
				}
			},
			Finish: func(ops int) (map[string]float64, error) {
				if err := out.Close(); err != nil {
					return nil, fmt.Errorf("close: %w", err)
				}
				size := dst.bytes.Load()
				got := size / LineBytes
				if size%LineBytes != 0 {
					return nil, fmt.Errorf("%d bytes arrived, which are no whole lines of %d", size, LineBytes)
				}
				if got > uint64(ops) || got < uint64(ops) && !w.Lossy {
					return nil, fmt.Errorf("%d of %d lines arrived, %d writes were refused", got, ops, refused.Load())
				}
				return map[string]float64{"lost_pct": 100 * float64(uint64(ops)-got) / float64(ops)}, nil
			},
		}, nil
	}
}
