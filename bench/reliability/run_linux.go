package reliability

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/rollway/rollway/bench/writers"
)

// Run makes all tries of the settings, several at a time, and reports progress
// to w. The order of the results is that of faults, writers and tries.
func Run(w io.Writer, s Settings) ([]Try, error) {
	type item struct {
		fault  Fault
		writer Writer
		seed   uint64
	}
	var items []item
	for _, f := range s.Faults {
		tries := s.Tries
		switch {
		case f.Name == killRandom:
			tries = s.Kills
		case f.Kills:
			tries = s.Others
		}
		for _, wr := range s.Writers {
			if wr.Whole && f.destination {
				continue // there is no destination to fail inside of it
			}
			for i := range tries {
				items = append(items, item{f, wr, s.Seed + uint64(i)})
			}
		}
	}
	results := make([]Try, len(items))
	errs := make([]error, len(items))
	var mu sync.Mutex
	next, done := 0, 0
	var all sync.WaitGroup
	for range max(1, s.Jobs) {
		all.Go(func() {
			for {
				mu.Lock()
				i := next
				next++
				mu.Unlock()
				if i >= len(items) {
					return
				}
				it := items[i]
				results[i], errs[i] = s.Try(it.fault, it.writer, it.seed)
				if errs[i] != nil {
					errs[i] = fmt.Errorf("%s, %s, seed %d: %w", it.fault.Name, it.writer.Name, it.seed, errs[i])
				}
				mu.Lock()
				if done++; done%100 == 0 || done == len(items) {
					fmt.Fprintf(w, "%d of %d tries\n", done, len(items))
				}
				mu.Unlock()
			}
		})
	}
	all.Wait()
	return results, errors.Join(errs...)
}

// Missing says what this machine lacks for the fault, or "".
func (f Fault) Missing() string {
	switch f.Needs {
	case "strace":
		if _, err := exec.LookPath("strace"); err != nil {
			return "strace(1)"
		}
		out, err := exec.Command("strace", "-qq", "-e", "trace=none", "true").CombinedOutput()
		if err != nil {
			return fmt.Sprintf("ptrace(2), for strace: %v %s", err, out)
		}
	case "mount":
		cmd := exec.Command("true")
		cmd.SysProcAttr = namespace()
		if err := cmd.Run(); err != nil {
			return fmt.Sprintf("to mount a tmpfs in a namespace of its own, as root or where users may: %v", err)
		}
	case "userfaultfd":
		fd, err := openTrap()
		if err != nil {
			return err.Error()
		}
		syscall.Close(fd)
	}
	return ""
}

func namespace() *syscall.SysProcAttr {
	attr := &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWNS}
	if os.Getuid() != 0 {
		attr.Cloneflags |= syscall.CLONE_NEWUSER
		attr.UidMappings = []syscall.SysProcIDMap{{HostID: os.Getuid(), Size: 1}}
		attr.GidMappings = []syscall.SysProcIDMap{{HostID: os.Getgid(), Size: 1}}
	}
	return attr
}

// Try takes one writer through one fault.
func (s Settings) Try(f Fault, w Writer, seed uint64) (Try, error) {
	t := Try{Fault: f.Name, Writer: w.Name, Seed: seed}
	dir, err := os.MkdirTemp(s.Dir, "rollway-reliability-")
	if err != nil {
		return t, err
	}
	defer os.RemoveAll(dir)
	slabs, err := os.MkdirTemp(writers.PersistDir(), "rollway-reliability-")
	if err != nil {
		return t, err
	}
	defer os.RemoveAll(slabs)

	j := job{
		Subject: w.Name, Fault: f.Name, Own: w.Own, Limit: s.Limit, Seed: seed,
		Path: filepath.Join(dir, "log"), Slabs: filepath.Join(slabs, "slabs"), Board: filepath.Join(dir, "board"), Report: filepath.Join(dir, "report"),
		Producers: 4, Lines: 400, Burst: 10, Pause: 10 * time.Millisecond,
	}
	if w.Own {
		j.Limit = max(j.Limit, time.Minute) // a loaded machine is not their fault
	}
	if f.Kills {
		j.Lines, j.Burst, j.Pause, j.Forever = 20_000, 20, time.Millisecond, true
	}
	if f.Needs == "mount" {
		j.Mount = filepath.Join(dir, "small")
		j.Path, j.Rescue = filepath.Join(j.Mount, "log"), filepath.Join(dir, "log")
		if err := os.Mkdir(j.Mount, 0o700); err != nil {
			return t, err
		}
	}
	if err := os.WriteFile(j.Board, nil, 0o600); err != nil {
		return t, err
	}
	if err := os.Truncate(j.Board, boardSize(j.Producers+1, j.Lines)); err != nil {
		return t, err
	}
	b, err := openBoard(j.Board, j.Producers+1, j.Lines)
	if err != nil {
		return t, err
	}
	defer b.close()

	r, died, err := s.child(f, j, b)
	if err != nil {
		return t, err
	}
	t.Thrown, t.Hung, t.Dead, t.Crashed, t.Error = r.Thrown, r.Hung != "", r.Dead, died && !f.Kills, r.Error
	if t.Hung {
		t.Error = strings.TrimSpace(r.Hung + " did not return; " + t.Error)
	}
	if died || f.Name == errorsForEver {
		again := j
		again.Restart, again.Forever, again.Mount, again.Rescue = true, false, "", ""
		if f.Needs == "mount" {
			again.Path = filepath.Join(dir, "log")
		}
		r2, died2, err := s.child(Fault{}, again, b)
		switch {
		case err != nil:
			return t, fmt.Errorf("restart: %w", err)
		case died2:
			return t, errors.New("restart: it died again")
		}
		t.Hung, t.Dead = t.Hung || r2.Hung != "", r2.Dead
		if r2.Error != "" {
			t.Error = strings.TrimSpace(t.Error + " restart: " + r2.Error)
		}
		r.Counted += r2.Counted
	}
	content, err := os.ReadFile(filepath.Join(dir, "log"))
	if err != nil {
		return t, err
	}
	t.Error = strings.ReplaceAll(t.Error, dir+"/", "")
	t.audit(content, b, j.Producers+1, j.Lines)
	t.settle(r.Counted, !died && (r.Errors > 0))
	return t, nil
}

