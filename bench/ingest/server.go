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
	"strconv"
	"strings"
	"sync/atomic"

	"github.com/rollway/rollway/bench/internal/child"
	"github.com/rollway/rollway/internal/testkit"
)

// The roles of child processes.
const (
	articleRole   = "ingest: article"   // serves; the job says whether by pools
	generatorRole = "ingest: generator" // sends a load
	saturateRole  = "ingest: saturator" // sends on connections that are never without a request
)

// generated is what a generator says at its end.
type generated struct {
	Sent  Sent
	Acked []byte // a bit for each request
}

func init() {
	child.Role(articleRole, serveArticle)
	child.Role(generatorRole, func(l load) (err error) {
		var g generated
		if g.Sent, g.Acked, err = generate(l); err != nil {
			return err
		}
		return json.NewEncoder(os.Stdout).Encode(g)
	})
	child.Role(saturateRole, func(l load) (err error) {
		var g generated
		if g.Sent, err = saturate(l); err != nil {
			return err
		}
		return json.NewEncoder(os.Stdout).Encode(g)
	})
}

// serveArticle serves one of the article's pipelines by net/http, says its
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
	go http.Serve(ln, mux)
	if err := json.NewEncoder(os.Stdout).Encode(ln.Addr().String()); err != nil {
		return err
	}
	_, err = io.Copy(io.Discard, os.Stdin)
	return err
}

// Names of metrics, as the collector has them.
const (
	metricGC   = "go_gc_duration_seconds_count"
	metricHeap = "go_memstats_heap_alloc_bytes"
)

// serveMetrics tells what of the collector's metrics is looked at here.
func serveMetrics(w http.ResponseWriter, _ *http.Request) {
	s := []metrics.Sample{{Name: "/gc/cycles/total:gc-cycles"}, {Name: "/memory/classes/heap/objects:bytes"}}
	metrics.Read(s)
	fmt.Fprintf(w, "%s %d\n%s %d\n", metricGC, s[0].Value.Uint64(), metricHeap, s[1].Value.Uint64())
}

// A server is a child under load.
type server struct {
	*child.Process
	addr  string
	dir   string // of what it stores; "": nothing
	want  int    // status by which it acknowledges
	ends  bool   // with its input
	rival bool   // it has metrics of its own
}

// startServer starts a subject; program is rollway's or the rival's, dir is empty.
func startServer(name, program, dir string) (s *server, err error) {
	s = &server{want: http.StatusOK, dir: dir}
	if name == Naive || name == Pooled {
		s.want, s.dir, s.ends = http.StatusAccepted, "", true
		if s.Process, err = child.Start(articleRole, name == Pooled); err == nil {
			err = s.Receive(&s.addr)
		}
		return s, err
	}
	if s.addr, err = testkit.FreeAddr(); err != nil {
		return nil, err
	}
	var cmd *exec.Cmd
	if _, s.rival = rivalOf(name); s.rival {
		cmd, err = s.rivalCommand(name, program)
	} else {
		cmd = exec.Command(program, "serve", "-listen", s.addr, "-data", dir, "-durability", strings.TrimPrefix(name, "rollway, "))
	}
	if err != nil {
		return nil, err
	}
	s.Process, err = child.Program(cmd, s.addr)
	return s, err
}

// stop ends the server as its user would; a rival by force at once, which leaves
// what it has stored as it is.
func (s *server) stop() error {
	switch {
	case s.ends:
		return s.Stop()
	case s.rival:
		s.Kill()
		return nil
	}
	return s.Signal(os.Interrupt)
}

// metrics asks the server for its figures; a rival has none.
func (s *server) metrics() (gc, heap float64, err error) {
	if s.rival {
		return 0, 0, nil
	}
	resp, err := http.Get("http://" + s.addr + "/metrics")
	if err != nil {
		return 0, 0, err
	}
	defer resp.Body.Close()
	left := map[string]*float64{metricGC: &gc, metricHeap: &heap}
	for lines := bufio.NewScanner(resp.Body); lines.Scan(); {
		name, value, _ := strings.Cut(lines.Text(), " ")
		if into := left[name]; into != nil {
			if *into, err = strconv.ParseFloat(value, 64); err != nil {
				return 0, 0, err
			}
			delete(left, name)
		}
	}
	if len(left) > 0 {
		return 0, 0, fmt.Errorf("%s does not tell %d of the figures needed", s.addr, len(left))
	}
	return gc, heap, nil
}

// An effort is what a server and the generator beside it used during a load.
type effort struct {
	cpu, generator float64 // seconds
}

// under sends a load from another process, and watches if watch is set: it is
// called beside the load and returns when stop is closed.
func (s *server) under(role string, l load, watch func(stop <-chan struct{}) error) (g generated, e effort, err error) {
	before, err := s.CPU()
	if err != nil {
		return g, e, err
	}
	gen, err := child.Start(role, l)
	if err != nil {
		return g, e, err
	}
	stop, watched := make(chan struct{}), make(chan error, 1)
	go func() { watched <- watch(stop) }()
	err = gen.Receive(&g)
	close(stop)
	if err = errors.Join(err, <-watched, gen.Wait()); err != nil {
		return g, e, errors.Join(err, gen.Stop())
	}
	after, err := s.CPU()
	return g, effort{(after - before).Seconds(), gen.Used().Seconds()}, errors.Join(err, gen.Stop())
}
