// Package ledger is the account that a collector keeps of events, and its
// comparison with what is in the journal:
//
//	received = stored + rejected + failed + duplicate + dropped + ignored
//	stored   = records in the journal from the start's offset on
//	stored   = delivered + pending + dropped, of each sink
//
// The counts are those of one process. They can be compared to the record all
// the same, as the process notes at which offset the journal ended when it was
// opened, and retention counts what it deletes.
package ledger

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/rollway/rollway/internal/disk"
	"github.com/rollway/rollway/internal/recordlog"
)

// Outcomes of an event: what Ledger.Outcomes has as keys. Others may follow; all
// belong to the sum.
const (
	Stored    = "stored"
	Rejected  = "rejected"  // cannot be stored as it is; by reason in Ledger.Rejected
	Failed    = "failed"    // could not be stored; its sender was told
	Duplicate = "duplicate" // was stored before, by its key
	Dropped   = "dropped"   // left out by a rule of the configuration
	Ignored   = "ignored"   // no log: acknowledged and not kept
)

// Events are events by outcome, counted at one moment.
type Events struct {
	Received uint64            `json:"received"`
	Outcomes map[string]uint64 `json:"outcomes"`
	Rejected map[string]uint64 `json:"rejected"` // by reason
}

// Account is what the events of one process came to: of one tenant, or of all senders.
type Account struct {
	Tenant string    `json:"tenant,omitempty"`
	Began  time.Time `json:"began"`
	Taken  time.Time `json:"taken"`
	Events
}

// Ledger is the account of one process. Offsets and counts are of events; what
// one lock guards was read at one moment, and the parts in an order that makes
// InHand a bound. A reader of one tenant gets the Account of it alone.
type Ledger struct {
	Account
	Tenants map[string]Events `json:"tenants,omitempty"` // of the events those of each tenant

	Journal string `json:"journal"` // its ID
	Ended   bool   `json:"ended"`   // the collector has stopped, and nothing came after this

	// InHand bounds the events that the journal may have more than Stored and
	// Duplicate say together, as they came while the ledger was taken. 0: none.
	InHand uint64 `json:"in_hand"`

	FirstAtStart uint64        `json:"first_offset_at_start"`
	Start        uint64        `json:"start_offset"` // where the journal ended at the start
	First        uint64        `json:"first_offset"` // of the oldest record now
	Next         uint64        `json:"next_offset"`  // after the newest record now
	Appended     uint64        `json:"appended"`     // by the journal's own count
	Repeated     uint64        `json:"repeated"`     // events that the journal found stored, likewise
	Deleted      uint64        `json:"deleted"`      // by retention
	MaxKeys      int           `json:"max_keys"`
	KeyAge       time.Duration `json:"key_age_ns"`

	DeadLetters DeadLetters `json:"dead_letters"`

	Sinks []Sink `json:"sinks"`
}

// DeadLetters is the account of the events that dead letters are of.
type DeadLetters struct {
	Start    uint64            `json:"start"`    // when the process began
	Rejected uint64            `json:"rejected"` // since then, to be kept
	Kept     uint64            `json:"kept"`
	Pending  uint64            `json:"pending"` // not written
	Dropped  map[string]uint64 `json:"dropped"` // by reason
}

// Sink is the account of one sink.
type Sink struct {
	Name      string            `json:"name"`
	From      uint64            `json:"from_offset"` // where it began
	At        uint64            `json:"at_offset"`   // all before is delivered or dropped
	Cursor    uint64            `json:"cursor_offset"`
	Delivered uint64            `json:"delivered"`
	Pending   uint64            `json:"pending"`
	Dropped   map[string]uint64 `json:"dropped"` // by reason
}

// file is where a collector leaves its last ledger, below its data folder.
const file = "ledger.json"

// Save leaves l in the data folder dir, where it takes the place of an earlier
// one.
func (l *Ledger) Save(dir string) error {
	text, err := json.MarshalIndent(l, "", "  ")
	if err != nil {
		return err
	}
	if err := recordlog.WriteFile(disk.Real{}, filepath.Join(dir, file), append(text, '\n')); err != nil {
		return fmt.Errorf("save ledger: %w", err)
	}
	return nil
}

// Load reads the ledger of the data folder dir; nil: its last collector left
// none, as it was killed or did not begin.
func Load(dir string) (*Ledger, error) {
	text, err := recordlog.ReadFile(disk.Real{Owned: true}, filepath.Join(dir, file), 64<<20)
	if errors.Is(err, os.ErrNotExist) {
		return nil, nil
	}
	l := new(Ledger)
	if err == nil {
		err = json.Unmarshal(text, l)
	}
	if err != nil {
		return nil, fmt.Errorf("read ledger: %w", err)
	}
	return l, nil
}

// Remove takes away the ledger of an earlier process: from now on it is not
// true.
func Remove(dir string) error {
	if err := os.Remove(filepath.Join(dir, file)); err != nil && !errors.Is(err, os.ErrNotExist) {
		return fmt.Errorf("remove ledger: %w", err)
	}
	return nil
}

func sum(counts map[string]uint64) uint64 {
	n := uint64(0)
	for _, c := range counts {
		n += c
	}
	return n
}
