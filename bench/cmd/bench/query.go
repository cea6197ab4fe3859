package main

import (
	"context"
	"errors"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"

	"github.com/rollway/rollway/bench/internal/measure"
	"github.com/rollway/rollway/bench/query"
	"github.com/rollway/rollway/collector/config"
)

// runQuery asks Rollway and other engines the same questions.
func runQuery(a *arguments) error {
	s := query.Settings{Size: 2 << 30, Seed: 1}
	a.Func("size", "bytes of the corpus, 4MiB or more; default 2GiB, some 6.7 million lines", func(text string) error {
		size, err := config.ParseSize(text)
		s.Size = int64(size)
		return err
	})
	a.IntVar(&s.Rounds, "rounds", 5, "how often each question is asked with a warm page cache; once more with a cold one")
	a.StringVar(&s.Dir, "dir", "", "folder for all files, some four times the size of the corpus, in which what a stopped measurement has is used again; default one for temporary files, where nothing is left")
	a.BoolVar(&s.Fetch, "fetch", true, "fetch Python's packages with ClickHouse and DuckDB, and build VictoriaLogs and Loki, if they are not in the cache, 1.5 GB")
	a.DurationVar(&s.Limit, "limit", 2*time.Minute, "how long an engine may take for a question; ten times that to store the corpus; then it is left out")
	a.DurationVar(&s.Time, "time", 15*time.Minute, "for the questions about a corpus; if it gets short, there are fewer rounds with a warm page cache")
	growth := a.String("growth", "64MiB,256MiB", "before, Rollway and ClickHouse alone at these sizes, rising, for how times grow; empty: not")
	if err := a.parse(func() bool { return s.Rounds > 0 && s.Size >= 4<<20 && s.Limit > 0 }); err != nil {
		return err
	}
	if a.short {
		s.Size, s.Rounds, s.Fetch, *growth = 16<<20, 1, false, ""
	}
	results := query.Results{Results: *measure.NewResults(query.Kind, s.Rounds)}
	s.Commit = results.Commit
	var all []query.Settings
	for text := range strings.FieldsFuncSeq(*growth, func(r rune) bool { return r == ',' }) {
		size, err := config.ParseSize(text)
		if err != nil {
			return err
		}
		few := s
		few.Size, few.Few = int64(size), true
		all = append(all, few)
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	all = append(all, s)
	for _, s := range all {
		run, err := query.Measure(ctx, os.Stderr, s)
		if err != nil {
			return err
		}
		results.Runs = append(results.Runs, run)
	}
	err := a.save(results, len(results.Runs))
	for _, s := range all {
		err = errors.Join(err, s.Remove())
	}
	return err
}
