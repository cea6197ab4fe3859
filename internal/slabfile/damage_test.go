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

	"github.com/rollway/rollway/internal/recordlog"
	"github.com/rollway/rollway/internal/recordlog/recordlogtest"
	"github.com/rollway/rollway/internal/testkit"
)

// damages is what else than a kill may have done to the file of image.
var damages = []struct {
	name     string
	corrupt  func(b []byte) []byte
	open     error  // of Open without a Geometry, which then has left the file as it was
	words    string // in that error, or in the first problem of what is pending
	pending  string // for Open with the right Geometry, whether the other fails or not
	problems int    // of what is pending
	cut      int    // lines that are known to be lost
}{
	{"another kind of file", func([]byte) []byte { return []byte("# a shell script\n") }, ErrForeign, "not a file of slabs", "", 0, 0},
	{"a kind of file that is long", func(b []byte) []byte { return bytes.Repeat([]byte("text\n"), len(b)/5) }, ErrForeign, "", "", 0, 0},
	{"a file of the spool", func(b []byte) []byte { b[3] = 'S'; return b }, ErrForeign, "", "", 0, 0},
	{"a byte of the magic", func(b []byte) []byte { b[1]++; return b }, ErrForeign, "", "", 0, 0},
	{"zeros", func(b []byte) []byte { return make([]byte, len(b)) }, ErrDamaged, "the header is zeros", "", 1, 0},
	{"a few zeros", func(b []byte) []byte { return make([]byte, 9) }, ErrDamaged, "the header is zeros", "", 1, 0},
	{"the beginning of the magic", func(b []byte) []byte { return b[:5] }, ErrDamaged, "it ends after 5 bytes", "", 1, 0},
	{"cut within the header", func(b []byte) []byte { return b[:100] }, ErrDamaged, "the header ends after 100 bytes", "", 1, 0},
	{"cut to the header", func(b []byte) []byte { return b[:headerSize] }, ErrDamaged, "it was cut to 4096 of 20480 bytes", "", 1, 0},
	{"cut to the descriptors", func(b []byte) []byte { return b[:small.slabAt(0)] }, ErrDamaged, "it was cut to 8192 of 20480 bytes", "", 3, 5},
	{"cut within the first slab", func(b []byte) []byte { return b[:small.slabAt(0)+6] }, ErrDamaged, "", "", 3, 4},
	{"cut within the third slab", func(b []byte) []byte { return b[:small.slabAt(2)+5] }, ErrDamaged, "", "two\nsix\n", 2, 2},
	{"cut behind what was committed", func(b []byte) []byte { return b[:20479] }, ErrDamaged, "it was cut to 20479 of 20480 bytes", "two\nsix\nseven\n", 1, 1},
	{"a zeroed header", func(b []byte) []byte { clear(b[:headerSize]); return b }, ErrDamaged, "the header is zeros", imageText, 0, 0},
	{"zeroed descriptors", func(b []byte) []byte { clear(b[headerSize:small.slabAt(0)]); return b }, nil, "3 descriptors are lost", "", 1, 0},
	{"a zeroed descriptor", func(b []byte) []byte { clear(b[headerSize+2*descriptorSize:][:descriptorSize]); return b }, nil, "1 descriptors are lost", "two\n" + longLine, 1, 0},
	{"a zeroed slab", zero(small.slabAt(0), 4096), nil, "slab 0: 8 bytes are no whole lines", longLine + "six\nseven\n", 1, 2},
	{"a zero byte", zero(small.slabAt(0)+5, 1), nil, "slab 0: 4 bytes are no whole lines", longLine + "six\nseven\n", 1, 1},
	{"a zeroed sealed slab", zero(small.slabAt(2), 4096), nil, "slab 2: its checksum does not fit", "two\n" + longLine, 1, 2},
	{"a zeroed line of it", zero(small.slabAt(2), 4), nil, "slab 2: its checksum does not fit", "two\n" + longLine, 1, 2},
	{"a zeroed line end of it", zero(small.slabAt(2)+3, 1), nil, "slab 2: its checksum does not fit", "two\n" + longLine, 1, 2},
	{"a zeroed end of it", zero(small.slabAt(2)+4, 5), nil, "slab 2: its checksum does not fit", "two\n" + longLine + "six\n", 1, 1},
	{"a zeroed part of the long line", zero(small.lineAt(1)+100, 50), nil, "slab 1: 490 bytes are no whole lines", "two\nsix\nseven\n", 1, 1},
	{"a checksum that fits no more", func(b []byte) []byte { b[headerSize+2*descriptorSize+dSeal]++; return b }, nil, "slab 2: its checksum does not fit", imageText, 1, 0},
	{"the slab size", func(b []byte) []byte { b[72]++; return b }, ErrDamaged, "checksum does not fit", imageText, 0, 0},
	{"the id", func(b []byte) []byte { b[17]++; return b }, ErrDamaged, "checksum does not fit", imageText, 0, 0},
	{"the checksum", func(b []byte) []byte { b[60]++; return b }, ErrDamaged, "checksum does not fit", imageText, 0, 0},
	{"no slab size", func(b []byte) []byte { native.PutUint64(b[72:], 0); return resum(b) }, ErrDamaged, "the slab size is 0", imageText, 0, 0},
	{"too many slabs", func(b []byte) []byte { native.PutUint64(b[80:], 1<<17); return resum(b) }, ErrDamaged, "number of slabs is 131072", imageText, 0, 0},
	{"a count that overflows", func(b []byte) []byte { native.PutUint64(b[80:], 1<<63+3); return resum(b) }, ErrDamaged, "number of slabs is", imageText, 0, 0},
	{"too long lines", func(b []byte) []byte { native.PutUint64(b[88:], 1<<30+1); return resum(b) }, ErrDamaged, "longest line", imageText, 0, 0},
	{"the byte order word", func(b []byte) []byte { native.PutUint64(b[64:], 7); return resum(b) }, ErrDamaged, "byte order", imageText, 0, 0},
	{"another byte order", func(b []byte) []byte { native.PutUint64(b[64:], 0x04030201<<32); return resum(b) }, errors.ErrUnsupported, "other byte order", "", 0, 0},
	{"a newer version", func(b []byte) []byte { b[8]++; return resum(b) }, errors.ErrUnsupported, "format version 2 is not known", "", 0, 0},
	{"the state", func(b []byte) []byte { b[offState] = 9; return b }, ErrDamaged, "state is 9", imageText, 0, 0},
	{"a body of another length", func(b []byte) []byte { b[48]++; return resum(b) }, ErrDamaged, "checksum does not fit", imageText, 0, 0},
	{"no state", func(b []byte) []byte { b[offState] = 0; return b }, ErrDamaged, "state is 0", imageText, 0, 0},

	{"the owner", func(b []byte) []byte { b[offOwner+recordlog.HeaderSize]++; return b }, nil, "", imageText, 0, 0},
	{"the owner's length", func(b []byte) []byte { b[offOwner+51] = 0xff; return b }, nil, "", imageText, 0, 0},
	{"a mark", func(b []byte) []byte { b[headerSize+dOffset]++; return b }, nil, "", imageText, 0, 0},
	{"committed beyond the slab", set(0, dCommitted, Committed(101, 2)), nil, "slab 0: 101 bytes are said to be committed, there is room for 100", imageText, 1, 0},
	{"committed far beyond", set(0, dCommitted, Committed(1<<31, 2)), nil, "slab 0: 2147483648 bytes", imageText, 1, 0},
	{"committed within a line", set(0, dCommitted, Committed(6, 1)), nil, "slab 0: 2 bytes are no whole lines", longLine + "six\nseven\n", 1, 0},
	{"committed before delivered", set(0, dCommitted, Committed(3, 0)), nil, "slab 0: 4 bytes are said to be delivered of 3", longLine + "six\nseven\n", 1, 0},
	{"delivered beyond committed", set(0, dDelivered, 9), nil, "slab 0: 9 bytes are said to be delivered of 8", "one\n" + imageText, 1, 0},
	{"a line without end", func(b []byte) []byte { b[small.slabAt(0)+7] = 'x'; return b }, nil, "slab 0: 4 bytes are no whole lines", longLine + "six\nseven\n", 1, 1},
	{"a line longer than its room", set(1, dCommitted, Committed(5001, 1)), nil, "slab 1: 5001 bytes are said to be committed, there is room for 5000", imageText, 1, 0},
	{"a line that is not there", func(b []byte) []byte { return b[:small.lineAt(1)+10] }, nil, "slab 1: 490 bytes are no whole lines", "two\nsix\nseven\n", 1, 1},
	{"unknown flags", set(0, dDelivered, pair(4, 2)), nil, "slab 0: its flags are 0x2", imageText, 1, 0},
	{"a sequence number twice", set(1, dSeq, 1), nil, "slab 1 has the sequence number 1 of another one", imageText, 1, 0},
	{"the last sequence number there is", set(1, dSeq, 1<<64-1), nil, "slab 1: its sequence number is 18446744073709551615", "two\nsix\nseven\n" + longLine, 1, 0},
	{"an order turned round", set(0, dSeq, 0x0100), nil, "", longLine + "six\nseven\ntwo\n", 0, 0},
	{"a free slab with remains", set(2, dSeq, 0), nil, "", "two\n" + longLine, 0, 0},
}

