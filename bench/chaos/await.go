package chaos

import (
	"fmt"
	"time"
)

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
