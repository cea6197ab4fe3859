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

// Settings say how much is measured.
type Settings struct {
	Dir   string        // for log files, which are removed; default the one for temporary files
	Short bool          // each experiment once and briefly
	Time  time.Duration // of a sample of the experiment with pools
}

// choose returns what a run that counts has, or a short one.
func choose[T any](s Settings, whole, short T) T {
	if s.Short {
		return short
	}
	return whole
}

// paced is the headline load from so many goroutines, for that long.
func (s Settings) paced(threads int, d time.Duration) load {
	return headline(threads, choose(s, d, 100*time.Millisecond))
}

// records is how many records a sample has.
func (s Settings) records(n int) int { return choose(s, n, max(1, n/50)) }

// recommended is the configuration that the publication recommends.
func (s Settings) recommended(shards int) Config {
	return Config{BufferSize: choose(s, 64<<20, 16<<20), Shards: shards, Flush: 10 * time.Second}
}

// An Experiment is measured in interleaved rounds. At the headline rate these take
// long, and what they show is not a matter of a few percent.
type Experiment struct {
	Name   string // the Case of its samples
	rounds int
	plan   func(Settings) []subject
}

// A subject is one sample of an experiment.
type subject struct {
	mode   string
	design Design
	load   load
	config Config
}

// Experiments lists all.
func Experiments() []Experiment {
	return []Experiment{
		{"loss", 3, Settings.loss}, {"call", 5, Settings.calls}, {"buffers", 2, Settings.buffers},
		{"shards", 2, Settings.shards}, {"io", 2, Settings.engines}, {"pools", 1, Settings.pools},
	}
}

// Measure runs the experiment and reports progress to w.
func (e Experiment) Measure(w io.Writer, s Settings) (*measure.Results, error) {
	rounds := choose(s, e.rounds, 1)
	r, subjects := measure.NewResults(Kind, rounds), e.plan(s)
	fmt.Fprintf(w, "%s: ", e.Name)
	var err error
	r.Samples, err = measure.Interleave(w, rounds, len(subjects), func(i int) (measure.Sample, error) { return e.take(subjects[i], s.Dir) })
	return r, err
}

// take takes one sample. Log files are made in dir.
func (e Experiment) take(u subject, dir string) (measure.Sample, error) {
	sample, err := u.load.run(u.design, u.config, dir)
	sample.Case, sample.Mode = e.Name, u.mode
	if err != nil {
		err = fmt.Errorf("%s, %s, %s: %w", e.Name, u.design.Name, u.mode, err)
	}
	return sample, err
}

// loss compares what was accepted with what is found.
func (s Settings) loss() []subject {
	small := load{goroutines: 8, each: s.records(20_000), size: 256, timed: true}
	paced := small
	paced.period, paced.burst = 2*time.Millisecond, 100
	large := load{goroutines: headlineThreads, each: s.records(20), size: headlineBytes, timed: true}
	config := Config{BufferSize: 2 << 20, Shards: 4, Flush: 2 * time.Millisecond}
	var subjects []subject
	for _, d := range Designs() {
		subjects = append(subjects,
			subject{"8 goroutines flat out, 256 B", d, small, config},
			subject{"8 goroutines at 100 MB/s, 256 B", d, paced, config},
			subject{"100 goroutines flat out, 300 KiB", d, large, s.recommended(8)},
		)
		if d.Own || d.Name == Published {
			subjects = append(subjects, subject{"100 goroutines, 1000 × 300 KiB a second", d, s.paced(headlineThreads, 2*time.Second), s.recommended(8)})
		}
	}
	return subjects
}

