package ledger

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/rollway/rollway/collector/journal"
)

// A Check is one equation: what was counted must be what was found.
type Check struct {
	What    string `json:"what"`
	Counted uint64 `json:"counted"`
	Found   uint64 `json:"found"`
	Slack   uint64 `json:"slack,omitempty"`  // by which Found may be more, as events are in hand
	Detail  string `json:"detail,omitempty"` // what the numbers are made of
	Agrees  bool   `json:"agrees"`
}

func check(what string, counted, found, slack uint64, detail string) Check {
	return Check{what, counted, found, slack, detail, counted <= found && found-counted <= slack}
}

// Counts returns the equations among the counts of l alone.
func (l *Ledger) Counts() []Check {
	list := l.counts("")
	if l.Tenant != "" {
		return list
	}
	for _, tenant := range slices.Sorted(maps.Keys(l.Tenants)) {
		e := l.Tenants[tenant]
		list = append(list, e.counts(tenant+": ")...)
	}
	stored, duplicate := l.Outcomes[Stored], l.Outcomes[Duplicate]
	list = append(list,
		check("stored = appended to the journal", stored, l.Appended, l.InHand, ""),
		check("duplicate = found by the journal", duplicate, l.Repeated, l.InHand, ""),
		check("appended = offsets given since the start", l.Appended, l.Next-l.Start, 0, fmt.Sprintf("from %d to %d", l.Start, l.Next)),
		check("deleted by retention = offsets gone", l.Deleted, l.First-l.FirstAtStart, 0, fmt.Sprintf("from %d to %d", l.FirstAtStart, l.First)))
	if d := &l.DeadLetters; d.Start+d.Rejected > 0 {
		list = append(list, check("dead letters = kept + dropped + pending", d.Start+d.Rejected, d.Kept+sum(d.Dropped)+d.Pending, 0,
			fmt.Sprintf("kept %d, dropped %s, pending %d; %d from before", d.Kept, orNone(parts(d.Dropped)), d.Pending, d.Start)))
	}
	for _, s := range l.Sinks {
		list = append(list,
			check(s.Name+": delivered + dropped = offsets passed", s.Delivered+sum(s.Dropped), s.At-s.From, 0,
				fmt.Sprintf("delivered %d, dropped %s", s.Delivered, orNone(parts(s.Dropped)))),
			check(s.Name+": pending = offsets to the end", s.Pending, l.Next-s.At, 0, fmt.Sprintf("from %d to %d", s.At, l.Next)))
	}
	return list
}

func (e *Events) counts(of string) []Check {
	return []Check{
		check(of+"received = the outcomes", e.Received, sum(e.Outcomes), 0, parts(e.Outcomes)),
		check(of+"rejected = its reasons", e.Outcomes[Rejected], sum(e.Rejected), 0, parts(e.Rejected)),
	}
}

// Records compares l with the records that were found in the journal. first is
// the offset of the oldest record once they were counted: retention may have
// deleted some meanwhile.
func (l *Ledger) Records(a *journal.AuditReport, first uint64) []Check {
	from := max(l.Start, first)
	gone := ""
	if a.Deleted > 0 {
		gone = fmt.Sprintf(", with %d in all that tenants' retention has deleted", a.Deleted)
	}
	list := []Check{
		check("stored since the start = records found", l.Next-min(from, l.Next), a.Count(from, l.Next), 0, fmt.Sprintf("at offsets %d to %d", from, l.Next)+gone),
		check("kept from before = records found", max(l.Start, first)-first, a.Count(first, l.Start), 0, fmt.Sprintf("at offsets %d to %d", first, l.Start)),
	}
	if l.Ended {
		list = append(list, check("end of the ledger = end of the journal", l.Next, a.Next, 0, ""))
	}
	for _, s := range l.Sinks {
		list = append(list, l.cursor(&s, a))
	}
	return list
}

// cursor compares what a sink has saved with its file, which may be newer.
func (l *Ledger) cursor(s *Sink, a *journal.AuditReport) Check {
	i := slices.IndexFunc(a.Cursors, func(c journal.CursorReport) bool { return c.Name == s.Name })
	slack := a.Next - min(s.Cursor, a.Next)
	if l.Ended {
		slack = 0
	}
	switch what := s.Name + ": cursor saved = cursor found"; {
	case i >= 0 && a.Cursors[i].Error == "":
		return check(what, s.Cursor, a.Cursors[i].Offset, slack, "")
	case i >= 0:
		return Check{What: what, Counted: s.Cursor, Detail: a.Cursors[i].Error}
	default: // it is saved once something was delivered
		return Check{What: what, Counted: s.Cursor, Found: s.From, Detail: "no file", Agrees: s.Cursor == s.From}
	}
}

// Sound checks the journal alone, from the offset first on.
func Sound(a *journal.AuditReport, first uint64) []Check {
	from := min(max(first, a.First), a.Next)
	list := []Check{check("offsets = records", a.Next-from, a.Count(from, a.Next), 0, fmt.Sprintf("from %d to %d", from, a.Next))}
	list = append(list,
		check("places that are damaged or missing", 0, uint64(len(a.Damage(from))), 0, ""),
		check("keys under which events were stored twice", 0, uint64(a.Twice), 0, fmt.Sprintf("of %d", a.Keys)))
	for _, c := range a.Cursors {
		what := c.Name + ": cursor within the journal"
		ok := c.Error == "" && c.Offset <= a.Next
		list = append(list, Check{What: what, Counted: c.Offset, Found: a.Next, Detail: c.Error, Agrees: ok})
	}
	return list
}

// Agree reports whether all checks do.
func Agree(list []Check) bool {
	return !slices.ContainsFunc(list, func(c Check) bool { return !c.Agrees })
}

// parts writes counts that are not 0, by name.
func parts(counts map[string]uint64) string {
	var list []string
	for _, name := range slices.Sorted(maps.Keys(counts)) {
		if n := counts[name]; n > 0 {
			list = append(list, fmt.Sprintf("%s %d", name, n))
		}
	}
	return strings.Join(list, " + ")
}

func orNone(s string) string {
	if s == "" {
		return "none"
	}
	return s
}
