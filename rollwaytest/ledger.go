package rollwaytest

import (
	"testing"

	"github.com/rollway/rollway/line"
)

// Ledger is the account that a line writer keeps of its lines.
type Ledger struct{ line.Ledger }

// Check fails tb unless the ledger is balanced.
func (l Ledger) Check(tb testing.TB) {
	tb.Helper()
	if err := l.Err(); err != nil {
		tb.Errorf("ledger: %v", err)
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