// child runs the job in a process of its own and says what that reported, or
// that it died.
func (s Settings) child(f Fault, j job, b *board) (r report, died bool, err error) {
	program, err := os.Executable()
	if err != nil {
		return r, false, err
	}
	encoded, err := json.Marshal(j)
	if err != nil {
		return r, false, err
	}
	// Whatever hangs in it, it does not run for ever, on a busy machine neither.
	limit := 8*j.Limit + time.Minute
	ctx, cancel := context.WithTimeout(context.Background(), limit)
	defer cancel()
	args := []string{program}
	trace := filepath.Join(filepath.Dir(j.Board), "trace")
	if f.inject != "" {
		if err := os.WriteFile(j.Path, nil, 0o640); err != nil { // for -P
			return r, false, err
		}
		args = []string{"strace", "-f", "-qq", "-o", trace, "-P", j.Path, "-e", "trace=write", "-e", "inject=write:" + f.inject, program}
	}
	cmd := exec.CommandContext(ctx, args[0], args[1:]...)
	cmd.Env = append(os.Environ(), childEnv+"="+string(encoded), "GORACE=atexit_sleep_ms=10")
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	if f.Needs == "mount" {
		cmd.SysProcAttr = namespace()
	}
	if err := cmd.Start(); err != nil {
		return r, false, err
	}
	if f.Name == killRandom || f.Name == killInCopy {
		go s.killLater(ctx, f, j, b, cmd.Process)
	}
	waitErr := cmd.Wait()
	if ctx.Err() != nil {
		return r, false, fmt.Errorf("the child did not end within %v: %s", limit, out.Bytes())
	}
	text, err := os.ReadFile(j.Report)
	if err == nil {
		if err := json.Unmarshal(text, &r); err != nil {
			return r, false, err
		}
		_ = os.Remove(j.Report) // the next child has its own
		if r.Failed != "" {
			return r, false, fmt.Errorf("the child could not go on: %s %s", r.Failed, out.Bytes())
		}
		if err := s.struck(f, b, trace); err != nil {
			return r, false, err
		}
		return r, false, nil
	}
	if waitErr == nil {
		return r, false, fmt.Errorf("the child ended without a report: %s", out.Bytes())
	}
	status, ok := cmd.ProcessState.Sys().(syscall.WaitStatus)
	killed := ok && (status.Signaled() && status.Signal() == syscall.SIGKILL || status.Exited() && status.ExitStatus() == 128+int(syscall.SIGKILL))
	if f.Kills != killed {
		if f.Kills || cmd.ProcessState.ExitCode() == 3 {
			return r, false, fmt.Errorf("the child ended by itself: %v: %s", waitErr, out.Bytes())
		}
	}
	return r, true, s.struck(f, b, trace)
}

// struck makes sure that there was a fault at all.
func (s Settings) struck(f Fault, b *board, trace string) error {
	switch {
	case f.destination && b.flag(flagStruck).Load() == 0:
		return errors.New("the fault did not strike")
	case f.inject != "":
		text, err := os.ReadFile(trace)
		if err != nil || !slices.ContainsFunc([]string{"INJECTED", "DELAYED", "killed by SIGKILL"}, func(mark string) bool { return strings.Contains(string(text), mark) }) {
			return fmt.Errorf("strace has injected nothing: %v %.300s", err, text)
		}
	case f.Name == killInCopy && b.flag(flagTrap).Load() != inTrap:
		return errors.New("no copy stood still when it was killed")
	case (f.Name == killInWrite || f.Name == killAfterWrite) && b.flag(flagStruck).Load() == 0:
		return errors.New("it was not killed at a write")
	}
	return nil
}

// killLater kills the child: at a random moment after its first lines, or when
// a copy stands still.
func (s Settings) killLater(ctx context.Context, f Fault, j job, b *board, p *os.Process) {
	rng := rand.New(rand.NewPCG(j.Seed, 11))
	ready := func() bool { return b.progress().Load() > 0 }
	after := time.Duration(rng.Int64N(int64(150 * time.Millisecond)))
	if f.Name == killInCopy {
		ready = func() bool { return b.flag(flagTrap).Load() > 0 }
		after = 5*time.Millisecond + after/10
	}
	for !ready() && ctx.Err() == nil {
		time.Sleep(time.Millisecond)
	}
	time.Sleep(after)
	_ = p.Kill() // one that has ended is found out by who waits for it
}
