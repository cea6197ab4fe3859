//go:build linux || darwin

package slabfile

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/rollway/rollway/internal/testkit"
)

// scripted is a destination that answers as it is told.
type scripted struct {
	bytes.Buffer
	writes  int
	write   func(n int, p []byte) (int, error) // nil: takes all
	holds   func(p []byte) (int, error)
	prepare func() error
}

func (d *scripted) Write(p []byte) (int, error) {
	n, err := len(p), error(nil)
	if d.write != nil {
		n, err = d.write(d.writes, p)
	}
	d.writes++
	d.Buffer.Write(p[:min(max(n, 0), len(p))])
	return n, err
}

// positioned is scripted with positions.
type positioned struct{ *scripted }

func (d positioned) Prepare(int) (uint64, uint64, int64, error) {
	if d.prepare != nil {
		if err := d.prepare(); err != nil {
			return 0, 0, 0, err
		}
	}
	return 1, 2, int64(d.Len()), nil
}

func (d positioned) Holds(volume, inode uint64, offset int64, p []byte) (int, error) {
	if d.holds != nil {
		return d.holds(p)
	}
	rest := d.Bytes()[min(offset, int64(d.Len())):]
	n := 0
	for n < len(p) && n < len(rest) && p[n] == rest[n] {
		n++
	}
	return n, nil
}

var errDisk = errors.New("the disk is gone")

func TestRecoverWhenTheDestinationFails(t *testing.T) {
	const all = "one\ntwo\nthree\n"
	for _, tt := range []struct {
		name  string
		write func(n int, p []byte) (int, error)
		err   string // "": none
		got   string // after the first Recover
	}{
		{"takes all", nil, "", all},
		{"short, without an error", func(n int, p []byte) (int, error) { return min(5, len(p)), nil }, "", all},
		{"short, with one", func(n int, p []byte) (int, error) { return 4, errDisk }, "", all},
		{"fails at once", func(int, []byte) (int, error) { return 0, errDisk }, "the disk is gone", ""},
		{"takes nothing and says nothing", func(int, []byte) (int, error) { return 0, nil }, "short write", ""},
		{"fails on the way", func(n int, p []byte) (int, error) { return 4 * (1 - min(n, 1)), errDisk }, "the disk is gone", "one\n"},
		{"fails with the second slab", func(n int, p []byte) (int, error) {
			if n == 1 {
				return 0, errDisk
			}
			return len(p), nil
		}, "the disk is gone", "one\ntwo\n"},
		{"has taken all, and yet fails", func(n int, p []byte) (int, error) { return len(p), errDisk }, "", all},
		{"counts wrongly", func(n int, p []byte) (int, error) { return len(p) + 5, nil }, "", all},
		{"counts below zero", func(n int, p []byte) (int, error) { return -1, nil }, "short write", ""},
		{"panics", func(int, []byte) (int, error) { panic("oh") }, "panicked in Write: oh", ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			for _, exact := range []bool{false, true} {
				f := create(t, small)
				fillSlab(f, 1, 1, "one\ntwo\n")
				fillSlab(f, 0, 2, "three\n")
				f = reopen(t, f, Geometry{})
				dst := &scripted{write: tt.write}
				var w io.Writer = dst
				if exact {
					w = positioned{dst}
				}
				first, err := Recover(f, w, nil)
				if tt.err == "" && err != nil || tt.err != "" && (err == nil || !strings.Contains(err.Error(), tt.err)) {
					t.Fatalf("error %v, want %q", err, tt.err)
				}
				if len(first.Problems) > 0 || dst.String() != tt.got {
					t.Fatalf("%+v, delivered %q, want %q", first, dst.String(), tt.got)
				}
				// Another process goes on where this one ended.
				f = reopen(t, f, Geometry{})
				dst.write = nil
				second, err := Recover(f, w, nil)
				if err != nil || len(second.Problems) > 0 || dst.String() != all {
					t.Fatalf("second: %+v, %v, %q", second, err, dst.String())
				}
				if first.Lines+second.Lines != 3 || first.Bytes+second.Bytes != uint64(len(all)) || first.Held+second.Held != 0 {
					t.Errorf("counts %+v and %+v", first, second)
				}
			}
		})
	}
}

