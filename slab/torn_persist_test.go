//go:build linux || darwin

package slab_test

import (
	"bytes"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/rollway/rollway/internal/testkit"
	"github.com/rollway/rollway/rollwaytest"
	"github.com/rollway/rollway/slab"
)

// A destination takes a part of a line and then nothing for so long that the
// rest of the slab is given up. The line is still in the file: the next Writer
// writes it whole, and nothing that was counted as dropped.
func TestPersistKeepsLineThatWasGivenUpWithin(t *testing.T) {
	for _, c := range []struct {
		name string
		size int // of the line
		take int // bytes that the destination takes
		left string
	}{
		{"first line", 60, 5, numbered(0, 60)},
		{"second line", 60, 61 + 7, numbered(1, 60)},
		{"last byte", 60, 60, numbered(0, 60)},
		{"oversized", 900, 5, numbered(0, 900)},
	} {
		for _, kill := range []bool{false, true} {
			t.Run(c.name+map[bool]string{false: ", closed", true: ", killed"}[kill], func(t *testing.T) {
				o := slab.Options{
					SlabSize: 256, SlabCount: 4, Persist: inMemory(t), CloseTimeout: 200 * time.Millisecond, FlushInterval: 20 * time.Millisecond,
					GiveUp: 50 * time.Millisecond, OnError: func(error) {},
				}
				dst := new(rollwaytest.Destination)
				dst.Next(rollwaytest.Fault{Take: c.take})
				dst.Fail(nil)
				w, err := slab.New(dst, o)
				testkit.OK(t, err)
				defer func() {
					dst.Heal()
					w.Close()
				}()
				put(t, w, strings.TrimSuffix(numbered(0, c.size)+"\n"+numbered(1, 60)+"\n"+numbered(2, 60), "\n"))
				for end := time.Now().Add(time.Minute); ; time.Sleep(time.Millisecond) {
					// What follows an oversized line is in a slab of its own.
					if s := w.Stats(); s.Pending == 1 && s.Dropped.GaveUp > 0 {
						break
					}
					if time.Now().After(end) {
						t.Fatalf("not given up: %+v", w.Stats())
					}
				}
				ledger(w).Check(t)
				next := o
				if kill {
					content, err := os.ReadFile(o.Persist)
					testkit.OK(t, err)
					next.Persist = inMemory(t)
					testkit.OK(t, os.WriteFile(next.Persist, content, 0o600))
				} else {
					// The deadline may come while the destination has the line.
					if err := w.Close(); err == nil || !strings.Contains(err.Error(), "lines pending: 1, kept in ") && !strings.Contains(err.Error(), "lines pending: 1, inside the ") {
						t.Errorf("Close = %v", err)
					}
					if s := w.Stats(); s.Pending != 1 || s.Dropped.Shutdown != 0 {
						t.Errorf("Stats after Close: %+v", s)
					}
					ledger(w).Check(t)
				}
				later := new(rollwaytest.Destination)
				var w2 *slab.Writer
				for end := time.Now().Add(time.Minute); w2 == nil; time.Sleep(time.Millisecond) {
					if w2, err = slab.New(later, next); err != nil && (!strings.Contains(err.Error(), "in use") || time.Now().After(end)) {
						t.Fatal(err)
					}
				}
				put(t, w2, "new")
				if err := w2.Close(); err != nil {
					t.Error(err)
				}
				want := []string{c.left, "new"}
				if got := later.Lines(); !slices.Equal(got, want) {
					t.Errorf("the next Writer wrote %.300q, want %.300q", got, want)
				}
				if s := w2.Stats(); s.Recovered != 1 || s.Written != 2 || s.Pending != 0 {
					t.Errorf("Stats of the next %+v", s)
				}
			})
		}
	}
}

// The line that is left of a slab that was given up is dropped at the deadline of
// Close like any other if its file is gone.
func TestPersistLosesLineThatWasGivenUpWithin(t *testing.T) {
	o := slab.Options{
		SlabSize: 256, SlabCount: 4, Persist: inMemory(t), CloseTimeout: 200 * time.Millisecond, FlushInterval: 20 * time.Millisecond,
		GiveUp: 50 * time.Millisecond, OnError: func(error) {},
	}
	dst := new(rollwaytest.Destination)
	dst.Next(rollwaytest.Fault{Take: 5})
	dst.Fail(nil)
	w, err := slab.New(dst, o)
	testkit.OK(t, err)
	put(t, w, strings.TrimSuffix(numbered(0, 60)+"\n"+numbered(1, 60), "\n"))
	await(t, "giving up", func() bool { s := w.Stats(); return s.Pending == 1 && s.Dropped.GaveUp > 0 })
	testkit.OK(t, os.Remove(o.Persist))
	if err := os.Mkdir(o.Persist, 0o700); err != nil { // so that there is no new one
		t.Fatal(err)
	}
	await(t, "word of the loss", func() bool { return w.Stats().PersistError != nil })
	if s := w.Stats(); s.Unkept != 1 {
		t.Errorf("%+v", s)
	}
	if err := w.Close(); err == nil || strings.Contains(err.Error(), "kept in") {
		t.Errorf("Close = %v", err)
	}
	dst.Heal()
	await(t, "the end", func() bool { return w.Stats().Pending == 0 })
	ledger(w).Check(t)
	await(t, "free slabs", func() bool { return w.Stats().SlabsFree == o.SlabCount })
	if s := w.Stats(); s.Dropped.Shutdown+s.Written != 1 {
		t.Errorf("%+v", s)
	}
}

// When the destination takes lines again the kept line goes first, its slab is
// free, and the file holds nothing more.
func TestPersistLetsGoOfLineThatWasGivenUpWithin(t *testing.T) {
	o := slab.Options{
		SlabSize: 256, SlabCount: 3, Persist: inMemory(t), FlushInterval: 20 * time.Millisecond, CloseTimeout: time.Minute,
		Full: slab.Block, GiveUp: 20 * time.Millisecond, OnError: func(error) {},
	}
	dst := new(rollwaytest.Destination)
	dst.Next(rollwaytest.Fault{Take: 5})
	dst.Fail(nil)
	w, err := slab.New(dst, o)
	testkit.OK(t, err)
	const n = 40 // many slabs more than there are
	for i := range n {
		put(t, w, numbered(i, 60))
	}
	dst.Heal()
	put(t, w, "last")
	if err := w.Close(); err == nil || !strings.Contains(err.Error(), "given up") {
		t.Errorf("Close = %v", err)
	}
	s := w.Stats()
	if s.Slabs != s.SlabsFree || s.Pending != 0 || s.Dropped.GaveUp == 0 {
		t.Errorf("Stats %+v", s)
	}
	got, _ := lines(dst)
	if got[0] != numbered(0, 60) || got[len(got)-1] != "last" || uint64(len(got)) != s.Written {
		t.Errorf("%d lines written, the stream is %.200q", s.Written, got)
	}
	ledger(w).Check(t)
	later := new(bytes.Buffer)
	o.GiveUp = 0
	if w, err = slab.New(later, o); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil || later.Len() > 0 {
		t.Errorf("left in the file: %q, %v", later, err)
	}
}
