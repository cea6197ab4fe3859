package writers

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/rollway/rollway/bench/internal/measure"
	"github.com/rollway/rollway/file"
	"github.com/rollway/rollway/slab"
)

// Fronts is the case that compares the two front halves of slab.Writer: locked
// slabs, and slabs in several shards. Both have the same memory.
const Fronts = "fronts"

// The front halves.
const (
	Locked  = "16 × 1 MiB, locked"
	Sharded = "16 × 1 MiB, 4 shards"
)

// A Load is what the front halves are given: lines of a size from so many
// goroutines, for a destination.
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

// loadBytes is how much one sample writes for each byte of ops.
const loadBytes = 512

// Ops returns how many lines a sample has where one of raw writes has ops.
func (l Load) Ops(ops int) int {
	return max(ops*loadBytes/l.Size/l.Producers, 1) * l.Producers
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
	var subjects []measure.Subject
	for _, front := range []struct {
		name   string
		shards int
	}{{Locked, 1}, {Sharded, 4}} {
		subjects = append(subjects, measure.Subject{
			Case: Fronts, Library: front.name, Mode: l.String(), Goroutines: l.Producers, Prepare: prepareFront(l, front.shards, dir),
		})
	}
	return subjects
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
		w, err := slab.New(dst, slab.Options{Shards: shards, SlabSize: 1 << 20, SlabCount: 16, Full: slab.Block})
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
