package main

import (
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/fluent/fluent-logger-golang/fluent"

	"github.com/rollway/rollway/internal/testkit"
)

// No registry that CI reaches has it.
var fluentdProgram = flag.String("fluentd", "", "the program of Fluentd, to send to a collector that is killed")

// A killer is between clients and a collector, which it kills by SIGKILL when some
// acknowledgements have left it, and starts again. The clients never see those.
type killer struct {
	t    *testing.T
	ln   net.Listener
	to   string // host:port
	args []string
	dir  string

	mu    sync.Mutex
	d     *daemon // guarded by mu
	kills int     // guarded by mu: to come
	conns sync.WaitGroup
}

// startKiller starts a collector that listens as the flag says.
func startKiller(t *testing.T, flag string, kills int) *killer {
	t.Helper()
	free, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	k := &killer{t: t, to: free.Addr().String(), dir: t.TempDir(), kills: kills}
	free.Close()
	k.args = []string{"-data", filepath.Join(k.dir, "data"), flag, "tcp://" + k.to, "-listen-grpc", ""}
	if k.d, err = startDaemon(k.dir, nil, k.args...); err != nil {
		t.Fatal(err)
	}
	if k.ln, err = net.Listen("tcp", "127.0.0.1:0"); err != nil {
		t.Fatal(err)
	}
	k.conns.Go(func() {
		for {
			in, err := k.ln.Accept()
			if err != nil {
				return
			}
			k.conns.Go(func() { k.pass(in) })
		}
	})
	t.Cleanup(func() {
		k.d.kill() // the connections end
		k.ln.Close()
		k.conns.Wait()
	})
	return k
}

// pass serves a connection of a client.
func (k *killer) pass(in net.Conn) {
	defer in.Close()
	out, err := net.Dial("tcp", k.to)
	if err != nil {
		return
	}
	defer out.Close()
	k.conns.Go(func() {
		io.Copy(out, in)
		out.(*net.TCPConn).CloseWrite()
	})
	buf := make([]byte, 6) // Lumberjack's acknowledgement: any of some that come together may be the last
	for {
		n, err := out.Read(buf)
		if err != nil || k.kill() {
			return
		}
		in.Write(buf[:n])
	}
}

// kill kills the collector, or lets it live.
func (k *killer) kill() bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.kills == 0 || rand.IntN(2) == 0 {
		return false
	}
	k.kills--
	k.d.kill()
	var err error
	if k.d, err = startDaemon(k.dir, nil, k.args...); err != nil {
		k.t.Error(err)
	}
	return true
}

// await waits for n events and returns how often each is stored.
func (k *killer) await(n int) map[int]int {
	k.t.Helper()
	times := make(map[int]int)
	for end := time.Now().Add(2 * time.Minute); !k.complete(times, n); time.Sleep(50 * time.Millisecond) {
		if time.Now().After(end) {
			k.t.Fatalf("after two minutes %d events of %d are there, and %d kills are left", len(times), n, k.kills)
		}
	}
	return times
}

// check waits for n events and fails the test unless each is stored once.
func (k *killer) check(n int) {
	k.t.Helper()
	for i, times := range k.await(n) {
		if times != 1 {
			k.t.Errorf("event %d is stored %d times", i, times)
		}
	}
	if _, page := k.d.get(k.t, "/metrics"); strings.Contains(page, "rollway_events_duplicate_total 0\n") {
		k.t.Error("no event came again after the last kill")
	}
}

// complete counts how often each event is stored, and reports whether all n are and no
// kill is left.
func (k *killer) complete(times map[int]int, n int) bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	clear(times)
	for _, line := range k.d.query(k.t, "") {
		var l struct{ Attrs struct{ N int } }
		if err := json.Unmarshal([]byte(line), &l); err != nil {
			k.t.Fatalf("%v: %s", err, line)
		}
		times[l.Attrs.N]++
	}
	return len(times) == n && k.kills == 0
}

// Clients whose acknowledgement was lost as the collector was killed send again, and
// each event is stored once.
func TestForwardKilled(t *testing.T) {
	t.Run("fluent-logger-golang", func(t *testing.T) {
		const events = 30
		k := startKiller(t, "-listen-forward", 8)
		logger, err := fluent.New(fluent.Config{
			FluentHost: "127.0.0.1", FluentPort: k.ln.Addr().(*net.TCPAddr).Port, RequestAck: true,
			MaxRetry: 10000, RetryWait: 1, MaxRetryWait: 20, ReadTimeout: time.Minute, WriteTimeout: time.Minute,
		})
		if err != nil {
			t.Fatal(err)
		}
		defer fmt.Fprintln(os.Stderr) // where it writes half lines
		defer logger.Close()
		for i := range events {
			if err := logger.PostWithTime("app", time.Unix(1779972000, 0), map[string]int{"n": i}); err != nil {
				t.Fatal(err)
			}
		}
		k.check(events)
	})
	if *fluentdProgram == "" {
		return
	}
	for _, compress := range []string{"text", "gzip"} {
		t.Run("fluentd "+compress, func(t *testing.T) {
			const events, perChunk = 1000, 10
			k := startKiller(t, "-listen-forward", 20)
			dir := t.TempDir()
			var lines strings.Builder
			for i := range events {
				fmt.Fprintf(&lines, "{\"n\":%d}\n", i)
			}
			config := strings.NewReplacer("DIR", dir, "COMPRESS", compress, "CHUNK", strconv.Itoa(perChunk),
				"PORT", strconv.Itoa(k.ln.Addr().(*net.TCPAddr).Port)).Replace(fluentdConfig)
			for name, text := range map[string]string{"events": lines.String(), "conf": config} {
				writeFile(t, filepath.Join(dir, name), text)
			}
			var said testkit.Buffer
			cmd := exec.Command(*fluentdProgram, "--no-supervisor", "-c", filepath.Join(dir, "conf"))
			cmd.Stdout, cmd.Stderr = &said, &said
			start(t, cmd)
			defer func() {
				cmd.Process.Signal(syscall.SIGTERM)
				cmd.Wait()
				if t.Failed() {
					t.Log(said.String())
				}
			}()
			k.check(events)
		})
	}
}

const fluentdConfig = `
<source>
  @type tail
  path DIR/events
  pos_file DIR/pos
  read_from_head true
  tag app
  <parse>
    @type json
  </parse>
</source>
<match app>
  @type forward
  heartbeat_type none
  require_ack_response true
  ack_response_timeout 5s
  compress COMPRESS
  <buffer>
    @type file
    path DIR/buffer
    flush_mode immediate
    chunk_limit_records CHUNK
    flush_thread_count 4
    retry_type periodic
    retry_wait 0.1s
  </buffer>
  <server>
    host 127.0.0.1
    port PORT
  </server>
</match>
`