// The write of slab 0 was marked, and n bytes of it had reached the destination
// when the process was killed.
func TestRecoverSkipsWhatIsThere(t *testing.T) {
	const before, data = "before\n", "one\ntwo\nthree\n"
	for n := range len(data) + 1 {
		for _, done := range []int{0, 4} { // delivered when that write began
			if n < done {
				continue
			}
			f := create(t, small)
			fillSlab(f, 0, 1, data)
			dst := positioned{&scripted{}}
			dst.WriteString(before + data[:done])
			f.Delivered(0, done)
			f.Mark(0, done, 1, 2, int64(dst.Len()))
			dst.WriteString(data[done:n])
			whole := strings.LastIndexByte(data[:n], '\n') + 1
			dst.Truncate(len(before) + whole) // as file.Open cuts a torn line

			f = reopen(t, f, small)
			r, err := Recover(f, dst, nil)
			if err != nil || len(r.Problems) > 0 || dst.String() != before+data {
				t.Fatalf("%d of the bytes were there: %+v, %v, %q", n, r, err, dst.String())
			}
			if r.Held != uint64(whole-done) || r.Bytes != uint64(len(data)-whole) || r.Lines+r.HeldLines != uint64(strings.Count(data[done:], "\n")) {
				t.Errorf("%d of the bytes were there, %d done: %+v", n, done, r)
			}
		}
	}
}

// A mark is of one write. When it is over the destination is not asked, or it
// would find equal lines and take them for these.
func TestMarkOfAWriteThatIsOver(t *testing.T) {
	f := create(t, small)
	fillSlab(f, 0, 1, "same\nsame\nsame\n")
	f.Mark(0, 0, 1, 2, 0)
	f.Delivered(0, 5)
	f = reopen(t, f, small)
	dst := positioned{&scripted{}}
	dst.WriteString("same\n")
	if r, err := Recover(f, dst, nil); err != nil || r.Held != 0 || r.Lines != 2 || dst.String() != "same\nsame\nsame\n" {
		t.Errorf("%+v, %v, %q", r, err, dst.String())
	}
}

func TestHoldsThatFails(t *testing.T) {
	for name, holds := range map[string]func(p []byte) (int, error){
		"error":      func(p []byte) (int, error) { return 4, errDisk },
		"panic":      func(p []byte) (int, error) { panic("oh") },
		"too many":   func(p []byte) (int, error) { return len(p) + 1, nil },
		"below zero": func(p []byte) (int, error) { return -1, nil },
		"torn":       func(p []byte) (int, error) { return 6, nil },
	} {
		t.Run(name, func(t *testing.T) {
			f := create(t, small)
			fillSlab(f, 0, 1, "one\ntwo\n")
			f.Mark(0, 0, 1, 2, 0)
			f = reopen(t, f, small)
			dst := positioned{&scripted{holds: holds}}
			r, err := Recover(f, dst, nil)
			testkit.OK(t, err)
			want := map[string]string{"too many": "", "torn": "two\n"}
			if text, ok := want[name]; !ok && dst.String() != "one\ntwo\n" || ok && dst.String() != text {
				t.Errorf("delivered %q", dst.String())
			}
			if failed := name == "error" || name == "panic"; (len(r.Problems) > 0) != failed {
				t.Errorf("%+v", r)
			}
		})
	}
}

// A process that recovers is killed where it asks the destination for the place of
// the next Write: what the destination has by then, of this process and of the one
// before, is not written again.
func TestKilledBeforeTheNextWrite(t *testing.T) {
	const data = "one\ntwo\nthree\nfour\n"
	f := create(t, small)
	fillSlab(f, 0, 1, data)
	f.Mark(0, 0, 1, 2, 0)
	dst := positioned{&scripted{}}
	dst.WriteString("one\n") // of the Write that was marked
	f = reopen(t, f, small)

	type moment struct{ slabs, written []byte }
	var kills []moment
	dst.prepare = func() error {
		kills = append(kills, moment{readAll(t, f.path), bytes.Clone(dst.Bytes())})
		return nil
	}
	dst.write = func(_ int, p []byte) (int, error) { return bytes.IndexByte(p, '\n') + 1, io.ErrShortWrite }
	if r, err := Recover(f, dst, nil); err != nil || len(r.Problems) > 0 || dst.String() != data || len(kills) != 3 {
		t.Fatalf("%+v, %v, %q after %d calls of Prepare", r, err, dst.String(), len(kills))
	}
	for _, k := range kills {
		path := filepath.Join(t.TempDir(), "slabs")
		if err := os.WriteFile(path, k.slabs, 0o600); err != nil {
			t.Fatal(err)
		}
		next := positioned{&scripted{}}
		next.Buffer.Write(k.written)
		if r, err := Recover(mustOpen(t, path, Options{Geometry: small}), next, nil); err != nil || next.String() != data {
			t.Errorf("killed when %q was written: %+v, %v, %q", k.written, r, err, next.String())
		}
	}
}

func TestPrepareThatFails(t *testing.T) {
	f := create(t, small)
	fillSlab(f, 0, 1, "one\n")
	dst := positioned{&scripted{prepare: func() error { return errDisk }}}
	if _, err := Recover(f, dst, nil); !errors.Is(err, errDisk) {
		t.Fatalf("error %v", err)
	}
	dst.prepare = func() error { panic("oh") }
	if _, err := Recover(f, dst, nil); err == nil || !strings.Contains(err.Error(), "panicked in Prepare: oh") {
		t.Fatalf("error %v", err)
	}
	dst.prepare = nil
	if r, err := Recover(f, dst, nil); err != nil || len(r.Problems) > 0 || dst.String() != "one\n" {
		t.Fatalf("%+v, %v, %q", r, err, dst.String())
	}
}

