package writers

import (
	"io"
	"os"

	"github.com/rollway/rollway/bench/internal/lines"
	"github.com/rollway/rollway/bench/internal/measure"
	"github.com/rollway/rollway/bench/internal/rivals"
	"github.com/rollway/rollway/slab"
)

// The published table: the length of its lines, computed from its MB/s and ns/op,
// and how many goroutines write.
const (
	publishedBytes      = 200
	publishedGoroutines = 10
)

// A row is a strategy of the published table.
type row struct {
	name string
	open rivals.Opener
}

// publishedRows lists the strategies. "SlabWriter" is slab.Writer here; the
// last row is the design that was published, written anew.
func publishedRows() []row {
	slabs := func(size, count int) rivals.Opener {
		return rivals.Slab(slab.Options{SlabSize: size, SlabCount: count, Full: slab.Block, KeepOpen: true})
	}
	buffer := rivals.Bufio(64 << 10)
	return []row{
		{"slab 8 × 64 KiB", slabs(64<<10, 8)},
		{"slab 2 × 32 KiB", slabs(32<<10, 2)},
		{"channel of 20 + buffer 64 KiB", rivals.Channel(20, buffer)},
		{"channel of 1000 + buffer 64 KiB", rivals.Channel(1000, buffer)},
		{"channel of 20 + slab 8 × 64 KiB", rivals.Channel(20, slabs(64<<10, 8))},
		{"slab design as published 8 × 64 KiB", rivals.Published},
	}
}

// PublishedSubjects lists the rows. Files are made in dir.
func PublishedSubjects(dir string) []measure.Subject {
	var subjects []measure.Subject
	for _, r := range publishedRows() {
		subjects = append(subjects, measure.Subject{
			Case: "published", Library: r.name, Mode: "published", Goroutines: publishedGoroutines, Prepare: r.prepare(dir),
		})
	}
	return subjects
}

func (r row) prepare(dir string) func() (measure.Run, error) {
	return func() (measure.Run, error) {
		f, err := os.CreateTemp(dir, "published-*.log")
		if err != nil {
			return measure.Run{}, err
		}
		out, err := r.open(f)
		if err != nil {
			return measure.Run{}, err
		}
		type producer struct {
			line []byte
			next int
			_    [64]byte // producers do not share cache lines
		}
		producers := make([]producer, publishedGoroutines)
		for i := range producers {
			producers[i].line = lines.Append(nil, publishedBytes, i, 0)
		}
		return measure.Run{
			Loop: func(goroutine, n int) {
				p := &producers[goroutine]
				for range n {
					lines.Renumber(p.line, p.next)
					p.next++
					_, _ = out.Write(p.line) // what was refused is missing in the file
				}
			},
			Finish: finish(out.Close),
			Verify: func(ops int) (map[string]float64, error) {
				if _, err := f.Seek(0, io.SeekStart); err != nil {
					return nil, err
				}
				a := lines.NewAudit(publishedGoroutines, lines.Parser(publishedBytes))
				if err := a.Read(f); err != nil {
					return nil, err
				}
				return a.LostPct(ops/publishedGoroutines, false)
			},
			Discard: func() { f.Close(); os.Remove(f.Name()) },
		}, nil
	}
}
