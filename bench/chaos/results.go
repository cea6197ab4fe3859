package chaos

import (
	"fmt"
	"slices"
	"strings"

	"github.com/rollway/rollway/bench/internal/measure"
	"github.com/rollway/rollway/bench/internal/report"
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

// Wrong is the sum of what must not be.
func (t Try) Wrong() int {
	return t.Lost + t.Twice + t.Partly + t.Alien + t.Misplace + t.Changed + t.Silent + t.Disagreed
}

// Unexpected lists what must not have been.
func (r *Results) Unexpected() []error {
	var errs []error
	for _, t := range r.Tries {
		if t.Wrong() > 0 || t.Requests == 0 || t.Lookups == 0 || t.Reconciled == 0 {
			errs = append(errs, fmt.Errorf("%s: %+v", t.Fault, t))
		}
	}
	return errs
}

// A column is a count of the table.
var columns = []struct {
	head string
	of   func(Try) int
}{
	{"times", func(t Try) int { return t.Rounds }},
	{"requests acknowledged", func(t Try) int { return t.Requests }},
	{"events stored", func(t Try) int { return t.Stored }},
	{"sent again, answered as before", func(t Try) int { return t.Repeated }},
	{"cut off or refused, sent again", func(t Try) int { return t.Aborted + t.Cut + t.Refused }},
	{"events looked up", func(t Try) int { return t.Lookups }},
	{"lost", func(t Try) int { return t.Lost }},
	{"twice", func(t Try) int { return t.Twice }},
	{"partly, alien or misplaced", func(t Try) int { return t.Partly + t.Alien + t.Misplace + t.Changed + t.Silent }},
	{"reconciled", func(t Try) int { return t.Reconciled }},
	{"disagreed", func(t Try) int { return t.Disagreed }},
}

// Tables makes the table of docs/RELIABILITY.md.
func Tables(r *Results) string {
	text := fmt.Sprintf("\n%s, commit %s, %s (%s, %d cores), by `%s`. Every figure: %s.\n",
		r.Date, r.Commit, r.Go, r.Machine.System, r.Machine.Cores, r.Command, report.Raw("chaos.json"))
	if wrong := len(r.Unexpected()); wrong > 0 {
		text += fmt.Sprintf("\n**Under %d faults something was not as it must be.**\n", wrong)
	} else {
		text += "\nUnder none of the faults was an acknowledged event lost, stored twice or changed, and the counts agreed with the journal each time.\n"
	}
	head := []string{"fault"}
	for _, c := range columns {
		head = append(head, c.head)
	}
	t := report.NewTable(head...)
	for _, f := range Faults {
		cells := []string{f.Title}
		i := slices.IndexFunc(r.Tries, func(t Try) bool { return t.Fault == f.Name })
		switch missing := r.Missing[f.Name]; {
		case i >= 0:
			if notes := r.Tries[i].Notes; len(notes) > 0 {
				cells[0] += " (" + strings.Join(notes, "; ") + ")"
			}
			for _, c := range columns {
				cells = append(cells, fmt.Sprint(c.of(r.Tries[i])))
			}
		case missing != "":
			cells = append(append(cells, "not tried, needs "+missing), make([]string, len(columns)-1)...)
		default:
			report.Miss("%s", f.Name)
		}
		t.Row(cells...)
	}
	return text + "\n" + t.String() + "\n"
}

// A Fault is one thing that goes wrong.
type Fault struct {
	Name  string
	Title string // what happens, for the table
	Needs string // besides linux: "", "root", "strace", "java" or "go"
}

// Faults are all, in the order of the table.
var Faults = []Fault{
	{"kill", "kill -9 at a random moment", ""},
	{"stop", "SIGTERM: what is stored must be answered", ""},
	{"full", "ENOSPC: a tmpfs of 6 MB is full, and grows later", "root"},
	{"write", "EIO by strace: every third pwrite64 of a thread", "strace"},
	{"rollback", "EIO by strace: every third pwrite64, and each ftruncate that takes it back", "strace"},
	{"fsync", "EIO by strace: every second fdatasync of a thread", "strace"},
	{"rename", "EIO by strace: each rename and each fsync of a folder", "strace"},
	{"clock", "the wall clock jumps by days, forth and back, also across a kill -9", "go"},
	{"clients", "clients that go away in the body, and that send everything three times", ""},
	{"connections", "9,900 connections at a time", ""},
	{"kafka", "Apache Kafka is killed, away for minutes, and comes back", "java"},
}
