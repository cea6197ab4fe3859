package published

import (
	"errors"
	"fmt"
	"path/filepath"

	"github.com/rollway/rollway/bench/allocstudy"
	"github.com/rollway/rollway/bench/direct"
	"github.com/rollway/rollway/bench/ingest"
	"github.com/rollway/rollway/bench/internal/measure"
	"github.com/rollway/rollway/bench/internal/report"
	"github.com/rollway/rollway/bench/relay"
	"github.com/rollway/rollway/bench/reliability"
)

// results are the raw results of all programs.
type results struct {
	logger, writers, latency, requests, relay, allocTimes *report.Figures

	in          *ingest.Results
	direct      map[string]*report.Figures // by experiment
	headline    *direct.Headlines
	reliability *reliability.Results
	alloc       *allocstudy.Results
}

func load(dir string) (*results, error) {
	r := &results{direct: map[string]*report.Figures{}}
	var errs []error
	of := func(name string) *report.Figures {
		return report.FiguresOf(*read[measure.Results](&errs, dir, name, name))
	}
	r.logger, r.writers, r.latency = of("logger"), of("writers"), of("latency")
	for _, name := range direct.Cases() {
		f, err := direct.Load(dir, name)
		errs = append(errs, err)
		r.direct[name] = f
	}
	r.headline = read[direct.Headlines](&errs, dir, "direct-headline", direct.Kind)
	r.in = read[ingest.Results](&errs, dir, ingest.Kind, ingest.Kind)
	r.reliability = read[reliability.Results](&errs, dir, reliability.Kind, reliability.Kind)
	r.alloc = read[allocstudy.Results](&errs, dir, allocstudy.Kind, allocstudy.Kind)
	r.requests, r.allocTimes = report.FiguresOf(r.in.Results), report.FiguresOf(r.alloc.Results)
	r.relay = read[relay.Results](&errs, dir, relay.Kind, relay.Kind).Figures()
	if err := errors.Join(errs...); err != nil {
		return nil, err
	}
	if len(r.headline.Runs) == 0 {
		return nil, fmt.Errorf("%s has no runs of the headline: measure again", dir)
	}
	return r, nil
}

// read reads a file of results, or returns none and notes why.
func read[T any](errs *[]error, dir, name, kind string) *T {
	results, err := measure.Load[T](filepath.Join(dir, name+".json"), kind)
	if err != nil {
		*errs = append(*errs, err)
		return new(T)
	}
	return results
}

// loadOf is the run of a server of package ingest.
func (r *results) loadOf(server string, rate int) ingest.Run {
	for _, run := range r.in.Runs {
		if run.Server == server && run.Rate == rate {
			return run
		}
	}
	report.Miss("%s, %d requests/s", server, rate)
	return ingest.Run{}
}

// lossOf is which share of the accepted records a design lost in all rounds.
func (r *results) lossOf(design, mode string) (lost, accepted float64) {
	of := func(figure string) float64 {
		return r.direct[direct.CaseLoss].Total(direct.CaseLoss, design, mode, figure)
	}
	if accepted = of("accepted"); accepted == 0 {
		report.Miss("%s, %s", design, mode)
	}
	return of("lost"), accepted
}
