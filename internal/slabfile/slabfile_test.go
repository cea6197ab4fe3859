//go:build linux || darwin

package slabfile

import (
	"bytes"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/rollway/rollway/internal/recordlog"
	"github.com/rollway/rollway/internal/testkit"
)

// The bytes of the format, which a new version has to change.
func TestFormat(t *testing.T) {
	if binary.NativeEndian.Uint16([]byte{1, 0}) != 1 {
		t.Skip("the bytes here are those of a little-endian machine")
	}
	f := create(t, small)
	fillSlab(f, 1, 7, "a line\n")
	seal(f, 1, "a line\n")
	f.Delivered(1, 2)
	f.Mark(1, 3, 0x11, 0x22, 0x33)
	testkit.OK(t, f.BeginLine(2, 9, bytes.Repeat([]byte("x"), 4100)))
	testkit.OK(t, f.Close())
	b := readAll(t, f.path)
	copy(b[16:24], "01234567") // the id
	for _, part := range []struct {
		name string
		got  []byte
		want string
	}{
		{"header", resum(b)[:96], `
				8952 5750 0d0a 1a0a 0100 0000 0000 0000
				3031 3233 3435 3637 0000 0000 0000 0000
				0000 0000 0000 0000 0000 0000 0000 0000
				2000 0000 0000 0000 4685 fb99 2a74 996b
				0403 0201 0000 0000 6400 0000 0000 0000
				0300 0000 0000 0000 8813 0000 0000 0000`},
		{"state", b[96:104], "0100 0000 0000 0000"},
		{"descriptor 0", b[4096:4160], strings.Repeat("00", 60) + "8f2f7802"},
		{"descriptor 1", b[4160:4224], `
				0700 0000 0000 0000 0700 0000 0100 0000
				0200 0000 0000 0000 1100 0000 0000 0000
				2200 0000 0000 0000 3300 0000 0000 0000
				0300 0000 58d5 ed46 697c 3422 a852 444b`},
		{"descriptor 2", b[4224:4288], `
				0900 0000 0000 0000 0410 0000 0100 0000
				0000 0000 0100 0000 0000 0000 0000 0000
				0000 0000 0000 0000 0000 0000 0000 0000
				0000 0000 0000 0000 0000 0000 c1d5 0090`},
		{"slab 1", b[8192+4096:][:8], hex.EncodeToString([]byte("a line\n\x00"))},
		{"line room 2", b[8192+3*4096+2*8192:][:4], "7878 7878"},
	} {
		want := strings.Join(strings.Fields(part.want), "")
		if got := hex.EncodeToString(part.got); got != want {
			t.Errorf("%s:\n got %s\nwant %s", part.name, got, want)
		}
	}
}

func TestWhatIsCommittedIsPending(t *testing.T) {
	f := create(t, small)
	if got := f.LastSeq() + 1; got != 1 {
		t.Fatalf("the first sequence number is %d, want 1", got)
	}
	fillSlab(f, 2, 1, "one\ntwo\n")
	fillSlab(f, 0, 2, "three\n")
	mem, _ := f.Slab(0)
	copy(mem[6:], "four, not comm") // killed here
	f.Begin(1, 3)                   // or here
	f = reopen(t, f, small)
	if got := f.LastSeq(); got < 2 {
		t.Errorf("the last sequence number is %d, want those of what is pending, 1 and 2", got)
	}
	batches := wantText(t, f, "one\ntwo\nthree\n")
	if len(batches) != 2 || batches[0].Slab != 2 || batches[0].Seq != 1 || batches[1].Slab != 0 {
		t.Fatalf("batches %+v", batches)
	}
	if got := mustRecover(t, f); got != "one\ntwo\nthree\n" {
		t.Fatalf("recovered %q", got)
	}
	f = reopen(t, f, small)
	wantText(t, f, "")
	fillSlab(f, 2, 4, "five\n")
	f = reopen(t, f, small)
	wantText(t, f, "five\n")
}

func TestDeliveredIsNotPending(t *testing.T) {
	f := create(t, small)
	fillSlab(f, 0, 1, "one\ntwo\nthree\n")
	f.Delivered(0, 4)
	fillSlab(f, 1, 2, "four\n")
	f.Delivered(1, 5) // killed before it was freed
	fillSlab(f, 2, 3, "five\n")
	f.Free(2)
	f = reopen(t, f, small)
	wantText(t, f, "two\nthree\n")
	// Within a line: the destination of the part is gone, so all of it goes again.
	f.Delivered(0, 6)
	f = reopen(t, f, small)
	b := wantText(t, f, "two\nthree\n")
	if b[0].Start != 4 {
		t.Errorf("start %d", b[0].Start)
	}
}

