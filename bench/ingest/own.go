package ingest

import (
	"context"
	"net/http"
	"time"

	"github.com/rollway/rollway/collector/enrich"
	"github.com/rollway/rollway/collector/journal"
	"github.com/rollway/rollway/collector/normalize"
	"github.com/rollway/rollway/collector/receiver"
)

// own is how a receiver of ours is put together.
type own struct {
	synced bool
	enrich func() normalize.Enricher // nil: it cannot be enriched
	tenant bool                      // requests are those of a tenant
}

// open returns a receiver that stores into a journal in dir, as package
// collector puts them together. Its caller closes the journal.
func (o own) open(dir string) (*receiver.Receiver, *journal.Journal, error) {
	j, err := journal.Open(dir, journal.Options{})
	if err != nil {
		return nil, nil, err
	}
	var policy receiver.Policy
	if o.enrich != nil {
		policy.Enricher = o.enrich()
	}
	if o.tenant {
		policy.Admit = func(*http.Request) (receiver.Sender, error) { return tenant, nil }
	}
	options := receiver.Options{Policy: func() *receiver.Policy { return &policy }, Store: func(ctx context.Context, b *normalize.Batch) error {
		r, err := j.AppendKeyed(ctx, b.Ask.Key, journal.Batch{
			Lines: b.Lines, Records: b.Records, MinTime: b.MinTime, MaxTime: b.MaxTime, Synced: o.synced,
		})
		if err != nil {
			return err
		}
		b.FirstOffset, b.HasOffset = r.First, true
		return nil
	}}
	return receiver.New(options), j, nil
}

// sender is one that may send what it likes, and has a tenant.
type sender struct {
	name   string
	extras normalize.Extras
}

// tenant is the sender of all requests that have one.
var tenant = func() *sender {
	s := &sender{name: "shop"}
	s.extras.Add(enrich.Tenant, s.name)
	return s
}()

func (s *sender) Scope() string                { return s.name }
func (s *sender) Wait(time.Time) time.Duration { return 0 }
func (s *sender) Charge(time.Time, int, int)   {}
func (s *sender) Durability() string           { return "" }
func (s *sender) Tenant() string               { return s.name }
func (s *sender) Extras() *normalize.Extras    { return &s.extras }
