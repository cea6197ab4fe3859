package disktest

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"

	"github.com/rollway/rollway/internal/disk"
	"github.com/rollway/rollway/internal/testkit"
)

// systems returns each file system with an empty folder on it.
func systems(t *testing.T) map[string]struct {
	fs  disk.FS
	dir string
} {
	mem := NewMem()
	if err := mem.MkdirAll("/base", 0o750); err != nil {
		t.Fatal(err)
	}
	return map[string]struct {
		fs  disk.FS
		dir string
	}{
		"Real":   {disk.Real{}, t.TempDir()},
		"Mem":    {mem, "/base"},
		"Faulty": {&Faulty{FS: disk.Real{}, Hook: func(Op) Fault { return Fault{} }}, t.TempDir()},
	}
}

// TestContract runs the rules of disk.FS and disk.File on every implementation.
func TestContract(t *testing.T) {
	for name, sys := range systems(t) {
		t.Run(name, func(t *testing.T) {
			at := func(name string) string { return filepath.Join(sys.dir, name) }
			must := func(err error) {
				t.Helper()
				testkit.OK(t, err)
			}
			create := func(name, content string) disk.File {
				t.Helper()
				f, err := sys.fs.OpenFile(at(name), os.O_RDWR|os.O_CREATE, 0o640)
				must(err)
				n, err := f.WriteAt([]byte(content), 0)
				must(err)
				if n != len(content) {
					t.Fatalf("wrote %d of %d", n, len(content))
				}
				return f
			}
			content := func(f disk.File) string {
				t.Helper()
				size, err := f.Size()
				must(err)
				b := make([]byte, size)
				if n, err := f.ReadAt(b, 0); n != len(b) || err != nil && err != io.EOF {
					t.Fatalf("read %d of %d: %v", n, size, err)
				}
				return string(b)
			}

			t.Run("folders are made with their parents, twice without error", func(t *testing.T) {
				must(sys.fs.MkdirAll(at("a/b/c"), 0o750))
				must(sys.fs.MkdirAll(at("a/b/c"), 0o750))
				f := create("a/file", "x")
				must(f.Close())
				if err := sys.fs.MkdirAll(at("a/file/d"), 0o750); !errors.Is(err, syscall.ENOTDIR) {
					t.Fatal(err)
				}
			})
			t.Run("missing files are ErrNotExist", func(t *testing.T) {
				_, err := sys.fs.OpenFile(at("none"), os.O_RDONLY, 0)
				for _, err := range []error{err, sys.fs.Remove(at("none")), sys.fs.Rename(at("none"), at("x"))} {
					if !errors.Is(err, fs.ErrNotExist) {
						t.Fatal(err)
					}
				}
				if _, err := sys.fs.List(at("none")); !errors.Is(err, fs.ErrNotExist) {
					t.Fatal(err)
				}
				if _, err := sys.fs.OpenFile(at("none/x"), os.O_CREATE|os.O_RDWR, 0o640); !errors.Is(err, fs.ErrNotExist) {
					t.Fatal(err)
				}
			})
			t.Run("exclusive creation fails on an existing file", func(t *testing.T) {
				must(create("there", "").Close())
				if _, err := sys.fs.OpenFile(at("there"), os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o640); !errors.Is(err, fs.ErrExist) {
					t.Fatal(err)
				}
			})
			t.Run("writes extend, truncation cuts and extends with zeros", func(t *testing.T) {
				f := create("sizes", "hello")
				defer f.Close()
				_, err := f.WriteAt([]byte("world"), 8)
				must(err)
				if got := content(f); got != "hello\x00\x00\x00world" {
					t.Fatalf("%q", got)
				}
				must(f.Truncate(3))
				must(f.Truncate(6))
				if got := content(f); got != "hel\x00\x00\x00" {
					t.Fatalf("%q", got)
				}
				if n, err := f.ReadAt(make([]byte, 4), 4); n != 2 || err != io.EOF {
					t.Fatal(n, err)
				}
				if n, err := f.ReadAt(make([]byte, 4), 100); n != 0 || err != io.EOF {
					t.Fatal(n, err)
				}
				must(f.Sync())
				must(sys.fs.SyncDir(sys.dir))
			})
			t.Run("a file that is open only for reading refuses a write", func(t *testing.T) {
				must(create("ro", "x").Close())
				f, err := sys.fs.OpenFile(at("ro"), os.O_RDONLY, 0)
				must(err)
				defer f.Close()
				if _, err := f.WriteAt([]byte("y"), 0); err == nil {
					t.Fatal("no error")
				}
			})
			t.Run("rename replaces, open files stay usable", func(t *testing.T) {
				a, b := create("one", "1"), create("two", "2")
				defer a.Close()
				defer b.Close()
				must(sys.fs.Rename(at("one"), at("two")))
				_, err := a.WriteAt([]byte("+"), 1)
				must(err)
				c, err := sys.fs.OpenFile(at("two"), os.O_RDONLY, 0)
				must(err)
				defer c.Close()
				if content(c) != "1+" || content(b) != "2" {
					t.Fatalf("%q %q", content(c), content(b))
				}
			})
			t.Run("a removed file stays readable while it is open", func(t *testing.T) {
				f := create("gone", "still")
				defer f.Close()
				must(sys.fs.Remove(at("gone")))
				if content(f) != "still" {
					t.Fatal(content(f))
				}
			})
			t.Run("List is sorted and knows sizes and folders", func(t *testing.T) {
				must(sys.fs.MkdirAll(at("list/z"), 0o750))
				must(create("list/b", "22").Close())
				must(create("list/a", "1").Close())
				must(create("list/z/deep", "1").Close())
				entries, err := sys.fs.List(at("list"))
				must(err)
				var got strings.Builder
				for _, e := range entries {
					fmt.Fprint(&got, e.Name, e.Size, e.Dir, e.ModTime.IsZero(), " ")
				}
				if got.String() != "a1 false false b2 false false z0 true false " {
					t.Fatal(got.String())
				}
			})
			t.Run("a lock has one holder", func(t *testing.T) {
				l, err := sys.fs.Lock(at("lock"), 0o640)
				must(err)
				if _, err := sys.fs.Lock(at("lock"), 0o640); !errors.Is(err, disk.ErrLocked) {
					t.Fatal(err)
				}
				must(l.Close())
				l, err = sys.fs.Lock(at("lock"), 0o640)
				must(err)
				must(l.Close())
			})
			t.Run("an open file and a folder are locked until they are closed", func(t *testing.T) {
				f, l := create("locked", ""), func() error {
					l, err := sys.fs.LockDir(sys.dir)
					if err == nil {
						defer l.Close()
						if _, err := sys.fs.LockDir(sys.dir); !errors.Is(err, disk.ErrLocked) {
							t.Errorf("a locked folder: %v", err)
						}
						if same, err := l.Same(); !same || err != nil {
							t.Error(same, err)
						}
					}
					return err
				}
				must(f.TryLock())
				again, err := sys.fs.OpenFile(at("locked"), os.O_RDWR, 0)
				must(err)
				defer again.Close()
				if err := again.TryLock(); !errors.Is(err, disk.ErrLocked) && runtime.GOOS != "windows" {
					t.Error(err)
				}
				must(f.Close())
				must(again.TryLock())
				if runtime.GOOS != "windows" {
					must(l())
					must(l())
				}
			})
			t.Run("a file and a lock know whether their name still is theirs", func(t *testing.T) {
				f := create("mine", "x")
				l, err := sys.fs.Lock(at("minelock"), 0o640)
				must(err)
				for _, c := range []struct {
					name string
					disk.Sameness
				}{{"mine", f}, {"minelock", l}} {
					expect := func(when string, wanted bool) {
						t.Helper()
						if same, err := c.Same(); err != nil || same != wanted {
							t.Errorf("%s %s: %v, %v", c.name, when, same, err)
						}
					}
					expect("at first", true)
					if c.name == "minelock" && runtime.GOOS == "windows" {
						continue // it cannot be renamed
					}
					must(sys.fs.Rename(at(c.name), at("moved")))
					expect("moved", false)
					must(create(c.name, "").Close())
					expect("replaced", false)
					must(sys.fs.Rename(at("moved"), at(c.name)))
					expect("back", true)
					must(sys.fs.Remove(at(c.name)))
					expect("removed", false)
				}
				must(errors.Join(f.Close(), l.Close()))
			})
			t.Run("a folder is not opened as a file", func(t *testing.T) {
				must(sys.fs.MkdirAll(at("folder"), 0o750))
				for _, flag := range []int{os.O_RDONLY, os.O_RDWR, os.O_RDWR | os.O_CREATE | os.O_TRUNC} {
					if _, err := sys.fs.OpenFile(at("folder"), flag, 0o640); !errors.Is(err, disk.ErrNotFile) || !strings.Contains(err.Error(), "a folder") {
						t.Errorf("flag %x: %v", flag, err)
					}
				}
				if _, err := sys.fs.Lock(at("folder"), 0o640); !errors.Is(err, disk.ErrNotFile) {
					t.Error(err)
				}
			})
			t.Run("a closed file refuses everything", func(t *testing.T) {
				f := create("closed", "x")
				must(f.Close())
				_, werr := f.WriteAt([]byte("x"), 0)
				_, rerr := f.ReadAt(make([]byte, 1), 0)
				_, serr := f.Size()
				for _, err := range []error{werr, rerr, serr, f.Sync(), f.Truncate(0), f.Close()} {
					if err == nil {
						t.Error("no error")
					}
				}
			})
		})
	}
}