func TestDoneInParts(t *testing.T) {
	f := create(t, small)
	fillSlab(f, 0, 1, "one\ntwo\nthree\n")
	f.Delivered(0, 4)
	for i, want := range []string{"two\nthree\n", "three\n", ""} {
		f = reopen(t, f, Geometry{})
		batches := wantText(t, f, want)
		if i < 2 {
			testkit.OK(t, f.Done(batches[0], []int{4, 6}[i]))
		}
	}
}

func TestOversizedLine(t *testing.T) {
	f := create(t, small)
	long := strings.Repeat("long ", 990) + "\n"
	size := func() int64 {
		info, err := os.Stat(f.path)
		testkit.OK(t, err)
		return info.Size()
	}
	empty := size()
	for range 2 {
		seq := f.LastSeq() + 1
		fillSlab(f, 0, seq, "before\n")
		testkit.OK(t, f.BeginLine(2, seq+1, []byte(long)))
		fillSlab(f, 1, seq+2, "after\n")
		f = reopen(t, f, small)
		wantText(t, f, "before\n"+long+"after\n")
		if size() <= empty {
			t.Errorf("the file has %d bytes with a line and %d without", size(), empty)
		}
		mustRecover(t, f)
		if size() != empty {
			t.Errorf("the file has %d bytes and had %d before the line", size(), empty)
		}
	}
	// Freed by the process that began it.
	for i := range 2 {
		testkit.OK(t, f.BeginLine(i, f.LastSeq()+1, []byte(long)))
	}
	f.Free(1)
	if got := pendingIn(t, f); len(got) != 1 || string(got[0].Data) != long {
		t.Errorf("one of two freed: %d pending", len(got))
	}
	f.Free(0)
	if size() != empty {
		t.Errorf("the file has %d bytes and had %d before the lines", size(), empty)
	}
	// Too long, or no room for any: an error, and the slab is free.
	if err := f.BeginLine(0, f.LastSeq()+1, make([]byte, 5001)); err == nil {
		t.Error("a line over the limit was taken")
	}
	fillSlab(f, 0, f.LastSeq()+1, "x\n")
	f = reopen(t, f, small)
	wantText(t, f, "x\n")
}

// A kill can come between any two stores. The words of a slab's life are stored
// one by one here, and looked at after each.
func TestKilledBetweenStores(t *testing.T) {
	f := create(t, small)
	fillSlab(f, 0, 5, "one\ntwo\n")
	f.Delivered(0, 4)
	f.Mark(0, 4, 1, 2, 3)
	d := func() []byte { return f.descriptor(0) }
	old := bytes.Clone(d())
	f.Delivered(0, 0)
	f.Mark(0, 0, 101, 102, 103)
	next := bytes.Clone(d())

	// A new mark over an old one.
	words := []int{dVolume, dInode, dOffset}
	for n := range len(words) + 1 {
		copy(d(), old)
		f.store(0, dMark, 0)
		for _, w := range words[:n] {
			copy(d()[w:w+8], next[w:w+8])
		}
		b := pendingIn(t, f)[0]
		if b.HasMark || string(b.Data) != "two\n" {
			t.Errorf("killed after %d words of a mark: it has a mark, %+v", n, b.Mark)
		}
		// Even if the store that takes the old one back had been forgotten.
		copy(d()[dMark:dMark+8], old[dMark:dMark+8])
		if b := pendingIn(t, f)[0]; b.HasMark != (n == 0) {
			t.Errorf("%d words of a mark under the checksum of another: mark %t", n, b.HasMark)
		}
	}

	// A mark whose write is over: delivered has moved.
	copy(d(), old)
	f.Delivered(0, 8)
	if got := pendingIn(t, f); len(got) != 0 {
		t.Errorf("all delivered, pending is %q", text(got))
	}
	copy(d(), next)
	f.Delivered(0, 4)
	if b := pendingIn(t, f)[0]; b.HasMark || string(b.Data) != "two\n" {
		t.Errorf("the mark of a write that is over counts: %+v", b)
	}

	// Freed, and begun anew before or after the rest is cleared.
	for n := 0; n <= descriptorSize; n += 8 {
		copy(d(), old)
		clear(d()[:min(n, dSeal)])
		if n > dSeal {
			copy(d(), f.free)
		}
		copy(f.mem[headerSize:], d())
		g := reopen(t, f, small)
		want := ""
		if n == 0 {
			want = "two\n"
		}
		wantText(t, g, want)
		if n > 0 && !bytes.Equal(g.descriptor(0), g.free[:descriptorSize]) {
			t.Errorf("killed after %d bytes were cleared: the next process finds %x", n, g.descriptor(0))
		}
		f = g
	}
}

