package slab

import (
	"context"
	"errors"
	"io"
	"testing"
)

// A Sync whose context has ended when its turn comes is not answered with nil:
// nothing was synced for it.
func TestEndedSyncIsNoSuccess(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	w, err := New(io.Discard, Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	errs := make([]error, 2)
	w.syncOutlet(&outlet{w: io.Discard}, []*barrier{{ctx: ctx, sync: true}, {ctx: t.Context(), sync: true}}, errs)
	if !errors.Is(errs[0], context.Canceled) || errs[1] != nil {
		t.Errorf("errors %v, want context.Canceled and nil", errs)
	}
}
