package ingest

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"

	"github.com/rollway/rollway/bench/internal/child"
	"github.com/rollway/rollway/bench/internal/measure"
)

// Settings say how servers are put under load.
type Settings struct {
	Duration time.Duration // of each run
	Conns    int
	Dir      string // for data; "": the system's for temporary files
	Fetch    bool   // rivals that are not in the cache
}

// warm is how much of a run is not timed.
func (s *Settings) warm() time.Duration { return min(2*time.Second, s.Duration/4) }

// A Run is one server under one load.
type Run struct {
	Server     string   `json:"server"`
	Protocol   protocol `json:"protocol,omitempty"`
	Rate       int      `json:"rate"`
	Events     int      `json:"events"`
	Seconds    float64  `json:"seconds"` // of the schedule
	Warm       float64  `json:"warm"`    // seconds of it that were not timed
	Conns      int      `json:"conns"`
	Sent       Sent     `json:"sent"`
	Found      *Found   `json:"found"`                 // nil: the server stores nothing
	CPU        float64  `json:"cpu"`                   // cores of the server, while it was under load
	CPUSeconds float64  `json:"cpu_seconds,omitempty"` // of the server, while it was under load
	GenCPU     float64  `json:"generator_cpu"`
	Others     float64  `json:"others_pct"` // of one core, used by other programs
	GCCycles   int      `json:"gc_cycles"`
	HeapPeak   int64    `json:"heap_peak,omitempty"` // bytes, the most seen; 0: not looked at
	Resident   int64    `json:"resident"`            // bytes, the most seen
	Series     []Point  `json:"series"`
}

// A Point is one moment of a run.
type Point struct {
	Second   float64 `json:"s"`
	Resident int64   `json:"rss"`
}

// Found is what is stored, by event.
type Found struct {
	Acknowledged int `json:"acknowledged"` // events
	Missing      int `json:"missing"`      // acknowledged, and not there
	Repeated     int `json:"repeated"`     // there more than once
	Unasked      int `json:"unasked"`      // there, and not acknowledged
	Foreign      int `json:"foreign"`      // there, and never sent
}

// Loads are those that every server gets: the article's rates.
func Loads() []struct{ Rate, Events int } {
	return []struct{ Rate, Events int }{{15_000, 1}, {2_000, 100}}
}

// heapEvery is how often a server is asked for its heap, where that is in the
// table: the answer takes time of the server's own.
const heapEvery = time.Second

// Servers lists what is put under load.
func Servers() []string { return []string{Naive, Pooled, Buffered, BufferedTLS, Synced, SyncedTLS} }

// build makes a folder, which the caller removes, with the collector's program.
func (s Settings) build() (dir, program string, err error) {
	if child.Missing != "" {
		return "", "", errors.New("this needs " + child.Missing)
	}
	if dir, err = os.MkdirTemp(s.Dir, "bench-ingest-"); err != nil {
		return "", "", err
	}
	if program, err = child.BuildRollway(dir); err != nil {
		os.RemoveAll(dir)
	}
	return dir, program, err
}

// MeasureLoad puts every server under every load, one run each, and tells w.
func MeasureLoad(w io.Writer, s Settings) (runs []Run, err error) {
	tmp, program, err := s.build()
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(tmp)
	for _, l := range Loads() {
		for _, name := range Servers() {
			run, err := measureRun(name, program, filepath.Join(tmp, fmt.Sprint("data-", len(runs))), heapEvery, load{
				Rate: l.Rate, Events: l.Events, Duration: s.Duration, Warm: s.warm(), Conns: s.Conns, Grace: 10 * time.Second})
			if err != nil {
				return nil, fmt.Errorf("%s, %d requests/s of %s: %w", name, l.Rate, sizeCase(l.Events), err)
			}
			run.tell(w)
			runs = append(runs, run)
		}
	}
	return runs, nil
}

