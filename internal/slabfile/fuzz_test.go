//go:build linux || darwin

package slabfile

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/rollway/rollway/internal/testkit"
)

// FuzzFile opens a file in which header, descriptors and slabs are any bytes:
// nothing panics or faults, a file that Open refuses is left as it was, a damaged one
// is kept, what is pending is whole lines in order without zero bytes, and after
// Recover the file is as new.
func FuzzFile(f *testing.F) {
	made := create(f, small)
	add := func() {
		b := readAll(f, made.path)
		// The parts in which something is: the seed is a third of the file.
		f.Add(b[:headerSize], b[headerSize:][:64*small.SlabCount], b[small.slabAt(0):][:small.SlabSize], uint16(len(b)>>8), false)
		f.Add(b[:512], b[headerSize:][:64*small.SlabCount], b[small.slabAt(0):][:small.SlabSize], uint16(len(b)>>8), true)
	}
	add()
	fillSlab(made, 0, 1, "one\ntwo\n")
	add()
	seal(made, 0, "one\ntwo\n")
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
	made = reopen(f, made, Geometry{SlabSize: 64, SlabCount: 1})
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
			copy(content, small.header()[:offGeometry+8])
			content = resum(content)
		}
		g := small
		if len(content) >= headerSize {
			if h, _, err := parseHeader(content); err == nil {
				g = h
			}
			copy(content[headerSize:], table)
			for i := 0; resumed && i < g.SlabCount && headerSize+descriptorSize*(i+1) <= len(content); i++ {
				copy(content[headerSize+descriptorSize*i+60:], g.table(content)[descriptorSize*i+60:][:4])
			}
		}
		for i := range min(g.SlabCount, 8) {
			if at := g.slabAt(i); at < int64(len(content)) {
				copy(content[at:], slab)
			}
		}
		path := filepath.Join(t.TempDir(), "slabs")
		testkit.OK(t, os.WriteFile(path, content, 0o600))
		r, err := Open(path, Options{ReadOnly: true})
		if err == nil {
			var seq uint64
			for b, err := range r.Pending() {
				if err != nil {
					break
				}
				if b.Seq < seq || len(b.Data) > 0 && b.Data[len(b.Data)-1] != '\n' || b.Cut < 0 || b.Seq != 0 && b.Problem == nil && len(b.Data) == 0 { // 0: its descriptor is lost
					t.Fatalf("%+v after %d", b, seq)
				}
				seq = b.Seq
			}
			_ = r.Owner().String()
			closed(t, r)
		}
		o, err := Open(path, Options{Geometry: small})
		if err != nil {
			if !bytes.Equal(readAll(t, path), content) {
				t.Fatalf("Open has changed what it refuses: %v", err)
			}
			return
		}
		if kept, damage := o.Damage(); damage != nil && !bytes.Equal(readAll(t, kept), content) {
			t.Fatalf("what was damaged is not kept: %v", damage)
		}
		var out bytes.Buffer
		if _, err := Recover(o, &out, nil); err != nil {
			t.Fatal(err)
		}
		if s := out.String(); s != "" && !strings.HasSuffix(s, "\n") || strings.Contains(s, "\x00") {
			t.Fatalf("recovered a torn line, or zeros: %q", s)
		}
		wantText(t, o, "")
		closed(t, o)
		o = mustOpen(t, path, Options{Geometry: small})
		fillSlab(o, 1, o.LastSeq()+1, "new\n")
		testkit.OK(t, o.Close())
		n := mustOpen(t, path, Options{Geometry: small})
		wantText(t, n, "new\n")
		closed(t, n)
	})
}

func closed(t *testing.T, f *File) {
	testkit.OK(t, f.Close())
}
