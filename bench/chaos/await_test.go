package chaos

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// TestAwait: what comes on slowly is waited for, what stands still is not.
func TestAwait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		begin := time.Now()
		slowly := func() int { return int(time.Since(begin) / (stalledAfter - time.Second)) }
		if err := await("ten", slowly, func() bool { return slowly() >= 10 }); err != nil {
			t.Errorf("%v after %v", err, time.Since(begin))
		}
		if waited := time.Since(begin); waited < 9*stalledAfter {
			t.Errorf("%v were enough", waited)
		}
		begin = time.Now()
		stops := func() int { return min(slowly(), 3) }
		err := await("ten", stops, func() bool { return stops() >= 10 })
		if waited := time.Since(begin); err == nil || !strings.Contains(err.Error(), "ten: no progress") || waited > 4*stalledAfter+time.Second {
			t.Errorf("%v after %v", err, waited)
		}
	})
}
