package reliability

import (
	"fmt"
	"strings"
)

// slabLines is how many lines fit the slabs of a slab.Writer with its default
// options: the most that SIGKILL can take from one whose slabs are on the heap.
const slabLines = 8 * 64 << 10 / lineBytes

// Unexpected says how the outcome differs from what our own writers promise:
//
//   - every acknowledged line is in the file once, whole and in order, or, if
//     the destination never works again, counted as dropped;
//   - no call hangs, and the writer works again when the fault is over;
//   - SIGKILL takes no more than the slabs hold from a slab.Writer on the heap,
//     and nothing from one with mapped slabs or from a file.File;
//   - the file has no line that a Write has refused.
//
// It returns nil for rivals, who have promised nothing here.
func (t Try) Unexpected() error {
	if t.Writer != Heap && t.Writer != Persisted && t.Writer != Direct {
		return nil
	}
	var wrong []string
	check := func(ok bool, format string, args ...any) {
		if !ok {
			wrong = append(wrong, fmt.Sprintf(format, args...))
		}
	}
	kills := false
	for _, f := range Faults() {
		kills = kills || f.Kills && f.Name == t.Fault
	}
	lost := 0
	if kills && t.Writer == Heap {
		lost = slabLines
	}
	check(t.Silent+t.Told <= lost, "%d lines lost and not counted, want %d at most", t.Silent+t.Told, lost)
	check(t.Counted == 0 || t.Fault == errorsForEver, "%d lines dropped", t.Counted)
	check(t.Torn == 0, "%d torn lines", t.Torn)
	check(t.Duplicated == 0, "%d lines twice", t.Duplicated)
	check(t.Reordered == 0, "%d lines out of order", t.Reordered)
	check(t.Unasked == 0, "%d refused lines in the file", t.Unasked)
	check(t.Thrown == 0, "%d panics or Goexits thrown at the caller", t.Thrown)
	check(!t.Hung, "a call hung")
	check(!t.Dead, "it took no line afterwards")
	check(!t.Crashed, "the process died")
	switch {
	case t.Writer != Direct:
		check(t.Refused == 0, "%d lines refused", t.Refused)
	case t.Fault != tmpfsFull && t.Fault != fileLimit && t.Fault != straceEIO && t.Fault != straceENOSPC && t.Fault != straceShort:
		check(t.Refused == 0, "%d lines refused though nothing failed", t.Refused)
	}
	check(t.Acked > 0, "no line was acknowledged: this tests nothing")
	if wrong == nil {
		return nil
	}
	return fmt.Errorf("%s, %s, seed %d: %s (%s)", t.Fault, t.Writer, t.Seed, strings.Join(wrong, "; "), t.Error)
}
