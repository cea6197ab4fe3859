//go:build linux || darwin

package slabfile

import (
	"bytes"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// An image is a file in which slab 0 holds "one\ntwo\n", of which "one\n" is
// delivered, slab 1 a long line, and slab 2 "three\n".
func image(t *testing.T) []byte {
	t.Helper()
	f := create(t, small, Mapped)
	fillSlab(f, 0, 5, "one\ntwo\n")
	f.Delivered(0, 4)
	if err := f.BeginLine(1, 6, []byte(longLine)); err != nil {
		t.Fatal(err)
	}
	fillSlab(f, 2, 7, "three\n")
	f.Close()
	return readAll(t, f.path)
}

var imageText = "two\n" + longLine + "three\n"

// setAside writes content as a file, sets it aside and opens what is there then.
func setAside(t *testing.T, content []byte, likely Geometry) *File {
	t.Helper()
	path := filepath.Join(t.TempDir(), "slabs")
	if err := os.WriteFile(path, content, 0o600); err != nil {
		t.Fatal(err)
	}
	kept, err := SetAside(path, likely)
	if err != nil {
		t.Fatal(err)
	}
	if kept != path+".bad" || !bytes.Equal(readAll(t, kept), content) {
		t.Errorf("%s does not hold what was set aside", kept)
	}
	if left, _ := filepath.Glob(path + ".new-*"); len(left) > 0 {
		t.Errorf("left: %v", left)
	}
	return mustOpen(t, path, Options{Geometry: small, Memory: Mapped})
}

// Each bit of the header's constant part and of its state, turned: every line is
// there, without a hint at the geometry too.
func TestSetAsideEachBit(t *testing.T) {
	sound := image(t)
	for bit := range 8 * (offHolder) {
		content := bytes.Clone(sound)
		content[bit/8] ^= 1 << (bit % 8)
		f := filepath.Join(t.TempDir(), "slabs")
		if err := os.WriteFile(f, content, 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := Open(f, Options{Geometry: small, Memory: Mapped}); !errors.Is(err, ErrDamaged) {
			t.Fatalf("bit %d: Open: %v", bit, err)
		}
		wantText(t, setAside(t, content, Geometry{}), imageText)
	}
}

func TestSetAside(t *testing.T) {
	other := Geometry{SlabSize: 4000, SlabCount: 90}
	for _, d := range []struct {
		name    string
		corrupt func([]byte) []byte
		likely  Geometry
		pending string
	}{
		{"zeros", func(b []byte) []byte { return make([]byte, len(b)) }, small, ""},
		{"no header, a hint", func(b []byte) []byte { clear(b[:headerSize]); return b }, small, imageText},
		{"no header, a wrong hint", func(b []byte) []byte { clear(b[:headerSize]); return b }, other, ""},
		{"no header, no hint", func(b []byte) []byte { clear(b[:headerSize]); return b }, Geometry{}, ""},
		{"garbage in the header, a hint", func(b []byte) []byte { copy(b[8:60], bytes.Repeat([]byte{0xa5}, 52)); return b }, small, imageText},
		{"another id", func(b []byte) []byte { clear(b[40:56]); return b }, other, imageText},
		{"cut within the header", func(b []byte) []byte { return b[:100] }, small, ""},
		{"cut to the header", func(b []byte) []byte { return b[:headerSize] }, small, ""},
		{"cut to the descriptors", func(b []byte) []byte { return b[:small.slabsAt()] }, small, ""},
		{"cut within the second slab", func(b []byte) []byte { return b[:small.slabAt(1)+10] }, small, "two\n"},
		{"cut within a line of the first slab", func(b []byte) []byte { return b[:small.slabAt(0)+6] }, small, ""},
		{"the last delivered", func(b []byte) []byte {
			b[20] ^= 1
			native.PutUint64(b[offDelivered:], 1<<63)
			return b
		}, Geometry{}, imageText},
	} {
		t.Run(d.name, func(t *testing.T) {
			f := setAside(t, d.corrupt(image(t)), d.likely)
			got := text(pendingIn(t, f))
			if got != d.pending {
				t.Errorf("pending is %q, want %q", got, d.pending)
			}
			var out bytes.Buffer
			if _, err := Recover(f, &out, nil); err != nil || out.String() != d.pending {
				t.Errorf("Recover: %v, %q", err, out.String())
			}
			f = reopen(t, f, small)
			wantText(t, f, "")
			fillSlab(f, 2, f.NextSeq(), "new\n")
			wantText(t, reopen(t, f, small), "new\n")
		})
	}
}

func TestSetAsideRefuses(t *testing.T) {
	f := create(t, small, Mapped)
	if _, err := SetAside(f.path, small); !errors.Is(err, ErrLocked) {
		t.Errorf("a file in use: %v", err)
	}
	if _, err := SetAside(filepath.Join(t.TempDir(), "none"), small); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("no file: %v", err)
	}
	f.Close()
	content := readAll(t, f.path)
	for i, want := range []string{".bad", ".bad-2", ".bad-3"} {
		if err := os.WriteFile(f.path, content[:5000+i], 0o600); err != nil {
			t.Fatal(err)
		}
		if kept, err := SetAside(f.path, small); err != nil || !strings.HasSuffix(kept, want) {
			t.Errorf("%s, %v, want %s", kept, err, want)
		}
		if _, err := os.Stat(f.path); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("an empty file was kept: %v", err)
		}
	}
}

func TestCopy(t *testing.T) {
	f := create(t, small, Mapped)
	fillSlab(f, 0, 1, "one\n")
	for _, want := range []string{".bad", ".bad-2"} {
		kept, err := f.Copy()
		if err != nil || kept != f.path+want {
			t.Fatalf("%s, %v", kept, err)
		}
		wantText(t, mustOpen(t, kept, Options{ReadOnly: true, Memory: Heap}), "one\n")
	}
}
