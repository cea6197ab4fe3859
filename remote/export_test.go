package remote

import "context"

// SyncContext is Sync with a context.
func (w *Writer) SyncContext(ctx context.Context) error { return w.sync(ctx) }
