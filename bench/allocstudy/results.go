package allocstudy

import (
	"slices"

	"github.com/rollway/rollway/bench/internal/measure"
)

// Kind is the name of the results and of their place in the document.
const Kind = "allocstudy"

// Results are the raw results. The Library of a sample is its toolchain.
type Results struct {
	measure.Results
	Counts  []Count  `json:"counts"`
	Escapes []Escape `json:"escapes"`
}

// Save writes the results to a file: one count, one decision of a compiler and
// one sample a line.
func (r *Results) Save(path string) error {
	head := *r
	head.Counts, head.Escapes, head.Samples = nil, nil, nil
	return measure.SaveLines(path, head, measure.ListOf("counts", r.Counts), measure.ListOf("escapes", r.Escapes), measure.ListOf("samples", r.Samples))
}

// Load reads what Save wrote.
func Load(path string) (*Results, error) { return measure.Load[Results](path, Kind) }

// Toolchains lists the toolchains of the results as they were given.
func (r *Results) Toolchains() []string {
	var names []string
	for _, c := range r.Counts {
		if !slices.Contains(names, c.Go) {
			names = append(names, c.Go)
		}
	}
	return names
}

// Counted is what a case allocates with a toolchain, the runtime's own left out.
func (r *Results) Counted(name, toolchain string) Count {
	for _, c := range r.Counts {
		if c.Case == name && c.Go == toolchain {
			return c.rounded()
		}
	}
	return Count{}
}
