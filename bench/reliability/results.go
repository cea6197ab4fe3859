package reliability

import "github.com/rollway/rollway/bench/internal/measure"

// Kind is the name of the results and of their place in the document.
const Kind = "reliability"

// Results are the raw results. They have no samples: nothing is timed.
type Results struct {
	measure.Results
	Missing map[string]string `json:"missing"` // what the machine lacked, by fault
	Disk    string            `json:"disk"`    // type of the file system of the log files
	Slabs   string            `json:"slabs"`   // the same of mapped slabs
	Writers []string          `json:"writers"` // in the order of the tables
	Tries   []Try             `json:"tries"`
}

// Unexpected lists how our own writers have broken their promises.
func (r *Results) Unexpected() []error {
	var errs []error
	for _, t := range r.Tries {
		if err := t.Unexpected(); err != nil {
			errs = append(errs, err)
		}
	}
	return errs
}
