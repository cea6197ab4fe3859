package ingest

import (
	"fmt"

	"github.com/rollway/rollway/bench/internal/measure"
)

// Load reads the raw results from a file.
func Load(path string) (*measure.Results, error) {
	r, err := measure.Load(path)
	if err == nil && r.Kind != Kind {
		err = fmt.Errorf("%s holds results of %q", path, r.Kind)
	}
	return r, err
}