func TestCrashClones(t *testing.T) {
	m := NewMem()
	f, err := m.OpenFile("/f", os.O_RDWR|os.O_CREATE, 0o640)
	testkit.OK(t, err)
	old := bytes.Repeat([]byte("old."), 1024)
	f.WriteAt(old, 0)
	has := func(m *Mem, name string) bool { _, err := m.ReadFile(name); return err == nil }
	if has(m.PowerCutClone(nil), "/f") {
		t.Fatal("a name survived that was not synced")
	}
	m.SyncDir("/")
	if b, err := m.PowerCutClone(nil).ReadFile("/f"); err != nil || len(b) != 0 {
		t.Fatalf("%d bytes survived that were not synced, %v", len(b), err)
	}
	f.Sync()
	f.WriteAt(bytes.Repeat([]byte("new."), 2048), 0)
	m.Rename("/f", "/g")
	if b, err := m.KillClone().ReadFile("/g"); err != nil || len(b) != 8192 || b[0] != 'n' {
		t.Fatal("a killed process lost a write or a rename")
	}
	if b, err := m.PowerCutClone(nil).ReadFile("/f"); err != nil || !bytes.Equal(b, old) {
		t.Fatal("a power cut kept an unsynced write or rename")
	}
	sizes, mixed, renamed := map[int]bool{}, 0, 0
	for seed := range uint64(200) {
		c := m.PowerCutClone(rand.New(rand.NewPCG(seed, 0)))
		if has(c, "/f") == has(c, "/g") {
			t.Fatal("a rename survived by half")
		}
		name := "/f"
		if has(c, "/g") {
			name = "/g"
			renamed++
		}
		b, _ := c.ReadFile(name)
		again, _ := m.PowerCutClone(rand.New(rand.NewPCG(seed, 0))).ReadFile(name)
		if !bytes.Equal(b, again) {
			t.Fatal("one seed gave two clones")
		}
		sizes[len(b)] = true
		for s := 0; s < len(b); s += sector {
			for i := s + 4; i < min(s+sector, len(b)); i++ {
				if b[i] != b[i-4] {
					t.Fatalf("sector %d is torn", s/sector)
				}
			}
		}
		if bytes.Contains(b, []byte("old.")) && bytes.Contains(b, []byte("new.")) {
			mixed++
		}
	}
	if len(sizes) < 10 || mixed == 0 || renamed == 0 || renamed == 200 {
		t.Fatalf("%d sizes, %d mixed, %d renamed: too tame", len(sizes), mixed, renamed)
	}
	// A clone is a file system of its own.
	c := m.KillClone()
	c.Remove("/g")
	if !has(m, "/g") {
		t.Fatal("the clone shares names")
	}
}

