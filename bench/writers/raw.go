package writers

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"sync/atomic"

	"github.com/rollway/rollway/bench/internal/lines"
	"github.com/rollway/rollway/bench/internal/measure"
	"github.com/rollway/rollway/bench/internal/rivals"
	"github.com/rollway/rollway/file"
	"github.com/rollway/rollway/slab"
)

// counter is the destination of raw writes. All lines of a sample have the same
// length, so bytes tell their number; to look for line ends would cost as much
// as a good writer does.
type counter struct{ bytes atomic.Uint64 }

func (c *counter) Write(p []byte) (int, error) {
	c.bytes.Add(uint64(len(p)))
	return len(p), nil
}

// A rawMode is a number of goroutines and the GOMAXPROCS that they run with.
type rawMode struct{ callers, procs int }

func (m rawMode) String() string { return fmt.Sprintf("%d on %d", m.callers, m.procs) }

// rawModes are one goroutine, and one for each processor, with 1, 2, 4 and 8.
var rawModes = []rawMode{{1, 1}, {1, 2}, {1, 4}, {1, 8}, {2, 2}, {4, 4}, {8, 8}}

// RawSubjects lists every writer in every mode.
func RawSubjects() []measure.Subject {
	var subjects []measure.Subject
	for _, m := range rawModes {
		for _, w := range Writers() {
			subjects = append(subjects, measure.Subject{
				Case: "raw", Library: w.Name, Mode: m.String(), Goroutines: m.callers, Procs: m.procs, Prepare: prepareRaw(w, m.callers),
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
				if size%LineBytes != 0 || got > uint64(ops) || got < uint64(ops) && !w.Lossy {
					return nil, fmt.Errorf("%d bytes arrived of %d lines of %d, %d writes were refused", size, ops, LineBytes, refused.Load())
				}
				return map[string]float64{"lost_pct": 100 * float64(uint64(ops)-got) / float64(ops)}, nil
			},
		}, nil
	}
}

// The front halves of slab.Writer: locked slabs, and slabs in several shards.
// Both have the same memory.
const (
	lockedFront  = "16 × 1 MiB, locked"
	shardedFront = "16 × 1 MiB, 4 shards"
)

// A Load is what the front halves have to carry: lines of a size, from a number
// of goroutines, to a destination.
type Load struct {
	Size, Producers int
	Destination     string // toCounter or toFile
}

func (l Load) String() string {
	return fmt.Sprintf("%d B from %d to a %s", l.Size, l.Producers, l.Destination)
}

const (
	toCounter = "counter"
	toFile    = "file"
)

// Ops returns how many lines a sample has if one of raw writes has ops.
func (l Load) Ops(ops int) int {
	const bytesEach = 512
	return max(ops*bytesEach/l.Size/l.Producers, 1) * l.Producers
}

// Loads lists all, in the order of the table.
func Loads() []Load {
	var loads []Load
	for _, destination := range []string{toCounter, toFile} {
		for _, size := range []int{256, 4 << 10, 300 << 10} {
			for _, producers := range []int{1, 4, 16, 64} {
				loads = append(loads, Load{size, producers, destination})
			}
		}
	}
	return loads
}

// FrontSubjects lists both front halves under l. Files are made in dir.
func FrontSubjects(l Load, dir string) []measure.Subject {
	subject := func(front string, shards int) measure.Subject {
		return measure.Subject{Case: "fronts", Library: front, Mode: l.String(), Goroutines: l.Producers, Prepare: prepareFront(l, shards, dir)}
	}
	return []measure.Subject{subject(lockedFront, 1), subject(shardedFront, 4)}
}

func prepareFront(l Load, shards int, dir string) func() (measure.Run, error) {
	return func() (measure.Run, error) {
		dst, discard := io.Writer(new(counter)), func() {}
		if l.Destination == toFile {
			folder, err := os.MkdirTemp(dir, "fronts-")
			if err != nil {
				return measure.Run{}, err
			}
			discard = func() { os.RemoveAll(folder) }
			if dst, err = file.Open(filepath.Join(folder, "log"), file.Options{}); err != nil {
				return measure.Run{}, err
			}
		}
		w, err := rivals.Slab(slab.Options{Shards: shards, SlabSize: 1 << 20, SlabCount: 16, Full: slab.Block})(dst)
		if err != nil {
			return measure.Run{}, err
		}
		line := append(bytes.Repeat([]byte{'x'}, l.Size-1), '\n')
		return measure.Run{
			Loop: func(_, n int) {
				for range n {
					_, _ = w.Write(line) // Finish counts
				}
			},
			Finish: func(ops int) (map[string]float64, error) {
				if err := w.Close(); err != nil {
					return nil, err
				}
				if s := w.Stats(); s.Written != uint64(ops) || s.Bytes != uint64(ops*l.Size) {
					return nil, fmt.Errorf("%d of %d lines arrived", s.Written, ops)
				}
				return nil, nil
			},
			Discard: discard,
		}, nil
	}
}