var (
	longLine  = strings.Repeat("0123456789", 49)[1:] + "\n" // with small.LineLimit it is one only in this test
	imageText = "two\n" + longLine + "six\nseven\n"
)

// image returns a file in which slab 0 has "one\ntwo\n", whose "one\n" is
// delivered and the rest being written, slab 1 a long line, and slab 2, sealed,
// "six\nseven\n".
func image(t testing.TB) []byte {
	t.Helper()
	f := create(t, small)
	fillSlab(f, 0, 1, "one\ntwo\n")
	f.Delivered(0, 4)
	f.Mark(0, 4, 1, 2, 3)
	testkit.OK(t, f.BeginLine(1, 2, []byte(longLine)))
	fillSlab(f, 2, 3, "six\nseven\n")
	seal(f, 2, "six\nseven\n")
	testkit.OK(t, f.Close())
	return readAll(t, f.path)
}

func zero(at, n int64) func([]byte) []byte {
	return func(b []byte) []byte {
		clear(b[at:min(at+n, int64(len(b)))])
		return b
	}
}

func set(slab int, offset int64, v uint64) func([]byte) []byte {
	return func(b []byte) []byte {
		native.PutUint64(b[headerSize+descriptorSize*int64(slab)+offset:], v)
		return b
	}
}

