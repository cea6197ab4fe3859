package reliability

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/rollway/rollway/bench/internal/child"
	"github.com/rollway/rollway/bench/internal/lines"
	"github.com/rollway/rollway/bench/internal/rivals"
	"github.com/rollway/rollway/file"
)

// A job is what a child does.
type job struct {
	Subject, Fault string
	Own, Opens     bool
	Restart        bool // only open the writer again and pass a line through it

	Path, Slabs, Board, Report string
	Mount                      string // folder to put a small file system on, "" for none
	Image                      string // of an ext4 for Mount; "": a tmpfs
	Rescue                     string // folder to copy the log to, as Mount ends with the process
	Cgroup                     string // to move to, "" for none

	Producers, Lines int // one more producer has the probe lines
	Burst            int // lines between pauses
	Pause            time.Duration
	Forever          bool // wait to be killed when all lines are written
	Limit            time.Duration
	Seed             uint64
}

// An outcome is what a child reports that was not killed.
type outcome struct {
	Counted uint64
	Ledger  *Ledger
	Hung    string // the call that did not return
	Dead    bool
	Errors  int    // of Write, Sync and Close
	Thrown  int    // panics and Goexits out of Write
	Error   string // the last that the writer told
	Failed  string // what the kit itself could not do
}

const role = "reliability"

func init() {
	child.Role(role, func(j job) error {
		var r outcome
		if err := j.run(&r); err != nil {
			r.Failed = err.Error()
		}
		encoded, err := json.Marshal(r)
		if err != nil {
			return err
		}
		return os.WriteFile(j.Report, encoded, 0o600)
	})
}

func (j *job) run(r *outcome) error {
	b, err := openBoard(j.Board, j.Producers+1, j.Lines)
	if err != nil {
		return err
	}
	if j.Cgroup != "" {
		if err := os.WriteFile(filepath.Join(j.Cgroup, "cgroup.procs"), []byte("0"), 0); err != nil {
			return err
		}
	}
	roomy := func() error { return nil }
	if j.Mount != "" {
		if roomy, err = j.mountSmall(); err != nil {
			return err
		}
	}
	var dst destination
	if !j.Opens {
		if dst, err = j.destination(b); err != nil {
			return err
		}
	}
	s, err := j.open(dst)
	if err != nil {
		return err
	}
	w := &worker{job: j, board: b, Writer: s, report: r}
	end := roomy
	switch {
	case j.Restart:
		w.probe()
		w.close()
		return nil
	case j.Fault == fileLimit:
		end, err = limitFile()
	case j.Fault == killInCopy:
		err = w.trapLater()
	case j.Fault == killOutOfMemory:
		go w.eatMemory()
	}
	if err != nil {
		return err
	}
	w.produce()
	if j.Forever {
		time.Sleep(max(j.Limit, time.Minute))
		return errors.New("nobody has killed it")
	}
	if j.Mount != "" || j.Fault == fileLimit {
		time.Sleep(faultLasts / 2) // the fault is there for a while more
	}
	if err := end(); err != nil {
		return err
	}
	if r.Hung == "" && j.Fault != errorsForEver {
		w.probe()
	}
	w.close()
	if j.Rescue == "" {
		return nil
	}
	names, err := series(j.Path)
	for _, name := range names {
		content, e := os.ReadFile(name)
		if e == nil {
			e = os.WriteFile(filepath.Join(j.Rescue, filepath.Base(name)), content, 0o600)
		}
		err = errors.Join(err, e)
	}
	return err
}

// destination opens what the writer writes to.
func (j *job) destination(b *board) (destination, error) {
	rng := rand.New(rand.NewPCG(j.Seed, 7))
	strikeAt := int64(rng.IntN(100_000))
	for _, f := range Faults() {
		if f.Name == j.Fault && f.destination && !j.Restart {
			raw, err := os.OpenFile(j.Path, os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o640)
			if err != nil {
				return nil, err
			}
			return &faulty{fault: j.Fault, strikeAt: max(1, strikeAt), board: b, f: raw}, nil
		}
	}
	dst, err := openFile(j)
	if err != nil || j.Restart || j.Fault != killInWrite && j.Fault != killAfterWrite {
		return dst, err
	}
	raw, err := os.OpenFile(j.Path, os.O_WRONLY|os.O_APPEND, 0)
	if err != nil {
		return nil, err
	}
	k := &killingFile{killing: killing{destination: dst, raw: raw, board: b, within: j.Fault == killInWrite, partial: func(n int) int { return rng.IntN(n) }}}
	k.left.Store(strikeAt)
	if f, ok := dst.(*file.File); ok {
		k.file = f
		return k, nil
	}
	return &k.killing, nil
}

