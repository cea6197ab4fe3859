package rollwaytest

import (
	"errors"
	"io"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

func TestDestinationFaults(t *testing.T) {
	d := new(Destination)
	boom := errors.New("boom")
	d.Next(Fault{Take: 2}, Fault{Take: 100, Err: boom}, Fault{Take: -1, Err: boom})
	d.FailTimes(1)
	for i, want := range []struct {
		n   int
		err error
	}{{2, nil}, {3, boom}, {0, boom}, {0, ErrFault}, {3, nil}} {
		if n, err := d.Write([]byte("ab\n")); n != want.n || err != want.err {
			t.Errorf("Write %d = %d, %v, want %d, %v", i+1, n, err, want.n, want.err)
		}
	}
	if got := string(d.Bytes()); got != "abab\nab\n" {
		t.Errorf("Bytes = %q", got)
	}
	if got := d.Lines(); !slices.Equal(got, []string{"abab", "ab"}) {
		t.Errorf("Lines = %q", got)
	}
	if got := d.Writes(); !slices.Equal(got, []string{"ab", "ab\n", "ab\n"}) {
		t.Errorf("Writes = %q", got)
	}
	if d.Calls() != 5 {
		t.Errorf("Calls = %d, want 5", d.Calls())
	}

	d.Fail(nil)
	for range 3 {
		if n, err := d.Write([]byte("x")); n != 0 || err != ErrFault {
			t.Errorf("Write after Fail = %d, %v, want 0, ErrFault", n, err)
		}
	}
	d.FailSync(boom)
	d.FailClose(boom)
	if err := d.Sync(); err != boom {
		t.Errorf("Sync = %v, want boom", err)
	}
	if err := d.Close(); err != boom {
		t.Errorf("Close = %v, want boom", err)
	}
	d.Heal()
	if n, err := d.Write([]byte("x")); n != 0 || err != io.ErrClosedPipe {
		t.Errorf("Write after Close = %d, %v, want 0, io.ErrClosedPipe", n, err)
	}
	if err := d.Sync(); err != nil || d.Syncs() != 2 || d.Closes() != 1 || d.Overlaps() != 0 {
		t.Errorf("Sync = %v, Syncs = %d, Closes = %d, Overlaps = %d, want nil, 2, 1, 0", err, d.Syncs(), d.Closes(), d.Overlaps())
	}
}

func TestDestinationPanics(t *testing.T) {
	d := new(Destination)
	d.Next(Fault{Take: 1, Panic: "bang"})
	func() {
		defer func() {
			if v := recover(); v != "bang" {
				t.Errorf("recovered %v, want bang", v)
			}
		}()
		d.Write([]byte("ab"))
	}()
	if got := string(d.Bytes()); got != "a" {
		t.Errorf("Bytes = %q, want what was taken before the panic", got)
	}
	if n, err := d.Write([]byte("b\n")); n != 2 || err != nil {
		t.Errorf("Write after a panic = %d, %v", n, err)
	}
	if d.Overlaps() != 0 {
		t.Errorf("Overlaps = %d, want 0", d.Overlaps())
	}
}

func TestDestinationEndsTheGoroutine(t *testing.T) {
	d := new(Destination)
	d.Next(Fault{Take: 1, Exit: true})
	returned := false
	var wg sync.WaitGroup
	wg.Go(func() {
		d.Write([]byte("ab"))
		returned = true
	})
	wg.Wait()
	if returned || string(d.Bytes()) != "a" {
		t.Errorf("Write returned: %v, Bytes = %q, want it to end the goroutine after one byte", returned, d.Bytes())
	}
	if n, err := d.Write([]byte("b\n")); n != 2 || err != nil {
		t.Errorf("Write after it = %d, %v", n, err)
	}
}

func TestDestinationStalls(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := new(Destination)
		d.Stall()
		d.StallClose()
		done := make(chan time.Time, 2)
		go func() {
			d.Write([]byte("one\n"))
			done <- time.Now()
			d.Close()
			done <- time.Now()
		}()
		time.Sleep(time.Minute)
		if len(d.Bytes()) != 0 || d.Calls() != 1 {
			t.Errorf("a stalled Write took %q in %d calls", d.Bytes(), d.Calls())
		}
		go d.Sync()
		synctest.Wait()
		if d.Overlaps() != 1 {
			t.Errorf("Overlaps = %d, want 1 for a Sync amid a Write", d.Overlaps())
		}
		healed := time.Now()
		d.Heal()
		for range 2 {
			if at := <-done; at != healed {
				t.Errorf("a stalled call returned at %v, want %v", at, healed)
			}
		}
		if got := d.Lines(); !slices.Equal(got, []string{"one"}) {
			t.Errorf("Lines = %q", got)
		}
	})
}
