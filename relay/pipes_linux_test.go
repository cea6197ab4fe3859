package relay

import (
	"testing"

	"golang.org/x/sys/unix"
)

// Of many pipes the first ones are large, and it is large ones that are lent
// while there are some.
func TestPipeSizes(t *testing.T) {
	noLeak(t)
	p := pipes{max: maxLargePipes + 8}
	var lent []*pipe
	large := 0
	for range p.max {
		one := p.get()
		if one == nil {
			t.Fatal("no pipe")
		}
		lent = append(lent, one)
		if one.large {
			large++
		}
		if got, err := unix.FcntlInt(uintptr(one.r), unix.F_GETPIPE_SZ, 0); err != nil || got < 4096 {
			t.Errorf("a pipe holds %d bytes, %v", got, err)
		}
	}
	if large != maxLargePipes || p.get() != nil {
		t.Errorf("%d pipes are large of %d", large, p.max)
	}
	for _, one := range lent {
		p.put(one)
	}
	p.trim() // notes that all are free now
	lent = lent[:0]
	for i := range maxLargePipes {
		one := p.get()
		if lent = append(lent, one); !one.large {
			t.Errorf("pipe %d is a small one", i)
		}
	}
	p.trim() // the small ones were not needed
	if open, _ := p.count(); open != maxLargePipes {
		t.Errorf("%d pipes are left, want the %d in use", open, maxLargePipes)
	}
	if next := p.get(); next.large {
		t.Error("there are more large ones than there should be")
	} else {
		p.put(next)
	}
	p.discard(lent[0])
	p.close()
	for _, one := range lent[1:] {
		p.put(one)
	}
	if open, lent := p.count(); open != 0 || lent != 0 || p.large != 0 {
		t.Errorf("%d pipes are open, %d lent, %d large", open, lent, p.large)
	}
}
