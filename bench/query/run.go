package query

import (
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/rollway/rollway/bench/internal/child"
	"github.com/rollway/rollway/bench/internal/measure"
	"github.com/rollway/rollway/internal/fetch"
)

// Kind is the name of the results.
const Kind = "query"

// Names of the engines that have no version in them.
const (
	Rollway = "Rollway"
	Pipe    = "zstd -dc | rg"
)

// packages are Python's, with chdb and DuckDB.
var packages = []string{"chdb==4.4.0", "duckdb==2.0.1"}

// Settings say what is measured.
type Settings struct {
	Size   int64  // of the corpus in bytes
	Seed   uint64 // of the corpus
	Rounds int    // with a warm page cache; one more is cold
	Dir    string // for all files, some three times the size; "": the system's for temporary files
	Fetch  bool   // fetch the engines that are not in the cache
	Few    bool   // only Rollway and ClickHouse
}

// Results are the raw results.
type Results struct {
	measure.Results
	Runs []Run `json:"runs"`
}

// A Run is all about one corpus.
type Run struct {
	Bytes   int64             `json:"bytes"`
	Lines   int64             `json:"lines"`
	Engines []Engine          `json:"engines"`
	LeftOut map[string]string `json:"left_out"` // engines, and why
	Answers []Answer          `json:"answers"`
}

// An Engine is what storing took, and the peak of its memory after all questions.
type Engine struct {
	Name   string `json:"engine"`
	Ingest Cost   `json:"ingest"`
	Stored int64  `json:"stored_bytes"`
	Peak   int64  `json:"peak_bytes"`
}

// An Answer has the costs of a question, one of each round.
type Answer struct {
	Query  string `json:"query"`
	Title  string `json:"title"`
	Engine string `json:"engine"`
	Rows   int    `json:"rows"`
	Warm   []Cost `json:"warm"`
	Cold   []Cost `json:"cold"`
}

// Measure writes a corpus, has all engines store it, and asks them in turns. Answers
// that differ are an error.
func Measure(log io.Writer, s Settings) (run Run, err error) {
	dir, err := os.MkdirTemp(s.Dir, "bench-query-")
	if err != nil {
		return run, err
	}
	defer os.RemoveAll(dir)
	file := filepath.Join(dir, "corpus.ndjson")
	corpus, err := s.corpus(file)
	if err != nil {
		return run, err
	}
	run = Run{Bytes: corpus.Bytes, Lines: corpus.Lines, LeftOut: map[string]string{}}
	var engines []engine
	defer func() {
		for _, e := range engines {
			err = errors.Join(err, e.stop())
		}
	}()
	for _, k := range kinds[:s.kinds()] {
		folder := filepath.Join(dir, k.folder)
		if err := os.Mkdir(folder, 0o700); err != nil {
			return run, err
		}
		e, err := k.start(s, folder)
		if errors.Is(err, errAbsent) {
			run.LeftOut[k.folder] = err.Error()
			fmt.Fprintf(log, "NOT MEASURED: %s: %v\n", k.folder, err)
			continue
		} else if err != nil {
			return run, fmt.Errorf("start %s: %w", k.folder, err)
		}
		engines = append(engines, e)
		cost, stored, err := e.load(file)
		if err != nil {
			return run, fmt.Errorf("%s stores the corpus: %w", e.name(), err)
		}
		run.Engines = append(run.Engines, Engine{Name: e.name(), Ingest: cost, Stored: stored})
		fmt.Fprintf(log, "%s: stored %d lines in %d of %d bytes, %.2f s CPU\n", e.name(), corpus.Lines, stored, corpus.Bytes, cost.CPU)
	}
	if err := run.rounds(log, engines, Queries(corpus), s.Rounds); err != nil {
		return run, err
	}
	for i, e := range engines {
		if run.Engines[i].Peak, err = e.peak(); err != nil {
			return run, err
		}
	}
	return run, nil
}

func (s Settings) corpus(file string) (Corpus, error) {
	f, err := os.Create(file)
	if err != nil {
		return Corpus{}, err
	}
	c, err := Write(f, s.Size, s.Seed)
	return c, errors.Join(err, f.Close())
}

func (s Settings) kinds() int {
	if s.Few {
		return 2
	}
	return len(kinds)
}