func TestGeometryChanges(t *testing.T) {
	f := create(t, small)
	fillSlab(f, 2, 8, "old\n")
	other := Geometry{SlabSize: 64, SlabCount: 2}
	f = reopen(t, f, other)
	if f.Geometry() != small {
		t.Fatalf("geometry %+v while a slab is pending, want the old one", f.Geometry())
	}
	if err := f.Empty(); err == nil {
		t.Fatal("emptied with a pending slab")
	}
	wantText(t, f, "old\n")
	mustRecover(t, f)
	f = reopen(t, f, other)
	if f.Geometry() != other {
		t.Fatalf("geometry %+v with nothing pending", f.Geometry())
	}
	fillSlab(f, 1, 9, "new\n")
	f = reopen(t, f, other)
	if got := mustRecover(t, f); got != "new\n" {
		t.Fatalf("recovered %q", got)
	}
	// With nothing pending Open does it.
	for _, g := range []Geometry{{SlabSize: 1 << 16, SlabCount: 9, LineLimit: 1 << 20}, {SlabSize: 64, SlabCount: 1}} {
		f = reopen(t, f, g)
		wantText(t, f, "")
		if f.Geometry() != g {
			t.Fatalf("geometry %+v, want %+v", f.Geometry(), g)
		}
	}
}

func TestEmptied(t *testing.T) {
	f := create(t, small)
	fillSlab(f, 0, 3, "secret\n")
	f = reopen(t, f, Geometry{})
	mustRecover(t, f)
	testkit.OK(t, f.Empty())
	wantText(t, f, "")
	if b := readAll(t, f.path); len(b) != headerSize || bytes.Contains(b, []byte("secret")) {
		t.Errorf("the file still has %d bytes", len(b))
	}
	f = reopen(t, f, Geometry{})
	if f.Geometry() != (Geometry{}) {
		t.Errorf("geometry %+v in an emptied file", f.Geometry())
	}
	f = reopen(t, f, small)
	if f.Geometry() != small {
		t.Errorf("geometry %+v", f.Geometry())
	}
}

// Whatever interrupts the building of a file, the next process begins anew.
func TestBuildingIsInterrupted(t *testing.T) {
	path := filepath.Join(t.TempDir(), "slabs")
	head := small.header()
	native.PutUint64(head[offState:], stateVoid)
	for _, content := range [][]byte{{}, head, append(bytes.Clone(head), make([]byte, 4096)...), append(bytes.Clone(head), make([]byte, 1<<20)...)} {
		testkit.OK(t, os.WriteFile(path, content, 0o600))
		f := mustOpen(t, path, Options{})
		wantText(t, f, "")
		f = reopen(t, f, small)
		fillSlab(f, 0, f.LastSeq()+1, "x\n")
		f = reopen(t, f, small)
		wantText(t, f, "x\n")
		f.Close()
	}
}

func TestOwner(t *testing.T) {
	before := time.Now()
	f := create(t, small)
	if got := f.Owner(); got.PID != 0 || got.String() != "an unknown process" {
		t.Errorf("a new file has the owner %v", got)
	}
	for _, g := range []Geometry{{}, {}, small} { // recovery leaves the owner as it is
		f = reopen(t, f, g)
		o := f.Owner()
		if o.PID != os.Getpid() || o.Name != filepath.Base(os.Args[0]) || o.Opened.Before(before) || o.Opened.After(time.Now()) {
			t.Errorf("owner %+v", o)
		}
	}
	f.mem[offOwner+recordlog.HeaderSize] ^= 1
	if f = reopen(t, f, small); f.Owner().PID != 0 {
		t.Errorf("a torn owner counts: %v", f.Owner())
	}
	long := Owner{PID: 5, Opened: before, Name: strings.Repeat("payment-api ", 30)}
	if o := parseOwner(long.bytes()); o.Name != long.Name[:maxOwnerName] || o.PID != 5 || !o.Opened.Equal(before) {
		t.Errorf("a long name: %+v", o)
	}
}

func TestReadOnlyChangesNothing(t *testing.T) {
	f := create(t, small)
	fillSlab(f, 0, 1, "one\n")
	fillSlab(f, 1, 2, "two\n")
	f.Free(1)
	f = reopen(t, f, small)
	f.Close()
	before := readAll(t, f.path)
	r := mustOpen(t, f.path, Options{ReadOnly: true})
	wantText(t, r, "one\n")
	_, err := Recover(r, new(bytes.Buffer), nil)
	wantErr(t, err, fs.ErrPermission)
	wantErr(t, r.Empty(), fs.ErrPermission)
	if _, err := Open(f.path, Options{ReadOnly: true}); !errors.Is(err, ErrLocked) {
		t.Errorf("a second reader: %v", err)
	}
	testkit.OK(t, r.Close())
	if !bytes.Equal(before, readAll(t, f.path)) {
		t.Error("the file has changed")
	}
}
