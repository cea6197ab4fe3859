package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"time"

	"github.com/rollway/rollway"
	"github.com/rollway/rollway/collector"
	"github.com/rollway/rollway/collector/config"
	"github.com/rollway/rollway/remote"
	"github.com/rollway/rollway/slab"
)

var demoCommand = &command{
	name:    "demo",
	summary: "log through every stage, and verify each line",
	help: `
Starts a collector on a free loopback port with its data in a temporary folder,
and producers that log to it through the library: rollway.Logger over
slab.Writer over remote.Writer. It then reads every line back from the
collector, checks it against what was logged, by producer and sequence number,
and prints one table.

The latencies are those of single log calls, with the producers and the
collector sharing this machine.

The exit status is 1 if a line is missing, torn, repeated or out of order.

Examples:
  rollway demo
  rollway demo -for 10s -rate 0 -producers 16   as fast as it goes
`,
	setup: setupDemo,
}

// demoOptions are the flags of demo.
type demoOptions struct {
	length    time.Duration
	rate      int // lines a second, all producers together; 0: as fast as it goes
	producers int
	keep      bool
}

func setupDemo(flags *flag.FlagSet) func(*call, []string) error {
	var o demoOptions
	flags.DurationVar(&o.length, "for", 3*time.Second, "how long to log, a `TIME` such as 10s")
	flags.IntVar(&o.rate, "rate", 8000, "`N` lines a second, all producers together; 0: as fast as it goes")
	flags.IntVar(&o.producers, "producers", 8, "`N` goroutines log at the same time")
	flags.BoolVar(&o.keep, "keep", false, "keep the folder with the data, and say where it is")
	return func(c *call, args []string) error {
		switch {
		case len(args) > 0:
			return usagef("unexpected argument %q", args[0])
		case o.length <= 0 || o.length > time.Hour:
			return usagef("-for %v: give a time from a moment to an hour", o.length)
		case o.rate < 0:
			return usagef("-rate %d: it must not be negative", o.rate)
		case o.producers < 1 || o.producers > 1000:
			return usagef("-producers %d: give 1 to 1000", o.producers)
		}
		ctx, stop := interruptible()
		defer stop()
		report, err := runDemo(ctx, c, o)
		if err != nil {
			return err
		}
		if err := report.print(c.stdout); err != nil {
			return err
		}
		if report.verdict.first != "" {
			c.say("the first: %s", report.verdict.first)
		}
		if !report.whole() {
			return errors.New("lines are missing, torn, repeated or out of order: see the table")
		}
		return nil
	}
}

// demoReport is what the table shows.
type demoReport struct {
	load    loadResult
	slab    slab.Stats
	stored  uint64
	verdict verdict
}

// whole reports whether every line logged was found once and in order.
func (r *demoReport) whole() bool {
	v := r.verdict
	return v.missing == 0 && v.torn == 0 && v.repeated == 0 && v.disordered == 0 && v.found == r.load.total()
}

func (r *demoReport) print(w io.Writer) error {
	h := r.load.latency
	at := func(percent float64) string {
		return roundLatency(time.Duration(h.ValueAtPercentile(percent))).String()
	}
	for _, row := range [][2]string{
		{"log calls", count(r.load.total())},
		{"accepted by slab.Writer", count(int(r.slab.Accepted))},
		{"stored by the collector", count(int(r.stored))},
		{"read back and verified", count(r.verdict.found)},
		{"dropped", count(int(r.slab.Dropped.Total()))},
		{"missing", count(r.verdict.missing)},
		{"torn", count(r.verdict.torn)},
		{"repeated", count(r.verdict.repeated)},
		{"out of order", count(r.verdict.disordered)},
		{"log call p50", at(50)},
		{"log call p99", at(99)},
		{"log call p99.9", at(99.9)},
		{"log call max", roundLatency(time.Duration(h.Max())).String()},
		{"lines/s", count(int(float64(r.load.total()) / r.load.took.Seconds()))},
	} {
		if _, err := fmt.Fprintf(w, "%-26s%12s\n", row[0], row[1]); err != nil {
			return err
		}
	}
	return nil
}

// roundLatency keeps about three digits.
func roundLatency(d time.Duration) time.Duration {
	switch {
	case d >= 100*time.Millisecond:
		return d.Round(time.Millisecond)
	case d >= time.Millisecond:
		return d.Round(10 * time.Microsecond)
	case d >= 10*time.Microsecond:
		return d.Round(100 * time.Nanosecond)
	}
	return d.Round(10 * time.Nanosecond)
}

// runDemo runs the demo. Before it returns it stops the collector and, unless -keep
// was given, removes the data.
func runDemo(ctx context.Context, c *call, o demoOptions) (_ *demoReport, err error) {
	dir, err := os.MkdirTemp("", "rollway-demo-")
	if err != nil {
		return nil, fmt.Errorf("make a folder for the data: %w", err)
	}
	defer func() {
		if o.keep {
			c.say("data kept in %s", dir)
			return
		}
		if removeErr := os.RemoveAll(dir); err == nil {
			err = removeErr
		}
	}()
	cfg := config.Default()
	cfg.Listen, cfg.Data = "127.0.0.1:0", filepath.Join(dir, "data")
	own, err := ownLog(c.stderr, slog.LevelWarn)
	if err != nil {
		return nil, err
	}
	defer own.Close()
	col, err := collector.New(cfg, slog.New(own.Handler()))
	if err != nil {
		return nil, err
	}
	running, stopCollector := context.WithCancel(context.Background())
	stopped := make(chan error, 1)
	go func() { stopped <- col.Run(running) }()
	defer func() {
		stopCollector()
		err = errors.Join(err, <-stopped)
	}()

	base := "http://" + col.Addr().String()
	rw, err := remote.Open(base+"/api/logs", remote.Options{})
	if err != nil {
		return nil, err
	}
	sw, err := slab.New(rw, slab.Options{Full: slab.Block})
	if err != nil {
		return nil, err
	}
	log, err := rollway.New(rollway.Options{Outputs: []rollway.Output{{Writer: sw, Level: slog.LevelInfo, Encoder: rollway.JSON{}}}})
	if err != nil {
		return nil, errors.Join(err, sw.Close())
	}
	c.say("collector %s, %d producers, %s …", base, o.producers, o.length)

	report := &demoReport{load: produce(ctx, log, o)}
	flushing, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	if err := errors.Join(log.Flush(flushing), log.Shutdown(flushing)); err != nil {
		return nil, fmt.Errorf("flush: %w", err)
	}
	report.slab = sw.Stats()
	report.stored = col.Stats().Receive.Stored

	cl, err := newClient(base)
	if err != nil {
		return nil, err
	}
	resp, err := cl.get(context.Background(), "/api/query", nil, nil)
	if err != nil {
		return nil, fmt.Errorf("read back: %w", err)
	}
	defer resp.Body.Close()
	if report.verdict, err = verify(resp.Body, report.load.calls); err != nil {
		return nil, fmt.Errorf("read back: %w", err)
	}
	return report, nil
}
