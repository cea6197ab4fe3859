package file

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/rollway/rollway/internal/testkit"
)

// Where the clock was set back, names still sort by rotation, also after those of an
// earlier process; where it was set back far, as after a wrong date, the right one
// counts again.
func TestNamesWhenClockIsSetBack(t *testing.T) {
	path := filepath.Join(t.TempDir(), "log")
	f, err := Open(path, Options{})
	testkit.OK(t, err)
	defer f.Close()
	rotate := func(content string) {
		t.Helper()
		if _, err := f.Write([]byte(content)); err != nil {
			t.Fatal(err)
		}
		testkit.OK(t, f.Rotate())
	}
	earlier := f.io.series.name(member{time: time.Now().Add(30 * time.Minute), inode: 1})
	testkit.OK(t, os.WriteFile(filepath.Join(f.io.series.folder, earlier), []byte("0\n"), 0o600))
	rotate("1\n")
	rotate("2\n")
	rotate("3\n")
	names, err := filepath.Glob(path + "-*")
	testkit.OK(t, err)
	slices.Sort(names)
	var all strings.Builder
	for _, name := range names {
		b, err := os.ReadFile(name)
		testkit.OK(t, err)
		all.Write(b)
	}
	if all.String() != "0\n1\n2\n3\n" {
		t.Errorf("by name: %q", all.String())
	}
	f.io.lastRotation = time.Now().AddDate(12, 0, 0)
	rotate("4\n")
	if ahead := time.Until(f.io.lastRotation); ahead > 0 {
		t.Errorf("rotated %v from now", ahead)
	}
	if last := f.io.lastRotation; last != last.Round(0) {
		t.Errorf("%v tells what has passed since, and not that the clock was set back", last)
	}
}

// Where the clock was set back far, the files that go are those from before, and not
// the one that was just rotated.
func TestKeepWhenClockIsSetBack(t *testing.T) {
	path := filepath.Join(t.TempDir(), "log")
	f, err := Open(path, Options{KeepCount: 2})
	testkit.OK(t, err)
	for i := range 2 {
		name := f.io.series.name(member{time: time.Now().Add(48 * time.Hour), inode: uint64(i + 1)})
		testkit.OK(t, os.WriteFile(filepath.Join(f.io.series.folder, name), []byte("before\n"), 0o600))
	}
	for _, line := range []string{"1\n", "2\n"} {
		if _, err := f.Write([]byte(line)); err != nil {
			t.Fatal(err)
		}
		testkit.OK(t, f.Rotate())
	}
	if err := f.Close(); err != nil { // it does the rest
		t.Fatal(err)
	}
	names, err := filepath.Glob(path + "-*")
	testkit.OK(t, err)
	slices.Sort(names)
	all := ""
	for _, name := range names {
		b, err := os.ReadFile(name)
		testkit.OK(t, err)
		all += string(b)
	}
	if all != "1\n2\n" {
		t.Errorf("%q is left", all)
	}
}
