package direct

import (
	"fmt"
	"io"
	"os"
	"runtime/debug"
	"time"

	"github.com/rollway/rollway/bench/internal/child"
	"github.com/rollway/rollway/bench/internal/measure"
)

// A job is what a child process is to do.
type job struct {
	Dir          string        // of the log files
	Bytes        int           // of a record
	Period       time.Duration // between two requests
	Threads      int
	Logging      bool
	Copies       bool // copy each record instead
	Buffer       int
	Shards, Sets int
	Segment      int64
	Flush        time.Duration
	Realtime     bool // the process was started by one with measure.Realtime
}

// The roles of child processes.
const (
	serverRole   = "direct: server"
	verifierRole = "direct: verifier"
)

func init() {
	child.Role(serverRole, func(j job) error { return serve(j, os.Stdin, os.Stdout) })
	child.Role(verifierRole, func(j job) error {
		if j.Realtime { // it does not come before other processes
			if err := measure.Timeshared(); err != nil {
				return err
			}
		}
		return verify(j, os.Stdin, os.Stdout)
	})
}

// inputEnds returns a channel that is closed when in ends.
func inputEnds(in io.Reader) <-chan struct{} {
	ended := make(chan struct{})
	go func() {
		io.Copy(io.Discard, in)
		close(ended)
	}()
	return ended
}

// HeadlineSettings say how much is measured.
type HeadlineSettings struct {
	Dir    string        // for log files, which are removed; default the one for temporary files
	Pairs  int           // of runs with and without logging
	Each   time.Duration // of a run of a pair
	Long   time.Duration // of the last run
	Period time.Duration // between two requests
	Bytes  int           // of a record, its newline included

	Threads int   // handlers, and requests at a time at most
	Buffer  int   // bytes of one set of buffers
	Shards  int   // parts of a set
	Sets    int   // of buffers
	Segment int64 // bytes, at which a log file is rotated

	Flush time.Duration // at which buffers are written that are not full

	// Realtime runs the server and the sender of requests before all other threads
	// of the machine (SCHED_FIFO). It takes root on Linux.
	Realtime bool
}

// DefaultHeadline is the load that the publication reports, with a shorter
// time. The buffers are 128 MiB as there, in eight sets and not in two: what is
// written at a time then takes the disk a few milliseconds.
func DefaultHeadline() HeadlineSettings {
	return HeadlineSettings{
		Pairs: 7, Each: 5 * time.Second, Long: time.Minute,
		Period: period, Bytes: headlineBytes, Threads: headlineThreads,
		Buffer: 16 << 20, Shards: 8, Sets: 8, Segment: 512 << 20, Flush: time.Second,
	}
}

// Short makes the settings brief, to see that everything runs.
func (s *HeadlineSettings) Short() {
	s.Pairs, s.Each, s.Long, s.Period = 1, 200*time.Millisecond, 700*time.Millisecond, 5*time.Millisecond
	s.Buffer, s.Segment = 16<<20, 16<<20
}

// Run measures and reports progress to w. It is an error if a record that was
// accepted is not in the files.
func (s HeadlineSettings) Run(w io.Writer) ([]Run, error) {
	defer debug.SetGCPercent(debug.SetGCPercent(400)) // the requests' sender is not the subject
	if s.Realtime {
		if err := measure.Realtime(); err != nil {
			return nil, err
		}
	}
	var runs []Run
	again := s.Pairs // how many noisy pairs are taken again
	for i := range s.Pairs {
		pair, err := s.pair(w, fmt.Sprintf("pair %d", i+1), []bool{i%2 == 0, i%2 != 0}, &again)
		if err != nil {
			return nil, err
		}
		runs = append(runs, pair...)
		r, err := s.named(w, fmt.Sprintf("control %d", i+1), kind{copies: true}, s.Each)
		if err != nil {
			return nil, err
		}
		runs = append(runs, r)
	}
	long, err := s.named(w, "long", kind{logging: true, concurrent: true}, s.Long)
	return append(runs, long), err
}

// A kind is what a run is made with.
type kind struct {
	logging    bool
	concurrent bool // rotated files are read back and removed meanwhile, otherwise afterwards
	copies     bool // each record is copied once, and that is all
}

func (k kind) String() string {
	switch {
	case k.copies:
		return "no logging, copied"
	case !k.logging:
		return "no logging"
	}
	return "logging"
}

