package chaos

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/rollway/rollway/bench/internal/child"
	"github.com/rollway/rollway/internal/testkit"
)

// A collector is one that is started again and again at one address.
type collector struct {
	program string
	addr    string // host:port
	data    string
	config  string // text
	env     []string
	wrap    []string // a command that runs the program
	trace   string   // where strace writes; "": nowhere
	try     *Try

	*child.Process // nil before the first start
}

func (c *collector) journal() string { return filepath.Join(c.data, "journal") }

// start runs the collector and waits until it listens.
func (c *collector) start() (err error) {
	path := c.program + ".yaml" // the disk of the data may be full
	if err := os.WriteFile(path, []byte(c.config), 0o600); err != nil {
		return err
	}
	args := append(slices.Clone(c.wrap), c.program, "serve", "-config", path, "-listen", c.addr, "-data", c.data)
	cmd := exec.Command(args[0], args[1:]...)
	cmd.Env = append(os.Environ(), c.env...)
	c.Process, err = child.Program(cmd, c.addr)
	return err
}

// kill ends the collector by SIGKILL, if it runs.
func (c *collector) kill() {
	if c.Process != nil {
		c.Kill()
	}
}

// stop ends it by SIGTERM. lossy says that it may end with an error, as an fsync
// has failed.
func (c *collector) stop(lossy bool) error {
	err := c.Signal(syscall.SIGTERM)
	if lossy && c.ProcessState != nil && c.ProcessState.ExitCode() == 1 {
		return nil
	}
	if err != nil {
		return fmt.Errorf("stop rollway serve: %w: %s", err, c.Said())
	}
	return nil
}

// reconcile runs `rollway reconcile` on the data folder, and asks the collector
// if it runs.
func (c *collector) reconcile(running bool) error {
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
func (c *collector) inject(trace string, faults ...string) (end func() error, err error) {
	args := []string{"-f", "-qq", "-y", "-o", cmp.Or(c.trace, os.DevNull), "-e", "trace=" + trace}
	for _, f := range faults {
		args = append(args, "-e", "inject="+f)
	}
	cmd := exec.Command("strace", append(args, "-p", fmt.Sprint(c.Pid()))...)
	var said testkit.Buffer
	cmd.Stderr = &said
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	// It is attached once every thread has a tracer, unless it has ended the process before.
	for begin := time.Now(); !c.traced() && syscall.Kill(c.Pid(), 0) == nil; time.Sleep(5 * time.Millisecond) {
		if time.Since(begin) > time.Minute {
			cmd.Process.Kill()
			cmd.Wait()
			return nil, fmt.Errorf("strace does not attach: %s", said.String())
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

func (c *collector) traced() bool {
	tasks, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/status", c.Pid()))
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
