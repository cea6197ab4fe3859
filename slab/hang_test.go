package slab

import (
	"context"
	"testing"
	"testing/synctest"
	"time"
)

// A disk of the slab file that hangs holds up Shutdown for a second after its
// deadline.
func TestShutdownWhileTheSlabFileHangs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := &Writer{closed: true, leaves: true, finished: make(chan struct{}), left: make(chan struct{})}
		close(w.finished)
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		returned := make(chan struct{})
		go func() {
			defer close(returned)
			_ = w.Shutdown(ctx)
		}()
		select {
		case <-returned:
		case <-time.After(2 * time.Second):
			t.Error("Shutdown waits for the file")
		}
		close(w.left)
		<-returned
	})
}
