package slab_test

import (
	"bytes"
	"io"
	"testing"

	"github.com/rollway/rollway/rollwaytest"
	"github.com/rollway/rollway/slab"
)

// A front is a front half of a Writer, and whether the destinations of a test
// take several slabs in one call.
type front struct {
	name     string
	shards   int
	vectored bool
}

// fronts checks a rule that holds with either front half.
func fronts(t *testing.T, rule func(t *testing.T, on front)) {
	for _, on := range []front{{name: "locked", shards: 1}, {name: "sharded", shards: 2}} {
		t.Run(on.name, func(t *testing.T) { rule(t, on) })
	}
}

// roads checks a rule that holds with either front half, and in front of
// destinations of either kind.
func roads(t *testing.T, rule func(t *testing.T, on front)) {
	fronts(t, rule)
	for _, on := range []front{{name: "locked, vectored", shards: 1, vectored: true}, {name: "sharded, vectored", shards: 2, vectored: true}} {
		t.Run(on.name, func(t *testing.T) { rule(t, on) })
	}
}

// slabs returns n, or the fewest slabs that there may be.
func (on front) slabs(n int) int { return max(n, 2*on.shards) }

// maxLine returns the longest line of a Writer with slabs of that size that would
// take lines of so many bytes.
func (on front) maxLine(size, most int) int {
	if on.shards > 1 {
		return size
	}
	return most
}

// fit returns o with as many slabs as there have to be, or the default, which take
// lines of that size.
func (on front) fit(o slab.Options, size int) slab.Options {
	if o.SlabCount != 0 {
		o.SlabCount = on.slabs(o.SlabCount)
	}
	if on.shards > 1 {
		o.SlabSize = max(o.SlabSize, size)
		o.MaxLine = o.SlabSize
	}
	return o
}

// options returns o for on.
func (on front) options(o slab.Options) slab.Options {
	o.Shards = on.shards
	if o.Failover != nil {
		o.Failover = on.destination(o.Failover)
	}
	return o
}

// New is slab.New for on.
func (on front) New(dst io.Writer, o slab.Options) (*slab.Writer, error) {
	return slab.New(on.destination(dst), on.options(o))
}

// destination returns dst as one of the kind that on is for.
func (on front) destination(dst io.Writer) io.Writer {
	if d, ok := dst.(*rollwaytest.Destination); ok && on.vectored {
		return vectored{d}
	}
	return dst
}

// vectored is a Destination that takes several buffers in one call, in which its
// faults are as in one Write.
type vectored struct{ *rollwaytest.Destination }

func (v vectored) WriteBuffers(bufs [][]byte, _ uint64) (int64, error) {
	all := bytes.Join(bufs, nil)
	clear(bufs) // it may change the list
	n, err := v.Destination.Write(all)
	return int64(n), err
}

// open starts a Writer in front of a new Destination, and stops it at the end
// of the test.
func (on front) open(t *testing.T, o slab.Options) (*slab.Writer, *rollwaytest.Destination) {
	t.Helper()
	dst := new(rollwaytest.Destination)
	if o.OnError == nil {
		o.OnError = func(error) {} // and not standard error
	}
	w, err := on.New(dst, o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		dst.Heal()
		w.Close()
		if n := dst.Overlaps(); n > 0 {
			t.Errorf("%d calls of the destination came while a Write was under way", n)
		}
	})
	return w, dst
}
