package direct

import (
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"runtime"
	"sync"
	"time"

	"github.com/rollway/rollway/bench/internal/lines"
	"github.com/rollway/rollway/bench/internal/measure"
	"github.com/rollway/rollway/internal/promtext"
)

// A load is what goroutines log, all with one logger.
type load struct {
	goroutines int
	each       int           // records of a goroutine
	size       int           // bytes of a record, its newline included
	period     time.Duration // of a goroutine: burst records are due in each. 0: flat out
	burst      int           // default 1
	timed      bool          // each call too
	unpooled   bool          // the caller takes new memory for each record
}

// headline is the headline load for that long.
func headline(threads int, d time.Duration) load {
	return load{
		goroutines: threads, each: max(1, int(d/period)/threads), size: headlineBytes,
		period: time.Duration(threads) * period, timed: true,
	}
}

// small reports whether records are lines of package lines: these cost less to
// make than those with a checksum.
func (l load) small() bool { return l.size < 1024 }

// producer is one goroutine of a load, and its account.
type producer struct {
	call    promtext.Histogram
	record  []byte
	taken   []bool
	refused int
	err     error // any error but a refusal
	_       [64]byte
}

// run makes a logger, has the load log with it, closes it, reads the file back
// and removes it.
func (l load) run(d Design, c Config, dir string) (measure.Sample, error) {
	file, err := os.MkdirTemp(dir, "rollway-direct-")
	if err != nil {
		return measure.Sample{}, err
	}
	defer os.RemoveAll(file)
	c.Path = filepath.Join(file, "log")
	logger, err := d.Open(c)
	if err != nil {
		return measure.Sample{}, fmt.Errorf("open: %w", err)
	}
	producers := make([]producer, l.goroutines)
	var ready, done sync.WaitGroup
	var start time.Time
	begin := make(chan struct{})
	for i := range producers {
		p := &producers[i]
		p.taken, p.record = make([]bool, l.each), newRecord(l.size)
		ready.Add(1)
		done.Go(func() {
			if l.period > 0 {
				time.Sleep(time.Nanosecond) // a goroutine's first sleep allocates
			}
			ready.Done()
			<-begin
			p.log(logger, l, i, start.Add(l.period*time.Duration(i)/time.Duration(l.goroutines)))
		})
	}
	ready.Wait()
	runtime.GC()
	gauge := measure.StartGauge()
	start = time.Now()
	close(begin)
	done.Wait()
	n := l.goroutines * l.each
	caller, cycles, pause := gauge.Sample(n)
	closeErr := logger.Close()
	sample, _, _ := gauge.Sample(n)
	if closeErr != nil {
		return measure.Sample{}, fmt.Errorf("close: %w", closeErr)
	}
	extra, err := l.outcome(producers, d.Lossy, c.Path)
	if err != nil {
		return measure.Sample{}, err
	}
	f := logger.Figures()
	maps.Copy(extra, map[string]float64{
		"flushes": float64(f.Flushes), "write_mean": float64(f.Write.Mean), "write_p99": float64(f.Write.P99),
		"write_max": float64(f.Write.Max), "memory": float64(f.Memory),
	})
	seconds := caller.NsPerOp * float64(n) / 1e9
	extra["mb_s"] = extra["accepted"] * float64(l.size) / seconds / 1e6
	extra["gc_cycles"], extra["gc_pause_ns"] = float64(cycles), float64(pause)
	extra["seconds"], extra["buffer"] = seconds, float64(c.BufferSize)
	sample.Library, sample.Extra = d.Name, extra
	sample.CallerNs, sample.AllocsPerOp, sample.BytesPerOp = caller.NsPerOp, caller.AllocsPerOp, caller.BytesPerOp // without Close
	return sample, nil
}

// outcome reads the file back.
func (l load) outcome(producers []producer, lossy bool, path string) (map[string]float64, error) {
	parse := parseRecord(l.size)
	if l.small() {
		parse = lines.Parser(l.size)
	}
	a := newAudit(l.goroutines, parse)
	if err := readFile(a, path); err != nil {
		return nil, fmt.Errorf("read back: %w", err)
	}
	taken := make([][]bool, len(producers))
	var call promtext.Histogram
	refused := 0
	for i := range producers {
		if err := producers[i].err; err != nil {
			return nil, fmt.Errorf("log: %w", err)
		}
		taken[i] = producers[i].taken
		refused += producers[i].refused
		call.Add(&producers[i].call)
	}
	extra, err := outcome(a, taken, l.size, lossy)
	if err != nil {
		return nil, err
	}
	extra["given"], extra["refused"] = float64(l.goroutines*l.each), float64(refused)
	if l.timed {
		for name, q := range map[string]float64{"call_p50": 0.5, "call_p99": 0.99, "call_p998": 0.998, "call_p999": 0.999} {
			extra[name] = float64(call.Quantile(q))
		}
	}
	return extra, nil
}

// log logs all records of a goroutine. The first is due at first.
func (p *producer) log(logger Logger, l load, number int, first time.Time) {
	record := p.record
	line := record[:l.size]
	if l.small() {
		lines.Append(line[:0], l.size, number, 0)
	}
	burst := max(1, l.burst)
	for i := range l.each {
		if l.small() {
			lines.Renumber(line, i)
		} else {
			if l.unpooled {
				record = newRecord(l.size)
			}
			fillRecord(record, number, i)
		}
		if l.period > 0 && i%burst == 0 {
			time.Sleep(time.Until(first.Add(l.period * time.Duration(i/burst))))
		}
		var begin time.Time
		if l.timed {
			begin = time.Now()
		}
		err := logger.LogBytes(record)
		if l.timed {
			p.call.Record(time.Since(begin))
		}
		switch {
		case err == nil:
			p.taken[i] = true
		case errors.Is(err, ErrFull):
			p.refused++
		default:
			p.err = err
			return
		}
	}
}
