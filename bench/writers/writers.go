// Package writers measures slab.Writer against the other ways to put a buffer
// between loggers and a destination, in four cases:
//
//   - raw: lines of 256 bytes into a destination that counts their bytes, from
//     one goroutine and from as many as there are processors;
//   - file: ten goroutines log lines of 256 bytes through whole loggers into a
//     real file;
//   - fronts: the two front halves of slab.Writer under several loads;
//   - published: the table that the author of logf's SlabWriter has published,
//     ten goroutines with lines of 200 bytes into a real file.
//
// The measured time includes the Close of the writer, so a queue does not count
// as speed. Lines that did not arrive are counted. A writer that tears, repeats
// or reorders lines, or loses some without being lossy by design, ends the run.
package writers

import (
	"errors"
	"fmt"
	"strings"
	"sync"

	"github.com/rollway/rollway/bench/internal/lines"
	"github.com/rollway/rollway/bench/internal/rivals"
	"github.com/rollway/rollway/internal/testkit"
	"github.com/rollway/rollway/slab"
)

// Writer is one contender.
type Writer struct {
	Name  string
	Lossy bool // drops lines by design rather than wait
	Open  rivals.Opener
}

// Writers lists the contenders, our own first.
func Writers() []Writer {
	o := slab.Options{Full: slab.Block, KeepOpen: true}
	all := []Writer{{Name: "slab 8 × 64 KiB", Open: rivals.Slab(o)}}
	if rivals.CanPersist {
		all = append(all, Writer{Name: "slab persisted 8 × 64 KiB", Open: rivals.Persisted(o)})
	}
	return append(all,
		Writer{Name: "mutex + bufio 64 KiB", Open: rivals.Bufio(64 << 10)},
		Writer{Name: "zap BufferedWriteSyncer 256 KiB", Open: rivals.Zap},
		Writer{Name: "slab design as published 8 × 64 KiB", Open: rivals.Published},
		Writer{Name: "zerolog diode 1000", Lossy: true, Open: rivals.Diode(1000)},
		Writer{Name: "zerolog diode 100000", Lossy: true, Open: rivals.Diode(100_000)},
		Writer{Name: "phuslu AsyncWriter 4096", Open: rivals.Phuslu},
	)
}

// finish ends a writer as the last step that is timed.
func finish(close func() error) func(int) (map[string]float64, error) {
	return func(int) (map[string]float64, error) {
		if err := close(); err != nil {
			return nil, fmt.Errorf("close: %w", err)
		}
		return nil, nil
	}
}

// LineBytes is the length of each line, its newline included.
const LineBytes = 256

// Check writes numbered lines through every writer from four goroutines and
// verifies each line that arrives.
func Check(linesEach int) error {
	var errs []error
	for _, w := range Writers() {
		if err := w.check(4, linesEach); err != nil {
			errs = append(errs, fmt.Errorf("%s: %w", w.Name, err))
		}
	}
	return errors.Join(errs...)
}

func (w Writer) check(producers, linesEach int) error {
	var dst testkit.Buffer
	out, err := w.Open(&dst)
	if err != nil {
		return err
	}
	var wg sync.WaitGroup
	for p := range producers {
		wg.Go(func() {
			var line []byte // one buffer for all lines: a writer that keeps it is found out
			for i := range linesEach {
				line = lines.Append(line[:0], LineBytes, p, i)
				_, _ = out.Write(line) // what was refused is missing below
			}
		})
	}
	wg.Wait()
	if err := out.Close(); err != nil {
		return fmt.Errorf("close: %w", err)
	}
	a := lines.NewAudit(producers, lines.Parser(LineBytes))
	if err := a.Read(strings.NewReader(dst.String())); err != nil {
		return err
	}
	_, err = a.LostPct(linesEach, w.Lossy)
	return err
}
