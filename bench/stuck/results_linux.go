package stuck

import (
	"cmp"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/rollway/rollway/bench/internal/measure"
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

// producers log linesEach lines each, at the same time.
const (
	producers = 4
	linesEach = 10_000
)
