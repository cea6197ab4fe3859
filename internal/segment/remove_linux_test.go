package segment

import (
	"bytes"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"testing/synctest"
	"time"
)

// bigFile makes a file of that many bytes, more than freePiece.
func bigFile(t *testing.T, name string, size int) (path string, data []byte) {
	t.Helper()
	path, data = filepath.Join(t.TempDir(), name), bytes.Repeat([]byte("0123456\n"), size/8)
	if err := os.WriteFile(path, data, 0o600); err != nil {
		t.Fatal(err)
	}
	return path, data
}

func gone(t *testing.T, path string) {
	t.Helper()
	if _, err := os.Lstat(path); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("%s is still there: %v", path, err)
	}
}

// The name goes at once, the blocks in pieces with pauses between.
func TestRemoveInPieces(t *testing.T) {
	path, _ := bigFile(t, "log", 4*freePiece+8000)
	synctest.Test(t, func(t *testing.T) {
		var sizes []int64
		begin := time.Now()
		r := freer{truncate: func(f *os.File, size int64) error {
			sizes = append(sizes, size)
			return f.Truncate(size)
		}}
		if err := r.remove(path); err != nil {
			t.Fatal(err)
		}
		gone(t, path)
		time.Sleep(time.Second)
		synctest.Wait()
		if want := []int64{3*freePiece + 8000, 2*freePiece + 8000, freePiece + 8000, 8000}; !slices.Equal(sizes, want) {
			t.Errorf("cut to %v, want %v", sizes, want)
		}
		if len(r.files) > 0 {
			t.Error("a file waits")
		}
		r.stop()
		if took := time.Since(begin); took != time.Second {
			t.Errorf("stop took %v", took-time.Second)
		}
	})
}

// At the end nobody waits for pauses, and more files than it can hold are
// removed at once.
func TestRemoveInAHurry(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		begin := time.Now()
		var r freer
		for range 5 {
			path, _ := bigFile(t, "log", 3*freePiece)
			if err := r.remove(path); err != nil {
				t.Fatal(err)
			}
			gone(t, path)
		}
		r.stop()
		if took := time.Since(begin); took > freePause {
			t.Errorf("that took %v", took)
		}
	})
	new(freer).stop()
}

// Who reads a file that is removed, or has given it another name, keeps all of
// it.
func TestRemoveLeavesToOthers(t *testing.T) {
	never := freer{truncate: func(*os.File, int64) error { t.Error("it was cut"); return nil }}
	defer never.stop()

	path, want := bigFile(t, "read", 2*freePiece)
	reader, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer reader.Close()
	if err := never.remove(path); err != nil {
		t.Error(err)
	}
	gone(t, path)
	if got, err := io.ReadAll(reader); !bytes.Equal(got, want) || err != nil {
		t.Errorf("the reader gets %d bytes of %d, %v", len(got), len(want), err)
	}

	path, want = bigFile(t, "linked", 2*freePiece)
	if err := os.Link(path, path+"-2"); err != nil {
		t.Fatal(err)
	}
	if err := never.remove(path); err != nil {
		t.Error(err)
	}
	gone(t, path)
	if got, err := os.ReadFile(path + "-2"); !bytes.Equal(got, want) || err != nil {
		t.Errorf("the other name has %d bytes of %d, %v", len(got), len(want), err)
	}

	if err := never.remove(path); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("remove of nothing = %v", err)
	}
}
