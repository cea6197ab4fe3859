package stuck

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/rollway/rollway/bench/internal/measure"
	"github.com/rollway/rollway/bench/internal/report"
)

// Kind is the name of the results and of their place in the document.
const Kind = "stuck"

// Settings say where tries are made.
type Settings struct {
	Dir   string        // for files; "": the system's for temporary files
	Limit time.Duration // after which a process has hung

	HTTP, TCP string // of a collector that was stopped by a signal
	Nobody    string // an unused address
}

// Results are the raw results.
type Results struct {
	measure.Results
	Tries []Try `json:"tries"`
}

// Unexpected says how one of our own loggers has broken its promises; slack is
// added to each bound, for a busy machine.
func (t Try) Unexpected(w Writer, slack time.Duration) error {
	name := t.Writer + ", " + t.Situation + ", " + t.Act
	if t.Failed != "" {
		return fmt.Errorf("%s: %s", name, t.Failed)
	}
	if !w.Own {
		return nil
	}
	var errs []error
	check := func(ok bool, format string, args ...any) {
		if !ok {
			errs = append(errs, fmt.Errorf(format, args...))
		}
	}
	inCall := 0
	if w.Direct && (t.Situation == Hung || t.Situation == Pipe) {
		inCall = 1 // the goroutine that is inside the hung Write
	}
	check(t.Calls > 0, "no call returned")
	check(t.InCall <= inCall, "%d producers are in a call that has not returned", t.InCall)
	bound := cmp.Or(w.maxWait, maxWait)
	check(t.Longest <= bound+slack, "the longest call took %v, the bound is %v", t.Longest, bound)
	check(t.Delivered == t.Calls, "the healthy output has %d of %d lines", t.Delivered, t.Calls)
	check(t.Disorder == 0, "%d lines of the healthy output are torn, repeated or out of order", t.Disorder)
	check(len(t.Ledgers) == 0, "ledger: %s", strings.Join(t.Ledgers, "; "))
	check(!w.Lossless || t.Dropped == 0, "%d lines dropped although there was another place for them", t.Dropped)
	check(!t.Hung, "the process did not end")
	check(!t.crashed(), "the process ended by a panic")
	if ends(t.Act) || t.Act == Close {
		check(t.Took <= closeTimeout+exitSlack+slack, "%s took %v, the bound is %v", t.Act, t.Took, closeTimeout+exitSlack)
	}
	if ends(t.Act) {
		status := map[string]int{Fatal: 1, Panic: 2, SIGTERM: 128 + 15}[t.Act]
		check(t.Status == status, "exit status %d, want %d", t.Status, status)
		check(t.Said || w.Lossless, "standard error does not say what was not delivered")
	}
	if err := errors.Join(errs...); err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	return nil
}

// Tables makes the tables of docs/RELIABILITY.md: one for each situation.
func Tables(r *Results) string {
	tries := map[[3]string]*Try{}
	var names []string
	for i, t := range r.Tries {
		if tries[[3]string{t.Writer, t.Situation, t.Act}] = &r.Tries[i]; !slices.Contains(names, t.Writer) {
			names = append(names, t.Writer)
		}
	}
	text := fmt.Sprintf("\n%s, commit %s, %s (%s, %d cores); %s. Every try: %s.\n",
		r.Date, r.Commit, r.Go, r.Machine.System, r.Machine.Cores, report.Rivals(&r.Results), report.Raw("stuck.json"))
	for _, s := range Situations {
		get := func(name, act string) *Try { return tries[[3]string{name, s.Name, act}] }
		tried := slices.DeleteFunc(slices.Clone(names), func(name string) bool { return get(name, Info) == nil })
		if len(tried) == 0 {
			report.Miss("%s", s.Name)
		}
		column := func(head, act string, cell func(*Try) string) report.Column[string] {
			return report.Column[string]{Head: head, Cell: func(name string) string { return cell(get(name, act)) }}
		}
		text += report.Of(tried,
			report.Column[string]{Head: "logger", Cell: func(name string) string { return name }},
			column("longest Info", Info, calls), column("longest Error", Error, calls),
			column("lines in the other output", Info, share), column("dropped, counted", Info, dropped),
			column(Fatal, Fatal, end), column(Panic, Panic, end), column(SIGTERM, SIGTERM, end), column(Close, Close, end),
		).Titled("**%s**", s.Title)
	}
	return text + "\n"
}

// calls is the longest call, or how many producers did not come back from one.
func calls(t *Try) string {
	switch {
	case t == nil:
		return "–"
	case t.InCall > 1 || t.InCall == 1 && !t.Own:
		return fmt.Sprintf("**%d of 4 hang**", t.InCall)
	case t.InCall == 1:
		return round(t.Longest) + ", 1 of 4 hangs"
	}
	return round(t.Longest)
}

// share is how much of what producers wanted to log the other output has.
func share(t *Try) string {
	const wanted = producers * linesEach
	if t.Delivered == wanted {
		return "all"
	}
	return fmt.Sprintf("%.3g %%", 100*float64(t.Delivered)/wanted)
}

func dropped(t *Try) string {
	if !t.Own {
		return "not told"
	}
	return strconv.FormatUint(t.Dropped, 10)
}

func end(t *Try) string {
	switch {
	case t == nil:
		return "–"
	case t.Hung:
		return "**hangs**"
	case t.crashed():
		return "**panics**"
	case t.Act == Close || t.Status < 0:
		return round(t.Took)
	}
	return fmt.Sprintf("%s, status %d", round(t.Took), t.Status)
}

func round(d time.Duration) string {
	switch {
	case d >= time.Second:
		return d.Round(10 * time.Millisecond).String()
	case d >= time.Millisecond:
		return d.Round(time.Millisecond).String()
	}
	return d.Round(time.Microsecond).String()
}

// producers log linesEach lines each, at the same time.
const (
	producers = 4
	linesEach = 10_000
)