// A worker writes the lines and keeps the board.
type worker struct {
	*job
	*rivals.Writer
	board  *board
	report *outcome

	mu sync.Mutex // guards report
}

// write passes one line and notes what became of it. A panic that comes out of
// the writer is told, as a program would notice it.
func (w *worker) write(producer, line int, p []byte) {
	w.board.set(producer, line, calling)
	returned := false
	defer func() {
		if v := recover(); v != nil {
			w.board.set(producer, line, refused)
			w.throw(fmt.Errorf("a panic out of Write: %v", v))
		} else if !returned {
			w.throw(errors.New("Write has ended the goroutine that called it"))
		}
	}()
	n, err := w.Writer.Write(p)
	returned = true
	if err != nil || n != len(p) {
		w.board.set(producer, line, refused)
		if err == nil {
			err = io.ErrShortWrite
		}
		w.tell(err)
		return
	}
	w.board.set(producer, line, acked)
	w.board.progress().Add(1)
}

func (w *worker) tell(err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.report.Errors++
	w.report.Error = err.Error()
}

func (w *worker) throw(err error) {
	w.tell(err)
	w.mu.Lock()
	defer w.mu.Unlock()
	w.report.Thrown++
}

// produce runs all producers until they have written all lines, or reports a hung
// Write.
func (w *worker) produce() {
	var all sync.WaitGroup
	for p := range w.Producers {
		all.Add(1)
		go func() {
			defer all.Done() // also when a fault ends this goroutine
			rng := rand.New(rand.NewPCG(w.Seed, uint64(p)))
			line := lines.Append(nil, lineBytes, p, 0)
			for i, burst := 0, 0; i < w.Lines; i++ {
				lines.Renumber(line, i)
				w.write(p, i, line)
				if burst++; burst > rng.IntN(2*w.Burst) {
					burst = 0
					time.Sleep(w.Pause/2 + rand.N(w.Pause))
				}
			}
		}()
	}
	if !w.within(func() { all.Wait() }) && !w.Forever {
		w.report.hang("Write")
	}
}

// within reports whether f returned within the limit.
func (w *worker) within(f func()) bool {
	done := make(chan struct{})
	go func() {
		defer close(done)
		f()
	}()
	select {
	case <-done:
		return true
	case <-time.After(w.Limit):
		return false
	}
}

func (r *outcome) hang(call string) {
	if r.Hung == "" {
		r.Hung = call
	}
}

// probe writes lines of its own until one is in the file: the writer works.
func (w *worker) probe() {
	producer := w.Producers
	mark := fmt.Sprintf("%02d 000", producer)
	next := 0
	if w.Restart {
		next = w.firstLate()
	}
	line := lines.Append(nil, lineBytes, producer, 0)
	for begin := time.Now(); time.Since(begin) < w.Limit && next < w.Lines; {
		lines.Renumber(line, next)
		if !w.within(func() { w.write(producer, next, line) }) {
			w.report.hang("Write")
			return
		}
		next++
		if w.Sync != nil && !w.within(func() {
			if err := w.Sync(); err != nil {
				w.tell(fmt.Errorf("sync: %w", err))
			}
		}) {
			w.report.hang("Sync")
			return
		}
		for range 10 {
			if tail, err := readTail(w.Path); err == nil && strings.Contains(tail, "\n"+mark) {
				return
			}
			time.Sleep(20 * time.Millisecond)
		}
	}
	w.report.Dead = true
}

// firstLate is the first probe line of a process that is started after the fault.
func (j *job) firstLate() int { return j.Lines / 2 }

// readTail returns the end of the file, a line end before the first line.
func readTail(path string) (string, error) {
	content, err := os.ReadFile(path)
	return "\n" + string(content[max(0, len(content)-64<<10):]), err
}

func (w *worker) close() {
	if w.Fault == closeBlocks {
		w.board.flag(flagStruck).Store(1) // also if the writer does not close the destination
	}
	if !w.within(func() {
		if err := w.Writer.Close(); err != nil {
			w.tell(fmt.Errorf("close: %w", err))
		}
	}) {
		w.report.hang("Close")
	}
	if w.Counted != nil {
		w.report.Counted = w.Counted()
	}
	if w.Stats != nil {
		s := w.Stats()
		w.report.Ledger = &Ledger{Accepted: s.Accepted, Recovered: s.Recovered, Written: s.Written, Dropped: s.Dropped.Total(), Shutdown: s.Dropped.Shutdown, Pending: s.Pending}
		w.report.Counted = s.Dropped.Total() + s.Pending
	}
}
