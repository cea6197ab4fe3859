//go:build unix

package spool

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/rollway/rollway/internal/disk"

	"github.com/rollway/rollway/internal/recordlog"
	"github.com/rollway/rollway/internal/testkit"
)

// A FIFO instead of a file delays nothing.
func TestFIFO(t *testing.T) {
	for _, name := range []string{segmentName(0), cursorName, recordlog.LockName} {
		dir, s := openReal(t)
		mustAppend(t, s, texts(0, 10))
		testkit.OK(t, s.Close())
		at := filepath.Join(dir, name)
		testkit.OK(t, errors.Join(os.Remove(at), syscall.Mkfifo(at, 0o600)))
		s, err := Open(dir, Options{})
		if name == recordlog.LockName {
			if !errors.Is(err, disk.ErrNotFile) || !strings.Contains(err.Error(), "a FIFO") {
				t.Fatal(err)
			}
			continue
		}
		testkit.OK(t, err)
		mustAppend(t, s, texts(10, 20))
		drain(t, s)
		if info, err := os.Lstat(at + recordlog.ExtBad); err != nil || info.Mode()&os.ModeNamedPipe == 0 {
			t.Errorf("not set aside: %v", err)
		}
		testkit.OK(t, s.Close())
	}
}

// A link instead of each file is not followed, and what it points to keeps
// its bytes.
func TestLinksAreNotFollowed(t *testing.T) {
	for _, name := range []string{segmentName(0), cursorName, recordlog.LockName} {
		for _, target := range []string{"target", "missing"} {
			dir, s := openReal(t)
			mustAppend(t, s, texts(0, 10))
			testkit.OK(t, s.Close())
			at := filepath.Join(dir, name)
			to := filepath.Join(t.TempDir(), target)
			if target == "target" {
				testkit.OK(t, os.WriteFile(to, []byte("precious"), 0o600))
			}
			testkit.OK(t, errors.Join(os.Remove(at), os.Symlink(to, at)))
			s, err := Open(dir, Options{})
			if name == recordlog.LockName {
				if !errors.Is(err, disk.ErrNotFile) || !strings.Contains(err.Error(), at) || !strings.Contains(err.Error(), "a symbolic link") {
					t.Fatalf("%v", err)
				}
			} else {
				testkit.OK(t, err)
				mustAppend(t, s, texts(10, 20))
				drain(t, s)
				if st := s.Stats(); name != cursorName && st.Dropped.Damaged != 10 {
					t.Errorf("%+v", st)
				}
				testkit.OK(t, s.Close())
			}
			switch b, err := os.ReadFile(to); {
			case target == "target" && string(b) != "precious":
				t.Errorf("%s: %q, %v", name, b, err)
			case target == "missing" && err == nil:
				t.Errorf("%s: the link's target was made", name)
			}
		}
	}
}
