// Package chaos does to a running `rollway serve` what can go wrong, under load,
// and compares what it has stored with what it has answered.
//
// Clients send numbered requests of one to five events, each with an idempotency
// key of its own, and again until they are acknowledged: some at once a second
// time, some twice at the same time, some long after they were acknowledged, some
// after a connection that was closed in the middle of the body. A third asks for
// synced lines. After each fault
//
//   - every event of every acknowledged request is looked up in the journal, at
//     the offset that its answer said: it is there once, whole;
//   - of every other request all events are there once, or none;
//   - `rollway reconcile` finds that what was counted is what is there.
package chaos

import (
	"fmt"
	"time"
)

// Settings of a run.
type Settings struct {
	Short bool   // one brief round of each fault
	Only  string // the name of a fault; "": all
	Dir   string // for data; "": the one for temporary files
	Seed  uint64
}

// stalledAfter is how long nothing may come on before a try has failed. How long
// all of it takes is the machine's business.
const stalledAfter = time.Minute

// await waits until done says so, as long as progress, which counts what leads
// there, changes within stalledAfter.
func await(what string, progress func() int, done func() bool) error {
	for since, last := time.Now(), progress(); !done(); time.Sleep(5 * time.Millisecond) {
		switch now := progress(); {
		case now != last:
			since, last = time.Now(), now
		case time.Since(since) > stalledAfter:
			return fmt.Errorf("%s: no progress within %v", what, stalledAfter)
		}
	}
	return nil
}
