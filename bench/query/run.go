package query

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/rollway/rollway/bench/internal/measure"
)

// Kind is the name of the results.
const Kind = "query"

// Names of the engines.
const (
	Rollway    = "Rollway"
	ClickHouse = "ClickHouse"
	DuckDB     = "DuckDB"
	Victoria   = "VictoriaLogs"
	Loki       = "Loki"
	Pipe       = "zstd -dc | rg"
)

// Settings say what is measured.
type Settings struct {
	Size   int64  // of the corpus in bytes
	Seed   uint64 // of the corpus
	Rounds int    // with a warm page cache; one more is cold
	Fetch  bool   // fetch the engines that are not in the cache
	Few    bool   // only Rollway and ClickHouse

	// Limit is how long an engine may take for a question, and a tenth of what it may take
	// to store the corpus.
	Limit time.Duration

	// Time is for the questions about a corpus. If it gets short, there are fewer warm rounds.
	Time time.Duration

	// Dir is for all files, some three times the size. A measurement that was stopped leaves
	// there what it has, and the next of the same Commit continues with it. "": the system's
	// folder for temporary files, where nothing is left.
	Dir    string
	Commit string
}

// Results are the raw results.
type Results struct {
	measure.Results
	Runs []Run `json:"runs"` // that of all engines last
}

// A Run is all about one corpus.
type Run struct {
	Bytes   int64             `json:"bytes"`
	Few     bool              `json:"few"`    // only Rollway and ClickHouse
	Rounds  int               `json:"rounds"` // with a warm page cache
	Lines   int64             `json:"lines"`
	Engines []Engine          `json:"engines"`
	LeftOut map[string]string `json:"left_out"` // engines, and why
	Answers []Answer          `json:"answers"`
	Others  float64           `json:"others_pct"` // of one core, about what other programs used during the questions
}

// An Engine is what storing took, and the peaks of memory.
type Engine struct {
	Name    string `json:"engine"`
	Version string `json:"version"`
	Ingest  Cost   `json:"ingest"`
	Stored  int64  `json:"stored_bytes"`
	Open    int64  `json:"open_bytes"` // of them, those of the segment that takes lines and is not packed
	Storing int64  `json:"storing_peak_bytes"`
	Peak    int64  `json:"peak_bytes"` // while it answers
}

// An Answer has the costs of a question, one of each round.
type Answer struct {
	Query    string `json:"query"`
	Title    string `json:"title"`
	Engine   string `json:"engine"`
	Rows     int    `json:"rows"`
	Estimate string `json:"estimate"` // columns that have estimates, and how good these are
	Warm     []Cost `json:"warm"`
	Cold     []Cost `json:"cold"`
}

// Measure writes a corpus, has all engines store it, and asks them in turns. Answers
// that differ are an error. An engine other than Rollway that fails or takes too long is
// left out.
func Measure(ctx context.Context, log io.Writer, s Settings) (run Run, err error) {
	dir := s.folder()
	if s.Dir == "" {
		if dir, err = os.MkdirTemp("", "bench-query-"); err != nil {
			return run, err
		}
		defer os.RemoveAll(dir)
	} else if err := os.MkdirAll(dir, 0o700); err != nil {
		return run, err
	}
	of := fmt.Sprint(s.Commit, " ", s.Rounds, " ", s.Few)
	if recall(filepath.Join(dir, "run.json"), of, &run) {
		fmt.Fprintf(log, "%d MiB: measured before\n", s.Size>>20)
		return run, nil
	}
	file := filepath.Join(dir, "corpus.ndjson")
	var corpus Corpus
	if !recall(file+".json", s.Commit, &corpus) {
		fmt.Fprintf(log, "%d MiB: write the corpus\n", s.Size>>20)
		if corpus, err = s.corpus(file); err == nil {
			err = keep(file+".json", s.Commit, corpus)
		}
		if err != nil {
			return run, err
		}
	}
	r := &runner{Settings: s, ctx: ctx, log: log, file: file}
	r.run = Run{Bytes: corpus.Bytes, Few: s.Few, Lines: corpus.Lines, LeftOut: map[string]string{}}
	defer func() {
		for _, m := range r.members {
			err = errors.Join(err, m.engine.stop())
		}
	}()
	for _, k := range kinds[:s.kinds()] {
		m, err := r.prepare(k, filepath.Join(dir, k.folder))
		if err == nil {
			r.members = append(r.members, m)
		} else if err := r.leaveOut(k.name, err); err != nil {
			return r.run, err
		}
	}
	if err := r.rounds(Queries(corpus)); err != nil {
		return r.run, err
	}
	if err := r.collect(); err != nil || s.Dir == "" {
		return r.run, err
	}
	for _, m := range r.members {
		err = errors.Join(err, m.engine.stop())
	}
	r.members = nil
	return r.run, errors.Join(err, s.Remove(), os.MkdirAll(dir, 0o700), keep(filepath.Join(dir, "run.json"), of, r.run))
}

