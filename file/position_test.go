package file_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rollway/rollway/file"
	"github.com/rollway/rollway/internal/testkit"
)

// place is what Prepare has said of a Write.
type place struct {
	volume, inode uint64
	offset        int64
	data          string
}

func put(t *testing.T, f *file.File, data string) place {
	t.Helper()
	p := place{data: data}
	var err error
	if p.volume, p.inode, p.offset, err = f.Prepare(len(data)); err != nil {
		t.Fatal(err)
	}
	write(t, f, data)
	return p
}

func (p place) in(t *testing.T, f *file.File, want int) {
	t.Helper()
	if n, err := f.Holds(p.volume, p.inode, p.offset, []byte(p.data)); n != want || err != nil {
		t.Errorf("Holds of %.40q at %d of file %d = %d, %v, want %d", p.data, p.offset, p.inode, n, err, want)
	}
}

// Each Write is where Prepare has said, over rotations, packing and a new File,
// and no other is.
func TestPrepareAndHolds(t *testing.T) {
	t.Parallel()
	eachMode(t, func(t *testing.T, mode file.Mode) {
		path := filepath.Join(t.TempDir(), "log")
		o := file.Options{Mode: mode, MaxSize: 1000, Compress: file.Gzip{}}
		f := open(t, path, o)
		var places []place
		files := map[uint64]bool{}
		for i := range 30 {
			p := put(t, f, fmt.Sprintf("line %d %s\nand another\n", i, strings.Repeat("x", 40*i)))
			places = append(places, p)
			files[p.inode] = true
		}
		if len(files) < 10 {
			t.Errorf("%d files, this tests little", len(files))
		}
		all := func(f *file.File) {
			t.Helper()
			for i, p := range places {
				p.in(t, f, len(p.data))
				whole := p.data
				p.data += "line that never came\n"
				if i < len(places)-1 && places[i+1].inode == p.inode {
					p.data = whole + "line which is another\n"
				}
				p.in(t, f, len(whole))
				p.data = "L" + whole
				p.in(t, f, 0)
				p.data = whole[:len(whole)-5] + "tail\n" // differs within its second line
				p.in(t, f, strings.Index(whole, "\n")+1)
				p.data, p.offset = whole, p.offset+100_000
				p.in(t, f, 0)
				p.offset -= 100_000
				p.volume++
				p.in(t, f, 0)
			}
		}
		all(f)
		testkit.OK(t, f.Close())
		if s := f.Stats(); s.Compressed == 0 || s.Compressed != s.Rotations {
			t.Errorf("Stats = %+v, want as many packed as rotated", s)
		}
		f = open(t, path, o)
		all(f)
		p := put(t, f, "after\n")
		p.in(t, f, 6)
	})
}

// What another program has rotated within the folder is found too.
func TestHoldsInRenamedFile(t *testing.T) {
	t.Parallel()
	eachMode(t, func(t *testing.T, mode file.Mode) {
		path := filepath.Join(t.TempDir(), "log")
		f := open(t, path, file.Options{Mode: mode})
		p := put(t, f, "one\ntwo\n")
		testkit.OK(t, os.Rename(path, path+".1"))
		testkit.OK(t, f.Reopen())
		q := put(t, f, "one\ntwo\n")
		p.in(t, f, 8)
		q.in(t, f, 8)
		if p.inode == q.inode {
			t.Error("two files, one inode")
		}
	})
}

// A rotation and a Reopen wait for the Write that was announced, for a second
// at most.
func TestPreparePins(t *testing.T) {
	t.Parallel()
	eachMode(t, func(t *testing.T, mode file.Mode) {
		synctest.Test(t, func(t *testing.T) { testPreparePins(t, mode) })
	})
}

func testPreparePins(t *testing.T, mode file.Mode) {
	path := filepath.Join(t.TempDir(), "log")
	f := open(t, path, file.Options{Mode: mode})
	write(t, f, "first\n")
	for name, call := range map[string]func() error{"Rotate": f.Rotate, "Reopen": f.Reopen} {
		p := place{data: "announced\n"}
		var err error
		if p.volume, p.inode, p.offset, err = f.Prepare(len(p.data)); err != nil {
			t.Fatal(err)
		}
		done := make(chan error, 1)
		go func() { done <- call() }()
		synctest.Wait()
		write(t, f, p.data)
		if err := <-done; err != nil {
			t.Errorf("%s = %v", name, err)
		}
		p.in(t, f, len(p.data))
	}
	write(t, f, "last\n")
	// One that never comes does not hold it up for ever.
	if _, _, _, err := f.Prepare(1); err != nil {
		t.Fatal(err)
	}
	start := time.Now()
	if err := f.Rotate(); err != nil || time.Since(start) != time.Second {
		t.Errorf("Rotate = %v after %v", err, time.Since(start))
	}
	if s := f.Stats(); s.Rotations != 2 {
		t.Errorf("%d rotations, want 2", s.Rotations)
	}
}

func TestPrepareErrors(t *testing.T) {
	f := open(t, os.DevNull, file.Options{})
	if _, _, _, err := f.Prepare(1); !errors.Is(err, errors.ErrUnsupported) {
		t.Errorf("Prepare on the null device = %v", err)
	}
	if s := f.Stats(); s.Errors != 0 || s.LastError != nil {
		t.Errorf("Prepare on the null device is counted as a failure: %+v", s)
	}
	f = open(t, filepath.Join(t.TempDir(), "log"), file.Options{})
	testkit.OK(t, f.Close())
	if _, _, _, err := f.Prepare(1); !errors.Is(err, os.ErrClosed) {
		t.Errorf("Prepare after Close = %v", err)
	}
	if _, err := f.Holds(1, 2, 3, []byte("x\n")); !errors.Is(err, os.ErrClosed) {
		t.Errorf("Holds after Close = %v", err)
	}
}
