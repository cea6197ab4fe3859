package collector

import (
	"net/http"
	"time"

	"github.com/rollway/rollway/collector/deadletter"
	"github.com/rollway/rollway/collector/ledger"
	"github.com/rollway/rollway/collector/receiver"
)

// eventsOf are events as the receiver has counted them.
func eventsOf(e *receiver.Events) ledger.Events {
	return ledger.Events{Received: e.Received, Rejected: e.Rejected, Outcomes: map[string]uint64{
		ledger.Stored: e.Stored, ledger.Rejected: e.RejectedTotal(), ledger.Failed: e.Failed, ledger.Duplicate: e.Duplicate,
		ledger.Dropped: e.DroppedTotal(), ledger.Ignored: e.IgnoredTotal(),
	}}
}

// ledgerTries is how often a ledger is taken again if events came meanwhile.
const ledgerTries = 20

// Ledger returns the account of events since New. It never waits for the disk.
func (c *Collector) Ledger() ledger.Ledger {
	var l ledger.Ledger
	for range ledgerTries {
		if l = c.takeLedger(); l.InHand == 0 {
			break
		}
		time.Sleep(time.Millisecond)
	}
	return l
}

func (c *Collector) takeLedger() ledger.Ledger {
	// The receiver counts what the journal has answered, so it is asked before
	// and after: in between are the events that the journal may have more.
	before := c.receiver.Stats()
	tenants := make(map[string]ledger.Events)
	for tenant, e := range before.Tenants {
		tenants[tenant] = eventsOf(&e)
	}
	var sinks []ledger.Sink
	for _, r := range c.sinks {
		s := r.Stats()
		sinks = append(sinks, ledger.Sink{Name: s.Name, From: s.From, At: s.At, Cursor: s.Cursor, Delivered: s.Delivered, Dropped: s.Dropped})
	}
	j, r := c.journal.Stats(), c.journal.Recovery()
	after := c.receiver.Stats()
	for i := range sinks {
		sinks[i].Pending = j.Next - sinks[i].At
	}
	var d deadletter.Stats
	if c.rejected != nil {
		d = c.rejected.Stats()
	}
	return ledger.Ledger{
		DeadLetters: ledger.DeadLetters{Start: d.Start, Rejected: d.Rejected, Kept: d.Kept, Pending: d.Pending, Dropped: d.Dropped},
		Account:     ledger.Account{Began: c.began, Taken: time.Now(), Events: eventsOf(&before.Events)},
		Tenants:     tenants, Journal: c.journal.ID(),
		InHand:       after.Stored + after.Duplicate + uint64(after.Storing) - before.Stored - before.Duplicate,
		FirstAtStart: r.First, Start: r.Next, First: j.First, Next: j.Next,
		Appended: j.Records, Repeated: j.DuplicateRecords, Deleted: j.DeletedRecords,
		MaxKeys: c.config.Journal.MaxKeys, KeyAge: c.config.Journal.KeyAge,
		Sinks: sinks,
	}
}

// leaveLedger keeps the last ledger for who looks at the folder later, once the
// journal is closed.
func (c *Collector) leaveLedger() {
	if c.receiver == nil {
		return
	}
	l := c.takeLedger()
	l.Ended = true
	if err := l.Save(c.config.Data); err != nil {
		c.log.Warn("the ledger is not kept: 'rollway reconcile' will have the journal alone", "error", err)
	}
}

func (c *Collector) serveLedger(w http.ResponseWriter, r *http.Request) {
	tenant := tenantOf(r)
	if tenant == "" {
		writeJSON(w, http.StatusOK, c.Ledger())
		return
	}
	events := c.receiver.Stats().Tenants[tenant]
	writeJSON(w, http.StatusOK, ledger.Account{Tenant: tenant, Began: c.began, Taken: time.Now(), Events: eventsOf(&events)})
}
