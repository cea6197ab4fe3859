package ingest

import (
	"fmt"
	"net/http"
	"os"

	"github.com/rollway/rollway/bench/internal/measure"
	"github.com/rollway/rollway/collector/journal"
)

// sizes are the numbers of events in a request that are measured; the first is
// the article's.
var sizes = []int{100, 1}

// serial is the mode of the requests: one after the other.
const serial = "serial"

func sizeCase(events int) string {
	if events == 1 {
		return "1 event"
	}
	return fmt.Sprintf("%d events", events)
}

// Subjects are requests without net/http's server: an operation is one of them,
// from its body to its answer; those of ours also with what enriches them. Journals
// are made in dir.
func Subjects(dir string) []measure.Subject {
	var all []measure.Subject
	add := func(name, library string, prepare func() (measure.Run, error)) {
		all = append(all, measure.Subject{Case: name, Library: library, Mode: serial, Goroutines: 1, Prepare: prepare})
	}
	for _, events := range sizes {
		for _, name := range []string{Naive, Pooled} {
			add(sizeCase(events), name, func() (measure.Run, error) { return articleRun(name == Pooled, events) })
		}
		for _, name := range []string{Buffered, Synced} {
			add(sizeCase(events), name, func() (measure.Run, error) { return ownRun(dir, own{synced: name == Synced}, events) })
		}
	}
	for _, e := range enrichments() {
		all = append(all, e.subject(dir))
	}
	return all
}

// PlanBenchmark counts the allocations of 10,800 bodies.
var PlanBenchmark = measure.Plan{Rounds: 9, Ops: 1200}

// BenchmarkSubjects are the article's versions in its own benchmark: a body of 100
// events in memory is handed to the pipeline, without a request around it.
func BenchmarkSubjects() []measure.Subject {
	var all []measure.Subject
	for _, name := range []string{Naive, Pooled} {
		all = append(all, measure.Subject{Case: "100 events in memory", Library: name, Mode: serial, Goroutines: 1,
			Prepare: func() (measure.Run, error) { return benchmarkRun(name == Pooled), nil }})
	}
	return all
}

func benchmarkRun(pooled bool) measure.Run {
	var c queueCheck
	b := newBody(100)
	a := &article{pooled: pooled, queue: c.check(len(b.data))}
	return measure.Run{
		Loop: func(_, n int) {
			for range n {
				if a.process(b.data) != nil {
					c.wrong++
				}
			}
		},
		Verify: func(ops int) (map[string]float64, error) { return nil, c.err(ops) },
	}
}

// A queueCheck counts what one of the article's pipelines queues.
type queueCheck struct{ queued, short, wrong int }

// check returns the queue of bodies of a size.
func (c *queueCheck) check(size int) func([]byte) {
	return func(p []byte) {
		c.queued++
		if len(p) != size+1 { // the encoder's newline
			c.short++
		}
	}
}

func (c *queueCheck) err(ops int) error {
	if c.wrong > 0 || c.queued != ops || c.short > 0 {
		return fmt.Errorf("of %d bodies %d were queued, %d not whole, and %d not taken", ops, c.queued, c.short, c.wrong)
	}
	return nil
}

// loop sends n requests through h each time it is called, and counts those
// that were not answered with want.
func loop(h http.Handler, events, want int) (run func(_, n int), wrong *int, err error) {
	x, err := newExchange(events)
	if err != nil {
		return nil, nil, err
	}
	next, wrong := uint64(0), new(int)
	return func(_, n int) {
		for range n {
			if x.serve(h, next) != want {
				*wrong++
			}
			next += uint64(events)
		}
	}, wrong, nil
}

func articleRun(pooled bool, events int) (measure.Run, error) {
	var c queueCheck
	run, wrong, err := loop(&article{pooled: pooled, queue: c.check(len(newBody(events).data))}, events, http.StatusAccepted)
	return measure.Run{Loop: run, Verify: func(ops int) (map[string]float64, error) {
		c.wrong = *wrong
		return nil, c.err(ops)
	}}, err
}

// ownRun has a journal of its own, which is read back afterwards.
func ownRun(dir string, o own, events int) (measure.Run, error) {
	tmp, err := os.MkdirTemp(dir, "bench-ingest-")
	if err != nil {
		return measure.Run{}, err
	}
	discard := func() { os.RemoveAll(tmp) }
	h, j, err := o.open(tmp)
	if err != nil {
		discard()
		return measure.Run{}, err
	}
	run, wrong, err := loop(h, events, http.StatusOK)
	return measure.Run{
		Loop: run,
		Verify: func(ops int) (map[string]float64, error) {
			if *wrong > 0 {
				return nil, fmt.Errorf("of %d requests %d were not answered with 200", ops, *wrong)
			}
			return nil, checkAll(j, uint64(ops)*uint64(events))
		},
		Discard: func() { j.Close(); discard() },
	}, err
}

// checkAll fails unless the journal has the events numbered below n, in order
// and nothing else.
func checkAll(j *journal.Journal, n uint64) error {
	next := uint64(0)
	err := eachNumber(j, func(number uint64) error {
		if number != next {
			return fmt.Errorf("event %d in the journal where %d belongs", number, next)
		}
		next++
		return nil
	})
	if err == nil && next != n {
		err = fmt.Errorf("%d events in the journal of %d", next, n)
	}
	return err
}