var errAbsent = errors.New("it is not on this machine")

// kinds are the engines; Few takes the first two.
var kinds = []struct {
	folder string
	start  func(s Settings, folder string) (engine, error)
}{
	{"rollway", func(s Settings, folder string) (engine, error) {
		program, err := child.BuildRollway(folder)
		if err != nil {
			return nil, err
		}
		return startOwn(program, folder, s.Size)
	}},
	{"clickhouse", func(s Settings, folder string) (engine, error) { return s.python("clickhouse", folder) }},
	{"duckdb", func(s Settings, folder string) (engine, error) { return s.python("duckdb", folder) }},
	{"zstd and rg", func(_ Settings, folder string) (engine, error) {
		for _, name := range []string{"zstd", "rg"} {
			if _, err := exec.LookPath(name); err != nil {
				return nil, fmt.Errorf("%w: install %s", errAbsent, name)
			}
		}
		return &pipe{folder: folder}, nil
	}},
}

func (s Settings) python(kind, folder string) (engine, error) {
	cache, err := os.UserCacheDir()
	if err != nil {
		return nil, err
	}
	dir := filepath.Join(cache, "rollway-test", "query-"+strings.Join(packages, "-"))
	if _, err := os.Stat(dir); err != nil {
		if !s.Fetch {
			return nil, fmt.Errorf("%w: Python's packages %v are not in %s", errAbsent, packages, dir)
		}
		err := fetch.Into(dir, func(part string) *exec.Cmd {
			return exec.Command("python3", append([]string{"-m", "pip", "install", "-q", "--disable-pip-version-check", "--root-user-action=ignore", "--target", part}, packages...)...)
		})
		if errors.Is(err, exec.ErrNotFound) {
			return nil, fmt.Errorf("%w: install python3", errAbsent)
		} else if err != nil {
			return nil, err
		}
	}
	return startSQL(kind, dir, folder)
}

// rounds asks each question of all engines, one after the other, and then the next.
// The round before the first is not counted; the last is cold.
func (run *Run) rounds(log io.Writer, engines []engine, queries []Query, rounds int) error {
	for round := -1; round <= rounds; round++ {
		at := 0
		for _, q := range queries {
			var reference []string
			for i, e := range engines {
				if round == rounds {
					if err := chill(e.dir()); err != nil {
						return err
					}
				}
				rows, cost, can, err := e.ask(q)
				if !can {
					continue
				}
				if err != nil {
					return fmt.Errorf("query %s (%s), %s: %w", q.Name, q.Title, e.name(), err)
				}
				slices.Sort(rows)
				if i == 0 {
					reference = rows
				} else if err := q.differ(reference, rows); err != nil {
					return fmt.Errorf("query %s (%s): %s and %s answer differently: %w", q.Name, q.Title, engines[0].name(), e.name(), err)
				}
				if round < 0 {
					run.Answers = append(run.Answers, Answer{Query: q.Name, Title: q.Title, Engine: e.name(), Rows: len(rows)})
					continue
				}
				a := &run.Answers[at]
				at++
				if round == rounds {
					a.Cold = append(a.Cold, cost)
				} else {
					a.Warm = append(a.Warm, cost)
				}
			}
		}
		fmt.Fprintf(log, "round %d of %d done\n", round+1, rounds+1)
	}
	return nil
}

// differ says how two sorted answers differ.
func (q Query) differ(a, b []string) error {
	if len(a) != len(b) {
		return fmt.Errorf("%d rows and %d rows", len(a), len(b))
	}
	for i := range a {
		if a[i] != b[i] && !q.close(a[i], b[i]) {
			return fmt.Errorf("row %q and row %q", a[i], b[i])
		}
	}
	return nil
}

// close is whether rows differ in their last column alone, by no more than an estimate may.
func (q Query) close(a, b string) bool {
	i, j := strings.LastIndexByte(a, '\t'), strings.LastIndexByte(b, '\t')
	if q.estimate == 0 || i < 0 || j < 0 || a[:i] != b[:j] {
		return false
	}
	x, err := strconv.ParseFloat(a[i+1:], 64)
	y, err2 := strconv.ParseFloat(b[j+1:], 64)
	return err == nil && err2 == nil && math.Abs(x-y) <= q.estimate*max(math.Abs(x), math.Abs(y))
}
