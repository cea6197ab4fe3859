package collector

import (
	"time"

	"github.com/rollway/rollway/collector/enrich"
	"github.com/rollway/rollway/collector/normalize"
	"github.com/rollway/rollway/collector/receiver"
)

// tenant is the sender of what comes in at an address that names one.
type tenant struct {
	name   string
	extras normalize.Extras
}

// ofTenant returns the sender of a tenant's events; nil for that of none.
func ofTenant(name string) receiver.Sender {
	if name == "" {
		return nil
	}
	t := &tenant{name: name}
	t.extras.Add(enrich.Tenant, name)
	return t
}

// Scope implements receiver.Sender.
func (t *tenant) Scope() string { return t.name }

// Wait implements receiver.Sender: an address has no rate.
func (t *tenant) Wait(time.Time) time.Duration { return 0 }

// Charge implements receiver.Sender.
func (t *tenant) Charge(time.Time, int, int) {}

// Durability implements receiver.Sender.
func (t *tenant) Durability() string { return "" }

// Tenant implements receiver.Sender.
func (t *tenant) Tenant() string { return t.name }

// Extras implements receiver.Sender.
func (t *tenant) Extras() *normalize.Extras { return &t.extras }
