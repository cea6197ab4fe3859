package remote_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"time"

	"github.com/rollway/rollway/line"
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
	out, err := slab.New(peer, slab.Options{})
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

// A real one would be a daemon at /dev/log, or one on another machine:
// syslog+tls://logs.example:6514.
func ExampleOpen_syslog() {
	daemon, err := net.ListenPacket("udp", "127.0.0.1:0")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer daemon.Close()

	peer, err := remote.Open("syslog+udp://"+daemon.LocalAddr().String(), remote.Options{
		Syslog: remote.Syslog{
			Facility: "daemon", Hostname: "box", AppName: "shop", ProcID: "77",
			StructuredData: "rollway@32473", Text: true,
		},
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer peer.Close()
	fmt.Fprintln(peer, `{"time":"2026-05-28T12:40:00.123456789Z","level":"ERROR","msg":"disk full","attrs":{"free":0}}`)
	buf := make([]byte, 1024)
	n, _, _ := daemon.ReadFrom(buf)
	fmt.Printf("%s\n", buf[:n])
	// Output: <27>1 2026-05-28T12:40:00.123456Z box shop 77 - [rollway@32473 free="0"] disk full
}

func ExampleOpen_loki() {
	engine := collector()
	defer engine.Close()

	peer, err := remote.Open("loki+"+engine.URL, remote.Options{
		Loki: remote.Loki{Labels: map[string]string{"app": "shop"}},
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer peer.Close()
	fmt.Fprintln(peer, `{"time":"2026-05-28T12:40:00Z","level":"WARN","msg":"low"}`)
	// Output: application/json {"streams":[{"stream":{"app":"shop","level":"warn"},"values":[["1779972000000000000","{\"time\":\"2026-05-28T12:40:00Z\",\"level\":\"WARN\",\"msg\":\"low\"}"]]}]}
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

// The lines that one process could not deliver are delivered by the next.
func ExampleSpill() {
	dir, err := os.MkdirTemp("", "spill")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer os.RemoveAll(dir)
	server := collector()
	defer server.Close()

	for _, url := range []string{"http://127.0.0.1:1/api/logs", server.URL + "/api/logs"} {
		peer, err := remote.Open(url, remote.Options{
			Spill:        remote.Spill{Dir: dir, MaxBytes: 64 << 20},
			CloseTimeout: 200 * time.Millisecond,
		})
		if err != nil {
			fmt.Println(err)
			return
		}
		if peer.Stats().Recovered == 0 {
			fmt.Fprintln(peer, `{"level":"INFO","msg":"charged"}`)
			fmt.Println("left on disk:", errors.Is(peer.Close(), line.ErrPending))
			continue
		}
		if err := peer.Flush(context.Background()); err != nil {
			fmt.Println(err)
		}
		peer.Close()
	}
	// Output:
	// left on disk: true
	// application/x-ndjson {"level":"INFO","msg":"charged"}
}
