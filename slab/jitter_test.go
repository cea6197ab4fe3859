package slab_test

import (
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rollway/rollway/slab"
)

// refusing fails a number of calls and notes when each came.
type refusing struct {
	left int
	at   []time.Time
}

func (d *refusing) Write(p []byte) (int, error) {
	d.at = append(d.at, time.Now())
	if d.left--; d.left < 0 {
		return len(p), nil
	}
	return 0, errors.New("not now")
}

// Writers whose common destination came back do not all come at once: a wait is
// at random between half of what it may be and all of it.
func TestBackoffIsSpread(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const most = time.Second
		dst := &refusing{left: 200}
		w, err := slab.New(dst, slab.Options{Retry: slab.Retry{Min: most, Max: most}, CloseTimeout: time.Hour})
		if err != nil {
			t.Fatal(err)
		}
		put(t, w, "one")
		if err := w.Flush(t.Context()); err != nil {
			t.Fatal(err)
		}
		var quarters [4]int // of the range
		for i := 1; i < len(dst.at); i++ {
			wait := dst.at[i].Sub(dst.at[i-1])
			if wait < most/2 || wait > most {
				t.Fatalf("wait %d took %v, want %v to %v", i, wait, most/2, most)
			}
			quarters[min(3, int((wait-most/2)/(most/8)))]++
		}
		// That one of four is missed in 200 waits has a chance of 4e-25.
		for i, n := range quarters {
			if n == 0 {
				t.Errorf("no wait in quarter %d from %v to %v: %v", i+1, most/2, most, quarters)
			}
		}
		if err := w.Close(); err != nil {
			t.Error(err)
		}
	})
}
