package receiver

import (
	"testing"

	"github.com/rollway/rollway/collector/admission"
)

// Buffers of an earlier request count while the next one waits for its sender, as
// long as half of the budget is left for who needs it; otherwise it has none.
func TestBuffersOfThePoolCount(t *testing.T) {
	const most, spare = 4 << 20, 512 << 10
	r := newReceiver(t, &memory{}, Options{MaxUnpacked: 1 << 20, InFlight: most})
	with := func() *workspace {
		w := r.get()
		w.buf, w.batch.Lines = make([]byte, 0, spare), make([]byte, 0, spare)
		return w
	}
	small := r.get()
	small.buf = make([]byte, 0, spareBuffers/2)
	if r.chargeSpare(small); small.held != 0 || small.buf == nil {
		t.Errorf("small buffers: %d bytes taken, %v", small.held, small.buf == nil)
	}
	defer r.put(small)
	kept := 0
	for range 10 {
		w := with()
		r.chargeSpare(w)
		defer r.put(w)
		size := int64(cap(w.buf) + cap(w.batch.Lines))
		if size != w.held {
			t.Fatalf("buffers of %d bytes, %d taken", size, w.held)
		}
		if size > 0 {
			kept++
		}
	}
	if used := r.Stats().InFlight; kept != 2 || used != 4*spare {
		t.Errorf("%d requests have buffers of the pool, %d bytes taken; want those of half of the budget, %d", kept, used, most/2)
	}
}

// What is held beside bodies counts in the budget and leaves three quarters of it.
func TestBesideBodies(t *testing.T) {
	const most = 4 << 20
	r := newReceiver(t, &memory{}, Options{MaxUnpacked: 1 << 20, InFlight: most})
	a := r.opts.Admission
	acquire := func(n int64) bool { return a.AcquirePart(admission.Headers, r.nobody, n) }
	if acquire(most/4 + 1) {
		t.Error("more than a quarter is given")
	}
	if !acquire(most/4) || r.Stats().InFlight != most/4 || acquire(1) {
		t.Errorf("%d bytes in flight", r.Stats().InFlight)
	}
	a.ReleasePart(admission.Headers, r.nobody, most/4)
	if !r.memory.Acquire(r.nobody, most) || acquire(1) || a.Resource(admission.Headers).Used() != 0 {
		t.Error("more than the budget is given")
	}
	r.memory.Release(r.nobody, most)
}
