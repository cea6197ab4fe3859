package reliability

import (
	"errors"
	"fmt"
	"io"
	"sync"
	"time"
)

// Run makes all tries of the settings, several at a time, and reports progress
// to w. The order of the results is that of faults, writers and tries.
func Run(w io.Writer, s Settings) ([]Try, error) {
	type item struct {
		fault  Fault
		writer Writer
		seed   uint64
	}
	var items []item
	for _, f := range s.Faults {
		tries := s.Tries
		switch {
		case f.Name == killRandom || f.Name == killInCopy || f.Name == killInWrite:
			tries = s.Kills
		case f.Kills:
			tries = s.Others
		}
		for _, wr := range s.Writers {
			if !wr.meets(f) {
				continue
			}
			for i := range tries {
				items = append(items, item{f, wr, s.Seed + uint64(i)})
			}
		}
	}
	begin := time.Now()
	results := make([]Try, len(items))
	errs := make([]error, len(items))
	var mu sync.Mutex
	next, done := 0, 0
	var all sync.WaitGroup
	for range max(1, s.Jobs) {
		all.Go(func() {
			for {
				mu.Lock()
				i := next
				next++
				mu.Unlock()
				if i >= len(items) {
					return
				}
				it := items[i]
				results[i], errs[i] = s.Try(it.fault, it.writer, it.seed)
				if errs[i] != nil {
					errs[i] = fmt.Errorf("%s, %s, seed %d: %w", it.fault.Name, it.writer.Name, it.seed, errs[i])
				}
				mu.Lock()
				if done++; done%100 == 0 || done == len(items) {
					fmt.Fprintf(w, "%d of %d tries in %v, at %q\n", done, len(items), time.Since(begin).Round(time.Second), it.fault.Name)
				}
				mu.Unlock()
			}
		})
	}
	all.Wait()
	return results, errors.Join(errs...)
}
