package disk

import (
	"errors"
	"io"
	"os"
	"path/filepath"
	"testing"

	"github.com/rollway/rollway/internal/testkit"
)

// TestFree: a file without a name loses a piece at a time, and none as long as
// somebody else has it open.
func TestFree(t *testing.T) {
	const piece = 4096
	path := filepath.Join(t.TempDir(), "file")
	open := func() File {
		t.Helper()
		f, err := Real{}.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o640)
		testkit.OK(t, err)
		return f
	}
	f := open()
	defer f.Close()
	reader := open()
	if _, err := f.WriteAt(make([]byte, 2*piece+1), 0); err != nil {
		t.Fatal(err)
	}
	testkit.OK(t, os.Remove(path))
	done, err := FreeFile(f, piece)
	if done && err == nil {
		reader.Close()
		t.Skip("this file system does not tell who has a file open")
	}
	if done || !errors.Is(err, ErrInUse) {
		t.Fatalf("with a reader: %v %v", done, err)
	}
	if n, err := io.Copy(io.Discard, io.NewSectionReader(reader, 0, 1<<20)); n != 2*piece+1 || err != nil {
		t.Fatalf("the reader has %d bytes, %v", n, err)
	}
	testkit.OK(t, reader.Close())
	for _, want := range []struct {
		size int64
		done bool
	}{{piece + 1, false}, {1, false}, {1, true}} {
		done, err := FreeFile(f, piece)
		size, sizeErr := f.Size()
		if done != want.done || size != want.size || err != nil || sizeErr != nil {
			t.Fatalf("%d bytes, %v %v %v; want %v", size, done, err, sizeErr, want)
		}
	}
}

// TestFreeLinked: what has another name, as a backup gives one, is not touched.
func TestFreeLinked(t *testing.T) {
	path := filepath.Join(t.TempDir(), "file")
	f, err := Real{}.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o640)
	testkit.OK(t, err)
	defer f.Close()
	testkit.OK(t, errors.Join(f.Truncate(100), os.Link(path, path+"-2"), os.Remove(path)))
	if done, err := FreeFile(f, 10); !done && !errors.Is(err, ErrInUse) {
		t.Error(done, err)
	}
	if info, err := os.Stat(path + "-2"); err != nil || info.Size() != 100 {
		t.Errorf("its other name has %v, %v", info, err)
	}
}

// TestFreeOthers: nothing is done to files of other systems.
func TestFreeOthers(t *testing.T) {
	file, err := Real{}.OpenFile(filepath.Join(t.TempDir(), "file"), os.O_RDWR|os.O_CREATE, 0o640)
	testkit.OK(t, err)
	defer file.Close()
	f := struct{ File }{file}
	testkit.OK(t, f.Truncate(100))
	done, err := FreeFile(f, 10)
	if size, _ := f.Size(); !done || err != nil || size != 100 {
		t.Fatal(done, err, size)
	}
}
