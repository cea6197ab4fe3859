package stuck

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/rollway/rollway/bench/internal/child"
	"github.com/rollway/rollway/file"
	"github.com/rollway/rollway/slab"
)

// A job is what a child does.
type job struct {
	Writer, Situation, Act string
	Last                   bool

	Dir       string // for the files of this try; the healthy output is healthy.log
	Mount     string // folder to put a small file system on
	HTTP, TCP string // addresses of the collector
}

// An outcome is what the child reports, once before the act and again at its
// end.
type outcome struct {
	Calls, InCall int
	Returned      []int // calls by producer
	Longest, Took time.Duration
	Ledgers       []string
	Dropped       uint64
	Failed        string
}

// patience is how long producers may take. One that takes longer is in a call that
// does not return.
const patience = 3 * time.Second

// ready is printed when the act begins.
const ready = "ready\n"

const role = "stuck"

func init() {
	child.Role(role, func(j job) error {
		err := j.run()
		if err != nil {
			j.save(&outcome{Failed: err.Error()})
		}
		return err
	})
}

func (j *job) reportPath() string { return filepath.Join(j.Dir, "report") }

func (j *job) save(r *outcome) {
	text, err := json.Marshal(r)
	if err == nil {
		err = os.WriteFile(j.reportPath(), text, 0o600)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(3)
	}
}

func (j *job) run() error {
	w, err := named(j.Writer)
	if err != nil {
		return err
	}
	stuck, err := j.destination(w.Own)
	if err != nil {
		return err
	}
	healthy, err := openFile(filepath.Join(j.Dir, "healthy.log"), w.Own)
	if err == nil && w.Own { // a busy machine's disk is not what is asked about
		healthy, err = slab.New(healthy, slab.Options{Full: slab.Block})
	}
	if err != nil {
		return err
	}
	var s *subject
	var r outcome
	atEnd := func() {
		if s.ledgers != nil {
			r.Ledgers, r.Dropped = s.ledgers()
		}
		j.save(&r)
	}
	if s, err = w.open(j, stuck, healthy, atEnd); err != nil {
		return err
	}
	log := s.info
	if j.Act == Error {
		log = s.err
	}
	if j.Act == SIGTERM && s.term != nil {
		s.term()
	}
	r.produce(log)
	j.save(&r)
	fmt.Print(ready)
	switch j.Act {
	case Fatal:
		s.fatal("the last line")
		return errors.New("Fatal has returned")
	case Panic:
		defer func() {
			v := recover()
			atEnd()
			panic(v)
		}()
		s.panic("the last line")
		return errors.New("Panic has returned")
	case SIGTERM:
		time.Sleep(time.Minute)
		return errors.New("SIGTERM did not end the process")
	case Close:
		if s.close != nil {
			begin := time.Now()
			_ = s.close() // what it says is not what is asked here
			r.Took = time.Since(begin)
		}
	}
	atEnd()
	if h, ok := healthy.(*slab.Writer); ok {
		return h.Close()
	}
	return nil
}

// produce logs the lines of all producers and waits for the producers that
// finish.
func (r *outcome) produce(log func(string)) {
	var returned [producers]atomic.Int64
	var longest [producers]atomic.Int64
	var wg sync.WaitGroup
	for p := range producers {
		wg.Go(func() {
			for i := range linesEach {
				msg := message(p, i)
				begin := time.Now()
				log(msg)
				longest[p].Store(max(longest[p].Load(), int64(time.Since(begin))))
				returned[p].Add(1)
			}
		})
	}
	done := make(chan struct{})
	go func() {
		wg.Wait()
		close(done)
	}()
	select {
	case <-done:
	case <-time.After(patience):
	}
	r.Returned = make([]int, producers)
	for p := range producers {
		r.Returned[p] = int(returned[p].Load())
		r.Calls += r.Returned[p]
		r.Longest = max(r.Longest, time.Duration(longest[p].Load()))
		if r.Returned[p] < linesEach {
			r.InCall++
		}
	}
}

func openFile(path string, own bool) (io.Writer, error) {
	if own {
		return file.Open(path, file.Options{})
	}
	return os.OpenFile(path, os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o640)
}

// fullDisk opens a file on a tmpfs, for this process alone, and fills that up.
func (j *job) fullDisk(own bool) (io.Writer, error) {
	if _, err := child.MountSmall(j.Mount); err != nil {
		return nil, err
	}
	w, err := openFile(filepath.Join(j.Mount, "service.log"), own)
	if err != nil {
		return nil, err
	}
	err = os.WriteFile(filepath.Join(j.Mount, "filler"), make([]byte, 1<<20), 0o600)
	if !errors.Is(err, syscall.ENOSPC) {
		return nil, fmt.Errorf("the tmpfs is not full: %v", err)
	}
	return w, nil
}
