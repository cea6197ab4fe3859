package reliability

import (
	"fmt"
	"slices"
	"strings"
)

// slabLines is how many lines fit the slabs of a slab.Writer with its default
// options: SIGKILL can take no more from one whose slabs are on the heap.
const slabLines = 8 * 64 << 10 / lineBytes

// The slabs of a slab.Writer with several shards here: large ones, as for direct
// I/O. shardLines is how many lines fit them.
const (
	shards        = 4
	shardSlabSize = 2 << 20
	shardSlabs    = 2 * shards
	shardLines    = shardSlabs * shardSlabSize / lineBytes
)

// Unexpected says how the outcome differs from what our own writers promise:
//
//   - every acknowledged line is in the file once, whole and in order, or, if
//     the destination never works again, counted as dropped;
//   - no call hangs, and the writer works again when the fault is over;
//   - SIGKILL takes no more lines than fit the slabs of a slab.Writer, and none
//     from one with slabs in a file or from a file.File;
//   - the file has no line that a Write has refused;
//   - what the writer has counted agrees with all that: see balance.
//
// It returns nil for rivals, which promise nothing here.
func (t Try) Unexpected() error {
	if !slices.Contains(own, t.Writer) {
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
	switch {
	case !kills:
	case t.Writer == Heap:
		lost = slabLines
	case t.Writer == Sharded || t.Writer == ShardDirect:
		lost = shardLines
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
	case t.Fault != tmpfsFull && t.Fault != ext4Full && t.Fault != fileLimit && t.Fault != straceEIO && t.Fault != straceENOSPC && t.Fault != straceShort:
		check(t.Refused == 0, "%d lines refused though nothing failed", t.Refused)
	}
	check(t.Acked > 0, "no line was acknowledged: this tests nothing")
	if t.Writer != Direct {
		t.balance(kills, check)
	}
	if wrong == nil {
		return nil
	}
	return fmt.Errorf("%s, %s, seed %d: %s (%s)", t.Fault, t.Writer, t.Seed, strings.Join(wrong, "; "), t.Error)
}

// balance compares the writer's own counts with each other, with the board and
// with the file, to the line. A process that was killed takes its counts
// with it; the one after it must have its own in order.
func (t Try) balance(kills bool, check func(ok bool, format string, args ...any)) {
	var sum Ledger
	for _, l := range t.Ledgers {
		check(l.Accepted == l.Written+l.Dropped+l.Pending, "its own account does not add up: %+v", l)
		check(l.Dropped == l.Shutdown, "%d lines dropped for another reason than Close's deadline", l.Dropped-l.Shutdown)
		sum.Accepted += l.Accepted - l.Recovered
		sum.Recovered += l.Recovered
		sum.Written += l.Written
		sum.Dropped += l.Dropped
		sum.Pending += l.Pending
	}
	processes, accepted := 1, t.Acked
	switch {
	case kills:
		accepted = t.Late
	case t.Fault == errorsForEver:
		processes = 2
	}
	if check(len(t.Ledgers) == processes, "%d ledgers, want %d", len(t.Ledgers), processes); len(t.Ledgers) != processes {
		return
	}
	check(sum.Accepted == uint64(accepted), "it says that it accepted %d lines, acknowledged were %d", sum.Accepted, accepted)
	if !kills {
		check(sum.Written == uint64(t.Found), "it says that it wrote %d lines, in the file are %d", sum.Written, t.Found)
		check(sum.Dropped+sum.Pending-sum.Recovered == uint64(t.Counted), "it says that it dropped %d lines and kept %d, %d of them for later, lost are %d", sum.Dropped, sum.Pending, sum.Recovered, t.Counted)
	}
}
