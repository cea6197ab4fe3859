package reliability

import (
	"strings"
	"testing"
)

// TestUnexpected: each promise that is broken is named; rivals promise nothing.
func TestUnexpected(t *testing.T) {
	good := Try{Fault: errorOnce, Writer: Heap, Seed: 1, Acked: 9, Found: 9, Ledgers: []Ledger{{Accepted: 9, Written: 9}}}
	r := Results{Tries: []Try{good, {Fault: errorOnce, Writer: "rival", Silent: 2, Dead: true}}}
	if errs := r.Unexpected(); len(errs) > 0 {
		t.Errorf("nothing is broken: %v", errs)
	}
	for want, change := range map[string]func(*Try){
		"lost and not counted": func(x *Try) { x.Silent = 1 },
		"torn":                 func(x *Try) { x.Torn = 1 },
		"hung":                 func(x *Try) { x.Hung = true },
		"refused":              func(x *Try) { x.Refused = 1 },
		"does not add up":      func(x *Try) { x.Ledgers = []Ledger{{Accepted: 9, Written: 8}} },
		"ledgers, want 1":      func(x *Try) { x.Ledgers = nil },
	} {
		bad := good
		change(&bad)
		r.Tries[0] = bad
		if errs := r.Unexpected(); len(errs) != 1 || !strings.Contains(errs[0].Error(), want) {
			t.Errorf("%s: %v", want, errs)
		}
	}
}
