package reliability

import (
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/rollway/rollway/bench/internal/measure"
	"github.com/rollway/rollway/bench/internal/report"
)

func TestResultsKeepAndMakeTables(t *testing.T) {
	r := &Results{Results: *measure.NewResults(Kind, 1), Writers: []string{Heap, "rival", Direct}, Missing: map[string]string{straceKill: "strace(1)"}, Disk: "ext4", Slabs: "tmpfs"}
	r.Samples = []measure.Sample{}
	for _, f := range Faults() {
		if r.Missing[f.Name] == "" {
			ours := Try{Fault: f.Name, Writer: Heap, Seed: 1, Acked: 9, Found: 9, Ledgers: []Ledger{{Accepted: 9, Written: 9}}}
			switch {
			case f.Kills:
				ours.Late, ours.Ledgers = 1, []Ledger{{Accepted: 1, Written: 1}}
			case f.Name == errorsForEver:
				ours.Late, ours.Ledgers = 1, []Ledger{{Accepted: 8, Written: 8}, {Accepted: 1, Written: 1}}
			}
			r.Tries = append(r.Tries, Try{Fault: f.Name, Writer: "rival", Seed: 1, Acked: 9, Found: 7, Silent: 2, Dead: true}, ours)
		}
	}
	path := filepath.Join(t.TempDir(), "sub", "results.json")
	if err := measure.Save(path, r); err != nil {
		t.Fatal(err)
	}
	back, err := measure.Load[Results](path, Kind)
	if err != nil || !reflect.DeepEqual(back, r) {
		t.Fatalf("read back %+v, %v, want %+v", back, err, r)
	}
	tables := func() (string, error) { return report.Make(func() string { return Tables(back) }) }
	text, err := tables()
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		"| fault | tries each | slab | rival | file, direct |",
		"| one Write fails with ENOSPC | 1 | ok | 2 lost silently, **dead afterwards** | – |",
		"not tried, needs strace(1) | – | – | – |",
		"did our own writers break a promise",
		"log files on ext4, mapped slabs on tmpfs",
		"could give its own account",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("the tables lack %q:\n%s", want, text)
		}
	}
	back.Tries[1].Torn = 1
	if text, _ := tables(); len(back.Unexpected()) != 1 || !strings.Contains(text, "In 1 tries our own writers did not do what they promise") {
		t.Errorf("a torn line of ours: %v\n%s", back.Unexpected(), text)
	}
	back.Tries = back.Tries[2:]
	if _, err := tables(); err == nil {
		t.Error("tables were made without the first fault")
	}
}
