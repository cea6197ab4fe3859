package writers

import (
	"bytes"
	"fmt"
	"sync/atomic"

	"github.com/rollway/rollway/bench/internal/measure"
)

// LineBytes is the length of each line, its newline included.
const LineBytes = 256

// Case is the one scenario so far: lines into a destination that counts them.
const Case = "count"

// Goroutines lists how many callers write at the same time.
func Goroutines() []int { return []int{1, 2, 4, 8} }

// Mode names a number of callers.
func Mode(goroutines int) string { return fmt.Sprintf("%d", goroutines) }

// counter is the destination: it counts whole lines. Writers call it from one
// goroutine at a time or from several.
type counter struct{ lines, bytes atomic.Uint64 }

func (c *counter) Write(p []byte) (int, error) {
	c.lines.Add(uint64(bytes.Count(p, []byte{'\n'})))
	c.bytes.Add(uint64(len(p)))
	return len(p), nil
}

// Subjects lists every writer with every number of callers.
func Subjects() []measure.Subject {
	var subjects []measure.Subject
	for _, g := range Goroutines() {
		for _, w := range Writers() {
			subjects = append(subjects, measure.Subject{
				Case: Case, Library: w.Name, Mode: Mode(g), Goroutines: g, Prepare: prepare(w, g),
			})
		}
	}
	return subjects
}

func prepare(w Writer, goroutines int) func() (measure.Run, error) {
	return func() (measure.Run, error) {
		dst := new(counter)
		out, err := w.Open(dst)
		if err != nil {
			return measure.Run{}, err
		}
		lines := make([][]byte, goroutines)
		for g := range lines {
			lines[g] = appendLine(nil, g, 0)
		}
		var refused atomic.Uint64
		return measure.Run{
			Loop: func(goroutine, n int) {
				line := lines[goroutine]
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
				got, size := dst.lines.Load(), dst.bytes.Load()
				if size != got*LineBytes {
					return nil, fmt.Errorf("%d lines are %d bytes, want %d each", got, size, LineBytes)
				}
				if got > uint64(ops) || got < uint64(ops) && !w.Lossy {
					return nil, fmt.Errorf("%d of %d lines arrived, %d writes were refused", got, ops, refused.Load())
				}
				return map[string]float64{"lost_pct": 100 * float64(uint64(ops)-got) / float64(ops)}, nil
			},
		}, nil
	}
}
