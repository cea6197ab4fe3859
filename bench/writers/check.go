package writers

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"

	"github.com/rollway/rollway/bench/internal/lines"
	"github.com/rollway/rollway/internal/testkit"
)

// Report is what became of one writer's lines in Check.
type Report struct {
	Written, Lost, Torn, Repeated, Reordered int
}

// Check writes numbered lines through every writer from four goroutines and
// verifies each line that arrives. It fails on a torn, repeated or reordered
// line, and on a lost one where the writer is not lossy by design.
func Check(linesEach int) error {
	var errs []error
	for _, w := range Writers() {
		r, err := verify(w, 4, linesEach)
		if err != nil {
			errs = append(errs, fmt.Errorf("%s: %w", w.Name, err))
			continue
		}
		if _, err := r.lostPct(w.Lossy); err != nil {
			errs = append(errs, fmt.Errorf("%s: %w", w.Name, err))
		}
	}
	return errors.Join(errs...)
}

func verify(w Writer, producers, linesEach int) (Report, error) {
	var dst testkit.Buffer
	out, err := w.Open(&dst)
	if err != nil {
		return Report{}, err
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
		return Report{}, fmt.Errorf("close: %w", err)
	}
	return audit(strings.NewReader(dst.String()), lines.Parser(LineBytes), producers, linesEach)
}

// audit compares what arrived with what was written; parse says whose a line
// is and which, or that it is none that anybody wrote.
func audit(stream io.Reader, parse func(line []byte) (producer, sequence int, ok bool), producers, linesEach int) (Report, error) {
	r := Report{Written: producers * linesEach}
	seen := make([][]bool, producers)
	for p := range seen {
		seen[p] = make([]bool, linesEach)
	}
	last := make([]int, producers)
	in := bufio.NewReaderSize(stream, 1<<20)
	for {
		line, err := in.ReadSlice('\n')
		if err == io.EOF && len(line) == 0 {
			break
		}
		if err != nil && err != io.EOF {
			return r, err
		}
		p, i, ok := parse(line)
		switch {
		case !ok || p < 0 || p >= producers || i < 0 || i >= linesEach:
			r.Torn++
			continue
		case seen[p][i]:
			r.Repeated++
		case i < last[p]:
			r.Reordered++
		}
		seen[p][i] = true
		last[p] = max(last[p], i)
	}
	for p := range seen {
		for _, ok := range seen[p] {
			if !ok {
				r.Lost++
			}
		}
	}
	return r, nil
}

// lostPct is the share of lines that did not arrive, or an error if the writer
// broke lines, or lost some without being lossy by design.
func (r Report) lostPct(lossy bool) (map[string]float64, error) {
	if r.Torn+r.Repeated+r.Reordered > 0 || r.Lost > 0 && !lossy {
		return nil, fmt.Errorf("what arrived is not what was written: %+v", r)
	}
	return map[string]float64{"lost_pct": 100 * float64(r.Lost) / float64(r.Written)}, nil
}
