package ingest

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"runtime/metrics"
	"sync/atomic"
	"time"
)

// childEnv holds the job of a process that this package has started.
const childEnv = "ROLLWAY_BENCH_INGEST"

// A job is what a child does.
type job struct {
	Serve string `json:"serve"` // Naive or Pooled; "": it generates Load
	Load  load   `json:"load"`

	Saturate bool `json:"saturate,omitempty"` // Load has no rate: its connections are never without a request
}

// generated is what a generator prints at its end.
type generated struct {
	Sent  Sent   `json:"sent"`
	Acked []byte `json:"acked"` // a bit for each request
}

// Main runs the job of this process and exits, if it has been started as a
// child. Programs that use Measure call it first.
func Main() {
	text := os.Getenv(childEnv)
	if text == "" {
		return
	}
	var j job
	err := json.Unmarshal([]byte(text), &j)
	switch {
	case err != nil:
	case j.Serve != "":
		err = serveArticle(j.Serve == Pooled)
	case j.Saturate:
		var g generated
		if g.Sent, err = saturate(j.Load); err == nil {
			err = json.NewEncoder(os.Stdout).Encode(g)
		}
	default:
		var g generated
		if g.Sent, g.Acked, err = generate(j.Load); err == nil {
			err = json.NewEncoder(os.Stdout).Encode(g)
		}
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(3)
	}
	os.Exit(0)
}

// serveArticle serves one of the article's pipelines by net/http, prints its
// address and ends with standard input.
func serveArticle(pooled bool) error {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	var queued atomic.Uint64
	mux := http.NewServeMux()
	mux.Handle("POST /api/logs", &article{pooled: pooled, queue: func(p []byte) { queued.Add(uint64(len(p))) }})
	mux.HandleFunc("GET /metrics", serveMetrics)
	failed := make(chan error, 1)
	go func() { failed <- http.Serve(ln, mux) }()
	fmt.Printf("  HTTP  http://%s\n", ln.Addr())
	ended := make(chan struct{})
	go func() {
		io.Copy(io.Discard, os.Stdin)
		close(ended)
	}()
	select {
	case err := <-failed:
		return err
	case <-ended:
		return nil
	}
}

// serveMetrics tells what of the collector's metrics is looked at here.
func serveMetrics(w http.ResponseWriter, _ *http.Request) {
	s := []metrics.Sample{{Name: "/gc/cycles/total:gc-cycles"}, {Name: "/memory/classes/heap/objects:bytes"}}
	metrics.Read(s)
	fmt.Fprintf(w, "%s %d\n%s %d\n", metricGC, s[0].Value.Uint64(), metricHeap, s[1].Value.Uint64())
}

// startGenerator runs this program again as a generator.
func startGenerator(j job) (*exec.Cmd, *json.Decoder, error) {
	cmd, out, err := ownChild(j)
	if err != nil {
		return nil, nil, err
	}
	return cmd, json.NewDecoder(out), cmd.Start()
}

func ownChild(j job) (*exec.Cmd, io.Reader, error) {
	encoded, err := json.Marshal(j)
	if err != nil {
		return nil, nil, err
	}
	exe, err := os.Executable()
	if err != nil {
		return nil, nil, err
	}
	cmd := exec.Command(exe)
	cmd.Env = append(os.Environ(), childEnv+"="+string(encoded))
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	return cmd, out, err
}

// startWithin is how long a server has to say its address.
const startWithin = time.Minute

// readAddr returns the address on the first line like "HTTP http://host:port"
// and leaves a goroutine to read the rest, until the program ends.
func readAddr(out io.Reader) (string, error) {
	found := make(chan string, 1)
	go func() {
		defer close(found)
		for s, said := bufio.NewScanner(out), false; s.Scan(); {
			var name, url string
			if n, _ := fmt.Sscan(s.Text(), &name, &url); n == 2 && name == "HTTP" && len(url) > 7 && !said {
				found <- url[len("http://"):]
				said = true
			}
		}
	}()
	select {
	case addr, ok := <-found:
		if !ok {
			return "", errors.New("the server has ended and said no address")
		}
		return addr, nil
	case <-time.After(startWithin):
		return "", errors.New("the server says no address")
	}
}
