package writers

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/rollway/rollway/bench/internal/lines"
	"github.com/rollway/rollway/bench/internal/measure"
	"github.com/rollway/rollway/slab"
)

// PublishedBytes is the length of a line in the published table, as its MB/s
// and ns/op say.
const PublishedBytes = 200

// PublishedGoroutines is how many write in it.
const PublishedGoroutines = 10

// A Row is a strategy of the published table, with its figures from there.
type Row struct {
	Name   string
	Ns     float64 // published ns/op; 0 in a row that is not in that table
	Allocs float64
	MBs    float64
	Open   func(dst io.Writer) (io.WriteCloser, error)
}

// PublishedRows lists the strategies. "SlabWriter" is slab.Writer here; the
// last row is the design that was published, written anew.
func PublishedRows() []Row {
	buffer := func(dst io.Writer) (io.WriteCloser, error) {
		return flushed{bufio.NewWriterSize(dst, 64<<10)}, nil
	}
	slabs := openSlab(slab.Options{SlabSize: 64 << 10, SlabCount: 8})
	return []Row{
		{Name: "slab 8 × 64 KiB", Ns: 107, MBs: 1860, Open: slabs},
		{Name: "slab 2 × 32 KiB", Ns: 132, MBs: 1470, Open: openSlab(slab.Options{SlabSize: 32 << 10, SlabCount: 2})},
		{Name: "channel of 20 + buffer 64 KiB", Ns: 289, Allocs: 1, MBs: 692, Open: behindChannel(20, buffer)},
		{Name: "channel of 1000 + buffer 64 KiB", Ns: 265, Allocs: 1, MBs: 754, Open: behindChannel(1000, buffer)},
		{Name: "channel of 20 + slab 8 × 64 KiB", Ns: 300, Allocs: 1, MBs: 669, Open: behindChannel(20, slabs)},
		{Name: "slab design as published 8 × 64 KiB", Open: openPublishedSlab},
	}
}

type flushed struct{ *bufio.Writer }

func (f flushed) Close() error { return f.Flush() }

// behindChannel copies each line, sends it through a channel, and has one
// goroutine write what arrives.
func behindChannel(size int, open func(dst io.Writer) (io.WriteCloser, error)) func(dst io.Writer) (io.WriteCloser, error) {
	return func(dst io.Writer) (io.WriteCloser, error) {
		w, err := open(dst)
		if err != nil {
			return nil, err
		}
		c := &channel{queue: make(chan []byte, size), done: make(chan error, 1)}
		go func() {
			var errs error
			for line := range c.queue {
				if _, err := w.Write(line); err != nil && errs == nil {
					errs = err
				}
			}
			c.done <- errors.Join(errs, w.Close())
		}()
		return c, nil
	}
}

type channel struct {
	queue chan []byte
	done  chan error
}

func (c *channel) Write(p []byte) (int, error) {
	c.queue <- bytes.Clone(p)
	return len(p), nil
}

func (c *channel) Close() error {
	close(c.queue)
	return <-c.done
}

// PublishedSubjects lists the rows. Files are made in dir.
func PublishedSubjects(dir string) []measure.Subject {
	var subjects []measure.Subject
	for _, row := range PublishedRows() {
		subjects = append(subjects, measure.Subject{
			Case: Published, Library: row.Name, Mode: Published, Goroutines: PublishedGoroutines, Prepare: preparePublished(row, dir),
		})
	}
	return subjects
}

func preparePublished(row Row, dir string) func() (measure.Run, error) {
	return func() (measure.Run, error) {
		f, err := os.CreateTemp(dir, "published-*.log")
		if err != nil {
			return measure.Run{}, err
		}
		out, err := row.Open(f)
		if err != nil {
			return measure.Run{}, err
		}
		type producer struct {
			line []byte
			next int
			_    [64]byte // producers do not share cache lines
		}
		producers := make([]producer, PublishedGoroutines)
		for i := range producers {
			producers[i].line = lines.Append(nil, PublishedBytes, i, 0)
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
			Finish: func(int) (map[string]float64, error) {
				if err := out.Close(); err != nil {
					return nil, fmt.Errorf("close: %w", err)
				}
				return nil, nil
			},
			Verify: func(ops int) (map[string]float64, error) {
				if _, err := f.Seek(0, io.SeekStart); err != nil {
					return nil, err
				}
				r, err := audit(f, lines.Parser(PublishedBytes), PublishedGoroutines, ops/PublishedGoroutines)
				if err != nil {
					return nil, err
				}
				return r.lostPct(false)
			},
			Discard: func() { f.Close(); os.Remove(f.Name()) },
		}, nil
	}
}
