package slab_test

import (
	"context"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rollway/rollway/slab"
)

// The error of a Flush whose time is over counts the lines that came before it,
// also in the slab that was open then, and none that came later.
func TestFlushCountsOnlyLinesBeforeIt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, dst := open(t, slab.Options{SlabSize: 64, SlabCount: 16, FlushInterval: time.Hour})
		dst.Stall()
		for i := range 5 { // two in each slab
			put(t, w, numbered(i, 30))
		}
		synctest.Wait()
		ctx, cancel := context.WithCancel(t.Context())
		result := make(chan error, 1)
		go func() { result <- w.Flush(ctx) }()
		synctest.Wait()
		for i := range 6 {
			put(t, w, numbered(5+i, 30))
		}
		cancel()
		if err := <-result; err == nil || !strings.Contains(err.Error(), " 5 lines still pending") {
			t.Errorf("Flush = %v, want 5 lines pending of %d", err, w.Stats().Pending)
		}
		dst.Heal()
		if err := w.Close(); err != nil {
			t.Error(err)
		}
		settled(t, w, dst, 11)
	})
}
