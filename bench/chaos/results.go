package chaos

import (
	"fmt"

	"github.com/rollway/rollway/bench/internal/measure"
)

// Kind is the name of the results and of their place in the document.
const Kind = "chaos"

// Results are the raw results. They have no samples: nothing is timed.
type Results struct {
	measure.Results
	Missing map[string]string `json:"missing"` // what the machine lacked, by fault
	Tries   []Try             `json:"tries"`
}

// A Try is one fault and what became of all requests under it.
type Try struct {
	Fault   string  `json:"fault"`
	Rounds  int     `json:"rounds"` // how often the fault came
	Seconds float64 `json:"seconds"`

	Requests int `json:"requests"`          // acknowledged
	Events   int `json:"events"`            // in them
	Stored   int `json:"stored"`            // events found in the journal at the end
	Attempts int `json:"attempts"`          // requests sent, repeated ones included
	Repeated int `json:"repeated"`          // acknowledged requests that were sent again, and answered as before
	Aborted  int `json:"aborted"`           // bodies that ended in their middle
	Refused  int `json:"refused"`           // answers that were no acknowledgement
	Cut      int `json:"cut"`               // requests without an answer
	Dropped  int `json:"dropped,omitempty"` // acknowledged events that the retention of their tenant has deleted, over all lookups

	// Broken promises.
	Lost     int `json:"lost"`     // acknowledged events that are not in the journal, over all lookups
	Twice    int `json:"twice"`    // events that are there more than once
	Partly   int `json:"partly"`   // requests that are stored in part
	Alien    int `json:"alien"`    // lines that were not sent, or sent differently
	Misplace int `json:"misplace"` // events that are not at the offset answered
	Changed  int `json:"changed"`  // repeated requests that were answered otherwise
	Silent   int `json:"silent"`   // requests that a graceful stop stored and did not answer

	Lookups    int      `json:"lookups"`    // of all acknowledged events
	Reconciled int      `json:"reconciled"` // runs of reconcile
	Disagreed  int      `json:"disagreed"`  // of them, those with another status than 0
	Notes      []string `json:"notes,omitempty"`
}

// Wrong is the number of broken promises.
func (t Try) Wrong() int {
	return t.Lost + t.Twice + t.Partly + t.Alien + t.Misplace + t.Changed + t.Silent + t.Disagreed
}

// Unexpected lists the tries with broken promises, and those that did nothing.
func (r *Results) Unexpected() []error {
	var errs []error
	for _, t := range r.Tries {
		if t.Wrong() > 0 || t.Requests == 0 || t.Lookups == 0 || t.Reconciled == 0 {
			errs = append(errs, fmt.Errorf("%s: %+v", t.Fault, t))
		}
	}
	return errs
}
