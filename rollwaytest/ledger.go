package rollwaytest

import (
	"fmt"
	"testing"
)

// Ledger is the account that a line writer keeps of its lines.
type Ledger struct {
	Accepted uint64 // lines given to Write before Close, dropped ones included
	Written  uint64 // taken by the destination
	Dropped  uint64 // lost, for whatever reason
	Pending  uint64 // neither yet
	Rejected uint64 // lines given to Write after Close; not among the accepted
}

// Err returns an error unless Accepted = Written + Dropped + Pending.
func (l Ledger) Err() error {
	if sum := l.Written + l.Dropped + l.Pending; l.Accepted != sum {
		return fmt.Errorf("ledger: accepted %d, but written %d + dropped %d + pending %d = %d",
			l.Accepted, l.Written, l.Dropped, l.Pending, sum)
	}
	return nil
}

// Check fails tb unless the ledger is balanced.
func (l Ledger) Check(tb testing.TB) {
	tb.Helper()
	if err := l.Err(); err != nil {
		tb.Error(err)
	}
}

// CheckSettled fails tb unless the ledger is balanced, nothing is pending,
// accepted lines were given to Write and delivered lines were found at the
// destination.
func (l Ledger) CheckSettled(tb testing.TB, accepted, delivered int) {
	tb.Helper()
	l.Check(tb)
	if l.Pending != 0 {
		tb.Errorf("ledger: %d lines pending, want none", l.Pending)
	}
	if l.Accepted != uint64(accepted) {
		tb.Errorf("ledger: accepted %d, but Write took %d lines", l.Accepted, accepted)
	}
	if l.Written != uint64(delivered) {
		tb.Errorf("ledger: written %d, but the destination has %d lines", l.Written, delivered)
	}
}