func (run *Run) tell(w io.Writer) {
	fmt.Fprintf(w, "%s, %s: %d of %d acknowledged, p99 %v, %.2f cores %s\n",
		run.Server, run.load(), run.Sent.Acknowledged, run.Sent.Requests, run.Sent.Latency.P99, run.CPU, run.Sent.FirstError)
}

// measureRun starts the server, sends the load from another process, stops the
// server, and looks for the events. The server is asked for its heap now and
// then; 0: never. The data stays in dir: where a file system discards what is
// removed, the next run would wait for it.
func measureRun(name, program, dir string, askHeap time.Duration, l load) (run Run, err error) {
	s, err := startServer(name, program, dir)
	if err != nil {
		return run, err
	}
	l.Addr, l.TLS, l.Want = s.addr, s.tls, s.want
	run = Run{Server: name, Protocol: l.Protocol, Rate: l.Rate, Events: l.Events, Seconds: l.Duration.Seconds(), Warm: l.Warm.Seconds(), Conns: l.Conns}
	acked, err := run.underLoad(s, askHeap, l)
	if err := errors.Join(err, s.stop()); err != nil || s.dir == "" {
		return run, err
	}
	found, err := lookUp(s.stored, l, acked)
	run.Found = &found
	return run, err
}

// underLoad puts the server under the load and watches it.
func (run *Run) underLoad(s *server, askHeap time.Duration, l load) (acked []byte, err error) {
	gcBefore, _, err := s.metrics()
	if err != nil {
		return nil, err
	}
	meter := measure.StartMeter()
	g, e, err := s.under(generatorRole, l, func(stop <-chan struct{}) error { return run.watch(s, askHeap, stop) })
	if err != nil {
		return nil, err
	}
	took, _, others := meter.Read()
	gcAfter, _, err := s.metrics()
	run.Sent, run.GCCycles, run.CPUSeconds = g.Sent, int(gcAfter-gcBefore), e.cpu
	run.CPU, run.GenCPU = e.cpu/took.Seconds(), e.generator/took.Seconds()
	run.Others = max(0, others-100*(run.CPU+run.GenCPU))
	return g.Acked, err
}

// watch keeps the memory of the server until stop is closed. What a process has
// resident the system tells; its heap it has to be asked for.
func (run *Run) watch(s *server, askHeap time.Duration, stop <-chan struct{}) error {
	begin := time.Now()
	every := max(50*time.Millisecond, time.Duration(run.Seconds*float64(time.Second))/120)
	tick := time.NewTicker(every)
	defer tick.Stop()
	for asked := begin; ; {
		rss, err := child.Resident(s.Pid())
		if err != nil {
			return err
		}
		run.Resident = max(run.Resident, rss)
		run.Series = append(run.Series, Point{float64(time.Since(begin).Milliseconds()) / 1e3, rss})
		if askHeap > 0 && (run.HeapPeak == 0 || time.Since(asked) >= askHeap) {
			asked = time.Now()
			_, heap, err := s.metrics()
			if err != nil {
				return err
			}
			run.HeapPeak = max(run.HeapPeak, int64(heap))
		}
		select {
		case <-stop:
			return nil
		case <-tick.C:
		}
	}
}

// lookUp compares what is stored with the requests that were acknowledged, to
// the event. each calls its argument with the number of each event.
func lookUp(each func(func(uint64) error) error, l load, acked []byte) (f Found, err error) {
	counts := make([]byte, l.requests()*l.Events)
	err = each(func(number uint64) error {
		switch {
		case number >= uint64(len(counts)):
			f.Foreign++
		case counts[number] < 2:
			counts[number]++
		}
		return nil
	})
	for number, count := range counts {
		k := number / l.Events
		wanted := acked[k/8]&(1<<(k%8)) != 0
		switch {
		case wanted && count == 0:
			f.Missing++
		case !wanted && count > 0:
			f.Unasked++
		}
		if wanted {
			f.Acknowledged++
		}
		if count > 1 {
			f.Repeated++
		}
	}
	return f, err
}