// A slab that cannot be read: an error, and it stays pending.
func TestRecoverStopsAtWhatCannotBeRead(t *testing.T) {
	f := create(t, small)
	fillSlab(f, 0, 1, "one\n")
	keep := f.file
	gone, err := os.Create(filepath.Join(t.TempDir(), "gone"))
	testkit.OK(t, err)
	gone.Close()
	f.file = gone
	var out bytes.Buffer
	r, err := Recover(f, &out, nil)
	f.file = keep
	if !errors.Is(err, os.ErrClosed) || out.Len() > 0 {
		t.Errorf("%+v, %v, %q", r, err, out.String())
	}
	if r, err = Recover(f, &out, nil); err != nil || len(r.Problems) > 0 || r.Lines != 1 {
		t.Errorf("%+v, %v", r, err)
	}
}

// Slabs that were written stay pending until the destination confirms them. A
// Positioner that is asked again has them.
func TestRecoverConfirmed(t *testing.T) {
	const all = "one\ntwo\nthree\n"
	refuse := func() error { return errDisk }
	panics := func() error { panic("oh") }
	confirm := func() error { return nil }
	for _, tt := range []struct {
		name          string
		write         func(n int, p []byte) (int, error)
		confirm       func() error
		written       string // by the first Recover
		left          string // after it
		plain, second string // all that dst has after a second one: any, and a Positioner
	}{
		{"all", nil, confirm, all, "", all, all},
		{"nothing", nil, refuse, all, all, all + all, all},
		{"a panic", nil, panics, all, all, all + all, all},
		{"the first slab", func(n int, p []byte) (int, error) {
			if n == 1 {
				return 0, errDisk
			}
			return len(p), nil
		}, confirm, "one\ntwo\n", "three\n", all, all},
		{"part of the first slab", func(n int, p []byte) (int, error) { return 4 * (1 - min(n, 1)), errDisk }, confirm, "one\n", "two\nthree\n", all, all},
		{"not even that", func(n int, p []byte) (int, error) { return 4 * (1 - min(n, 1)), errDisk }, refuse, "one\n", all, "one\n" + all, all},
		{"nothing written", func(int, []byte) (int, error) { return 0, errDisk }, panics, "", all, all, all},
	} {
		t.Run(tt.name, func(t *testing.T) {
			for _, exact := range []bool{false, true} {
				f := create(t, small)
				fillSlab(f, 1, 1, "one\ntwo\n")
				fillSlab(f, 0, 2, "three\n")
				f = reopen(t, f, Geometry{})
				dst := &scripted{write: tt.write}
				var w io.Writer = dst
				want, left := tt.plain, tt.left
				if exact {
					w, want = positioned{dst}, tt.second
				}
				r, err := Recover(f, w, tt.confirm)
				if len(r.Problems) > 0 || (err == nil) != (tt.left == "") || dst.String() != tt.written {
					t.Fatalf("%+v, %v, written %q", r, err, dst.String())
				}
				f = reopen(t, f, Geometry{})
				if got := text(pendingIn(t, f)); got != left && !(exact && tt.name == "not even that") {
					t.Fatalf("%q is left, want %q", got, left)
				}
				dst.write = nil
				if r, err = Recover(f, w, confirm); err != nil || len(r.Problems) > 0 || dst.String() != want {
					t.Fatalf("second: %+v, %v, %q, want %q", r, err, dst.String(), want)
				}
				wantText(t, f, "")
			}
		})
	}
}

// A pipe has no positions: it gets the lines all the same.
func TestDestinationWithoutPositions(t *testing.T) {
	f := create(t, small)
	fillSlab(f, 0, 1, "one\n")
	f.Mark(0, 0, 1, 2, 3)
	dst := positioned{&scripted{prepare: func() error { return fmt.Errorf("a pipe: %w", errors.ErrUnsupported) }}}
	dst.write = func(int, []byte) (int, error) { return 0, errDisk }
	if _, err := Recover(f, dst, nil); !errors.Is(err, errDisk) {
		t.Fatal(err)
	}
	if b := wantText(t, f, "one\n")[0]; b.HasMark {
		t.Errorf("the mark of an earlier Write is left: %+v", b.Mark)
	}
	dst.write = nil
	if r, err := Recover(f, dst, nil); err != nil || len(r.Problems) > 0 || dst.String() != "one\n" {
		t.Fatalf("%+v, %v, %q", r, err, dst.String())
	}
}
