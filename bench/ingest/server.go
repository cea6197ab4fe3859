package ingest

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"time"
)

// Names of metrics, as the collector has them.
const (
	metricGC   = "go_gc_duration_seconds_count"
	metricHeap = "go_memstats_heap_alloc_bytes"
)

// A server is a child under load.
type server struct {
	cmd  *exec.Cmd
	in   io.WriteCloser // its end ends the article's
	addr string
	dir  string // of what it stores; "": nothing
	want int    // status by which it acknowledges

	rival bool // it is of others: it has metrics of its own
}

// startServer starts a subject; program is rollway's or the rival's, dir is empty.
func startServer(name, program, dir string) (_ *server, err error) {
	if _, rival := rivalOf(name); rival {
		return startRival(name, program, dir)
	}
	s := &server{want: http.StatusAccepted}
	var out io.Reader
	switch name {
	case Naive, Pooled:
		s.cmd, out, err = ownChild(job{Serve: name})
		if err == nil {
			s.in, err = s.cmd.StdinPipe()
		}
	case Buffered, Synced:
		s.dir, s.want = dir, http.StatusOK
		s.cmd = exec.Command(program, "serve", "-listen", "127.0.0.1:0", "-data", dir, "-durability", strings.TrimPrefix(name, "rollway, "))
		s.cmd.Stderr = os.Stderr
		out, err = s.cmd.StdoutPipe()
	default:
		err = fmt.Errorf("there is no server %q", name)
	}
	if err == nil {
		err = s.cmd.Start()
	}
	if err != nil {
		return nil, err
	}
	if s.addr, err = readAddr(out); err != nil {
		return nil, errors.Join(err, s.stop())
	}
	return s, nil
}

// stop ends the server as its user would, and after a while by force; a rival by
// force at once, which leaves what it has stored as it is.
func (s *server) stop() error {
	switch {
	case s.in != nil:
		s.in.Close()
	case s.rival:
		s.cmd.Process.Kill()
	default:
		s.cmd.Process.Signal(os.Interrupt)
	}
	killer := time.AfterFunc(time.Minute, func() { s.cmd.Process.Kill() })
	defer killer.Stop()
	err := s.cmd.Wait()
	if ended := (*exec.ExitError)(nil); s.rival && errors.As(err, &ended) {
		return nil
	}
	return err
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
