package reliability

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/rollway/rollway/bench/internal/measure"
)

// A row is what became of all tries of one fault with one writer.
type row struct {
	tries, hung, dead, crashed int
	sum                        Try
}

func (r *row) add(t Try) {
	r.tries++
	for _, c := range []struct {
		set bool
		n   *int
	}{{t.Hung, &r.hung}, {t.Dead, &r.dead}, {t.Crashed, &r.crashed}} {
		if c.set {
			*c.n++
		}
	}
	s := &r.sum
	s.Acked += t.Acked
	s.Refused += t.Refused
	s.Silent += t.Silent
	s.Told += t.Told
	s.Counted += t.Counted
	s.Torn += t.Torn
	s.Duplicated += t.Duplicated
	s.Reordered += t.Reordered
	s.Thrown += t.Thrown
}

// String is the row in a few words for the table side by side.
func (r *row) String() string {
	if r == nil {
		return "–"
	}
	var parts []string
	add := func(n int, what string) {
		if n > 0 {
			parts = append(parts, strconv.Itoa(n)+" "+what)
		}
	}
	add(r.sum.Silent, "lost silently")
	add(r.sum.Told, "lost, error told")
	add(r.sum.Counted, "lost, counted")
	add(r.sum.Refused, "refused")
	add(r.sum.Torn, "torn")
	add(r.sum.Duplicated, "twice")
	add(r.sum.Reordered, "out of order")
	add(r.sum.Thrown, "thrown at the caller")
	for _, c := range []struct {
		n    int
		what string
	}{{r.hung, "hung"}, {r.dead, "dead afterwards"}, {r.crashed, "process died"}} {
		switch {
		case c.n == r.tries:
			parts = append(parts, "**"+c.what+"**")
		case c.n > 0:
			parts = append(parts, fmt.Sprintf("**%s** %d×", c.what, c.n))
		}
	}
	if parts == nil {
		return "ok"
	}
	return strings.Join(parts, ", ")
}

// Tables makes the tables of docs/RELIABILITY.md.
func (r *Results) Tables() (string, error) {
	if len(r.Tries) == 0 {
		return "", errors.New("no tries: run it again")
	}
	rows := map[[2]string]*row{}
	names := slices.Clone(own) // ours first, the others as they come
	for _, t := range r.Tries {
		k := [2]string{t.Fault, t.Writer}
		if rows[k] == nil {
			rows[k] = new(row)
		}
		rows[k].add(t)
		if !slices.Contains(names, t.Writer) {
			names = append(names, t.Writer)
		}
	}
	names = slices.DeleteFunc(names, func(name string) bool {
		return !slices.ContainsFunc(r.Tries, func(t Try) bool { return t.Writer == name })
	})
	for _, f := range Faults() {
		if r.Missing[f.Name] == "" && !slices.ContainsFunc(names, func(name string) bool { return rows[[2]string{f.Name, name}] != nil }) {
			return "", fmt.Errorf("%s: no tries: run it again", f.Name)
		}
	}

	text := fmt.Sprintf("\n%s, commit %s, %s (%s, %d cores; log files on %s, mapped slabs on %s); zerolog %s, zap %s, phuslu/log %s. Every try: [reliability.json](results/reliability.json).\n",
		r.Date, r.Commit, r.Go, r.Machine.System, r.Machine.Cores, r.Disk, r.Slabs, r.Versions["github.com/rs/zerolog"], r.Versions["go.uber.org/zap"], r.Versions["github.com/phuslu/log"])
	if failed := len(r.Unexpected()); failed > 0 {
		text += fmt.Sprintf("\n**In %d tries our own writers did not do what they promise.**\n", failed)
	} else {
		text += "\nIn none of the tries did our own writers break a promise.\n"
	}
	text += r.ledgers()
	text += "\n**Side by side** (lines, over all tries of the fault; \"ok\": every acknowledged line is in the file once, whole and in order)\n\n" + r.sideBySide(rows, names)
	text += "\n**In full** (lines, summed over the tries; the last three columns count tries, the one before panics and Goexits)\n\n" + r.full(rows, names)
	return text + "\n", nil
}

// ledgers says how many of our writers' own accounts were held against the
// board and the file; that they agreed is checked by Unexpected.
func (r *Results) ledgers() string {
	tries, lines := 0, uint64(0)
	for _, t := range r.Tries {
		if len(t.Ledgers) > 0 {
			tries++
		}
		for _, l := range t.Ledgers {
			lines += l.Accepted
		}
	}
	if tries == 0 {
		return ""
	}
	return fmt.Sprintf("In %d of them a process of `slab` could give its own account, of %d lines in all: accepted = written + dropped + pending, compared with the board and the file to the line.\n", tries, lines)
}

func (r *Results) sideBySide(rows map[[2]string]*row, names []string) string {
	t := measure.NewTable(append([]string{"fault", "tries each"}, names...)...)
	for _, f := range Faults() {
		cells := []string{f.Title, "0"}
		for _, name := range names {
			got := rows[[2]string{f.Name, name}]
			if got != nil {
				cells[1] = strconv.Itoa(got.tries)
			}
			cells = append(cells, got.String())
		}
		if missing := r.Missing[f.Name]; missing != "" {
			cells[1] = "not tried, needs " + missing
		}
		t.Row(cells...)
	}
	return t.String()
}

func (r *Results) full(rows map[[2]string]*row, names []string) string {
	t := measure.NewTable("fault, writer", "tries", "acknowledged", "refused", "lost silently", "lost, error told", "lost, counted", "torn", "duplicated", "out of order", "thrown at the caller", "hung", "dead afterwards", "process died")
	for _, f := range Faults() {
		for _, name := range names {
			got := rows[[2]string{f.Name, name}]
			if got == nil {
				continue
			}
			cells := []string{f.Name + ", " + name}
			dead := strconv.Itoa(got.dead)
			if !f.Ends && !f.Kills {
				dead = "–"
			}
			died := strconv.Itoa(got.crashed)
			if f.Kills {
				died = "–"
			}
			for _, n := range []int{got.tries, got.sum.Acked, got.sum.Refused, got.sum.Silent, got.sum.Told, got.sum.Counted, got.sum.Torn, got.sum.Duplicated, got.sum.Reordered, got.sum.Thrown, got.hung} {
				cells = append(cells, strconv.Itoa(n))
			}
			t.Row(append(cells, dead, died)...)
		}
	}
	return t.String()
}
