package testkit

import "testing"

var kept any

func TestMallocs(t *testing.T) {
	n := 1000
	if got := Mallocs(func() { n++ }); got != 0 {
		t.Errorf("%d allocations of none", got)
	}
	// Some of the runtime's own may be among them.
	if got := Mallocs(func() {
		for range 100 {
			kept = new([100]int)
		}
		done := make(chan bool)
		go func() { kept = new(int); close(done) }()
		<-done
	}); got < 102 || got > 120 {
		t.Errorf("%d allocations of about 103", got)
	}
	_ = n
}
