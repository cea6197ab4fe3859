package file

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/rollway/rollway/internal/testkit"
)

// A file that is open, here and by another reader, can be renamed, and what is
// written afterwards is in the renamed one.
func TestRenameWhileOpen(t *testing.T) {
	dir := t.TempDir()
	path, rotated := filepath.Join(dir, "log"), filepath.Join(dir, "log-1")
	f, err := openFile(path, os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o640)
	testkit.OK(t, err)
	defer f.Close()
	reader, err := openFile(path, os.O_RDONLY, 0)
	testkit.OK(t, err)
	defer reader.Close()
	if _, err := f.WriteString("one\n"); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(path, rotated); err != nil {
		t.Fatalf("rename while open: %v", err)
	}
	if _, err := f.WriteString("two\n"); err != nil {
		t.Fatal(err)
	}
	if got, err := os.ReadFile(rotated); err != nil || string(got) != "one\ntwo\n" {
		t.Errorf("the renamed file holds %q, %v", got, err)
	}
	if _, err := os.Lstat(path); !os.IsNotExist(err) {
		t.Errorf("the old path is still there: %v", err)
	}
}
