package ingest

import (
	"context"
	"net/http"
	"time"

	"github.com/rollway/rollway/collector/admission"
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
	b := &backend{journal: j, synced: o.synced}
	if o.enrich != nil {
		b.policy.Enricher = o.enrich()
	}
	if o.tenant {
		b.policy.Admit = func(*http.Request) (receiver.Sender, error) { return tenant, nil }
	}
	return receiver.New(b, receiver.Options{}), j, nil
}

// backend stores into a journal, as the one of package collector does.
type backend struct {
	journal *journal.Journal
	policy  receiver.Policy
	synced  bool
}

func (b *backend) Store(ctx context.Context, batch *normalize.Batch, o receiver.StoreOptions) (receiver.Stored, error) {
	r, err := b.journal.AppendKeyed(ctx, o.Key, journal.Batch{
		Lines: batch.Lines, Records: batch.Records, MinTime: batch.MinTime, MaxTime: batch.MaxTime, Synced: b.synced,
	})
	return receiver.Stored{First: r.First, Duplicate: r.Duplicate, Records: r.Records}, err
}

func (b *backend) Policy() *receiver.Policy { return &b.policy }

func (b *backend) Reject(receiver.Origin, *normalize.Batch) {}

// sender is one that may send what it likes, and has a tenant.
type sender struct {
	name   string
	extras normalize.Extras
	pays   *admission.Principal
}

// tenant is the sender of all requests that have one.
var tenant = func() *sender {
	s := &sender{name: "shop", pays: admission.New().Named("shop", 1)}
	s.extras.Add(normalize.Tenant, s.name)
	return s
}()

func (s *sender) Scope() string                { return s.name }
func (s *sender) Wait(time.Time) time.Duration { return 0 }
func (s *sender) Charge(time.Time, int, int)   {}
func (s *sender) Durability() string           { return "" }
func (s *sender) Tenant() string               { return s.name }
func (s *sender) Extras() *normalize.Extras    { return &s.extras }
func (s *sender) Principal() *admission.Principal {
	return s.pays
}
