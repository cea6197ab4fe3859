//go:build linux || darwin

package slabfile

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"unsafe"

	"golang.org/x/sys/unix"
)

// FuzzFile opens a file in which header, descriptors and slabs are any bytes:
// nothing panics or faults, a file that Open refuses is left as it was, what is
// pending is whole lines in order, and once it is recovered the file is as new.
func FuzzFile(f *testing.F) {
	made := create(f, small, Heap)
	add := func() {
		if err := made.flush(0, small.mapped()); err != nil {
			f.Fatal(err)
		}
		b := readAll(f, made.path)
		// The parts in which something is: the seed is a third of the file.
		f.Add(b[:headerSize], b[headerSize:][:64*small.SlabCount], b[small.slabsAt():][:small.SlabSize], uint16(len(b)>>8), false)
		f.Add(b[:512], b[headerSize:][:64*small.SlabCount], b[small.slabsAt():][:small.SlabSize], uint16(len(b)>>8), true)
	}
	add()
	fillSlab(made, 0, 1, "one\ntwo\n")
	add()
	made.Delivered(0, 4)
	made.Mark(0, 4, 1, 2, 3)
	add()
	if err := made.BeginLine(1, 2, []byte(longLine)); err != nil {
		f.Fatal(err)
	}
	add()
	made.Free(0)
	made.Free(1)
	add()
	if err := made.Rebuild(Geometry{SlabSize: 64, SlabCount: 1}); err != nil {
		f.Fatal(err)
	}
	b := readAll(f, made.path)
	f.Add(b[:headerSize], b[headerSize:][:64], b[8192:][:64], uint16(len(b)>>8), true)
	for _, d := range damages {
		b := d.corrupt(make([]byte, 40000))
		f.Add(b[:min(len(b), headerSize)], []byte(nil), []byte("x\n"), uint16(80), true)
	}

	f.Fuzz(func(t *testing.T, header, table, slab []byte, size uint16, resumed bool) {
		content := make([]byte, int(size)<<8)
		copy(content, header)
		if len(content) >= headerSize && resumed {
			copy(content, magic)
			native.PutUint32(content[8:], formatVersion)
			native.PutUint32(content[12:], orderMark)
			resum(content)
		}
		g := small
		if len(content) >= headerSize {
			if h, _, err := parseHeader(content); err == nil {
				g = h
			}
			copy(content[headerSize:], table)
		}
		for i := range min(g.SlabCount, 8) {
			if at := g.slabAt(i); at < int64(len(content)) {
				copy(content[at:], slab)
			}
		}
		path := filepath.Join(t.TempDir(), "slabs")
		if err := os.WriteFile(path, content, 0o600); err != nil {
			t.Fatal(err)
		}
		r, err := Open(path, Options{ReadOnly: true, Memory: Mapped})
		if err == nil {
			var seq uint64
			for b, err := range r.Pending() {
				if err != nil {
					break
				}
				if b.Seq < seq || len(b.Data) > 0 && b.Data[len(b.Data)-1] != '\n' || b.Cut < 0 || b.Problem == nil && len(b.Data) == 0 {
					t.Fatalf("%+v after %d", b, seq)
				}
				seq = b.Seq
			}
			_ = r.Owner().String()
			unmap(t, r)
		}
		o, err := Open(path, Options{Geometry: small, Memory: Heap})
		if err != nil {
			if !bytes.Equal(readAll(t, path), content) {
				t.Fatalf("Open has changed what it refuses: %v", err)
			}
			return
		}
		var out bytes.Buffer
		if _, err := Recover(o, &out, nil); err != nil {
			t.Fatal(err)
		}
		if s := out.String(); s != "" && !strings.HasSuffix(s, "\n") {
			t.Fatalf("recovered a torn line: %q", s)
		}
		wantText(t, o, "")
		if err := o.Rebuild(small); err != nil {
			t.Fatal(err)
		}
		fillSlab(o, 1, o.NextSeq(), "new\n")
		if err := o.Close(); err != nil {
			t.Fatal(err)
		}
		n := mustOpen(t, path, Options{Geometry: small, Memory: Mapped})
		wantText(t, n, "new\n")
		unmap(t, n)
	})
}

// unmap closes f and gives its addresses back, which a million of files would
// use up.
func unmap(t *testing.T, f *File) {
	mem := f.mem
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	if mem == nil {
		return
	}
	if err := unix.MunmapPtr(unsafe.Pointer(unsafe.SliceData(mem)), uintptr(len(mem))); err != nil {
		t.Fatal(err)
	}
}
