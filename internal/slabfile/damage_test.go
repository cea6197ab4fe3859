//go:build linux || darwin

package slabfile

import (
	"bytes"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
)

// damages is what else than a kill may have done to a file in which slab 0
// holds "one\ntwo\n", of which "one\n" is delivered, and slab 1 a long line.
var damages = []struct {
	name    string
	corrupt func(b []byte) []byte
	open    error  // of Open, which then has left the file as it was
	words   string // in that error, or in the first problem of what is pending
	pending string // "" with open
}{
	{"another kind of file", func([]byte) []byte { return []byte("# a shell script\n") }, ErrForeign, "not a file of slabs", ""},
	{"a kind of file that is long", func(b []byte) []byte { return bytes.Repeat([]byte("text\n"), len(b)/5) }, ErrForeign, "", ""},
	{"zeros", func(b []byte) []byte { return make([]byte, len(b)) }, ErrDamaged, "the header is zeros", ""},
	{"a few zeros", func(b []byte) []byte { return make([]byte, 9) }, ErrDamaged, "the header is zeros", ""},
	{"the beginning of the magic", func(b []byte) []byte { return b[:5] }, ErrDamaged, "it ends after 5 bytes", ""},
	{"cut within the header", func(b []byte) []byte { return b[:100] }, ErrDamaged, "the header ends after 100 bytes", ""},
	{"cut to the header", func(b []byte) []byte { return b[:headerSize] }, ErrDamaged, "it was cut to 4096 of 20480 bytes", ""},
	{"cut within the slabs", func(b []byte) []byte { return b[:20479] }, ErrDamaged, "it was cut to 20479 of 20480 bytes", ""},
	{"a byte of the magic", func(b []byte) []byte { b[3]++; return b }, ErrDamaged, "its first bytes are 895257540d0a1a0a", ""},
	{"the magic and more", func(b []byte) []byte { b[3]++; b[16]++; return b }, ErrForeign, "", ""},
	{"the slab size", func(b []byte) []byte { b[16]++; return b }, ErrDamaged, "checksum does not fit", ""},
	{"the id", func(b []byte) []byte { b[45]++; return b }, ErrDamaged, "checksum does not fit", ""},
	{"the checksum", func(b []byte) []byte { b[60]++; return b }, ErrDamaged, "checksum does not fit", ""},
	{"no slab size", func(b []byte) []byte { native.PutUint64(b[16:], 0); return resum(b) }, ErrDamaged, "the slab size is 0", ""},
	{"too many slabs", func(b []byte) []byte { native.PutUint64(b[24:], 1<<17); return resum(b) }, ErrDamaged, "number of slabs is 131072", ""},
	{"a count that overflows", func(b []byte) []byte { native.PutUint64(b[24:], 1<<63+3); return resum(b) }, ErrDamaged, "slabs of 100 bytes", ""},
	{"too long lines", func(b []byte) []byte { native.PutUint64(b[32:], 1<<30+1); return resum(b) }, ErrDamaged, "longest line", ""},
	{"the byte order word", func(b []byte) []byte { native.PutUint32(b[12:], 7); return resum(b) }, ErrDamaged, "byte order", ""},
	{"another byte order", func(b []byte) []byte { native.PutUint32(b[12:], 0x04030201); return resum(b) }, errors.ErrUnsupported, "other byte order", ""},
	{"a newer version", func(b []byte) []byte { native.PutUint32(b[8:], 2); return resum(b) }, errors.ErrUnsupported, "format version 2, this program knows 1", ""},
	{"the state", func(b []byte) []byte { b[offState] = 9; return b }, ErrDamaged, "state is 9", ""},

	{"the owner", func(b []byte) []byte { b[offOwner+ownerHead]++; return b }, nil, "", "two\n" + longLine},
	{"the owner's length", func(b []byte) []byte { b[offOwner+19] = 0xff; return b }, nil, "", "two\n" + longLine},
	{"a mark", func(b []byte) []byte { b[headerSize+dOffset]++; return b }, nil, "", "two\n" + longLine},
	{"committed beyond the slab", set(0, dCommitted, 101), nil, "slab 0: 101 bytes are said to be committed, there is room for 100", "two\n" + longLine},
	{"committed far beyond", set(0, dCommitted, 1<<63), nil, "slab 0: 9223372036854775808 bytes", "two\n" + longLine},
	{"committed within a line", set(0, dCommitted, 6), nil, "slab 0: 2 bytes at its end are no whole line", longLine},
	{"committed before delivered", set(0, dCommitted, 3), nil, "slab 0: 4 bytes are said to be delivered of 3", longLine},
	{"delivered beyond committed", set(0, dDelivered, 9), nil, "slab 0: 9 bytes are said to be delivered of 8", "one\ntwo\n" + longLine},
	{"a line without end", func(b []byte) []byte { b[small.slabAt(0)+7] = 'x'; return b }, nil, "slab 0: 4 bytes at its end are no whole line", longLine},
	{"a line longer than its room", set(1, dCommitted, 5001), nil, "slab 1: 5001 bytes are said to be committed, there is room for 5000", "two\n" + longLine},
	{"a line that is not there", func(b []byte) []byte { return b[:small.lineAt(1)+10] }, nil, "slab 1: 480 bytes of its line are not in the file", "two\n"},
	{"unknown flags", set(0, dFlags, 2), nil, "slab 0: its flags are 0x2", "two\n" + longLine},
	{"a sequence number twice", set(1, dSeq, 1), nil, "slab 1 has the sequence number 1 of another one", "two\n" + longLine},
	{"the last sequence number there is", set(1, dSeq, 1<<64-1), nil, "slab 1: its sequence number is 18446744073709551615", "two\n" + longLine},
	{"the last delivered one", func(b []byte) []byte { native.PutUint64(b[offDelivered:], 1<<64-1); return b }, nil, "", "two\n" + longLine},
	{"an order turned round", set(0, dSeq, 0x0100), nil, "", longLine + "two\n"},
	{"a free slab with remains", set(2, dCommitted, 50), nil, "", "two\n" + longLine},
}

