//go:build linux || darwin

package slab_test

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/rollway/rollway/internal/testkit"
	"github.com/rollway/rollway/rollwaytest"
	"github.com/rollway/rollway/slab"
)

const damagePerSlab, damageSlabs = 7, 4

// leftSlabs returns the content of a file in which a Writer has left four slabs
// of seven lines each, and the options that it had.
func leftSlabs(t *testing.T) ([]byte, slab.Options) {
	t.Helper()
	o := slab.Options{SlabSize: 512, SlabCount: 6, Persist: inMemory(t), CloseTimeout: time.Millisecond, OnError: func(error) {}}
	dst := new(rollwaytest.Destination)
	dst.Fail(nil)
	w, err := slab.New(dst, o)
	testkit.OK(t, err)
	for i := range damageSlabs * damagePerSlab {
		if _, err := w.Write(damageLine(i)); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err == nil {
		t.Fatal("the lines are delivered")
	}
	awaitFree(t, o.Persist)
	content, err := os.ReadFile(o.Persist)
	testkit.OK(t, err)
	return content, o
}

// awaitFree returns when no Writer has the file any more: Close does not wait for
// a Write of the destination that is under way when its time is over.
func awaitFree(t *testing.T, path string) {
	t.Helper()
	f, err := os.OpenFile(path, os.O_RDWR, 0)
	testkit.OK(t, err)
	defer f.Close()
	for end := time.Now().Add(time.Minute); ; time.Sleep(time.Millisecond) {
		if err = syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err == nil {
			return
		}
		if time.Now().After(end) {
			t.Fatalf("the file is in use: %v", err)
		}
	}
}

// damageLine has 70 bytes: seven fill a slab of 512.
func damageLine(i int) []byte { return fmt.Appendf(nil, "%02d %s\n", i, strings.Repeat("x", 66)) }

// A bit of each byte of the header and of the descriptors in use is turned: New takes
// the file, unless it was in the magic number. The lines of other slabs are delivered,
// whole and in order, and the notes tell of the damage if a line is not. Damage of the
// header loses nothing.
func TestDamagedFileIsSetAside(t *testing.T) {
	sound, o := leftSlabs(t)
	const header, descriptor = 4096, 64
	for at := 0; at < header+6*descriptor; at++ {
		if at >= 180 && at < header { // the owner's name, and nothing
			continue
		}
		content := bytes.Clone(sound)
		content[at] ^= 1 << (at % 8)
		testkit.OK(t, os.WriteFile(o.Persist, content, 0o600))
		var notes reports
		dst := new(rollwaytest.Destination)
		o := o
		o.OnError = notes.add
		o.CloseTimeout = time.Minute
		w, err := slab.New(dst, o)
		if at < 8 { // the magic
			kept, _ := os.ReadFile(o.Persist)
			if err == nil || !strings.Contains(err.Error(), "not a file of slabs") || !bytes.Equal(kept, content) {
				t.Errorf("byte %d: %v", at, err)
			}
			continue
		}
		if err != nil {
			t.Fatalf("byte %d: %v", at, err)
		}
		if _, err := w.Write([]byte("new\n")); err != nil {
			t.Fatal(err)
		}
		if err := w.Close(); err != nil {
			t.Fatalf("byte %d: %v", at, err)
		}
		s := w.Stats()
		if s.SetAside != "" {
			notes.await(t, "recovered") // the last one
		}
		told := notes.String()
		found := map[string]bool{}
		for line := range strings.Lines(string(dst.Bytes())) {
			if found[line] {
				t.Errorf("byte %d: line %.10q twice", at, line)
			}
			found[line] = true
		}
		for line := range found {
			if isNotice(line) {
				delete(found, line)
			}
		}
		if s.Recovered+1 != uint64(len(found)) || s.Accepted != s.Written+s.Dropped.Damaged || s.Pending != 0 {
			t.Errorf("byte %d: %d lines found, Stats %+v", at, len(found), s)
		}
		lost := map[int]int{} // by slab
		for i := range damageSlabs * damagePerSlab {
			if !found[string(damageLine(i))] {
				lost[i/damagePerSlab]++
			}
			delete(found, string(damageLine(i)))
		}
		if delete(found, "new\n"); len(found) > 0 {
			t.Errorf("byte %d: lines that nobody wrote: %v", at, found)
		}
		if at < header && len(lost) > 0 || len(lost) > 1 {
			t.Errorf("byte %d: lines lost by slab: %v; told %q", at, lost, told)
		}
		if len(lost) > 0 && told == "" && at%descriptor >= 8 { // a bit more or less in a sequence number or what is delivered
			t.Errorf("byte %d: lines lost by slab: %v, and nobody told", at, lost)
		}
		if at < 104 || strings.Contains(told, "damaged") {
			kept, err := os.ReadFile(s.SetAside)
			if err != nil || len(kept) != len(content) || s.SetAside != o.Persist+".bad" {
				t.Errorf("byte %d: kept as %q, %d bytes, %v; told %q", at, s.SetAside, len(kept), err, told)
			}
			os.Remove(s.SetAside)
		} else if s.SetAside != "" {
			t.Errorf("byte %d: set aside as %s, and nobody told: %q", at, s.SetAside, told)
		}
		testkit.OK(t, os.Remove(o.Persist))
	}
}

// A file that a power cut has shortened, or filled with zeros, is taken too.
func TestCutFileIsSetAside(t *testing.T) {
	sound, o := leftSlabs(t)
	o.CloseTimeout = time.Minute
	for _, n := range []int{1, 7, 8, 100, 4095, 4096, 5000, 8192, 8192 + 3*4096 + 100, len(sound) - 1} {
		for _, zeros := range []bool{false, true} {
			content := bytes.Clone(sound[:n])
			if zeros { // the end is there, and the beginning is not
				content = append(make([]byte, n), sound[n:]...)
			}
			testkit.OK(t, os.WriteFile(o.Persist, content, 0o600))
			var notes reports
			o.OnError = notes.add
			dst := new(rollwaytest.Destination)
			w, err := slab.New(dst, o)
			if err != nil {
				if zeros && n < 4096 { // something else begins so too
					continue
				}
				t.Fatalf("%d bytes, zeros %t: %v", n, zeros, err)
			}
			if err := w.Close(); err != nil {
				t.Error(err)
			}
			if told := notes.String(); strings.Contains(told, "slab file damaged") { // as losses are told
				t.Errorf("%d bytes, zeros %t: damaged lines are told twice: %q", n, zeros, told)
			}
			found, notices := lines(dst)
			for _, line := range found {
				if strings.Contains(line, "\x00") || len(line) != 69 {
					t.Errorf("%d bytes, zeros %t: line %q", n, zeros, line)
				}
			}
			s := w.Stats()
			if s.SetAside == "" || s.Recovered != uint64(len(found)) {
				t.Errorf("%d bytes, zeros %t: %+v", n, zeros, s)
			}
			// With the descriptors, what is lost is known to the line, and announced.
			known := n >= 8192 && !zeros || n <= 4096 && zeros
			if lost := damageSlabs*damagePerSlab - len(found); known && (s.Dropped.Damaged != uint64(lost) || len(notices) != min(lost, 1)) {
				t.Errorf("%d bytes, zeros %t: %d lines are lost, notices %q, Stats %+v", n, zeros, lost, notices, s)
			}
			if !zeros && n == 8192+3*4096+100 && s.Recovered != damagePerSlab+1 {
				t.Errorf("%d lines of what was left of the slabs", s.Recovered)
			}
			os.Remove(s.SetAside)
			os.Remove(o.Persist)
		}
	}
	testkit.OK(t, os.WriteFile(o.Persist, []byte("# a shell script\n"), 0o600))
	if _, err := slab.New(io.Discard, o); err == nil || !strings.Contains(err.Error(), "not a file of slabs") {
		t.Errorf("another kind of file: %v", err)
	}
}