func (s Settings) folder() string {
	return filepath.Join(s.Dir, fmt.Sprintf("bench-query-%d-%d", s.Size, s.Seed))
}

// Remove removes what Measure has left in Dir.
func (s Settings) Remove() error {
	if s.Dir == "" {
		return nil
	}
	return os.RemoveAll(s.folder())
}

// kept is a file for the next measurement.
type kept[T any] struct {
	Of    string // what Value depends on
	Value T
}

func keep[T any](path, of string, value T) error { return measure.Save(path, kept[T]{of, value}) }

// recall reads what keep has written, if it is of the same.
func recall[T any](path, of string, value *T) bool {
	var k kept[T]
	text, err := os.ReadFile(path)
	if err != nil || json.Unmarshal(text, &k) != nil || k.Of != of {
		return false
	}
	*value = k.Value
	return true
}

// A runner is a measurement at work.
type runner struct {
	Settings
	ctx     context.Context
	log     io.Writer
	file    string // the corpus
	run     Run
	members []*member
}

// A member is an engine that takes part.
type member struct {
	Engine
	engine  engine
	answers []Answer // by query
}

// prepare starts an engine and has it store the corpus, unless it did so before.
func (r *runner) prepare(k kind, folder string) (*member, error) {
	m := &member{Engine: Engine{Name: k.name}}
	there := recall(folder+".json", r.Commit, &m.Engine)
	if !there {
		if err := errors.Join(os.RemoveAll(folder), os.Mkdir(folder, 0o700)); err != nil {
			return nil, err
		}
	}
	var err error
	if m.engine, err = k.start(r.Settings, folder); err != nil || there {
		return m, err
	}
	m.Version = m.engine.version()
	if err = r.within(m.engine, 10*r.Limit, func() (err error) {
		m.Ingest, m.Stored, err = m.engine.load(r.file)
		return err
	}); err == nil {
		m.Storing, err = m.engine.peak()
	}
	m.Open = folderSize(m.engine.dir(), ".open")
	if err == nil {
		err = keep(folder+".json", r.Commit, m.Engine)
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("store the corpus: %w", err), m.engine.stop())
	}
	fmt.Fprintf(r.log, "%s: %d of %d bytes stored in %.1f s, %.1f s CPU\n", m.Name, m.Stored, r.run.Bytes, m.Ingest.Wall, m.Ingest.CPU)
	return m, nil
}

// within calls f, and ends what the engine does if it takes longer than limit.
func (r *runner) within(e engine, limit time.Duration, f func() error) error {
	ctx, cancel := context.WithTimeoutCause(r.ctx, limit, fmt.Errorf("it took longer than %v", limit))
	defer cancel()
	stop := context.AfterFunc(ctx, e.kill)
	defer stop()
	if err := f(); err != nil {
		return cmp.Or(context.Cause(ctx), err)
	}
	return nil
}

// leaveOut notes why an engine does not take part. Without Rollway there is no measurement.
func (r *runner) leaveOut(name string, why error) error {
	if err := context.Cause(r.ctx); err != nil {
		return err
	}
	if name == Rollway {
		return fmt.Errorf("%s: %w", name, why)
	}
	r.run.LeftOut[name] = why.Error()
	fmt.Fprintf(r.log, "NOT MEASURED: %s: %v\n", name, why)
	return nil
}

