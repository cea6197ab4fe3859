package published

import (
	"fmt"
	"maps"
	"path/filepath"

	"github.com/rollway/rollway/bench/allocstudy"
	"github.com/rollway/rollway/bench/direct"
	"github.com/rollway/rollway/bench/ingest"
	"github.com/rollway/rollway/bench/internal/measure"
	"github.com/rollway/rollway/bench/relay"
)

// results are the raw results of all programs that measure something published.
type results struct {
	writers, latency, requests, relay sums
	loads                             []ingest.Run
	direct                            map[string]sums             // by experiment
	samples                           map[string][]measure.Sample // of direct, by experiment
	latencySamples                    []measure.Sample
	long                              direct.Run // of the headline
	onOff                             float64    // p99 with logging ÷ p99 without
	alloc                             *allocstudy.Results
	allocTimes                        sums
}

// sums finds summaries.
type sums map[measure.Key]measure.Summary

// at is the summary of what was measured. It ends the claim if there is none.
func (s sums) at(name, library, mode string) measure.Summary {
	sum, ok := s[measure.Key{Case: name, Library: library, Mode: mode}]
	if !ok {
		panic(missing(fmt.Sprintf("%s, %s, %s", name, library, mode)))
	}
	return sum
}

// missing is what a claim needs and the results do not have, as a panic of at.
type missing string

func load(dir string) (*results, error) {
	r := &results{direct: map[string]sums{}, samples: map[string][]measure.Sample{}, relay: sums{}}
	file := func(name string) string { return filepath.Join(dir, name) }
	for name, to := range map[string]*sums{"writers": &r.writers, "latency": &r.latency} {
		raw, err := measure.Load[measure.Results](file(name+".json"), name)
		if err != nil {
			return nil, err
		}
		*to = raw.Summarize()
		if name == "latency" {
			r.latencySamples = raw.Samples
		}
	}
	for _, name := range direct.Cases() {
		raw, err := measure.Load[measure.Results](file(direct.File(name)), direct.Kind)
		if err != nil {
			return nil, err
		}
		r.direct[name], r.samples[name] = raw.Summarize(), raw.Samples
	}
	headline, err := direct.LoadHeadlines(file(direct.FileHeadline))
	if err != nil {
		return nil, err
	}
	if len(headline.Runs) == 0 {
		return nil, fmt.Errorf("%s has no runs: measure again", dir)
	}
	r.long, r.onOff = headline.Runs[len(headline.Runs)-1], headline.OnOff()
	in, err := ingest.Load(file("ingest.json"))
	if err != nil {
		return nil, err
	}
	r.requests, r.loads = in.Summarize(), in.Runs
	if r.alloc, err = allocstudy.Load(file("allocstudy.json")); err != nil {
		return nil, err
	}
	r.allocTimes = r.alloc.Summarize()
	between, err := relay.Load(file("relay.json"))
	if err != nil {
		return nil, err
	}
	for _, p := range between.Parts {
		maps.Copy(r.relay, p.Summarize())
	}
	return r, nil
}

// loadOf is the run of a server of package ingest.
func (r *results) loadOf(server string, rate int) ingest.Run {
	for _, run := range r.loads {
		if run.Server == server && run.Rate == rate {
			return run
		}
	}
	panic(missing(fmt.Sprintf("%s, %d requests/s", server, rate)))
}

// lossOf adds up what became of the records of a design in all rounds.
func (r *results) lossOf(design, mode string) (given, refused, accepted, lost float64) {
	for _, s := range r.samples[direct.CaseLoss] {
		if s.Library == design && s.Mode == mode {
			given += s.Extra["given"]
			refused += s.Extra["refused"]
			accepted += s.Extra["accepted"]
			lost += s.Extra["lost"]
		}
	}
	if given == 0 {
		panic(missing(design + ", " + mode))
	}
	return given, refused, accepted, lost
}
