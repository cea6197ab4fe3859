package main

import (
	"fmt"
	"os"
	"strconv"
	"strings"

	"github.com/rollway/rollway/bench/internal/measure"
	"github.com/rollway/rollway/bench/query"
)

// runQuery asks Rollway and other engines the same questions.
func runQuery(a *arguments) error {
	s := query.Settings{Size: 2 << 30, Seed: 1}
	a.Func("size", "bytes of the corpus, as 64MB or 2GB (1024-based), 4MB or more; default 2GB, some 6.7 million lines", func(text string) (err error) {
		s.Size, err = parseSize(text)
		return err
	})
	a.IntVar(&s.Rounds, "rounds", 5, "how often each question is asked with a warm page cache; once more with a cold one")
	a.StringVar(&s.Dir, "dir", "", "folder for all files, some four times the size of the corpus; default the system's for temporary files")
	a.BoolVar(&s.Fetch, "fetch", true, "fetch Python's packages with ClickHouse and DuckDB if they are not in the cache, 1 GB")
	growth := a.String("growth", "", "instead, only Rollway and ClickHouse at these sizes, as 1GB,4GB,16GB")
	if err := a.parse(func() bool { return s.Rounds > 0 && s.Size >= 4<<20 }); err != nil {
		return err
	}
	if a.short {
		s.Size, s.Rounds, s.Fetch = 16<<20, 1, false
	}
	sizes := []int64{s.Size}
	if *growth != "" {
		s.Few, sizes = true, nil
		for text := range strings.SplitSeq(*growth, ",") {
			size, err := parseSize(text)
			if err != nil {
				return err
			}
			sizes = append(sizes, size)
		}
	}
	results := query.Results{Results: *measure.NewResults(query.Kind, s.Rounds)}
	for _, s.Size = range sizes {
		run, err := query.Measure(os.Stderr, s)
		if err != nil {
			return err
		}
		results.Runs = append(results.Runs, run)
	}
	return a.save(results, len(results.Runs))
}

// parseSize parses a number of megabytes or gigabytes, based on 1024.
func parseSize(text string) (int64, error) {
	for suffix, shift := range map[string]int{"MB": 20, "GB": 30} {
		if digits, ok := strings.CutSuffix(text, suffix); ok {
			if n, err := strconv.ParseInt(digits, 10, 16); err == nil && n > 0 {
				return n << shift, nil
			}
		}
	}
	return 0, fmt.Errorf("%q is no size: write a number and MB or GB", text)
}
