package logfile

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"testing"

	"github.com/rollway/rollway/internal/testkit"
)

// A Path follows links, and tells its file from another one and from none.
func TestPathLook(t *testing.T) {
	dir := t.TempDir()
	path, link := filepath.Join(dir, "log"), filepath.Join(dir, "link")
	testkit.OK(t, os.WriteFile(path, []byte("12345"), 0o600))
	f, err := os.Open(path)
	testkit.OK(t, err)
	defer f.Close()
	names := []*Path{NewPath(path)}
	if err := os.Symlink(path, link); err == nil {
		names = append(names, NewPath(link))
	} else if runtime.GOOS != "windows" { // where it takes a privilege
		t.Fatal(err)
	}
	look := func(when string, wantSame bool, wantErr error) {
		t.Helper()
		for _, p := range names {
			if size, same, err := p.Look(f); size != 5 || same != wantSame || !errors.Is(err, wantErr) {
				t.Errorf("%s: %s: %d bytes, same %v, %v", when, p.Text, size, same, err)
			}
		}
	}
	look("the file", true, nil)
	if runtime.GOOS == "windows" {
		return // an open file keeps its name there
	}
	testkit.OK(t, os.Rename(path, path+"-1"))
	look("nothing", false, fs.ErrNotExist)
	testkit.OK(t, os.WriteFile(path, []byte("12345"), 0o600))
	look("another file", false, nil)
	testkit.OK(t, os.Rename(path+"-1", path))
	look("the file again", true, nil)
	f.Close()
	if size, same, err := names[0].Look(f); size >= 0 || same || err == nil {
		t.Errorf("a closed file: %d bytes, same %v, %v", size, same, err)
	}
}

func TestPathLookDoesNotAllocate(t *testing.T) {
	path := filepath.Join(t.TempDir(), "log")
	f, err := os.Create(path)
	testkit.OK(t, err)
	defer f.Close()
	p := NewPath(path)
	if n := testkit.Mallocs(func() {
		if _, same, err := p.Look(f); !same || err != nil {
			t.Fatal(same, err)
		}
	}); n > 0 && runtime.GOOS == "linux" {
		t.Errorf("%d allocations", n)
	}
}
