package direct

import (
	"fmt"
	"io"
	"time"

	"github.com/rollway/rollway/bench/internal/measure"
	"github.com/rollway/rollway/file"
	"github.com/rollway/rollway/slab"
)

// Kind is that of the results, and begins the names of their files.
const Kind = "direct"

// File is the name of the file with the raw results of an experiment.
func File(name string) string { return Kind + "-" + name + ".json" }

// The experiments, as the Case of their samples.
const (
	CaseLoss    = "loss"    // accepted against found
	CaseCall    = "call"    // LogBytes alone
	CaseBuffers = "buffers" // size of the buffers
	CaseShards  = "shards"  // threads and shards
	CaseIO      = "io"      // how buffers get to the file
	CasePools   = "pools"   // memory taken anew or used again
)

// Modes of the loss experiment.
const (
	FlatOut  = "8 goroutines flat out, 256 B"
	Paced    = "8 goroutines at 100 MB/s, 256 B"
	Large    = "100 goroutines flat out, 300 KiB"
	Headline = "100 goroutines, 1000 × 300 KiB a second"
)

// Modes of the call experiment.
const (
	Uncontended = "1 goroutine"
	Contended   = "64 goroutines"
	AtSwap      = "buffers of 64 KiB"
)

// Modes of the experiment with pools.
const (
	TakenAnew = "memory taken anew"
	UsedAgain = "memory used again"
)

// Settings say how much is measured.
type Settings struct {
	Dir   string // for log files, which are removed; default the one for temporary files
	Short bool   // each experiment once and briefly

	Time time.Duration // of a sample of the experiment with pools; default DefaultTime
}

// DefaultTime is how long a sample of the experiment with pools takes. The
// publication counted for two minutes.
const DefaultTime = 30 * time.Second

// paced is how long a sample at the headline load takes.
func (s Settings) paced(d time.Duration) time.Duration {
	if s.Short {
		return 100 * time.Millisecond
	}
	return d
}

// records is how many records a sample has.
func (s Settings) records(n int) int {
	if s.Short {
		return max(1, n/50)
	}
	return n
}

// bytes is the size of buffers that are not the subject.
func (s Settings) bytes(n int) int {
	if s.Short {
		return min(n, 16<<20)
	}
	return n
}

// A Subject is one sample of an experiment.
type Subject struct {
	Case, Mode string
	Design     Design
	load       load
	config     Config
}

// Rounds is how often an experiment is measured. Those at the headline rate
// take long, and what they show is not a matter of a few percent.
func (s Settings) Rounds(name string) int {
	switch {
	case s.Short:
		return 1
	case name == CaseCall:
		return 5
	case name == CaseLoss:
		return 3
	case name == CasePools:
		return 1
	}
	return 2
}

// Cases lists the experiments.
func Cases() []string {
	return []string{CaseLoss, CaseCall, CaseBuffers, CaseShards, CaseIO, CasePools}
}

// Subjects lists the samples of a round of an experiment.
func (s Settings) Subjects(name string) []Subject {
	return map[string]func(Settings) []Subject{
		CaseLoss: Settings.loss, CaseCall: Settings.calls, CaseBuffers: Settings.buffers, CaseShards: Settings.shards,
		CaseIO: Settings.engines, CasePools: Settings.pools,
	}[name](s)
}

// Measure runs an experiment and reports progress to w.
func (s Settings) Measure(w io.Writer, name string) ([]measure.Sample, error) {
	subjects := s.Subjects(name)
	fmt.Fprintf(w, "%s: ", name)
	return measure.Interleave(w, s.Rounds(name), len(subjects), func(i int) (measure.Sample, error) {
		return subjects[i].take(s.Dir)
	})
}

// take takes the sample. Log files are made in dir.
func (u Subject) take(dir string) (measure.Sample, error) {
	sample, err := u.load.run(u.Design, u.config, dir)
	sample.Case, sample.Mode = u.Case, u.Mode
	if err != nil {
		err = fmt.Errorf("%s, %s, %s: %w", u.Case, u.Design.Name, u.Mode, err)
	}
	return sample, err
}

// recommended is the configuration that the publication recommends.
func (s Settings) recommended(shards int) Config {
	return Config{BufferSize: s.bytes(64 << 20), Shards: shards, Flush: 10 * time.Second}
}

func (s Settings) loss() []Subject {
	small := load{goroutines: 8, each: s.records(20_000), size: 256, timed: true}
	paced := small
	paced.period, paced.burst = 2*time.Millisecond, 100
	large := load{goroutines: headlineThreads, each: s.records(20), size: headlineBytes, timed: true}
	var subjects []Subject
	for _, d := range Designs() {
		config := Config{BufferSize: 2 << 20, Shards: 4, Flush: 2 * time.Millisecond}
		subjects = append(subjects,
			Subject{Case: CaseLoss, Mode: FlatOut, Design: d, load: small, config: config},
			Subject{Case: CaseLoss, Mode: Paced, Design: d, load: paced, config: config},
			Subject{Case: CaseLoss, Mode: Large, Design: d, load: large, config: s.recommended(8)},
		)
		if d.Own || d.Name == Published {
			subjects = append(subjects, Subject{Case: CaseLoss, Mode: Headline, Design: d, load: headline(headlineThreads, s.paced(2*time.Second)), config: s.recommended(8)})
		}
	}
	return subjects
}