var longLine = strings.Repeat("0123456789", 49)[1:] + "\n" // with small.LineLimit it is one only in this test

func set(slab int, offset int64, v uint64) func([]byte) []byte {
	return func(b []byte) []byte {
		native.PutUint64(b[headerSize+descriptorSize*int64(slab)+offset:], v)
		return b
	}
}

// resum makes the header's checksum fit again.
func resum(b []byte) []byte {
	header := native.AppendUint32(b[:60:60], sum(b[:60]))
	copy(b, header)
	return b
}

func TestDamaged(t *testing.T) {
	f := create(t, small, Mapped)
	fillSlab(f, 0, 1, "one\ntwo\n")
	f.Delivered(0, 4)
	f.Mark(0, 4, 1, 2, 3)
	if err := f.BeginLine(1, 2, []byte(longLine)); err != nil {
		t.Fatal(err)
	}
	f.Close()
	sound := readAll(t, f.path)
	if f = mustOpen(t, f.path, Options{ReadOnly: true, Memory: Mapped}); text(pendingIn(t, f)) != "two\n"+longLine {
		t.Fatal("the sound file is not what the damages are made for")
	}
	f.Close()
	for _, d := range damages {
		t.Run(d.name, func(t *testing.T) {
			memories(t, func(t *testing.T, m Memory) {
				path := filepath.Join(t.TempDir(), "slabs")
				content := d.corrupt(bytes.Clone(sound))
				if err := os.WriteFile(path, content, 0o600); err != nil {
					t.Fatal(err)
				}
				for _, o := range []Options{{ReadOnly: true}, {}, {Geometry: small}, {Geometry: Geometry{SlabSize: 64, SlabCount: 2}}} {
					o.Memory = m
					f, err := Open(path, o)
					if d.open != nil {
						wantErr(t, err, d.open, path, d.words)
						if !bytes.Equal(readAll(t, path), content) {
							t.Fatal("Open has changed the file")
						}
						continue
					}
					if err != nil {
						t.Fatal(err)
					}
					batches := pendingIn(t, f)
					if got := text(batches); got != d.pending {
						t.Errorf("pending is %q, want %q", got, d.pending)
					}
					var problems []string
					for _, b := range batches {
						if b.Problem != nil {
							wantErr(t, b.Problem, ErrDamaged)
							problems = append(problems, b.Problem.Error())
						}
					}
					if d.words == "" && len(problems) > 0 || d.words != "" && (len(problems) != 1 || !strings.Contains(problems[0], d.words)) {
						t.Errorf("problems %q, want %q", problems, d.words)
					}
					if err := f.Close(); err != nil {
						t.Fatal(err)
					}
				}
				if d.open != nil {
					return
				}
				// What can be delivered is, and then the file is as new.
				f := mustOpen(t, path, Options{Geometry: small, Memory: m})
				var out bytes.Buffer
				r, err := Recover(f, &out, nil)
				if err != nil || out.String() != d.pending || r.Complete() != (d.words == "") {
					t.Errorf("Recover: %+v, %v, %q", r, err, out.String())
				}
				f = reopen(t, f, small)
				wantText(t, f, "")
				fillSlab(f, 2, f.NextSeq(), "new\n")
				f = reopen(t, f, small)
				wantText(t, f, "new\n")
			})
		})
	}
}

