package writers

import (
	"bytes"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strconv"
	"sync"

	"github.com/rollway/rollway/bench/internal/lines"
	"github.com/rollway/rollway/bench/internal/measure"
)

// workers is how many goroutines log to the file.
const workers = 10

// Numbers of workers and lines start at a value after which their digits do not grow.
const (
	firstWorker = 10
	firstSeq    = 1_000_000_000
)

// FileSubjects lists the combinations of a logger and a writer over a real
// file. Files are made in dir.
func FileSubjects(dir string) []measure.Subject {
	var subjects []measure.Subject
	for _, c := range combos() {
		subjects = append(subjects, measure.Subject{
			Case: "file", Library: c.name, Mode: "file", Goroutines: workers, Prepare: prepareFile(c, dir),
		})
	}
	return subjects
}

func prepareFile(c combo, parent string) func() (measure.Run, error) {
	pad := sync.OnceValues(func() (string, error) { return c.padding() })
	return func() (measure.Run, error) {
		pad, err := pad()
		if err != nil {
			return measure.Run{}, err
		}
		dir, err := os.MkdirTemp(parent, "rollway-bench-")
		if err != nil {
			return measure.Run{}, err
		}
		log, closeAll, err := c.open(dir)
		if err != nil {
			os.RemoveAll(dir)
			return measure.Run{}, err
		}
		type worker struct {
			next int
			_    [64]byte // workers do not share cache lines
		}
		all := make([]worker, workers)
		return measure.Run{
			Loop: func(goroutine, n int) {
				w := &all[goroutine]
				for range n {
					log(firstWorker+goroutine, firstSeq+w.next, pad)
					w.next++
				}
			},
			Finish: finish(closeAll),
			Verify: func(ops int) (map[string]float64, error) {
				return verifyFiles(dir, pad, ops, c.lossy)
			},
			Discard: func() { os.RemoveAll(dir) },
		}, nil
	}
}

// verifyFiles compares every line in the files of dir with what was logged.
func verifyFiles(dir, pad string, ops int, lossy bool) (map[string]float64, error) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, err
	}
	a := lines.NewAudit(workers, parseLogged(pad))
	for _, e := range entries {
		if !e.Type().IsRegular() { // a link to the current file
			continue
		}
		f, err := os.Open(filepath.Join(dir, e.Name()))
		if err != nil {
			return nil, err
		}
		if err := errors.Join(a.Read(f), f.Close()); err != nil {
			return nil, err
		}
	}
	extra, err := a.LostPct(ops/workers, lossy)
	if err == nil && a.Found > 0 {
		extra["line_bytes"] = float64(a.Bytes) / float64(a.Found)
	}
	return extra, err
}

// parseLogged reads a line that a logger of combos has written.
func parseLogged(pad string) func(line []byte) (worker, seq int, ok bool) {
	padField := []byte(`"pad":"` + pad + `"`)
	return func(line []byte) (worker, seq int, ok bool) {
		if !json.Valid(line) || line[len(line)-1] != '\n' || !bytes.Contains(line, padField) || !bytes.Contains(line, []byte(message)) {
			return 0, 0, false
		}
		worker, ok1 := number(line, `"worker":`)
		seq, ok2 := number(line, `"seq":`)
		return worker - firstWorker, seq - firstSeq, ok1 && ok2
	}
}

func number(line []byte, key string) (int, bool) {
	_, rest, ok := bytes.Cut(line, []byte(key))
	if !ok {
		return 0, false
	}
	end := bytes.IndexAny(rest, ",}")
	if end < 0 {
		return 0, false
	}
	n, err := strconv.Atoi(string(rest[:end]))
	return n, err == nil
}
