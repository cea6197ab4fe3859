package reliability

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/rollway/rollway/bench/internal/measure"
	"github.com/rollway/rollway/bench/internal/report"
)

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

// A row is what became of all tries of one fault with one writer.
type row struct {
	fault  Fault
	writer string
	tries  []Try
}

// rows has the tries by fault and by writer, in the order of the tables.
func (r *Results) rows() (all [][]row) {
	for _, f := range Faults() {
		var rows []row
		tried := 0
		for _, w := range r.Writers {
			one := row{fault: f, writer: w}
			for _, t := range r.Tries {
				if t.Fault == f.Name && t.Writer == w {
					one.tries = append(one.tries, t)
				}
			}
			tried += len(one.tries)
			rows = append(rows, one)
		}
		if tried == 0 && r.Missing[f.Name] == "" {
			report.Miss("%s", f.Name)
		}
		all = append(all, rows)
	}
	return all
}

// A figure is a count of lines of a try, or 1 for something that happened.
type figure struct {
	short, long string // in the two tables; "": not there
	of          func(Try) int
}

func one(happened bool) int {
	if happened {
		return 1
	}
	return 0
}

// figures are those of both tables, in the order of the long one.
var figures = []figure{
	{"", "acknowledged", func(t Try) int { return t.Acked }},
	{"refused", "refused", func(t Try) int { return t.Refused }},
	{"lost silently", "lost silently", func(t Try) int { return t.Silent }},
	{"lost, error told", "lost, error told", func(t Try) int { return t.Told }},
	{"lost, counted", "lost, counted", func(t Try) int { return t.Counted }},
	{"torn", "torn", func(t Try) int { return t.Torn }},
	{"twice", "duplicated", func(t Try) int { return t.Duplicated }},
	{"out of order", "out of order", func(t Try) int { return t.Reordered }},
	{"thrown at the caller", "thrown at the caller", func(t Try) int { return t.Thrown }},
	{"hung", "hung", func(t Try) int { return one(t.Hung) }},
	{"dead afterwards", "dead afterwards", func(t Try) int { return one(t.Dead) }},
	{"process died", "process died", func(t Try) int { return one(t.Crashed) }},
}

// happenings is where the figures begin that count tries.
const happenings = 9

func (r row) sum(f figure) (n int) {
	for _, t := range r.tries {
		n += f.of(t)
	}
	return n
}

// String is the row in a few words for the table side by side.
func (r row) String() string {
	if len(r.tries) == 0 {
		return "–"
	}
	var parts []string
	// Losses come first.
	for _, i := range []int{2, 3, 4, 1, 5, 6, 7, 8, 9, 10, 11} {
		f := figures[i]
		switch n := r.sum(f); {
		case n == 0:
		case i < happenings:
			parts = append(parts, fmt.Sprint(n, " ", f.short))
		case n == len(r.tries):
			parts = append(parts, "**"+f.short+"**")
		default:
			parts = append(parts, fmt.Sprintf("**%s** %d×", f.short, n))
		}
	}
	if parts == nil {
		return "ok"
	}
	return strings.Join(parts, ", ")
}

// Tables makes the tables of docs/RELIABILITY.md.
func Tables(r *Results) string {
	rows := r.rows()
	text := fmt.Sprintf("\n%s, commit %s, %s (%s, %d cores; log files on %s, mapped slabs on %s); %s. Every try: %s.\n",
		r.Date, r.Commit, r.Go, r.Machine.System, r.Machine.Cores, r.Disk, r.Slabs, report.Rivals(&r.Results), report.Raw("reliability.json"))
	if failed := len(r.Unexpected()); failed > 0 {
		text += fmt.Sprintf("\n**In %d tries our own writers did not do what they promise.**\n", failed)
	} else {
		text += "\nIn none of the tries did our own writers break a promise.\n"
	}
	return text + r.ledgers() + r.sideBySide(rows).Titled("**Side by side** (lines, over all tries of the fault; \"ok\": every acknowledged line is in the file once, whole and in order)") +
		full(rows).Titled("**In full** (lines, summed over the tries; the last three columns count tries, the one before panics and Goexits)") + "\n"
}

// ledgers says how many of our writers' own accounts were compared with the
// board and the file; that they agreed is checked by Unexpected.
func (r *Results) ledgers() string {
	tries, lines := 0, uint64(0)
	for _, t := range r.Tries {
		tries += one(len(t.Ledgers) > 0)
		for _, l := range t.Ledgers {
			lines += l.Accepted
		}
	}
	if tries == 0 {
		return ""
	}
	return fmt.Sprintf("In %d of them a process of our own could give its own account, of %d lines in all: accepted = written + dropped + pending, compared with the board and the file to the line.\n", tries, lines)
}

func (r *Results) sideBySide(rows [][]row) *report.Table {
	t := report.NewTable(append([]string{"fault", "tries each"}, r.Writers...)...)
	for i, f := range Faults() {
		cells := []string{f.Title, "0"}
		for _, one := range rows[i] {
			if n := len(one.tries); n > 0 {
				cells[1] = strconv.Itoa(n)
			}
			cells = append(cells, one.String())
		}
		if missing := r.Missing[f.Name]; missing != "" {
			cells[1] = "not tried, needs " + missing
		}
		t.Row(cells...)
	}
	return t
}

func full(rows [][]row) *report.Table {
	head := []string{"fault, writer", "tries"}
	for _, f := range figures {
		head = append(head, f.long)
	}
	t := report.NewTable(head...)
	for _, r := range slices.Concat(rows...) {
		if len(r.tries) == 0 {
			continue
		}
		cells := []string{r.fault.Name + ", " + r.writer, strconv.Itoa(len(r.tries))}
		for _, f := range figures {
			cell := strconv.Itoa(r.sum(f))
			if f.long == "dead afterwards" && !r.fault.Ends && !r.fault.Kills || f.long == "process died" && r.fault.Kills {
				cell = "–"
			}
			cells = append(cells, cell)
		}
		t.Row(cells...)
	}
	return t
}
