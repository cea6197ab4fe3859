package main

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/rollway/rollway/internal/testkit"
)

// A daemon is a 'rollway serve' in a process of its own.
type daemon struct {
	cmd    *exec.Cmd
	addr   string // http://host:port
	tcp    string // host:port; empty: off
	stdout testkit.Buffer
	stderr testkit.Buffer
	read   chan struct{} // closed when stdout has ended
}

var (
	httpRow = regexp.MustCompile(`(?m)^  HTTP +(https?://\S+)`)
	tcpRow  = regexp.MustCompile(`(?m)^  TCP +([0-9.:]+)`)
)

// startDaemon runs 'rollway serve' with args and waits until it says where it
// listens; a port that is not given is any free one.
func startDaemon(dir string, env []string, args ...string) (*daemon, error) {
	args = append([]string{"serve", "-listen", "127.0.0.1:0"}, args...)
	d := &daemon{cmd: exec.Command("rollway", args...), read: make(chan struct{})}
	d.cmd.Dir, d.cmd.Env, d.cmd.Stderr = dir, env, &d.stderr
	out, err := d.cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := d.cmd.Start(); err != nil {
		return nil, err
	}
	up := make(chan struct{}, 1)
	go func() {
		defer close(d.read)
		in := bufio.NewReader(out)
		for {
			line, err := in.ReadString('\n')
			io.WriteString(&d.stdout, line)
			if strings.Contains(line, "rollway query hello") {
				up <- struct{}{}
			}
			if err != nil {
				return
			}
		}
	}()
	select {
	case <-up:
	case <-d.read:
		err := d.cmd.Wait()
		return d, fmt.Errorf("rollway %s: %v\n%s", strings.Join(args, " "), err, d.stderr.String())
	case <-time.After(time.Minute):
		d.cmd.Process.Kill()
		return nil, errors.New("rollway serve did not come up within a minute")
	}
	m := httpRow.FindStringSubmatch(d.stdout.String())
	if m == nil {
		d.cmd.Process.Kill()
		return nil, fmt.Errorf("no address in\n%s", d.stdout.String())
	}
	d.addr = m[1]
	if m := tcpRow.FindStringSubmatch(d.stdout.String()); m != nil {
		d.tcp = m[1]
	}
	return d, nil
}

// serveDaemon is startDaemon for a test, which ends it.
func serveDaemon(t *testing.T, args ...string) *daemon {
	t.Helper()
	d, err := startDaemon(t.TempDir(), nil, args...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		d.kill()
		if t.Failed() {
			t.Logf("stdout of the collector:\n%s\nstderr:\n%s", d.stdout.String(), d.stderr.String())
		}
	})
	return d
}

// stop ends the daemon with SIGTERM and returns how it ended.
func (d *daemon) stop() error {
	if err := d.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		return err
	}
	return d.wait()
}

// end is stop for a test.
func (d *daemon) end(t *testing.T) {
	t.Helper()
	if err := d.stop(); err != nil {
		t.Errorf("stop: %v", err)
	}
}

func start(t *testing.T, cmd *exec.Cmd) {
	t.Helper()
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
}

func sendSignal(t *testing.T, cmd *exec.Cmd, s os.Signal) {
	t.Helper()
	if err := cmd.Process.Signal(s); err != nil {
		t.Fatal(err)
	}
}

// wait returns how the daemon ended.
func (d *daemon) wait() error {
	<-d.read
	return d.cmd.Wait()
}

// listens reports whether the daemon takes connections.
func (d *daemon) listens() bool {
	c, err := net.Dial("tcp", strings.TrimPrefix(d.addr, "http://"))
	if err == nil {
		c.Close()
	}
	return err == nil
}

// kill ends the daemon with SIGKILL, if it runs.
func (d *daemon) kill() {
	if d.cmd.ProcessState == nil {
		d.cmd.Process.Kill()
		d.wait()
	}
}

// post sends body to /api/logs and returns the status and the answer.
func (d *daemon) post(t *testing.T, body string) (int, string) {
	t.Helper()
	return received(t)(http.Post(d.addr+"/api/logs", "", strings.NewReader(body)))
}

// get returns the status and the body of path.
func (d *daemon) get(t *testing.T, path string) (int, string) {
	t.Helper()
	return received(t)(http.Get(d.addr + path))
}

// received returns what takes the results of a request and returns the status and
// the body.
func received(t *testing.T) func(*http.Response, error) (int, string) {
	return func(resp *http.Response, err error) (int, string) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		b, err := io.ReadAll(resp.Body)
		if err != nil {
			t.Fatal(err)
		}
		return resp.StatusCode, string(b)
	}
}

// query returns the lines that 'rollway query' prints.
func (d *daemon) query(t *testing.T, args ...string) []string {
	t.Helper()
	r := cli(t, "", append([]string{"query", "-addr", d.addr}, args...)...)
	r.want(t, 0)
	if r.stdout == "" {
		return nil
	}
	return strings.Split(strings.TrimSuffix(r.stdout, "\n"), "\n")
}