// collect adds what the engines have answered to the run.
func (r *runner) collect() error {
	for _, m := range r.members {
		var err error
		if m.Peak, err = m.engine.peak(); err != nil {
			return err
		}
		r.run.Engines = append(r.run.Engines, m.Engine)
		r.run.Answers = append(r.run.Answers, slices.DeleteFunc(m.answers, func(a Answer) bool { return len(a.Cold) == 0 })...)
	}
	return nil
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

// A kind is an engine that can be started.
type kind struct {
	name, folder string
	start        func(s Settings, folder string) (engine, error)
}

// kinds are the engines; Few takes the first two.
var kinds = []kind{
	{Rollway, "rollway", startOwn},
	{ClickHouse, "clickhouse", func(s Settings, folder string) (engine, error) { return startSQL(s, ClickHouse, folder) }},
	{DuckDB, "duckdb", func(s Settings, folder string) (engine, error) { return startSQL(s, DuckDB, folder) }},
	{Victoria, "victoria", startVictoria},
	{Loki, "loki", startLoki},
	{Pipe, "pipe", func(_ Settings, folder string) (engine, error) { return startPipe(folder) }},
}

// rounds asks each question of all engines, one after the other, and then the next.
// The round before the first is not counted; the last is cold.
func (r *runner) rounds(queries []Query) error {
	for _, m := range r.members {
		for _, q := range queries {
			m.answers = append(m.answers, Answer{Query: q.Name, Title: q.Title, Engine: m.Name})
		}
		if _, err := m.engine.peak(); err != nil {
			return err
		}
	}
	meter, used, end := measure.StartMeter(), 0.0, time.Now().Add(r.Time)
	for round := -1; round <= r.Rounds; round++ {
		begin := time.Now()
		for i := range queries {
			cpu, err := r.question(round, i, &queries[i])
			if err != nil {
				return err
			}
			used += cpu
		}
		took := time.Since(begin)
		if round >= 0 && round < r.Rounds {
			r.run.Rounds++
			if time.Now().Add(2 * took).After(end) {
				round = max(round, r.Rounds-1) // the cold one is next
			}
		}
		fmt.Fprintf(r.log, "round %d of at most %d took %v, some %v left\n", round+2, r.Rounds+2, took.Round(time.Second), (took * time.Duration(r.Rounds-round)).Round(time.Second))
	}
	took, _, others := meter.Read()
	r.run.Others = max(0, others-100*used/took.Seconds())
	return nil
}

// question asks all engines one question, and returns their CPU time.
func (r *runner) question(round, i int, q *Query) (cpu float64, err error) {
	var reference []string
	for _, m := range slices.Clone(r.members) {
		if round == r.Rounds {
			if err := chill(m.engine.dir()); err != nil {
				return cpu, err
			}
		}
		var a answered
		err := r.within(m.engine, r.Limit, func() (err error) {
			a, err = m.engine.ask(*q)
			return err
		})
		if err == errCannot {
			continue
		} else if err != nil {
			r.members = slices.DeleteFunc(r.members, func(other *member) bool { return other == m })
			if err := errors.Join(r.leaveOut(m.Name, fmt.Errorf("query %s (%s): %w", q.Name, q.Title, err)), m.engine.stop()); err != nil {
				return cpu, err
			}
			continue
		}
		cpu += a.CPU
		slices.Sort(a.rows)
		if m == r.members[0] {
			reference = a.rows
		} else if err := q.differ(reference, a.rows); err != nil {
			return cpu, fmt.Errorf("query %s (%s): %s and %s answer differently: %w", q.Name, q.Title, r.members[0].Name, m.Name, err)
		}
		to := &m.answers[i]
		to.Rows, to.Estimate = len(a.rows), a.estimate
		switch {
		case round < 0:
			fmt.Fprintf(r.log, "%s, %s: %.1f ms, %d rows\n", q.Name, m.Name, 1e3*a.Wall, len(a.rows))
		case round == r.Rounds:
			to.Cold = append(to.Cold, a.Cost)
		default:
			to.Warm = append(to.Warm, a.Cost)
		}
	}
	return cpu, nil
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
