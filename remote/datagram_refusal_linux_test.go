package remote

import (
	"errors"
	"syscall"
	"testing"
)

// A goroutine that comes to listen when the time is up still hears what the
// socket knows by then.
func TestHearsWhenTheTimeIsUp(t *testing.T) {
	w, err := Open("udp://127.0.0.1:1", Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	w.out.(*datagramSender).listens = -1
	if n, err := w.Write([]byte("a line\n")); n != 0 || !errors.Is(err, syscall.ECONNREFUSED) {
		t.Errorf("Write to nobody = %d, %v", n, err)
	}
	if s := w.Stats(); s.Accepted != 0 || s.Returned != 1 || s.Accepted != s.Written+s.Dropped.Total()+s.Pending {
		t.Errorf("Stats = %+v", s)
	}
}
