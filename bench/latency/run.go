package latency

import (
	"fmt"
	"io"
	"runtime"
	"sync"
	"time"

	"github.com/rollway/rollway/bench/internal/lines"
	"github.com/rollway/rollway/bench/internal/measure"
	"github.com/rollway/rollway/bench/internal/pace"
	"github.com/rollway/rollway/internal/promtext"
)

// Measure runs every scenario with every writer and number of producers for
// each, in interleaved rounds, and reports progress to w.
func Measure(w io.Writer, scenarios []Scenario, rounds int, each time.Duration) ([]measure.Sample, error) {
	var subjects []func() (measure.Sample, error)
	for _, s := range scenarios {
		for _, m := range modes {
			for _, writer := range s.Writers {
				subjects = append(subjects, func() (measure.Sample, error) {
					sample, err := run(writer, s.Rate, m.producers, each)
					sample.Case, sample.Library, sample.Mode = s.Name, writer.Name, m.name
					if err != nil {
						err = fmt.Errorf("%s, %s, %s: %w", s.Name, writer.Name, m.name, err)
					}
					return sample, err
				})
			}
		}
	}
	return measure.Interleave(w, rounds, len(subjects), func(i int) (measure.Sample, error) { return subjects[i]() })
}

// A producer's own account.
type producer struct {
	alarm     *pace.Alarm
	call, due promtext.Histogram
	refused   uint64
}

// run lets producers write to one writer for the time each.
func run(writer Writer, rate, producers int, each time.Duration) (measure.Sample, error) {
	perProducer := int(each.Seconds()*float64(rate)) / producers
	period := time.Duration(producers) * time.Second / time.Duration(rate)
	runtime.GC()
	begin := time.Now().Add(10 * time.Millisecond) // all are there before the first line is due
	dst := newStalling(producers, begin.Add(min(each/4, stallEvery/2)))
	out, err := writer.open(dst)
	if err != nil {
		return measure.Sample{}, err
	}
	all := make([]producer, producers)
	for i := range all {
		if all[i].alarm, err = pace.NewAlarm(); err != nil {
			return measure.Sample{}, err
		}
		defer all[i].alarm.Close()
	}
	spin := pace.SpinOf(producers, period)
	gauge := measure.StartGauge()
	var wg sync.WaitGroup
	for p := range all {
		// Their lines are due in turn, not all at the same moment.
		first := begin.Add(period * time.Duration(p) / time.Duration(producers))
		wg.Go(func() { all[p].produce(out.Writer, p, perProducer, first, period, spin) })
	}
	wg.Wait()
	sample, _, _ := gauge.Sample(perProducer * producers)
	if err := out.Close(); err != nil {
		return measure.Sample{}, fmt.Errorf("close: %w", err)
	}

	var sum producer
	for p := range all {
		sum.call.Add(&all[p].call)
		sum.due.Add(&all[p].due)
		sum.refused += all[p].refused
	}
	dst.mu.Lock()
	defer dst.mu.Unlock()
	sent := uint64(perProducer * producers)
	if writer.Null {
		dst.lines = sent
	}
	if sum.call.Count() != sent || dst.broken > 0 || dst.lines > sent {
		return measure.Sample{}, fmt.Errorf("of %d lines %d were timed and %d arrived, %d broke order or form", sent, sum.call.Count(), dst.lines, dst.broken)
	}
	extra := map[string]float64{
		"lines": float64(sent), "lost": float64(sent - dst.lines), "refused": float64(sum.refused), "stalls": float64(dst.stalls),
		"call_over_500us": float64(sum.call.Over(500 * time.Microsecond)),
	}
	if out.Counted != nil {
		extra["counted"] = float64(out.Counted())
	}
	for name, h := range map[string]*promtext.Histogram{"call": &sum.call, "due": &sum.due} {
		extra[name+"_p50"] = float64(h.Quantile(0.50))
		extra[name+"_p99"] = float64(h.Quantile(0.99))
		extra[name+"_p999"] = float64(h.Quantile(0.999))
		extra[name+"_max"] = float64(h.Max())
	}
	sample.NsPerOp, sample.Extra = extra["call_p50"], extra
	return sample, nil
}

// produce writes n lines, the k-th due at first + k periods.
func (p *producer) produce(out io.Writer, number, n int, first time.Time, period, spin time.Duration) {
	line := lines.Append(nil, lineBytes, number, 0)
	base := time.Now()
	due := first.Sub(base)
	for k := range n {
		lines.Renumber(line, k)
		p.alarm.WaitUntil(base, due, spin)
		begin := time.Since(base)
		if out != nil {
			if _, err := out.Write(line); err != nil {
				p.refused++
			}
		}
		end := time.Since(base)
		p.call.Record(end - begin)
		p.due.Record(end - due)
		due += period
	}
}
