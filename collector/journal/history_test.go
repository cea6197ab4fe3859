package journal

import (
	"bytes"
	"io/fs"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/rollway/rollway/internal/disktest"
	"github.com/rollway/rollway/internal/recordlog"
	"github.com/rollway/rollway/internal/testkit"
)

// Whatever is removed, no restart erases that: the audit says it before a start and after
// ones, until it is acknowledged, and no offset is given twice.
func TestFindingsAreKept(t *testing.T) {
	for name, row := range map[string]struct {
		remove []string
		least  uint64 // possible next offset
	}{
		"the newest":                {[]string{last}, 22},
		"the oldest":                {[]string{seg0}, 22},
		"the newest two":            {[]string{last, seg1}, 22},
		"all segments":              {[]string{last, seg1, seg0}, 22},
		"the manifest":              {[]string{"/j/MANIFEST"}, 22},
		"manifest and newest":       {[]string{"/j/MANIFEST", last}, 22},
		"manifest and all":          {[]string{"/j/MANIFEST", last, seg1, seg0}, 22},
		"history and newest":        {[]string{"/j/HISTORY", last}, 22},
		"both and newest":           {[]string{"/j/MANIFEST", "/j/HISTORY", last}, offsetLeap},
		"both, but the ledger knew": {[]string{"/j/MANIFEST", "/j/HISTORY", last}, offsetLeap},
		"the identity":              {[]string{"/j/ID"}, 22},
	} {
		for _, killed := range []bool{false, true} {
			mem := memJournal(t, 2, 4, 3)
			if killed {
				mem = crashed(t, mem)
			}
			before, err := audit(mem, "/j", AuditOptions{})
			testkit.OK(t, err)
			for _, file := range row.remove {
				testkit.OK(t, mem.Remove(file))
			}
			open := func() *Journal {
				t.Helper()
				j, err := Open("/j", Options{Disk: mem})
				testkit.OK(t, err)
				return j
			}
			j := open()
			if j.ID() != before.ID {
				t.Errorf("%s: the identity is %s, was %s", name, j.ID(), before.ID)
			}
			next, kept := j.Next(), j.Findings()
			if next < row.least || len(kept) == 0 || kept[0].Seen.IsZero() {
				t.Errorf("%s, killed %v: next %d, findings %v", name, killed, next, kept)
			}
			mustAppend(t, j, lines(int(next), 1))
			testkit.OK(t, j.Close())
			for range 2 {
				j = open()
				if again := j.Findings(); len(again) < len(kept) {
					t.Errorf("%s, killed %v: findings %v, were %v", name, killed, again, kept)
				}
				testkit.OK(t, j.Close())
			}
			a, err := audit(mem, "/j", AuditOptions{})
			testkit.OK(t, err)
			if len(a.Damage(0)) == 0 {
				t.Errorf("%s, killed %v: the audit finds nothing: %+v", name, killed, a)
			}
			testkit.OK(t, acknowledge(mem, "/j", &a))
			if a, err = audit(mem, "/j", AuditOptions{}); err != nil || len(a.Damage(0)) > 0 || len(a.Acknowledged) == 0 {
				t.Errorf("%s, killed %v: acknowledged: %+v, %v", name, killed, a, err)
			}
			j = open()
			if again := j.Findings(); len(again) > 0 {
				t.Errorf("%s, killed %v: acknowledged, but %v", name, killed, again)
			}
			testkit.OK(t, j.Close())
		}
	}
}

// Acknowledge writes no file that is too long to be read, and keeps the one that is there.
func TestAcknowledgeIsBounded(t *testing.T) {
	mem := memJournal(t, 2, 4, 3)
	a, err := audit(mem, "/j", AuditOptions{})
	testkit.OK(t, err)
	a.Findings = []Finding{{Kind: recordlog.Damaged, File: seg0}}
	testkit.OK(t, acknowledge(mem, "/j", &a))
	before, err := mem.ReadFile("/j/" + ackFile)
	testkit.OK(t, err)
	for range 17 {
		a.Findings = append(a.Findings, Finding{Kind: recordlog.Damaged, File: seg1, Detail: strings.Repeat("x", 1<<20)})
	}
	if err := acknowledge(mem, "/j", &a); err == nil || !strings.Contains(err.Error(), "18 findings") {
		t.Errorf("acknowledged: %v", err)
	}
	if after, err := mem.ReadFile("/j/" + ackFile); !bytes.Equal(after, before) || err != nil {
		t.Errorf("%d bytes are there, %d were: %v", len(after), len(before), err)
	}
}