// calls measures LogBytes where no buffer has to be written meanwhile, with
// one goroutine and with 64, and then each single call where about one in 250
// fills a buffer. "no call" is the cost of the loop and the clock.
func (s Settings) calls() []subject {
	const records = 400_000 // 102 MB: less than nine tenths of a shard of the buffer
	idle := Config{BufferSize: choose(s, 1<<30, 16<<20), Shards: 8, Flush: time.Minute}
	one := load{goroutines: 1, each: s.records(records), size: 256}
	many := load{goroutines: 64, each: s.records(records) / 64, size: 256}
	swaps := load{goroutines: 1, each: s.records(20_000), size: 256, timed: true, period: time.Millisecond, burst: 100}
	var subjects []subject
	for _, d := range append([]Design{noCall}, Designs()...) {
		swap := Config{BufferSize: 64 << 10, Shards: 1, Flush: time.Minute}
		if d.Own { // with one shard it takes a lock; the goroutine uses one of two
			swap.BufferSize, swap.Shards = 2*swap.BufferSize, 2
		}
		subjects = append(subjects, subject{"1 goroutine", d, one, idle}, subject{"64 goroutines", d, many, idle}, subject{"buffers of 64 KiB", d, swaps, swap})
	}
	return subjects
}

// fullSets is how many full sets a row of the table of buffers sees at least.
const fullSets = 6

// buffers takes as long with each size as fullSets sets and a half take to fill,
// and no less than two seconds.
func (s Settings) buffers() []subject {
	var subjects []subject
	for _, mb := range choose(s, []int{8, 32, 64, 128, 256, 512}, []int{8, 32, 64, 512}) {
		config := s.recommended(8)
		config.BufferSize = choose(s, mb, min(mb, 32)) << 20
		fills := time.Duration(float64(config.BufferSize) / headlineBytes * (fullSets + 0.5) * float64(period))
		for _, name := range []string{Published, OwnDrop} {
			subjects = append(subjects, subject{fmt.Sprintf("%d MB", mb), design(name), s.paced(headlineThreads, max(2*time.Second, fills)), config})
		}
	}
	return subjects
}

// shards has the published pairs of threads and shards.
func (s Settings) shards() []subject {
	pairs := []struct{ threads, shards int }{{50, 4}, {50, 8}, {100, 4}, {100, 8}, {100, 16}, {200, 8}, {200, 16}}
	var subjects []subject
	for _, c := range pairs[:choose(s, len(pairs), 5)] {
		for _, name := range []string{Published, OwnDrop} {
			subjects = append(subjects, subject{fmt.Sprintf("%dT / %dS", c.threads, c.shards), design(name), s.paced(c.threads, 1500*time.Millisecond), s.recommended(c.shards)})
		}
	}
	return subjects
}

// engines are the ways in which buffers get to the file.
func (s Settings) engines() []subject {
	l := s.paced(headlineThreads, 2*time.Second)
	config := s.recommended(8)
	var subjects []subject
	for _, e := range []Engine{Buffered, Separate, Copied, Vectored} {
		config.IO = e
		subjects = append(subjects, subject{e.String(), design(Published), l, config})
	}
	for _, mode := range []file.Mode{file.Buffered, file.Uncached, file.Direct} {
		subjects = append(subjects, subject{mode.String(), ownDesign(OwnDrop, ownOptions{mode: mode, full: slab.Drop}), l, config})
	}
	return subjects
}

// pools compares memory taken anew and used again, at the published 1000 records a
// second. It has the loop alone as well: what that allocates is not the loggers'.
func (s Settings) pools() []subject {
	const rate = 1000
	d := choose(s, s.Time, 100*time.Millisecond)
	after := load{
		goroutines: headlineThreads, each: int(d.Seconds()*rate) / headlineThreads, size: headlineBytes,
		period: headlineThreads * time.Second / rate, timed: true,
	}
	config := s.recommended(8)
	config.IO = Copied
	before, fresh := after, config
	before.unpooled, fresh.Unpooled = true, true
	const again = "memory used again"
	return []subject{
		{"memory taken anew", unpooled(design(Published)), before, fresh},
		{again, design(Published), after, config},
		{again, design(OwnDrop), after, config},
		{again, noCall, after, config},
	}
}
