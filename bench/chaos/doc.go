// Package chaos does to a running `rollway serve` what can go wrong, under load,
// and holds what it has stored against what it has answered.
//
// Clients send numbered requests of one to five events, each under an
// idempotency key of its own, and again until they are acknowledged: some at
// once a second time, some twice at the same time, some long after they were
// acknowledged, some after a connection that was closed in the middle of the
// body. A third asks for synced lines. After each fault
//
//   - every event of every acknowledged request is looked up in the journal, at
//     the offset that its answer said: it is there once, whole;
//   - of every other request all events are there once, or none;
//   - `rollway reconcile` finds that what was counted is what is there.
package chaos

import "github.com/rollway/rollway/bench/internal/measure"

// Kind is the name of the results and of their place in the document.
const Kind = "chaos"

// Settings of a run.
type Settings struct {
	Short bool   // one brief round of each fault
	Only  string // the name of a fault; "": all
	Dir   string // for data; "": the one for temporary files
	Seed  uint64
}

// A Try is one fault and what became of all requests under it.
type Try struct {
	Fault   string  `json:"fault"`
	Rounds  int     `json:"rounds"` // how often the fault came
	Seconds float64 `json:"seconds"`

	Requests int `json:"requests"` // acknowledged
	Events   int `json:"events"`   // in them
	Stored   int `json:"stored"`   // events found in the journal at the end
	Attempts int `json:"attempts"` // requests sent, repeated ones included
	Repeated int `json:"repeated"` // acknowledged requests that were sent again, and answered as before
	Aborted  int `json:"aborted"`  // bodies that ended in their middle
	Refused  int `json:"refused"`  // answers that were no acknowledgement
	Cut      int `json:"cut"`      // requests without an answer

	// What must not be.
	Lost     int `json:"lost"`     // acknowledged events that are not in the journal, over all lookups
	Twice    int `json:"twice"`    // events that are there more than once
	Partly   int `json:"partly"`   // requests of which a part is there
	Alien    int `json:"alien"`    // lines that nobody sent, or not so
	Misplace int `json:"misplace"` // events that are not at the offset answered
	Changed  int `json:"changed"`  // repeated requests that were answered otherwise
	Silent   int `json:"silent"`   // requests that a graceful stop stored and did not answer

	Lookups    int      `json:"lookups"`    // of all acknowledged events
	Reconciled int      `json:"reconciled"` // runs of reconcile
	Disagreed  int      `json:"disagreed"`  // of them, those with another status than 0
	Notes      []string `json:"notes,omitempty"`
}

// Wrong is the sum of what must not be.
func (t *Try) Wrong() int {
	return t.Lost + t.Twice + t.Partly + t.Alien + t.Misplace + t.Changed + t.Silent + t.Disagreed
}

// Results are the raw results. They have no samples: nothing is timed.
type Results struct {
	measure.Results
	Command string            `json:"command"`
	Missing map[string]string `json:"missing"` // what the machine lacked, by fault
	Tries   []Try             `json:"tries"`
}
