package relay

import (
	"fmt"
	"io"
	"testing"
)

// Small messages take no pipe, before bulk and after it; bulk does.
func TestBulkAloneIsSpliced(t *testing.T) {
	w := newWay(t, road{listen: "tcp://127.0.0.1:0"})
	client, upstream := w.connect()
	up := uint64(0)
	chat := func() {
		t.Helper()
		for range 4 * bulkRounds {
			send(t, client, "a small message")
			receive(t, upstream, "a small message")
			up += uint64(len("a small message"))
		}
		w.moved(up, 0)
	}
	pipes := func() int { return w.relay.Stats().Pipes }
	chat()
	if n := pipes(); n != 0 {
		t.Errorf("small messages took %d pipes", n)
	}
	const size = 16 << 20
	read := make(chan error, 1)
	go func() {
		_, err := io.CopyN(io.Discard, upstream, size)
		read <- err
	}()
	if _, err := client.Write(make([]byte, size)); err != nil {
		t.Fatal(err)
	}
	if err := <-read; err != nil {
		t.Fatal(err)
	}
	up += size
	w.moved(up, 0)
	if pipes() == 0 {
		t.Error("bulk was not spliced")
	}
	chat() // ends the splicing
	eventually(t, func() bool { w.relay.pipes.trim(); return pipes() == 0 }, func() string { return fmt.Sprintf("%d pipes are left", pipes()) })
	chat()
	if n := pipes(); n != 0 {
		t.Errorf("small messages after bulk took %d pipes", n)
	}
}
