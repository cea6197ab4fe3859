package chaos

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/rollway/rollway/internal/testkit"
)

// A child is one collector, which is started again and again at one address.
type child struct {
	program string
	addr    string // host:port
	data    string
	config  string // text
	env     []string
	try     *Try

	cmd  *exec.Cmd
	said testkit.Buffer
	read chan struct{} // closed when its output has ended
}

// saidBytes is how much of what a program said goes into an error.
const saidBytes = 2000

func (c *child) journal() string { return filepath.Join(c.data, "journal") }

// start runs the collector and waits until it listens.
func (c *child) start() error {
	path := c.data + ".yaml"
	if err := os.WriteFile(path, []byte(c.config), 0o600); err != nil {
		return err
	}
	c.cmd = exec.Command(c.program, "serve", "-config", path, "-listen", c.addr, "-data", c.data)
	c.cmd.Env = append(os.Environ(), c.env...)
	c.cmd.Stderr = &c.said
	out, err := c.cmd.StdoutPipe()
	if err != nil {
		return err
	}
	if err := c.cmd.Start(); err != nil {
		return err
	}
	up := make(chan struct{}, 1)
	c.read = make(chan struct{})
	go func() {
		defer close(c.read)
		in := bufio.NewReader(out)
		for {
			line, err := in.ReadString('\n')
			io.WriteString(&c.said, line)
			if strings.Contains(line, " is running;") {
				up <- struct{}{}
			}
			if err != nil {
				return
			}
		}
	}()
	select {
	case <-up:
		return nil
	case <-c.read:
		return fmt.Errorf("rollway serve ended: %v: %s", c.cmd.Wait(), c.said.Tail(saidBytes))
	case <-time.After(time.Minute):
		c.kill()
		return errors.New("rollway serve did not begin within a minute")
	}
}

// kill ends the collector by SIGKILL.
func (c *child) kill() {
	if c.cmd == nil || c.cmd.ProcessState != nil {
		return
	}
	c.cmd.Process.Kill()
	<-c.read
	c.cmd.Wait()
}

// stop ends it by SIGTERM. lossy says that it may end with an error, as an fsync
// has failed.
func (c *child) stop(lossy bool) error {
	if err := c.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		return err
	}
	killer := time.AfterFunc(time.Minute, func() { c.cmd.Process.Kill() })
	defer killer.Stop()
	<-c.read
	err := c.cmd.Wait()
	var exit *exec.ExitError
	if lossy && errors.As(err, &exit) && exit.ExitCode() == 1 {
		return nil
	}
	if err != nil {
		return fmt.Errorf("stop rollway serve: %w: %s", err, c.said.Tail(saidBytes))
	}
	return nil
}

// reconcile runs `rollway reconcile` on the data folder, and asks the collector
// if it runs.
func (c *child) reconcile(running bool) error {
	args := []string{"reconcile", c.data}
	if running {
		args = append(args, "-addr", "http://"+c.addr)
	}
	out, err := exec.Command(c.program, args...).CombinedOutput()
	c.try.Reconciled++
	var exit *exec.ExitError
	switch {
	case err == nil:
		return nil
	case errors.As(err, &exit) && exit.ExitCode() == 1:
		c.try.Disagreed++
		fmt.Fprintf(os.Stderr, "%s\n", out)
		return nil
	}
	return fmt.Errorf("rollway reconcile: %w: %s", err, out)
}

// inject has strace do what the specification says to the running collector,
// until end is called.
func (c *child) inject(trace string, faults ...string) (end func() error, err error) {
	args := []string{"-f", "-qq", "-o", "/dev/null", "-e", "trace=" + trace}
	for _, f := range faults {
		args = append(args, "-e", "inject="+f)
	}
	cmd := exec.Command("strace", append(args, "-p", fmt.Sprint(c.cmd.Process.Pid))...)
	var said testkit.Buffer
	cmd.Stderr = &said
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	// It is attached once every thread has a tracer.
	for begin := time.Now(); !c.traced(); time.Sleep(5 * time.Millisecond) {
		if time.Since(begin) > time.Minute {
			cmd.Process.Kill()
			cmd.Wait()
			return nil, fmt.Errorf("strace does not attach: %s", said.Tail(saidBytes))
		}
	}
	return func() error {
		if err := cmd.Process.Signal(os.Interrupt); err != nil {
			return err
		}
		cmd.Wait() // by the signal
		return nil
	}, nil
}

func (c *child) traced() bool {
	tasks, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/status", c.cmd.Process.Pid))
	if err != nil || len(tasks) == 0 {
		return false
	}
	for _, path := range tasks {
		text, err := os.ReadFile(path)
		if err == nil && strings.Contains(string(text), "\nTracerPid:\t0\n") {
			return false
		}
	}
	return true
}