// calls measures LogBytes where no buffer has to be written meanwhile, with
// one goroutine and with 64, and then each single call where about one in 250
// fills a buffer. "no call" is the cost of the loop and the clock.
func (s Settings) calls() []Subject {
	const records = 400_000 // 102 MB: less than nine tenths of a shard of the buffer
	idle := Config{BufferSize: s.bytes(1 << 30), Shards: 8, Flush: time.Minute}
	one := load{goroutines: 1, each: s.records(records), size: 256}
	many := load{goroutines: 64, each: s.records(records) / 64, size: 256}
	swaps := load{goroutines: 1, each: s.records(20_000), size: 256, timed: true, period: time.Millisecond, burst: 100}
	var subjects []Subject
	for _, d := range append([]Design{noCall}, Designs()...) {
		swap := Config{BufferSize: 64 << 10, Shards: 1, Flush: time.Minute}
		if d.Own { // with one shard it takes a lock; the goroutine uses one of two
			swap.BufferSize, swap.Shards = 2*swap.BufferSize, 2
		}
		subjects = append(subjects,
			Subject{Case: CaseCall, Mode: Uncontended, Design: d, load: one, config: idle},
			Subject{Case: CaseCall, Mode: Contended, Design: d, load: many, config: idle},
			Subject{Case: CaseCall, Mode: AtSwap, Design: d, load: swaps, config: swap},
		)
	}
	return subjects
}

// fullSets is how many full sets a row of the table of buffers sees at least.
const fullSets = 6

// buffers takes as long with each size as fullSets sets and a half take to fill,
// and no less than two seconds.
func (s Settings) buffers() []Subject {
	var subjects []Subject
	for _, mb := range []int{8, 32, 64, 128, 256, 512} {
		if s.Short && mb > 32 {
			break
		}
		config := s.recommended(8)
		config.BufferSize = mb << 20
		fills := time.Duration(float64(config.BufferSize) / headlineBytes * (fullSets + 0.5) * float64(period))
		l := headline(headlineThreads, s.paced(max(2*time.Second, fills)))
		for _, name := range []string{Published, OwnDrop} {
			subjects = append(subjects, Subject{Case: CaseBuffers, Mode: fmt.Sprintf("%d MB", mb), Design: design(name), load: l, config: config})
		}
	}
	return subjects
}

// threadsAndShards are the published pairs.
var threadsAndShards = []struct{ threads, shards int }{{50, 4}, {50, 8}, {100, 4}, {100, 8}, {100, 16}, {200, 8}, {200, 16}}

func (s Settings) shards() []Subject {
	var subjects []Subject
	for i, c := range threadsAndShards {
		if s.Short && i > 0 {
			break
		}
		config := s.recommended(c.shards)
		for _, name := range []string{Published, OwnDrop} {
			subjects = append(subjects, Subject{Case: CaseShards, Mode: fmt.Sprintf("%dT / %dS", c.threads, c.shards), Design: design(name), load: headline(c.threads, s.paced(1500*time.Millisecond)), config: config})
		}
	}
	return subjects
}

func (s Settings) engines() []Subject {
	l := headline(headlineThreads, s.paced(2*time.Second))
	config := s.recommended(8)
	var subjects []Subject
	for _, e := range []Engine{Buffered, Separate, Copied, Vectored} {
		config.IO = e
		subjects = append(subjects, Subject{Case: CaseIO, Mode: e.String(), Design: design(Published), load: l, config: config})
	}
	for _, mode := range []file.Mode{file.Buffered, file.Uncached, file.Direct} {
		subjects = append(subjects, Subject{Case: CaseIO, Mode: mode.String(), Design: ownDesign(OwnDrop, ownOptions{mode: mode, full: slab.Drop}), load: l, config: config})
	}
	return subjects
}

// poolRate is how many records a second there are in the experiment with pools, as
// published.
const poolRate = 1000

// pools has the loop alone as well: what that allocates is not the loggers'.
func (s Settings) pools() []Subject {
	d := s.Time
	if d == 0 {
		d = DefaultTime
	}
	if s.Short {
		d = 100 * time.Millisecond
	}
	l := load{
		goroutines: headlineThreads, each: int(d.Seconds()*poolRate) / headlineThreads, size: headlineBytes,
		period: headlineThreads * time.Second / poolRate, timed: true,
	}
	config := s.recommended(8)
	config.IO = Copied
	before, after := l, l
	before.unpooled = true
	fresh := config
	fresh.Unpooled = true
	return []Subject{
		{Case: CasePools, Mode: TakenAnew, Design: unpooled(design(Published)), load: before, config: fresh},
		{Case: CasePools, Mode: UsedAgain, Design: design(Published), load: after, config: config},
		{Case: CasePools, Mode: UsedAgain, Design: design(OwnDrop), load: after, config: config},
		{Case: CasePools, Mode: UsedAgain, Design: noCall, load: after, config: config},
	}
}
