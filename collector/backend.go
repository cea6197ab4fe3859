package collector

import (
	"cmp"
	"context"
	"errors"
	"fmt"

	"github.com/rollway/rollway/collector/config"
	"github.com/rollway/rollway/collector/deadletter"
	"github.com/rollway/rollway/collector/journal"
	"github.com/rollway/rollway/collector/normalize"
	"github.com/rollway/rollway/collector/receiver"
)

// backend is what the Collector is to its receiver.
type backend struct{ *Collector }

// Store appends a batch to the journal.
func (c backend) Store(ctx context.Context, b *normalize.Batch, o receiver.StoreOptions) (receiver.Stored, error) {
	durability := cmp.Or(o.Durability, string(c.config.Journal.Durability))
	var before []journal.Chunk
	for _, chunk := range b.Chunks() {
		before = append(before, journal.Chunk(chunk))
	}
	r, err := c.journal.AppendKeyed(ctx, o.Key, journal.Batch{
		Before: before, Lines: b.Lines, Records: b.Records, MinTime: b.MinTime, MaxTime: b.MaxTime,
		Synced: durability == string(config.Synced),
		Events: b.Events(), Owner: o.Owner,
	})
	if !errors.Is(err, journal.ErrKeyReused) { // which says nothing of the disk
		c.health.Note(err)
	}
	stored := receiver.Stored{First: r.First, Durability: durability, Duplicate: r.Duplicate, Records: r.Records}
	return stored, errorOfStore(err)
}

// errorOfStore marks an error of the journal that the receiver decides on.
func errorOfStore(err error) error {
	if err == nil {
		return nil
	}
	for _, e := range [...]struct{ journal, receiver error }{
		{journal.ErrFull, receiver.ErrFull},
		{journal.ErrNotSynced, receiver.ErrNotSynced},
		{journal.ErrTakenAway, receiver.ErrUnavailable},
		{journal.ErrKeyReused, receiver.ErrKeyReused},
	} {
		if errors.Is(err, e.journal) {
			return fmt.Errorf("%w: %w", e.receiver, err)
		}
	}
	return err
}

// Policy returns the policy in force.
func (c backend) Policy() *receiver.Policy { return &c.state.Load().policy }

// Reject keeps rejected events as dead letters, if the configuration says so.
func (c backend) Reject(o receiver.Origin, b *normalize.Batch) {
	if c.rejected != nil {
		c.rejected.Add(deadletter.Origin(o), b)
	}
}
