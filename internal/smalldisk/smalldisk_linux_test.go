package smalldisk

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

func TestMount(t *testing.T) {
	dir := Mount(t, "size=64k")
	if dir == "" {
		return
	}
	name := filepath.Join(dir, "file")
	if err := os.WriteFile(name, make([]byte, 100<<10), 0o600); !errors.Is(err, syscall.ENOSPC) {
		t.Errorf("100 KiB on a disk of 64: %v", err)
	}
	Remount(t, dir, "size=1m")
	if err := os.WriteFile(name, make([]byte, 100<<10), 0o600); err != nil {
		t.Error(err)
	}
}

func TestChild(t *testing.T) {
	if dir := Dir(); dir != "" {
		if os.Getenv("SMALLDISK_FAIL") != "" {
			t.Fatal("as asked")
		}
		t.Log("in ", dir)
		return
	}
	out, err := Child(t, nil)
	if err != nil || !strings.Contains(out, os.TempDir()) {
		t.Errorf("%v: %s", err, out)
	}
	if out, err = Child(t, nil, "env", "SMALLDISK_FAIL=1"); err == nil || !strings.Contains(out, "as asked") {
		t.Errorf("a child that fails: %v: %s", err, out)
	}
	if _, err = Child(t, nil, "true"); err == nil {
		t.Error("a child that runs nothing has passed")
	}
}
