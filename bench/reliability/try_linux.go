package reliability

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/rollway/rollway/bench/internal/child"
	"github.com/rollway/rollway/bench/internal/rivals"
)

// Try takes one writer through one fault.
func (s Settings) Try(f Fault, w Writer, seed uint64) (Try, error) {
	t := Try{Fault: f.Name, Writer: w.Name, Seed: seed}
	dir, err := os.MkdirTemp(s.Dir, "rollway-reliability-")
	if err != nil {
		return t, err
	}
	defer os.RemoveAll(dir)
	slabs, err := os.MkdirTemp(rivals.PersistDir(), "rollway-reliability-")
	if err != nil {
		return t, err
	}
	defer os.RemoveAll(slabs)

	j := s.job(f, w, seed)
	j.Slabs, j.Board, j.Report = filepath.Join(slabs, "slabs"), filepath.Join(dir, "board"), filepath.Join(dir, "report")
	log := filepath.Join(dir, "log")
	j.Path = log
	if err := j.small(f, dir); err != nil {
		return t, err
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
	t.addLedger(r)
	if died || f.Name == errorsForEver {
		again := j
		again.Restart, again.Forever, again.Mount, again.Path = true, false, "", log
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
		t.addLedger(r2)
		t.Late = b.count(j.Producers, j.firstLate(), acked)
	}
	t.Error = strings.NewReplacer(dir+"/", "", slabs+"/", "").Replace(t.Error)
	if err := t.audit(log, w.Opens, b, j.Producers+1, j.Lines); err != nil {
		return t, err
	}
	t.settle(r.Counted, !died && (r.Errors > 0))
	return t, nil
}

func (t *Try) addLedger(r outcome) {
	if r.Ledger != nil {
		t.Ledgers = append(t.Ledgers, *r.Ledger)
	}
}

// job is what the process of a try does; its paths are not set.
func (s Settings) job(f Fault, w Writer, seed uint64) job {
	j := job{
		Subject: w.Name, Fault: f.Name, Own: w.Own, Opens: w.Opens, Limit: s.Limit, Seed: seed,
		Producers: 4, Lines: 400, Burst: 10, Pause: 10 * time.Millisecond,
	}
	if w.Own {
		j.Limit = max(j.Limit, time.Minute) // a loaded machine is not their fault
	}
	if f.Kills {
		j.Lines, j.Burst, j.Pause, j.Forever = 20_000, 20, time.Millisecond, true
	}
	return j
}

// small puts the log on a small file system, if the fault is one of those.
func (j *job) small(f Fault, dir string) error {
	if f.Needs != needsMount && f.Needs != needsLoop {
		return nil
	}
	j.Mount, j.Rescue = filepath.Join(dir, "small"), dir
	j.Path = filepath.Join(j.Mount, "log")
	if err := os.Mkdir(j.Mount, 0o700); err != nil || f.Needs == needsMount {
		return err
	}
	j.Image = filepath.Join(dir, "image")
	return makeImage(j.Image)
}

// child runs the job in a process of its own and says what that reported, or
// that it died.
func (s Settings) child(f Fault, j job, b *board) (r outcome, died bool, err error) {
	if f.Needs == needsCgroup {
		g, err := newCgroup()
		if err != nil {
			return r, false, err
		}
		defer g.remove()
		j.Cgroup = g.dir
		defer func() {
			if err == nil {
				err = g.struck()
			}
		}()
	}
	// The child has to end even if something in it hangs and the machine is busy.
	limit := 8*j.Limit + time.Minute
	ctx, cancel := context.WithTimeout(context.Background(), limit)
	defer cancel()
	cmd, err := child.Command(ctx, role, j)
	if err != nil {
		return r, false, err
	}
	trace := filepath.Join(filepath.Dir(j.Board), "trace")
	if f.inject != "" {
		const calls = "write,writev,pwritev2"                    // a File has several ways to write
		if err := os.WriteFile(j.Path, nil, 0o640); err != nil { // for -P
			return r, false, err
		}
		traced := exec.CommandContext(ctx, "strace", "-f", "-qq", "-o", trace, "-P", j.Path, "-e", "trace="+calls, "-e", "inject="+calls+":"+f.inject, cmd.Path)
		traced.Env, cmd = cmd.Env, traced
	}
	cmd.Env = append(cmd.Env, "GORACE=atexit_sleep_ms=10")
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	if f.Needs == needsMount || f.Needs == needsLoop {
		cmd.SysProcAttr = child.Namespace()
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
		if f.Kills || cmd.ProcessState.ExitCode() == child.Failed {
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

// killLater kills the child: at a random moment after its first lines, or while
// a copy is stopped.
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
	_ = p.Kill() // if it has ended already, child notices
}
