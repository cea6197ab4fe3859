// Package child runs processes beside the one that measures: this program
// again, with a role and a job, or another program.
package child

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"time"
)

// env has the role and the job of a process that this package started.
const env = "ROLLWAY_BENCH_CHILD"

type assignment struct {
	Role string
	Job  json.RawMessage
}

var roles = map[string]func(json.RawMessage) error{}

// Role says what a child of this name does. It is called by init functions.
func Role[J any](name string, run func(J) error) {
	roles[name] = func(text json.RawMessage) error {
		var job J
		if err := json.Unmarshal(text, &job); err != nil {
			return err
		}
		return run(job)
	}
}

// Main runs the job and exits if this process is a child. Programs and tests
// that start children call it first.
func Main() {
	text := os.Getenv(env)
	if text == "" {
		return
	}
	var a assignment
	err := json.Unmarshal([]byte(text), &a)
	if err == nil {
		if run := roles[a.Role]; run != nil {
			err = run(a.Job)
		} else {
			err = fmt.Errorf("no role %q", a.Role)
		}
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(Failed)
	}
	os.Exit(0)
}

// Failed is the exit status of a child that could not do its job.
const Failed = 3

// Command returns a command that runs this program again.
func Command(ctx context.Context, role string, job any) (*exec.Cmd, error) {
	encoded, err := json.Marshal(job)
	if err != nil {
		return nil, err
	}
	text, err := json.Marshal(assignment{role, encoded})
	if err != nil {
		return nil, err
	}
	program, err := os.Executable()
	if err != nil {
		return nil, err
	}
	cmd := exec.CommandContext(ctx, program)
	cmd.Env = append(os.Environ(), env+"="+string(text))
	return cmd, nil
}

// A Process is a child at work.
type Process struct {
	*exec.Cmd
	in     io.WriteCloser // nil for another program
	out    *json.Decoder
	pipe   *os.File      // below out
	said   *os.File      // a file without a name; a program's children would hold a pipe open
	exited chan struct{} // closed when err is set
	err    error         // of Wait
}

// Start starts this program in a role. The two exchange JSON through standard
// input and output; a child ends when its input does.
func Start(role string, job any) (*Process, error) {
	cmd, err := Command(context.Background(), role, job)
	if err != nil {
		return nil, err
	}
	return Talk(cmd)
}

// Talk starts another program that exchanges JSON as the roles of this one do.
func Talk(cmd *exec.Cmd) (p *Process, err error) {
	p = &Process{Cmd: cmd}
	if p.in, err = cmd.StdinPipe(); err != nil {
		return nil, err
	}
	// StdoutPipe would be closed as soon as the child has ended.
	out, theirs, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	p.pipe, p.out, cmd.Stdout = out, json.NewDecoder(bufio.NewReader(out)), theirs
	err = p.begin()
	theirs.Close()
	if err != nil {
		return nil, errors.Join(err, out.Close())
	}
	return p, nil
}

// Program starts another program and waits until it listens at addr.
func Program(cmd *exec.Cmd, addr string) (*Process, error) {
	p := &Process{Cmd: cmd}
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
			return nil, errors.Join(fmt.Errorf("%s ended (%v) and said: %s", cmd.Path, cmd.ProcessState, p.Said()), p.said.Close())
		default:
		}
		if time.Since(begin) > startWithin {
			return nil, errors.Join(fmt.Errorf("%s does not listen at %s: %w; it said: %s", cmd.Path, addr, err, p.Said()), p.Stop())
		}
	}
}

// startWithin is how long a child has to begin.
const startWithin = time.Minute

func (p *Process) begin() error {
	said, err := os.CreateTemp("", "bench-child-")
	if err != nil {
		return err
	}
	p.said, p.Stderr = said, said
	if p.Stdout == nil {
		p.Stdout = said
	}
	if err = os.Remove(said.Name()); err == nil {
		err = p.Cmd.Start()
	}
	if err != nil {
		return errors.Join(err, said.Close())
	}
	p.exited = make(chan struct{})
	go func() {
		p.err = p.Cmd.Wait()
		close(p.exited)
	}()
	return nil
}

// Said is the end of what the process printed: on standard error, and another
// program on standard output too.
func (p *Process) Said() string {
	const most = 4096
	text := make([]byte, most)
	size := int64(0)
	if info, err := p.said.Stat(); err == nil {
		size = info.Size()
	}
	n, _ := p.said.ReadAt(text, max(0, size-most))
	return string(text[:n])
}

// Receive reads the next value that a child printed.
func (p *Process) Receive(v any) error {
	if err := p.out.Decode(v); err != nil {
		return fmt.Errorf("the child ended: %w; it said: %s", err, p.Said())
	}
	return nil
}

// Ask sends a value to a child and reads its answer.
func (p *Process) Ask(question, answer any) error {
	if p.in == nil {
		return fmt.Errorf("%s takes no commands", p.Path)
	}
	if err := json.NewEncoder(p.in).Encode(question); err != nil {
		return err
	}
	return p.Receive(answer)
}

// End ends the input of a child, reads its last answer and waits for its end.
func (p *Process) End(answer any) error {
	p.in.Close()
	err := p.Receive(answer)
	return errors.Join(err, p.Wait(), p.Stop())
}

// Wait waits for the end of the process.
func (p *Process) Wait() error {
	<-p.exited
	return p.err
}

// Signal sends a signal, waits for the end, and kills what has not ended after
// a minute.
func (p *Process) Signal(s os.Signal) error {
	if err := p.Cmd.Process.Signal(s); err != nil {
		return err
	}
	killer := time.AfterFunc(time.Minute, func() { p.Cmd.Process.Kill() })
	defer killer.Stop()
	return p.Wait()
}

// Used is the CPU time of a process that has ended.
func (p *Process) Used() time.Duration {
	<-p.exited
	return p.ProcessState.UserTime() + p.ProcessState.SystemTime()
}

// Kill kills the process, if it lives, and waits for its end.
func (p *Process) Kill() {
	p.Cmd.Process.Kill()
	<-p.exited
}

// Stop ends the process and those that it started. It may be called again.
func (p *Process) Stop() error {
	all, err := family(p.Pid())
	if p.in != nil {
		p.in.Close()
	} else {
		p.Cmd.Process.Signal(os.Interrupt)
	}
	select {
	case <-p.exited:
	case <-time.After(2 * time.Second):
		p.Kill()
	}
	for _, pid := range all[min(1, len(all)):] { // a program's own children may outlive it
		if child, err := os.FindProcess(pid); err == nil {
			child.Kill()
		}
	}
	p.said.Close()
	if p.pipe != nil {
		p.pipe.Close()
	}
	return err
}

// Pid is the number of the process.
func (p *Process) Pid() int { return p.Cmd.Process.Pid }
