package logfile

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	"github.com/rollway/rollway/internal/testkit"
)

// A rename that does not replace, where the system has no call for it.
func TestRenameReserved(t *testing.T) {
	dir := t.TempDir()
	a, b, c := filepath.Join(dir, "a"), filepath.Join(dir, "b"), filepath.Join(dir, "c")
	for _, name := range []string{a, b} {
		testkit.OK(t, os.WriteFile(name, []byte(name), 0o600))
	}
	for _, rename := range []func(string, string) error{renameReserved, RenameNew} {
		if err := rename(a, b); !errors.Is(err, fs.ErrExist) {
			t.Errorf("rename to a taken name = %v", err)
		}
		testkit.OK(t, rename(a, c))
		if data, err := os.ReadFile(c); string(data) != a || err != nil {
			t.Errorf("the renamed file holds %q, %v", data, err)
		}
		if data, err := os.ReadFile(b); string(data) != b || err != nil {
			t.Errorf("the other file holds %q, %v", data, err)
		}
		if err := rename(filepath.Join(dir, "none"), a); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("rename of nothing = %v", err)
		}
		if _, err := os.Stat(a); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("a failed rename left the name: %v", err)
		}
		testkit.OK(t, rename(c, a))
	}
}
