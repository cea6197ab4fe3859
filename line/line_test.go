package line

import (
	"strings"
	"testing"
)

func TestLedgerErr(t *testing.T) {
	balanced := Ledger{Accepted: 36, Written: 5, Dropped: Drops{1, 2, 3, 4, 5, 6, 7}, Pending: 3}
	if err := balanced.Err(); err != nil {
		t.Error(err)
	}
	balanced.Pending--
	if err := balanced.Err(); err == nil || !strings.Contains(err.Error(), "36 lines accepted, but 5 written + 28 dropped + 2 pending = 35") {
		t.Errorf("got %v", err)
	}
}
