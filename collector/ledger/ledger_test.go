package ledger

import (
	"errors"
	"os"
	"path/filepath"
	"reflect"
	"testing"
	"time"

	"github.com/rollway/rollway/collector/journal"
	"github.com/rollway/rollway/internal/disk"
	"github.com/rollway/rollway/internal/recordlog"
	"github.com/rollway/rollway/internal/testkit"
)

// sound is a ledger in which all agrees.
func sound() *Ledger {
	return &Ledger{
		Account: Account{Began: time.Unix(1, 0).UTC(), Taken: time.Unix(9, 0).UTC(), Events: Events{
			Received: 100, Outcomes: map[string]uint64{Stored: 60, Rejected: 20, Failed: 5, Duplicate: 8, "another": 7},
			Rejected: map[string]uint64{"syntax": 15, "too_large": 5},
		}},
		Tenants: map[string]Events{"shop": {Received: 3, Outcomes: map[string]uint64{Stored: 2, Rejected: 1}, Rejected: map[string]uint64{"syntax": 1}}},
		Journal: "0123", Ended: true,
		FirstAtStart: 10, Start: 40, First: 30, Next: 100, Appended: 60, Repeated: 8, Deleted: 20,
		DeadLetters: DeadLetters{Start: 5, Rejected: 30, Kept: 20, Pending: 8, Dropped: map[string]uint64{"quota": 7}},
		MaxKeys:     5, KeyAge: time.Hour,
		Sinks: []Sink{{Name: "kafka", From: 35, At: 80, Cursor: 75, Delivered: 40, Pending: 20, Dropped: map[string]uint64{"refused": 5}}},
	}
}

// TestCounts changes each number of a sound ledger: one equation at least tells.
func TestCounts(t *testing.T) {
	if l := sound(); !Agree(l.Counts()) {
		t.Fatalf("%+v", l.Counts())
	}
	for name, change := range map[string]func(l *Ledger){
		"received":       func(l *Ledger) { l.Received++ },
		"stored":         func(l *Ledger) { l.Outcomes[Stored]--; l.Received-- },
		"stored, moved":  func(l *Ledger) { l.Outcomes[Stored]++; l.Outcomes[Failed]-- },
		"rejected":       func(l *Ledger) { l.Rejected["syntax"]++ },
		"a tenant's":     func(l *Ledger) { l.Tenants["shop"].Outcomes[Stored]++ },
		"its rejected":   func(l *Ledger) { l.Tenants["shop"].Rejected["syntax"]-- },
		"duplicate":      func(l *Ledger) { l.Outcomes[Duplicate]++; l.Received++ },
		"an outcome":     func(l *Ledger) { l.Outcomes["another"]++ },
		"appended":       func(l *Ledger) { l.Appended++; l.Outcomes[Stored]++; l.Received++ },
		"next":           func(l *Ledger) { l.Next++ },
		"start":          func(l *Ledger) { l.Start++ },
		"first":          func(l *Ledger) { l.First++ },
		"deleted":        func(l *Ledger) { l.Deleted-- },
		"sink passed":    func(l *Ledger) { l.Sinks[0].At++ },
		"sink delivered": func(l *Ledger) { l.Sinks[0].Delivered++ },
		"sink dropped":   func(l *Ledger) { l.Sinks[0].Dropped["refused"]++ },
		"dead letters":   func(l *Ledger) { l.DeadLetters.Kept-- },
		"sink pending":   func(l *Ledger) { l.Sinks[0].Pending++ },
	} {
		l := sound()
		change(l)
		if Agree(l.Counts()) {
			t.Errorf("%s: nothing differs", name)
		}
	}
	l := sound()
	l.Appended, l.Next, l.Repeated, l.Sinks[0].Pending = 62, 102, 9, 22
	if Agree(l.Counts()) {
		t.Error("the journal has more than was counted")
	}
	if l.InHand = 2; !Agree(l.Counts()) {
		t.Errorf("events in hand: %+v", l.Counts())
	}
}

func TestRecords(t *testing.T) {
	found := func() *journal.AuditReport {
		return &journal.AuditReport{
			First: 30, Next: 100,
			List: []journal.SegmentReport{{First: 30, End: 70}, {First: 70, End: 100}}, Keys: 3,
			Cursors: []journal.CursorReport{{Name: "kafka", Offset: 75}},
		}
	}
	all := func(l *Ledger, a *journal.AuditReport, first uint64) []Check {
		return append(l.Records(a, first), Sound(a, first)...)
	}
	if list := all(sound(), found(), 30); !Agree(list) {
		t.Fatalf("%+v", list)
	}
	for name, change := range map[string]func(a *journal.AuditReport){
		"a record of before": func(a *journal.AuditReport) { a.Missing = []journal.Gap{{From: 39, To: 40}} },
		"a record":           func(a *journal.AuditReport) { a.Missing = []journal.Gap{{From: 99, To: 100}} },
		"the end":            func(a *journal.AuditReport) { a.Next-- },
		"one too many":       func(a *journal.AuditReport) { a.Next++ },
		"damage":             func(a *journal.AuditReport) { a.Findings = []journal.Finding{{Kind: recordlog.Damaged, File: "x"}} },
		"a key":              func(a *journal.AuditReport) { a.Twice = 1 },
		"the cursor":         func(a *journal.AuditReport) { a.Cursors[0].Offset++ },
		"no cursor":          func(a *journal.AuditReport) { a.Cursors = nil },
		"cursor damaged":     func(a *journal.AuditReport) { a.Cursors[0].Error = "damaged" },
	} {
		a := found()
		change(a)
		if Agree(all(sound(), a, 30)) {
			t.Errorf("%s: nothing differs", name)
		}
	}
	// A running collector has gone on, and its retention too.
	l, a := sound(), found()
	l.Ended = false
	a.First, a.Next, a.Cursors[0].Offset = 70, 500, 300
	if list := all(l, a, 70); !Agree(list) {
		t.Errorf("%+v", list)
	}
}

func TestSaveAndLoad(t *testing.T) {
	dir := t.TempDir()
	if l, err := Load(dir); l != nil || err != nil {
		t.Fatal(l, err)
	}
	want := sound()
	for range 2 {
		testkit.OK(t, want.Save(dir))
	}
	if l, err := Load(dir); err != nil || !reflect.DeepEqual(l, want) {
		t.Fatalf("%+v, %v", l, err)
	}
	for range 2 {
		testkit.OK(t, Remove(dir))
	}
	if list, err := os.ReadDir(dir); err != nil || len(list) > 0 {
		t.Fatal(list, err)
	}
	testkit.OK(t, os.WriteFile(filepath.Join(dir, file), []byte("{"), 0o600))
	if _, err := Load(dir); err == nil {
		t.Fatal("half a ledger was read")
	}
	if err := want.Save(filepath.Join(dir, "none")); err == nil {
		t.Fatal("saved in no folder")
	}
}

// The ledger of another user, who may write the folder, is not believed.
func TestLedgerOfAnotherUser(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Log("only root can make files of others")
		return
	}
	dir := t.TempDir()
	testkit.OK(t, sound().Save(dir))
	testkit.OK(t, os.Chown(filepath.Join(dir, file), 12345, 12345))
	if l, err := Load(dir); !errors.Is(err, disk.ErrOwner) {
		t.Errorf("%+v, %v", l, err)
	}
}
