package ingest

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
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
	Protocol   protocol `json:"protocol"`
	Rate       int      `json:"rate"`
	Events     int      `json:"events"`
	Seconds    float64  `json:"seconds"` // of the schedule
	Warm       float64  `json:"warm"`    // seconds of it that were not timed
	Conns      int      `json:"conns"`
	Sent       Sent     `json:"sent"`
	Found      *Found   `json:"found"`       // nil: the server stores nothing
	CPU        float64  `json:"cpu"`         // cores of the server, while it was under load
	CPUSeconds float64  `json:"cpu_seconds"` // of the server, while it was under load
	GenCPU     float64  `json:"generator_cpu"`
	Others     float64  `json:"others_pct"` // of one core, used by other programs
	GCCycles   int      `json:"gc_cycles"`  // 0: the server does not tell
	Resident   int64    `json:"resident"`   // bytes, the most seen
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

// A subject is a server, and how the load comes to it.
type subject struct {
	name     string
	protocol protocol
}

// subjects lists what is put under load.
func subjects() []subject {
	return []subject{
		{Naive, pathJSON}, {Pooled, pathJSON},
		{Buffered, pathJSON}, {Buffered + overTLS, pathJSON}, {Synced, pathJSON}, {Synced + overTLS, pathJSON},
		{Buffered, pathOTLP}, {otelFile, pathOTLP}, {otelMemory, pathOTLP}, {rotelName, pathOTLP},
		{Synced, pathOTLP}, {otelSynced, pathOTLP},
	}
}

const (
	// maxHeld is the p99 up to which a server holds a load that it answers.
	maxHeld = time.Second
	// minShare is the least share of a load that a server is tried with.
	minShare = 16
)

// Measure puts every server under every load and tells w. One that does not hold a
// load is measured again with half of it, and so on. left says which could not be
// had, and why.
func Measure(w io.Writer, s Settings) (runs []Run, left []string, err error) {
	if child.Missing != "" {
		return nil, nil, errors.New("this needs " + child.Missing)
	}
	dir, err := os.MkdirTemp(s.Dir, "bench-ingest-")
	if err != nil {
		return nil, nil, err
	}
	defer os.RemoveAll(dir)
	own, err := child.BuildRollway(dir)
	if err != nil {
		return nil, nil, err
	}
	for _, l := range Loads() {
		for _, su := range subjects() {
			program, err := own, error(nil)
			if rival, is := rivals[su.name]; is {
				program, err = rival.path(s.Fetch)
			}
			if err != nil {
				fmt.Fprintf(w, "LEFT OUT: %s: %v\n", su.name, err)
				left = append(left, strings.Join(strings.Fields(fmt.Sprintf("%s: %v", su.name, err)), " "))
				continue
			}
			for share := 1; share <= minShare; share *= 2 {
				run, err := measureRun(su, program, filepath.Join(dir, fmt.Sprint("data-", len(runs))), load{
					Rate: l.Rate / share, Events: l.Events, Duration: s.Duration, Warm: s.warm(), Conns: s.Conns, Grace: 10 * time.Second})
				if err != nil {
					return nil, nil, fmt.Errorf("%s, %d requests/s of %d: %w", su.name, l.Rate/share, l.Events, err)
				}
				fmt.Fprintf(w, "%s by %s, %d requests/s of %d: %d of %d acknowledged, p99 %v, %.2f cores %s\n",
					run.Server, run.Protocol, run.Rate, run.Events, run.Sent.Acknowledged, run.Sent.Requests, run.Sent.Latency.P99, run.CPU, run.Sent.FirstError)
				runs = append(runs, run)
				if run.Sent.Errors == 0 && run.Sent.Latency.P99 <= maxHeld {
					break
				}
			}
		}
	}
	slices.Sort(left)
	return runs, slices.Compact(left), nil
}

// measureRun starts the server, sends the load from another process, stops the
// server, and looks for the events. The data stays in dir: where a file system
// discards what is removed, the next run would wait for it.
func measureRun(su subject, program, dir string, l load) (run Run, err error) {
	s, err := startServer(su.name, program, dir)
	if err != nil {
		return run, err
	}
	l.Addr, l.TLS, l.Want, l.Protocol = s.addr, s.tls, s.want, su.protocol
	run = Run{Server: su.name, Protocol: l.Protocol, Rate: l.Rate, Events: l.Events, Seconds: l.Duration.Seconds(), Warm: l.Warm.Seconds(), Conns: l.Conns}
	acked, err := run.underLoad(s, l)
	if err := errors.Join(err, s.stop()); err != nil || s.dir == "" {
		return run, err
	}
	found, err := lookUp(s.stored, l, acked)
	run.Found = &found
	return run, err
}

// underLoad sends the load from another process, and watches the server's memory.
func (run *Run) underLoad(s *server, l load) (acked []byte, err error) {
	gcBefore, err := s.cycles()
	cpuBefore, err2 := s.CPU()
	if err := errors.Join(err, err2); err != nil {
		return nil, err
	}
	meter := measure.StartMeter()
	gen, err := child.Start(generatorRole, l)
	if err != nil {
		return nil, err
	}
	defer gen.Stop()
	stop, watched := make(chan struct{}), make(chan error, 1)
	go func() { watched <- run.watch(s, stop) }()
	var g generated
	err = gen.Receive(&g)
	close(stop)
	if err = errors.Join(err, <-watched, gen.Wait()); err != nil {
		return nil, err
	}
	took, _, others := meter.Read()
	cpuAfter, err := s.CPU()
	gcAfter, err2 := s.cycles()
	run.Sent, run.GCCycles, run.CPUSeconds = g.Sent, int(gcAfter-gcBefore), (cpuAfter - cpuBefore).Seconds()
	run.CPU, run.GenCPU = run.CPUSeconds/took.Seconds(), gen.Used().Seconds()/took.Seconds()
	run.Others = max(0, others-100*(run.CPU+run.GenCPU))
	return g.Acked, errors.Join(err, err2)
}

// watch notes the most memory of the server until stop is closed.
func (run *Run) watch(s *server, stop <-chan struct{}) error {
	tick := time.NewTicker(100 * time.Millisecond)
	defer tick.Stop()
	for {
		rss, err := child.Resident(s.Pid())
		if err != nil {
			return err
		}
		run.Resident = max(run.Resident, rss)
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