func TestMemLimit(t *testing.T) {
	m := NewMem()
	f, err := m.OpenFile("/f", os.O_RDWR|os.O_CREATE, 0o640)
	testkit.OK(t, err)
	m.SetLimit(10)
	if n, err := f.WriteAt(make([]byte, 8), 0); n != 8 || err != nil {
		t.Fatal(n, err)
	}
	if n, err := f.WriteAt(make([]byte, 8), 8); n != 2 || !errors.Is(err, syscall.ENOSPC) {
		t.Fatal(n, err)
	}
	if n, err := f.WriteAt(make([]byte, 10), 0); n != 10 || err != nil {
		t.Fatal("overwriting needs no room:", n, err)
	}
	if n, err := f.WriteAt(make([]byte, 1), 50); n != 0 || !errors.Is(err, syscall.ENOSPC) {
		t.Fatal(n, err)
	}
	f.Truncate(1)
	if _, err := f.WriteAt(make([]byte, 9), 1); err != nil {
		t.Fatal(err)
	}
	m.Remove("/f")
	f.Close()
	g, err := m.OpenFile("/g", os.O_RDWR|os.O_CREATE, 0o640)
	testkit.OK(t, err)
	if _, err := g.WriteAt(make([]byte, 10), 0); err != nil {
		t.Fatal("a removed file still holds its room:", err)
	}
}

