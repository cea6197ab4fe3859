package direct

import (
	"fmt"
	"io"
	"time"

	"github.com/rollway/rollway/bench/internal/measure"
	"github.com/rollway/rollway/shard"
)

// The experiments, as the Case of their samples.
const (
	CaseLoss    = "loss"    // accepted against found
	CaseCall    = "call"    // LogBytes alone
	CaseBuffers = "buffers" // size of the buffers
	CaseShards  = "shards"  // threads and shards
	CaseIO      = "io"      // how buffers get to the file
	CasePools   = "pools"   // memory taken anew or used again
	CaseSmall   = "small"   // lines of 256 bytes
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
	takenAnew = "memory taken anew"
	usedAgain = "memory used again"
)

// Settings say how much is measured.
type Settings struct {
	Dir   string // for log files, which are removed; default the one for temporary files
	Short bool   // each experiment once and briefly
}

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
	case name == CaseSmall:
		return 7
	case name == CaseCall:
		return 5
	case name == CaseLoss:
		return 3
	}
	return 2
}

// Cases lists the experiments.
func Cases() []string {
	return []string{CaseLoss, CaseCall, CaseBuffers, CaseShards, CaseIO, CasePools, CaseSmall}
}

// Subjects lists the samples of a round of an experiment.
func (s Settings) Subjects(name string) []Subject {
	switch name {
	case CaseLoss:
		return s.loss()
	case CaseCall:
		return s.calls()
	case CaseBuffers:
		return s.buffers()
	case CaseShards:
		return s.shards()
	case CaseIO:
		return s.engines()
	case CasePools:
		return s.pools()
	case CaseSmall:
		return s.small()
	}
	panic("no experiment " + name)
}

// Measure runs an experiment and reports progress to w.
func (s Settings) Measure(w io.Writer, name string) ([]measure.Sample, error) {
	subjects := s.Subjects(name)
	fmt.Fprintf(w, "%s: ", name)
	return measure.Interleave(w, s.Rounds(name), len(subjects), func(i int) (measure.Sample, error) {
		return subjects[i].take(s.Dir)
	})
}

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
			Subject{CaseLoss, FlatOut, d, small, config},
			Subject{CaseLoss, Paced, d, paced, config},
			Subject{CaseLoss, Large, d, large, s.recommended(8)},
		)
		if d.Own || d.Name == Published {
			subjects = append(subjects, Subject{CaseLoss, Headline, d, headline(headlineThreads, s.paced(2*time.Second)), s.recommended(8)})
		}
	}
	return subjects
}

// calls measures LogBytes where no buffer has to be written meanwhile, with
// one goroutine and with 64, and then each call by itself where one in some 250
// fills a buffer. "no call" is what the loop and the clock take.
func (s Settings) calls() []Subject {
	const records = 100_000 // 26 MB: less than nine tenths of a shard of the buffer
	idle := Config{BufferSize: s.bytes(256 << 20), Shards: 8, Flush: time.Minute}
	one := load{goroutines: 1, each: s.records(records), size: 256}
	many := load{goroutines: 64, each: s.records(records) / 64, size: 256}
	swaps := load{goroutines: 1, each: s.records(20_000), size: 256, timed: true, period: time.Millisecond, burst: 100}
	var subjects []Subject
	for _, d := range append([]Design{{Name: NoCall, Lossy: true, Open: openNone}}, Designs()...) {
		subjects = append(subjects,
			Subject{CaseCall, Uncontended, d, one, idle},
			Subject{CaseCall, Contended, d, many, idle},
			Subject{CaseCall, AtSwap, d, swaps, Config{BufferSize: 64 << 10, Shards: 1, Flush: time.Minute}},
		)
	}
	return subjects
}

func (s Settings) buffers() []Subject {
	var subjects []Subject
	for _, mb := range []int{8, 32, 64, 128, 256, 512} {
		if s.Short && mb > 32 {
			break
		}
		config := s.recommended(8)
		config.BufferSize = mb << 20
		for _, name := range []string{Published, OwnDrop} {
			subjects = append(subjects, Subject{CaseBuffers, fmt.Sprintf("%d MB", mb), design(name), headline(headlineThreads, s.paced(1500*time.Millisecond)), config})
		}
	}
	return subjects
}

func (s Settings) shards() []Subject {
	var subjects []Subject
	for i, c := range []struct{ threads, shards int }{{50, 4}, {50, 8}, {100, 4}, {100, 8}, {100, 16}, {200, 8}, {200, 16}} {
		if s.Short && i > 0 {
			break
		}
		config := s.recommended(c.shards)
		for _, name := range []string{Published, OwnDrop} {
			subjects = append(subjects, Subject{CaseShards, fmt.Sprintf("%dT / %dS", c.threads, c.shards), design(name), headline(c.threads, s.paced(1500*time.Millisecond)), config})
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
		subjects = append(subjects, Subject{CaseIO, e.String(), design(Published), l, config})
	}
	for _, mode := range []shard.Mode{shard.Buffered, shard.Uncached, shard.Direct} {
		subjects = append(subjects, Subject{CaseIO, mode.String(), ownDesign(OwnDrop, ownOptions{mode: mode}), l, config})
	}
	return subjects
}

func (s Settings) pools() []Subject {
	l := headline(headlineThreads, s.paced(3*time.Second))
	config := s.recommended(8)
	config.IO = Copied
	before, after := l, l
	before.unpooled = true
	fresh := config
	fresh.Unpooled = true
	return []Subject{
		{CasePools, takenAnew, unpooled(design(Published)), before, fresh},
		{CasePools, usedAgain, design(Published), after, config},
		{CasePools, usedAgain, design(OwnDrop), after, config},
	}
}
