package ingest

import (
	"fmt"

	"github.com/rollway/rollway/bench/internal/measure"
)

// Results are the raw results: samples of requests, and runs of servers under
// load.
type Results struct {
	measure.Results
	Runs []Run `json:"runs"`
}

// Save writes the results to a file: one sample and one run a line.
func (r *Results) Save(path string) error {
	head := *r
	head.Samples, head.Runs = nil, nil
	return measure.SaveLines(path, head, measure.ListOf("samples", r.Samples), measure.ListOf("runs", r.Runs))
}

// Load reads what Save wrote.
func Load(path string) (*Results, error) {
	r := new(Results)
	err := measure.Read(path, r)
	if err == nil && r.Kind != Kind {
		err = fmt.Errorf("%s holds results of %q", path, r.Kind)
	}
	return r, err
}
