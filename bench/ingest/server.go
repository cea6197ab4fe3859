package ingest

import (
	"bufio"
	"crypto/tls"
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

// metricGC is how often garbage was collected, as the collector's metrics name it.
const metricGC = "go_gc_duration_seconds_count"

// serveMetrics tells what of the collector's metrics is looked at here.
func serveMetrics(w http.ResponseWriter, _ *http.Request) {
	s := []metrics.Sample{{Name: "/gc/cycles/total:gc-cycles"}}
	metrics.Read(s)
	fmt.Fprintf(w, "%s %d\n", metricGC, s[0].Value.Uint64())
}

// A server is a child under load.
type server struct {
	*child.Process
	addr  string
	tls   bool   // it serves HTTPS
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
	if _, s.rival = rivals[name]; s.rival {
		cmd, err = s.rivalCommand(name, program)
	} else {
		cmd, err = s.rollwayCommand(name, program)
	}
	if err != nil {
		return nil, err
	}
	s.Process, err = child.Program(cmd, s.addr)
	return s, err
}

// rollwayCommand starts the collector as name says.
func (s *server) rollwayCommand(name, program string) (*exec.Cmd, error) {
	var durability string
	durability, s.tls = strings.CutSuffix(strings.TrimPrefix(name, "rollway, "), overTLS)
	args := []string{"serve", "-listen", s.addr, "-data", s.dir, "-durability", durability}
	if s.tls {
		cert, key, config := s.dir+".cert", s.dir+".key", s.dir+".yaml"
		_, err := child.Certificate(cert, key, s.dir+".both")
		err = errors.Join(err, os.WriteFile(config, fmt.Appendf(nil, "tls: {cert: %q, key: %q}\n", cert, key), 0o600))
		if err != nil {
			return nil, err
		}
		args = append(args, "-config", config)
	}
	return exec.Command(program, args...), nil
}

// anyServer trusts the certificate of any server: they are our own processes.
var anyServer = &tls.Config{InsecureSkipVerify: true}

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

// cycles asks the server how often it has collected garbage; a rival does not tell.
func (s *server) cycles() (float64, error) {
	if s.rival {
		return 0, nil
	}
	client, scheme := http.DefaultClient, "http"
	if s.tls {
		transport := &http.Transport{TLSClientConfig: anyServer}
		defer transport.CloseIdleConnections()
		client, scheme = &http.Client{Transport: transport}, "https"
	}
	resp, err := client.Get(scheme + "://" + s.addr + "/metrics")
	if err != nil {
		return 0, err
	}
	defer resp.Body.Close()
	for lines := bufio.NewScanner(resp.Body); lines.Scan(); {
		if name, value, _ := strings.Cut(lines.Text(), " "); name == metricGC {
			return strconv.ParseFloat(value, 64)
		}
	}
	return 0, fmt.Errorf("%s does not tell %s", s.addr, metricGC)
}
