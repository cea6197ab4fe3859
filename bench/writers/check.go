package writers

import (
	"bytes"
	"errors"
	"fmt"
	"strconv"
	"sync"
)

// appendLine appends a line of LineBytes that says whose it is and which.
func appendLine(dst []byte, producer, sequence int) []byte {
	begin := len(dst)
	dst = fmt.Appendf(dst, "%02d %09d ", producer, sequence)
	for len(dst) < begin+LineBytes-1 {
		dst = append(dst, 'x')
	}
	return append(dst, '\n')
}

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
		if r.Torn+r.Repeated+r.Reordered > 0 || r.Lost > 0 && !w.Lossy {
			errs = append(errs, fmt.Errorf("%s: %+v", w.Name, r))
		}
	}
	return errors.Join(errs...)
}

func verify(w Writer, producers, linesEach int) (Report, error) {
	var dst lockedBuffer
	out, err := w.Open(&dst)
	if err != nil {
		return Report{}, err
	}
	var wg sync.WaitGroup
	for p := range producers {
		wg.Go(func() {
			var line []byte // one buffer for all lines: a writer that keeps it is found out
			for i := range linesEach {
				line = appendLine(line[:0], p, i)
				_, _ = out.Write(line) // what was refused is missing below
			}
		})
	}
	wg.Wait()
	if err := out.Close(); err != nil {
		return Report{}, fmt.Errorf("close: %w", err)
	}
	return audit(dst.b.Bytes(), producers, linesEach), nil
}

// audit compares what arrived with what was written.
func audit(stream []byte, producers, linesEach int) Report {
	r := Report{Written: producers * linesEach}
	seen := make([][]bool, producers)
	for p := range seen {
		seen[p] = make([]bool, linesEach)
	}
	last := make([]int, producers)
	for line := range bytes.Lines(stream) {
		p, i, ok := parseLine(line, producers, linesEach)
		switch {
		case !ok:
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
	return r
}

func parseLine(line []byte, producers, linesEach int) (producer, sequence int, ok bool) {
	if len(line) != LineBytes {
		return 0, 0, false
	}
	producer, err := strconv.Atoi(string(line[:2]))
	if err != nil || producer >= producers {
		return 0, 0, false
	}
	sequence, err = strconv.Atoi(string(line[3:12]))
	if err != nil || sequence >= linesEach {
		return 0, 0, false
	}
	return producer, sequence, bytes.Equal(line, appendLine(nil, producer, sequence))
}

type lockedBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer // guarded by mu
}

func (l *lockedBuffer) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}