// resum makes the header's checksums fit again.
func resum(b []byte) []byte { return recordlogtest.WithChecksums(b) }

func TestDamaged(t *testing.T) {
	sound := image(t)
	for _, d := range damages {
		t.Run(d.name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "slabs")
			content := d.corrupt(bytes.Clone(sound))
			testkit.OK(t, os.WriteFile(path, content, 0o600))
			for _, o := range []Options{{ReadOnly: true}, {ReadOnly: true, Geometry: small}, {}, {Geometry: small}, {Geometry: Geometry{SlabSize: 64, SlabCount: 2}}} {
				owning := o.Geometry != Geometry{} && !o.ReadOnly
				if owning && o.Geometry != small && errors.Is(d.open, ErrDamaged) {
					continue // that one would be tried
				}
				f, err := Open(path, o)
				repaired := owning && errors.Is(d.open, ErrDamaged)
				if d.open != nil && !repaired {
					wantErr(t, err, d.open, path, d.words)
					if !bytes.Equal(readAll(t, path), content) {
						t.Fatal("Open has changed the file")
					}
					continue
				}
				testkit.OK(t, err)
				switch kept, damage := f.Damage(); {
				case !repaired && damage != nil:
					t.Errorf("Damage: %v", damage)
				case repaired:
					wantErr(t, damage, ErrDamaged, d.words)
					if kept != path+".bad" || !bytes.Equal(readAll(t, kept), content) {
						t.Errorf("%q does not hold what was there", kept)
					}
				}
				wantPending(t, pendingIn(t, f), d.pending, d.problems, d.cut)
				testkit.OK(t, f.Close())
			}
			if d.open != nil && !errors.Is(d.open, ErrDamaged) {
				return
			}
			// What can be delivered is, and then the file is as new.
			f := mustOpen(t, path, Options{Geometry: small})
			var out bytes.Buffer
			r, err := Recover(f, &out, nil)
			if err != nil || out.String() != d.pending || (len(r.Problems) == 0) != (d.problems == 0) || r.CutLines != uint64(d.cut) {
				t.Errorf("Recover: %+v, %v, %q", r, err, out.String())
			}
			f = reopen(t, f, small)
			wantText(t, f, "")
			if !bytes.Equal(f.table, f.free) {
				t.Errorf("descriptors %x", f.table)
			}
			fillSlab(f, 2, f.LastSeq()+1, "new\n")
			f = reopen(t, f, small)
			wantText(t, f, "new\n")
		})
	}
	for _, d := range damages { // each is told by its words
		if d.open == nil && (d.words == "") != (d.problems == 0) {
			t.Errorf("%s: %d problems, words %q", d.name, d.problems, d.words)
		}
	}
}

func wantPending(t *testing.T, batches []Batch, want string, problems, lines int) {
	t.Helper()
	if got := text(batches); got != want {
		t.Errorf("pending is %q, want %q", got, want)
	}
	for _, b := range batches {
		if lines -= b.CutLines; b.Problem != nil {
			wantErr(t, b.Problem, ErrDamaged)
			problems--
		} else if b.Cut > 0 || b.CutLines > 0 {
			t.Errorf("%+v has no problem", b)
		}
	}
	if problems != 0 || lines != 0 {
		t.Errorf("%d problems and %d lost lines too few: %+v", problems, lines, batches)
	}
}

