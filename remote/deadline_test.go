package remote

import (
	"context"
	"testing"
	"testing/synctest"
	"time"
)

// The deadline of a call whose context ends as the call does must not hit the
// next call: stop waits for one that is being set.
func TestDeadlineOfACallThatHasEnded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		setting, stopped := make(chan struct{}), false
		stop := expireWith(ctx, func(time.Time) error {
			<-setting
			return nil
		})
		cancel()
		synctest.Wait()
		go func() {
			stop()
			stopped = true
		}()
		synctest.Wait()
		if stopped {
			t.Error("stop has returned while the deadline is being set")
		}
		close(setting)
		synctest.Wait()
		if !stopped {
			t.Error("stop has not returned")
		}
	})
}
