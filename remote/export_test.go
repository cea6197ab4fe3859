package remote

import "context"

// Told waits until OnError has returned from all that it is to be told now.
func (w *Writer) Told() { <-w.teller.Idle() }

// SyncContext is Sync with a context.
func (w *Writer) SyncContext(ctx context.Context) error { return w.sync(ctx) }
