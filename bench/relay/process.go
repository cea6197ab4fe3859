package relay

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"time"
)

// A process is a child of this one: the upstream or a relay.
type process struct {
	ready
	cmd    *exec.Cmd
	in     io.WriteCloser // nil in a program that is not ours
	out    *bufio.Scanner
	pipe   *os.File      // below out
	said   *os.File      // a file without a name; a pipe would be held open by a program's children
	exited chan struct{} // closed when cmd.Wait has returned
}

// says is the first part of what a child has said on standard error, and a
// program on standard output too.
func (p *process) says() string {
	text := make([]byte, 4096)
	n, _ := p.said.ReadAt(text, 0)
	return string(text[:n])
}

// startWithin is how long a child has to start listening.
const startWithin = time.Minute

// startChild runs this program again with a job.
func startChild(j job) (*process, error) {
	encoded, err := json.Marshal(j)
	if err != nil {
		return nil, err
	}
	exe, err := os.Executable()
	if err != nil {
		return nil, err
	}
	p := &process{cmd: exec.Command(exe)}
	p.cmd.Env = append(os.Environ(), childEnv+"="+string(encoded))
	if p.in, err = p.cmd.StdinPipe(); err != nil {
		return nil, err
	}
	// Not StdoutPipe, which is closed as soon as the child has ended.
	out, theirs, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	p.pipe, p.out, p.cmd.Stdout = out, bufio.NewScanner(out), theirs
	err = p.begin()
	theirs.Close()
	if err != nil {
		return nil, errors.Join(err, out.Close())
	}
	if err = p.read(&p.ready); err == nil && p.Error != "" {
		err = errors.New(p.Error)
	}
	if err != nil {
		return nil, errors.Join(err, p.stop())
	}
	return p, nil
}

// startProgram runs another program, which shall listen at addr.
func startProgram(addr, name string, args ...string) (*process, error) {
	p := &process{ready: ready{Addr: addr}, cmd: exec.Command(name, args...)}
	if err := p.begin(); err != nil {
		return nil, err
	}
	for begin := time.Now(); ; time.Sleep(5 * time.Millisecond) {
		c, err := net.Dial("tcp", addr)
		if err == nil {
			return p, c.Close()
		}
		select {
		case <-p.exited:
			return nil, errors.Join(fmt.Errorf("%s has ended (%v) and said: %s", name, p.cmd.ProcessState, p.says()), p.said.Close())
		default:
		}
		if time.Since(begin) > startWithin {
			return nil, errors.Join(fmt.Errorf("%s does not listen at %s: %w; it said: %s", name, addr, err, p.says()), p.stop())
		}
	}
}

func (p *process) begin() error {
	said, err := os.CreateTemp("", "bench-relay-")
	if err != nil {
		return err
	}
	p.said, p.cmd.Stderr = said, said
	if p.cmd.Stdout == nil {
		p.cmd.Stdout = said
	}
	if err = os.Remove(said.Name()); err == nil {
		err = p.cmd.Start()
	}
	if err != nil {
		return errors.Join(err, said.Close())
	}
	p.exited = make(chan struct{})
	go func() {
		p.cmd.Wait()
		close(p.exited)
	}()
	return nil
}

// read reads one line of a child's output.
func (p *process) read(v any) error {
	if !p.out.Scan() {
		return fmt.Errorf("the child has ended: %v; it said: %s", p.out.Err(), p.says())
	}
	return json.Unmarshal(p.out.Bytes(), v)
}

// do has a child of ours carry out a command.
func (p *process) do(what string, n int) (gauges, error) {
	if p.in == nil {
		return gauges{}, fmt.Errorf("%s takes no commands", p.cmd.Path)
	}
	line, err := json.Marshal(command{what, n})
	if err != nil {
		return gauges{}, err
	}
	if _, err := p.in.Write(append(line, '\n')); err != nil {
		return gauges{}, err
	}
	var g gauges
	if err := p.read(&g); err != nil {
		return gauges{}, err
	}
	if g.Error != "" {
		return gauges{}, errors.New(g.Error)
	}
	return g, nil
}

// settle waits until a child of ours has no more goroutines than n.
func (p *process) settle(n uint64) (gauges, error) {
	for begin := time.Now(); ; time.Sleep(5 * time.Millisecond) {
		g, err := p.do(doGauge, 0)
		if err != nil || g.Goroutines <= n {
			return g, err
		}
		if time.Since(begin) > startWithin {
			return g, fmt.Errorf("the relay still has %d goroutines, %d before the connections came", g.Goroutines, n)
		}
	}
}

// stop ends the process and those that it has started.
func (p *process) stop() error {
	all, err := family(p.cmd.Process.Pid)
	if p.in != nil {
		p.in.Close() // our own children end by that
	} else {
		p.cmd.Process.Signal(os.Interrupt)
	}
	select {
	case <-p.exited:
	case <-time.After(2 * time.Second):
		p.cmd.Process.Kill()
		<-p.exited
	}
	for _, pid := range all[min(1, len(all)):] { // a program's own children may outlive it
		if child, err := os.FindProcess(pid); err == nil {
			child.Kill()
		}
	}
	err = errors.Join(err, p.said.Close())
	if p.pipe != nil {
		err = errors.Join(err, p.pipe.Close())
	}
	return err
}
