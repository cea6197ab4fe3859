package receivertest

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/rollway/rollway/internal/testkit"
)

// systemd returns the path of a program that is not in PATH.
func systemd(t *testing.T, name string) string {
	t.Helper()
	for _, dir := range []string{"/lib/systemd", "/usr/lib/systemd"} {
		if path := filepath.Join(dir, name); exists(path) {
			return path
		}
	}
	testkit.Missing(t, name+", of Debian's package systemd-journal-remote")
	return ""
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}

// TestJournalUpload has systemd-journal-upload send a journal that was made of an export, with
// a message of two lines, one in Latin-1 and bytes.
func TestJournalUpload(t *testing.T) {
	upload, remote := systemd(t, "systemd-journal-upload"), systemd(t, "systemd-journal-remote")
	dir := t.TempDir()
	journal := filepath.Join(dir, "web-1.journal")
	into := exec.Command(remote, "-o", journal, "testdata/journal.export")
	if out, err := into.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	Client(t, "receivertest/journal-upload", func(url string) {
		cmd := exec.Command(upload, "--url="+url, "--file="+journal, "--save-state="+filepath.Join(dir, "state"), "--follow=no")
		out, err := cmd.CombinedOutput()
		if err != nil {
			t.Fatalf("%v: %s", err, out)
		}
		t.Logf("%s said %s", strings.Join(cmd.Args, " "), out)
	})
}
