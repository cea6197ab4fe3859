package file

import (
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