func TestOpenRefuses(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "slabs")
	own := Options{Geometry: small, Memory: Mapped}

	_, err := Open(file, Options{})
	wantErr(t, err, fs.ErrNotExist, file)
	_, err = Open(filepath.Join(dir, "no folder", "slabs"), own)
	wantErr(t, err, fs.ErrNotExist)
	_, err = Open(dir, Options{ReadOnly: true})
	wantErr(t, err, ErrForeign, "no regular file")
	if err := syscall.Mkfifo(filepath.Join(dir, "pipe"), 0o600); err != nil {
		t.Fatal(err)
	}
	_, err = Open(filepath.Join(dir, "pipe"), own)
	wantErr(t, err, ErrForeign, "no regular file")

	f := mustOpen(t, file, own)
	if info, err := os.Stat(file); err != nil || info.Mode() != 0o600 {
		t.Errorf("mode %v, %v", info.Mode(), err)
	}
	if err := os.Symlink(file, filepath.Join(dir, "link")); err != nil {
		t.Fatal(err)
	}
	_, err = Open(filepath.Join(dir, "link"), own)
	wantErr(t, err, ErrForeign, "symbolic link")
	for _, o := range []Options{own, {}, {ReadOnly: true}} {
		_, err = Open(file, o)
		wantErr(t, err, ErrLocked, file, "in use by process "+strconv.Itoa(os.Getpid()))
	}
	f.Close()
	if err := os.Chmod(file, 0o640); err != nil {
		t.Fatal(err)
	}
	_, err = Open(file, own)
	wantErr(t, err, fs.ErrPermission, "0640")
	mustOpen(t, file, Options{}).Close() // recovery takes it

	for _, g := range []Geometry{{63, 3, 0}, {1<<30 + 1, 3, 0}, {64, 0, 0}, {64, 1<<16 + 1, 0}, {64, 1, -1}, {64, 1, 1<<30 + 1}, {-1, -1, -1}} {
		path := filepath.Join(dir, "bad")
		if _, err := Open(path, Options{Geometry: g}); err == nil || !strings.Contains(err.Error(), "allowed is") {
			t.Errorf("%+v: %v", g, err)
		}
		if _, err := os.Stat(path); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("%+v: a file was made", g)
		}
	}
}

// A copy of the file may have holes, and a store into one fails with a signal
// when the disk is full. Open gives them blocks.
func TestHolesGetBlocks(t *testing.T) {
	path := filepath.Join(t.TempDir(), "slabs")
	g := Geometry{SlabSize: 1 << 20, SlabCount: 2}
	f := mustOpen(t, path, Options{Geometry: g, Memory: Mapped})
	fillSlab(f, 0, 1, "one\n")
	f.Close()
	content := readAll(t, path)
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	sparse, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		t.Fatal(err)
	}
	defer sparse.Close()
	for at := 0; at < len(content); at += 4096 {
		if part := content[at : at+4096]; !bytes.Equal(part, make([]byte, 4096)) {
			if _, err := sparse.WriteAt(part, int64(at)); err != nil {
				t.Fatal(err)
			}
		}
	}
	if err := sparse.Truncate(int64(len(content))); err != nil {
		t.Fatal(err)
	}
	blocks := func() int64 {
		var st syscall.Stat_t
		if err := syscall.Stat(path, &st); err != nil {
			t.Fatal(err)
		}
		return int64(st.Blocks) * 512
	}
	if got := blocks(); got > 1<<20 {
		t.Skipf("this file system makes no holes: %d bytes", got)
	}
	f = mustOpen(t, path, Options{Geometry: g, Memory: Mapped})
	if got := blocks(); got < g.mapped() {
		t.Errorf("%d bytes are on the disk, want all %d", got, g.mapped())
	}
	wantText(t, f, "one\n")

	// The same where the file system has no call for it.
	if err := sparse.Truncate(0); err != nil {
		t.Fatal(err)
	}
	if _, err := sparse.WriteAt([]byte("kept"), 5000); err != nil {
		t.Fatal(err)
	}
	if err := fill(sparse, 600_000); err != nil {
		t.Fatal(err)
	}
	b := make([]byte, 600_001)
	n, err := sparse.ReadAt(b, 0)
	if n != 600_000 || err != io.EOF || string(bytes.Trim(b[:n], "\x00")) != "kept" || blocks() < 600_000 {
		t.Errorf("%d bytes, %v, %d on the disk", n, err, blocks())
	}
}
