package chaos

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/rollway/rollway/bench/internal/measure"
)

// Save writes the results to a file: one try a line.
func (r *Results) Save(path string) error {
	head := *r
	head.Samples, head.Tries = []measure.Sample{}, nil
	return measure.SaveLines(path, head, measure.ListOf("tries", r.Tries))
}

// Load reads what Save wrote.
func Load(path string) (*Results, error) { return measure.Load[Results](path, Kind) }

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

// Tables makes the table of docs/RELIABILITY.md.
func (r *Results) Tables() (string, error) {
	for _, f := range Faults {
		if r.Missing[f.Name] == "" && !slices.ContainsFunc(r.Tries, func(t Try) bool { return t.Fault == f.Name }) {
			return "", fmt.Errorf("%s: no try: run it again", f.Name)
		}
	}
	if len(r.Tries) == 0 {
		return "", errors.New("no tries: run it again")
	}
	text := fmt.Sprintf("\n%s, commit %s, %s (%s, %d cores), by `%s`. Every figure: [chaos.json](results/chaos.json).\n",
		r.Date, r.Commit, r.Go, r.Machine.System, r.Machine.Cores, r.Command)
	if wrong := len(r.Unexpected()); wrong > 0 {
		text += fmt.Sprintf("\n**Under %d faults something was not as it must be.**\n", wrong)
	} else {
		text += "\nUnder none of the faults was an acknowledged event lost, stored twice or changed, and the counts agreed with the journal each time.\n"
	}
	t := measure.NewTable("fault", "times", "requests acknowledged", "events stored", "sent again, answered as before", "cut off or refused, sent again", "events looked up", "lost", "twice", "partly, alien or misplaced", "reconciled", "disagreed")
	for _, f := range Faults {
		i := slices.IndexFunc(r.Tries, func(t Try) bool { return t.Fault == f.Name })
		if i < 0 {
			t.Row(f.Title, "not tried, needs "+r.Missing[f.Name], "", "", "", "", "", "", "", "", "", "")
			continue
		}
		try := &r.Tries[i]
		title := f.Title
		if len(try.Notes) > 0 {
			title += " (" + strings.Join(try.Notes, "; ") + ")"
		}
		cells := []string{title}
		for _, n := range []int{try.Rounds, try.Requests, try.Stored, try.Repeated, try.Aborted + try.Cut + try.Refused, try.Lookups,
			try.Lost, try.Twice, try.Partly + try.Alien + try.Misplace + try.Changed + try.Silent, try.Reconciled, try.Disagreed} {
			cells = append(cells, strconv.Itoa(n))
		}
		t.Row(cells...)
	}
	return text + "\n" + t.String() + "\n", nil
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