// pair runs the server with and without logging, in the order given. A noisy pair
// is taken again, up to twice and while *again is not used up, whatever came out
// of it.
func (s HeadlineSettings) pair(w io.Writer, name string, order []bool, again *int) (pair []Run, err error) {
	for try := 0; try < 3; try++ {
		pair = nil
		noisy := false
		for _, logging := range order {
			r, err := s.named(w, name, kind{logging: logging}, s.Each)
			if err != nil {
				return nil, err
			}
			pair = append(pair, r)
			noisy = noisy || r.Others > measure.NoisyPct
		}
		if !noisy || s.Pairs < 5 || *again == 0 {
			break
		}
		*again--
	}
	return pair, nil
}

func (s HeadlineSettings) named(w io.Writer, name string, k kind, d time.Duration) (Run, error) {
	r, err := s.run(k, d)
	if err != nil {
		return Run{}, fmt.Errorf("%s: %w", name, err)
	}
	r.Name = name
	fmt.Fprintf(w, "%s: %v, gRPC p50 %v p99 %v, dropped %d, lost %d, others %.0f %%\n", name, k, r.GRPC.P50, r.GRPC.P99, r.Server.Dropped, r.Verified.Lost, r.Others)
	return *r, nil
}

// run starts a server and lets requests come for d.
func (s HeadlineSettings) run(k kind, d time.Duration) (*Run, error) {
	dir, err := os.MkdirTemp(s.Dir, "rollway-headline-")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)
	j := job{
		Dir: dir, Bytes: s.Bytes, Period: s.Period, Threads: s.Threads, Logging: k.logging, Copies: k.copies,
		Buffer: s.Buffer, Shards: s.Shards, Sets: s.Sets, Segment: s.Segment, Flush: s.Flush, Realtime: s.Realtime,
	}
	server, err := child.Start(serverRole, j)
	if err != nil {
		return nil, err
	}
	defer server.Stop()
	var address string
	if err := server.Receive(&address); err != nil {
		return nil, err
	}
	var verifier *child.Process
	if k.concurrent {
		if verifier, err = child.Start(verifierRole, j); err != nil {
			return nil, err
		}
		defer verifier.Stop()
	}
	r, answers, err := s.load(address, d)
	if err != nil {
		return nil, err
	}
	r.Logging, r.Copies = k.logging, k.copies
	if err := server.End(&r.Server); err != nil {
		return nil, err
	}
	r.Others -= 100 * r.Server.CPU.Total
	if !k.logging {
		r.Others = max(0, r.Others)
		return r, nil
	}
	if !k.concurrent {
		if verifier, err = child.Start(verifierRole, j); err != nil {
			return nil, err
		}
		defer verifier.Stop()
	}
	var f found
	if err := verifier.End(&f); err != nil {
		return nil, err
	}
	if k.concurrent {
		r.Verifier = verifier.Used().Seconds() / r.Seconds
		r.Others -= 100 * r.Verifier
	}
	r.Others = max(0, r.Others)
	r.Verified, r.DiskPeak = f.against(answers), f.Peak
	v := r.Verified
	if v.Lost+v.Unasked+v.Torn+v.Repeated > 0 || v.Accepted != r.Server.Accepted || v.Found != v.Accepted {
		return nil, fmt.Errorf("the server accepted %d records: %+v", r.Server.Accepted, v)
	}
	return r, nil
}

// warm is how many requests come before those that are measured: half a second,
// or less where a run is shorter.
func (s HeadlineSettings) warm() int { return int(min(500*time.Millisecond, s.Each) / s.Period) }

// load sends the requests. answers are those of all, the ones that warm the
// server up first.
func (s HeadlineSettings) load(address string, d time.Duration) (r *Run, answers []byte, err error) {
	c, err := dial(address, s.Period, s.Threads)
	if err != nil {
		return nil, nil, err
	}
	defer c.conn.Close()
	warm, n := s.warm(), max(1, int(d/s.Period))
	answers = make([]byte, warm+n)
	if _, _, err := c.send(0, answers[:warm]); err != nil {
		return nil, nil, err
	}
	if _, err := c.call(methodBegin, nil); err != nil {
		return nil, nil, fmt.Errorf("begin: %w", err)
	}
	meter, begin := measure.StartMeter(), time.Now()
	latency, failed, err := c.send(warm, answers[warm:])
	if err != nil {
		return nil, nil, fmt.Errorf("%d of %d requests failed: %w", failed, n, err)
	}
	took := time.Since(begin)
	_, _, others := meter.Read()
	if _, err := c.call(methodEnd, nil); err != nil {
		return nil, nil, fmt.Errorf("end: %w", err)
	}
	return &Run{Seconds: took.Seconds(), Requests: n, Failed: failed, GRPC: measure.QuantilesOf(latency), Others: others}, answers, nil
}
