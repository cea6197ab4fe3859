package ingest

import (
	"context"

	"github.com/rollway/rollway/collector/journal"
	"github.com/rollway/rollway/collector/normalize"
	"github.com/rollway/rollway/collector/receive"
)

// openOwn returns a receiver that stores into a journal in dir, as package
// collector puts them together. Its caller closes the journal.
func openOwn(dir string, synced bool) (*receive.Receiver, *journal.Journal, error) {
	j, err := journal.Open(dir, journal.Options{})
	if err != nil {
		return nil, nil, err
	}
	return receive.New(receive.Options{Store: func(ctx context.Context, b *normalize.Batch) error {
		r, err := j.AppendKeyed(ctx, b.Ask.Key, journal.Batch{
			Lines: b.Lines, Records: b.Records, MinTime: b.MinTime, MaxTime: b.MaxTime, Synced: synced,
		})
		if err != nil {
			return err
		}
		b.FirstOffset, b.HasOffset = r.First, true
		return nil
	}}), j, nil
}
