package file

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

// Where the clock was set back, names still sort by rotation; where it was set
// back far, as after a wrong date, the right one counts again.
func TestNamesWhenClockIsSetBack(t *testing.T) {
	path := filepath.Join(t.TempDir(), "log")
	f, err := Open(path, Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	rotate := func(content string) {
		t.Helper()
		if _, err := f.Write([]byte(content)); err != nil {
			t.Fatal(err)
		}
		if err := f.Rotate(); err != nil {
			t.Fatal(err)
		}
	}
	f.io.lastRotation = time.Now().Add(30 * time.Minute)
	rotate("1\n")
	rotate("2\n")
	rotate("3\n")
	names, err := filepath.Glob(path + "-*")
	if err != nil {
		t.Fatal(err)
	}
	slices.Sort(names)
	var all strings.Builder
	for _, name := range names {
		b, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		all.Write(b)
	}
	if all.String() != "1\n2\n3\n" {
		t.Errorf("by name: %q", all.String())
	}
	f.io.lastRotation = time.Now().AddDate(12, 0, 0)
	rotate("4\n")
	if ahead := time.Until(f.io.lastRotation); ahead > 0 {
		t.Errorf("rotated %v from now", ahead)
	}
}

// A rename that does not replace, where the system has no call for it.
func TestRenameReserved(t *testing.T) {
	dir := t.TempDir()
	a, b, c := filepath.Join(dir, "a"), filepath.Join(dir, "b"), filepath.Join(dir, "c")
	for _, name := range []string{a, b} {
		if err := os.WriteFile(name, []byte(name), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for _, rename := range []func(string, string) error{renameReserved, renameNew} {
		if err := rename(a, b); !errors.Is(err, fs.ErrExist) {
			t.Errorf("rename to a taken name = %v", err)
		}
		if err := rename(a, c); err != nil {
			t.Fatal(err)
		}
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
		if err := rename(c, a); err != nil {
			t.Fatal(err)
		}
	}
}