// A slab with a checksum may hold zero bytes of its own. Without one they cannot
// be told from what a hole has left.
func TestZeroBytes(t *testing.T) {
	f := create(t, small)
	for i, sealed := range []bool{true, false} {
		fillSlab(f, i, uint64(i+1), "a\x00b\nc\n")
		if sealed {
			seal(f, i, "a\x00b\nc\n")
		}
	}
	f = reopen(t, f, small)
	wantPending(t, pendingIn(t, f), "a\x00b\nc\nc\n", 1, 1)
	f = reopen(t, f, small)
	wantPending(t, pendingIn(t, f), "a\x00b\nc\nc\n", 1, 1)
}

// What a process finds sound and does not deliver, the next one finds with a
// checksum.
func TestPendingSeals(t *testing.T) {
	f := create(t, small)
	fillSlab(f, 0, 1, "one\ntwo\n")
	f = reopen(t, f, small)
	wantText(t, f, "one\ntwo\n")
	mem, _ := f.Slab(0)
	mem[1] = 'x'
	f = reopen(t, f, small)
	wantPending(t, pendingIn(t, f), "oxe\ntwo\n", 1, 0)
}

// The name of a copy is one that nothing has.
func TestCopies(t *testing.T) {
	sound := image(t)
	path := filepath.Join(t.TempDir(), "slabs")
	for i, want := range []string{".bad", ".bad-2", ".bad-3"} {
		content := sound[:5000+i]
		testkit.OK(t, os.WriteFile(path, content, 0o600))
		f := mustOpen(t, path, Options{Geometry: small})
		if kept, _ := f.Damage(); kept != path+want || !bytes.Equal(readAll(t, kept), content) {
			t.Errorf("kept as %s, want %s", kept, want)
		}
		f.Close()
	}
}

func TestOpenRefuses(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "slabs")
	own := Options{Geometry: small}

	_, err := Open(file, Options{})
	wantErr(t, err, fs.ErrNotExist, file)
	_, err = Open(filepath.Join(dir, "no folder", "slabs"), own)
	wantErr(t, err, fs.ErrNotExist)
	_, err = Open(dir, Options{ReadOnly: true})
	wantErr(t, err, ErrForeign, "no regular file")
	testkit.OK(t, syscall.Mkfifo(filepath.Join(dir, "pipe"), 0o600))
	_, err = Open(filepath.Join(dir, "pipe"), own)
	wantErr(t, err, ErrForeign, "no regular file")

	f := mustOpen(t, file, own)
	if info, err := os.Stat(file); err != nil || info.Mode() != 0o600 {
		t.Errorf("mode %v, %v", info.Mode(), err)
	}
	testkit.OK(t, os.Symlink(file, filepath.Join(dir, "link")))
	_, err = Open(filepath.Join(dir, "link"), own)
	wantErr(t, err, ErrForeign, "symbolic link")
	for _, o := range []Options{own, {}, {ReadOnly: true}} {
		_, err = Open(file, o)
		wantErr(t, err, ErrLocked, file, "in use by process "+strconv.Itoa(os.Getpid()))
	}
	f.Close()
	testkit.OK(t, os.Chmod(file, 0o640))
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
	f := mustOpen(t, path, Options{Geometry: g})
	fillSlab(f, 0, 1, "one\n")
	f.Close()
	content := readAll(t, path)
	testkit.OK(t, os.Remove(path))
	sparse, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
	testkit.OK(t, err)
	defer sparse.Close()
	for at := 0; at < len(content); at += 4096 {
		if part := content[at : at+4096]; !bytes.Equal(part, make([]byte, 4096)) {
			if _, err := sparse.WriteAt(part, int64(at)); err != nil {
				t.Fatal(err)
			}
		}
	}
	testkit.OK(t, sparse.Truncate(int64(len(content))))
	blocks := func() int64 {
		var st syscall.Stat_t
		testkit.OK(t, syscall.Stat(path, &st))
		return int64(st.Blocks) * 512
	}
	if got := blocks(); got > 1<<20 {
		t.Skipf("this file system makes no holes: %d bytes", got)
	}
	f = mustOpen(t, path, Options{Geometry: g})
	if got := blocks(); got < g.mapped() {
		t.Errorf("%d bytes are on the disk, want all %d", got, g.mapped())
	}
	wantText(t, f, "one\n")

	// The same where the file system has no call for it.
	testkit.OK(t, sparse.Truncate(0))
	if _, err := sparse.WriteAt([]byte("kept"), 5000); err != nil {
		t.Fatal(err)
	}
	testkit.OK(t, fill(sparse, 600_000))
	b := make([]byte, 600_001)
	n, err := sparse.ReadAt(b, 0)
	if n != 600_000 || err != io.EOF || string(bytes.Trim(b[:n], "\x00")) != "kept" || blocks() < 600_000 {
		t.Errorf("%d bytes, %v, %d on the disk", n, err, blocks())
	}
}
