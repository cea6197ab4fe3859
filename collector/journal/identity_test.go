package journal

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/rollway/rollway/internal/disktest"
	"github.com/rollway/rollway/internal/recordlog"
	"github.com/rollway/rollway/internal/testkit"
)

// A journal keeps its identity for as long as its folder lives; another journal
// in the same place has another.
func TestID(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "journal")
	open := func() (string, []Finding) {
		t.Helper()
		j := mustOpen(t, dir, Options{})
		defer j.Close()
		return j.ID(), j.Recovery().Findings
	}
	id, findings := open()
	if len(id) != idDigits || len(findings) > 0 {
		t.Fatalf("a new journal has the identity %q and the findings %v", id, findings)
	}
	if again, findings := open(); again != id || len(findings) > 0 {
		t.Fatalf("the identity is %q after a restart, was %q; findings %v", again, id, findings)
	}
	for _, damage := range []string{"", "short\n", strings.Repeat("g", idDigits) + "\n", id + "\nmore"} {
		testkit.OK(t, os.WriteFile(filepath.Join(dir, idFile), []byte(damage), 0o640))
		if again, findings := open(); again != id || len(findings) != 1 {
			t.Fatalf("from %q the identity %q was read, with the findings %v", damage, again, findings)
		}
		testkit.OK(t, errors.Join(os.WriteFile(filepath.Join(dir, idFile), []byte(damage), 0o640), os.Remove(filepath.Join(dir, historyFile))))
		if again, findings := open(); len(again) != idDigits || again == id || len(findings) != 2 {
			t.Fatalf("without a history: from %q the identity %q was read, with the findings %v", damage, again, findings)
		} else {
			id = again
		}
	}
	testkit.OK(t, os.RemoveAll(dir))
	if another, _ := open(); another == id {
		t.Fatalf("a new journal has the identity %q of the one before", another)
	}
}

// A full disk does not keep a collector from starting and being read.
func TestNoRoomForID(t *testing.T) {
	j, err := Open("/j", Options{Disk: &disktest.Faulty{FS: disktest.NewMem(), Hook: func(op disktest.Op) disktest.Fault {
		if op.Kind == disktest.Write {
			return disktest.Fault{Err: syscall.ENOSPC}
		}
		return disktest.Fault{}
	}}})
	testkit.OK(t, err)
	defer j.Close()
	if f := j.Recovery().Findings; j.ID() != "" || len(f) != 1 || f[0].File != idFile {
		t.Fatalf("identity %q, findings %v", j.ID(), f)
	}
}

// A folder by the name of the identity is nobody's, to Open and to Verify.
func TestFolderNamedID(t *testing.T) {
	dir := t.TempDir()
	testkit.OK(t, os.Mkdir(filepath.Join(dir, idFile), 0o750))
	rep, err := Audit(dir, AuditOptions{})
	if err != nil || len(rep.Findings) != 2 || rep.Findings[0].Kind != recordlog.Foreign {
		t.Errorf("%v, %v", rep.Findings, err)
	}
}
