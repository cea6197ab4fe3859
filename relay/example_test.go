package relay_test

import (
	"context"
	"fmt"
	"io"
	"net"

	"github.com/rollway/rollway/relay"
)

// A service says goodbye after the last byte that it is sent, which a client
// that has finished sending still gets.
func Example() {
	service, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		panic(err)
	}
	go func() {
		c, err := service.Accept()
		if err != nil {
			return
		}
		lines, _ := io.ReadAll(c)
		fmt.Fprintf(c, "%d bytes, thank you", len(lines))
		c.Close()
	}()

	r, err := relay.New(relay.Options{To: []string{"tcp://" + service.Addr().String()}})
	if err != nil {
		panic(err)
	}
	l, err := relay.Listen(context.Background(), "tcp://127.0.0.1:0")
	if err != nil {
		panic(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	served := make(chan error)
	go func() { served <- r.Serve(ctx, l) }()

	client, err := net.Dial("tcp", l.Addr().String())
	if err != nil {
		panic(err)
	}
	fmt.Fprint(client, "a line\n")
	client.(*net.TCPConn).CloseWrite()
	answer, _ := io.ReadAll(client)
	client.Close()
	stop()
	fmt.Println(string(answer), <-served)
	s := r.Stats()
	fmt.Println(s.BytesUp, s.BytesDown, s.Closed[relay.ReasonDone])
	// Output:
	// 7 bytes, thank you <nil>
	// 7 18 1
}