func TestFaulty(t *testing.T) {
	var seen []Kind
	var fail Kind
	m := NewMem()
	d := &Faulty{FS: m, Hook: func(op Op) Fault {
		seen = append(seen, op.Kind)
		if op.Kind == fail {
			return Fault{Err: syscall.EIO, Short: 2}
		}
		return Fault{}
	}}
	f, err := d.OpenFile("/f", os.O_RDWR|os.O_CREATE, 0o640)
	testkit.OK(t, err)
	for kind, do := range map[Kind]func() error{
		Open:     func() error { _, err := d.OpenFile("/f", os.O_RDONLY, 0); return err },
		Read:     func() error { _, err := f.ReadAt(nil, 0); return err },
		Truncate: func() error { return f.Truncate(0) },
		Sync:     f.Sync,
		Rename:   func() error { return d.Rename("/f", "/f") },
		Remove:   func() error { return d.Remove("/f") },
		Mkdir:    func() error { return d.MkdirAll("/d", 0o750) },
		SyncDir:  func() error { return d.SyncDir("/") },
		List:     func() error { _, err := d.List("/"); return err },
		Lock:     func() error { _, err := d.Lock("/l", 0o640); return err },
		Write: func() error {
			n, err := f.WriteAt([]byte("abcd"), 0)
			if b, _ := m.ReadFile("/f"); n != 2 || string(b) != "ab" {
				t.Errorf("short write of 2 returned %d and wrote %q", n, b)
			}
			return err
		},
	} {
		fail, seen = kind, nil
		if err := do(); !errors.Is(err, syscall.EIO) || len(seen) != 1 || seen[0] != kind {
			t.Errorf("%s: %v, hook saw %v", kind, err, seen)
		}
	}
	fail = ""
	if b, err := m.ReadFile("/f"); err != nil || string(b) != "ab" {
		t.Fatalf("%q %v", b, err)
	}
}

func TestSyncOfAClosedFile(t *testing.T) {
	f, err := os.Create(filepath.Join(t.TempDir(), "file"))
	testkit.OK(t, err)
	if err := disk.SyncData(f); err != nil {
		t.Error(err)
	}
	f.Close()
	if err := disk.SyncData(f); !errors.Is(err, fs.ErrClosed) {
		t.Errorf("SyncData = %v", err)
	}
}
