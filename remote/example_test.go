package remote_test

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"time"

	"github.com/rollway/rollway/remote"
	"github.com/rollway/rollway/slab"
)

// collector prints what it is sent.
func collector() *httptest.Server {
	return httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		fmt.Printf("%s %s", r.Header.Get("Content-Type"), body)
	}))
}

func Example() {
	server := collector()
	defer server.Close()

	peer, err := remote.Open(server.URL+"/api/logs", remote.Options{})
	if err != nil {
		fmt.Println(err)
		return
	}
	out, err := slab.New(peer, slab.Options{CloseDestination: true})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Fprintln(out, `{"level":"INFO","msg":"charged"}`)
	if err := out.Close(); err != nil {
		fmt.Println(err)
	}
	s := peer.Stats()
	fmt.Println("accepted", s.Accepted, "written", s.Written, "dropped", s.Dropped.Total(), "pending", s.Pending)
	// Output:
	// application/x-ndjson {"level":"INFO","msg":"charged"}
	// accepted 1 written 1 dropped 0 pending 0
}

func ExampleWriter_Write() {
	server := httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		rw.Header().Set("Retry-After", "3")
		http.Error(rw, "journal is full", http.StatusServiceUnavailable)
	}))
	defer server.Close()

	peer, err := remote.Open(server.URL+"/api/logs", remote.Options{})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer peer.Close()
	n, err := peer.Write([]byte("{\"msg\":\"charged\"}\n"))
	var wait interface{ RetryAfter() time.Duration }
	if errors.As(err, &wait) {
		fmt.Println(n, "bytes taken, try the rest in", wait.RetryAfter())
	}
	// Output: 0 bytes taken, try the rest in 3s
}