// With nothing left but its identity, offsets begin anew, and so they are of another journal;
// a cursor still tells that there was one.
func TestEmptiedFolder(t *testing.T) {
	for _, cursor := range []bool{false, true} {
		mem := memJournal(t, 2, 4, 3)
		j, err := Open("/j", Options{Disk: mem})
		testkit.OK(t, err)
		id := j.ID()
		if cursor {
			c, err := j.OpenCursor("sink", false)
			testkit.OK(t, err)
			testkit.OK(t, c.Save(3))
			c.Close()
		}
		testkit.OK(t, j.Close())
		for _, name := range []string{"/j/MANIFEST", "/j/HISTORY", last, seg1, seg0} {
			testkit.OK(t, mem.Remove(name))
		}
		j, err = Open("/j", Options{Disk: mem})
		testkit.OK(t, err)
		defer j.Close()
		if cursor && (j.ID() != id || j.Next() < offsetLeap || len(j.Findings()) == 0) || !cursor && j.ID() == id {
			t.Errorf("cursor %v: identity %s, was %s; next %d, findings %v", cursor, j.ID(), id, j.Next(), j.Findings())
		}
	}
}

// What a tenant's retention may just have deleted is not reported as damage.
func TestOldestOfATenant(t *testing.T) {
	mem := crashed(t, memJournal(t, 2, 4, 3))
	testkit.OK(t, mem.Remove(seg0))
	j, err := Open("/j", Options{Disk: mem, Pack: true, Tenants: map[string]Retention{"shop": {Age: time.Hour}}})
	testkit.OK(t, err)
	defer j.Close()
	for _, f := range j.Findings() {
		if !f.Harmless() {
			t.Error(f)
		}
	}
}

// A sealed segment that cannot be opened is reported, also without a manifest.
func TestUnlistedAndUnreadable(t *testing.T) {
	mem := memJournal(t, 2, 4, 3)
	testkit.OK(t, mem.Remove("/j/MANIFEST"))
	d := &disktest.Faulty{FS: mem, Hook: func(op disktest.Op) (f disktest.Fault) {
		if op.Kind == disktest.Open && op.Name == seg1 {
			f.Err = fs.ErrPermission
		}
		return f
	}}
	j, err := Open("/j", Options{Disk: d})
	testkit.OK(t, err)
	defer j.Close()
	if !slices.ContainsFunc(j.Findings(), func(f Finding) bool { return f.File == filepath.Base(seg1) && f.Kind == recordlog.Damaged }) {
		t.Errorf("findings %v", j.Findings())
	}
}

// Beyond what is kept, a finding is told all the same.
func TestManyFindings(t *testing.T) {
	told := 0
	j, err := Open("/j", Options{Disk: disktest.NewMem(), OnFinding: func(Finding) { told++ }})
	testkit.OK(t, err)
	defer j.Close()
	for i := range maxFindings + 2 {
		j.keep(Finding{Kind: recordlog.Damaged, File: segmentName(0, extSealed), Pos: int64(i)})
	}
	if told != maxFindings+2 || len(j.Findings()) != maxFindings {
		t.Errorf("told %d, kept %d", told, len(j.Findings()))
	}
}

// A running journal learns what was acknowledged, and reports the same once.
func TestAcknowledgedWhileRunning(t *testing.T) {
	mem := memJournal(t, 2, 4, 3)
	testkit.OK(t, mem.Remove(seg1))
	var told []Finding
	j, err := Open("/j", Options{Disk: mem, OnFinding: func(f Finding) { told = append(told, f) }})
	testkit.OK(t, err)
	defer j.Close()
	a, err := audit(mem, "/j", AuditOptions{})
	testkit.OK(t, err)
	testkit.OK(t, acknowledge(mem, "/j", &a))
	testkit.OK(t, j.Check())
	if f := j.Findings(); len(f) > 0 {
		t.Errorf("%v", f)
	}
	f := Finding{Kind: recordlog.Damaged, File: segmentName(0, extSealed), Pos: 7}
	j.keep(f)
	j.keep(f)
	if len(told) != 1 || len(j.Findings()) != 1 {
		t.Errorf("told %v, kept %v", told, j.Findings())
	}
}

// A killed process may leave each state of its first files, and none is a finding.
func TestKilledAtTheBeginning(t *testing.T) {
	states := map[*disktest.Mem]bool{}
	mem := disktest.NewMem()
	d := &disktest.Faulty{FS: mem, Hook: func(disktest.Op) disktest.Fault {
		states[mem.KillClone()] = true
		return disktest.Fault{}
	}}
	j, err := Open("/j", Options{Disk: d})
	testkit.OK(t, err)
	testkit.OK(t, j.Close())
	for _, clone := range slices.Collect(maps.Keys(states)) {
		j, err := Open("/j", Options{Disk: clone})
		testkit.OK(t, err)
		for _, f := range j.Findings() {
			if !f.Harmless() {
				t.Error(f)
			}
		}
		j.Close()
	}
}

// Maintenance and Check may both write the manifest.
func TestManifestIsWrittenOnceAtATime(t *testing.T) {
	j, err := Open(t.TempDir(), Options{})
	testkit.OK(t, err)
	defer j.Close()
	var both sync.WaitGroup
	for range 2 {
		both.Go(func() {
			for range 50 {
				j.saveManifest(true)
			}
		})
	}
	both.Wait()
	testkit.OK(t, j.Stats().LastError)
	_, err = readManifest(j.fs, j.dir)
	testkit.OK(t, err)
}
