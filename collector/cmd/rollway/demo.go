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
	summary: "see the whole road at work, and verified",
	help: `
Starts a collector on a free loopback port with its data in a temporary folder,
and a sample HTTP service that logs through the library: rollway.Logger over
slab.Writer over remote.Writer. Workers send the service requests over HTTP for
a few seconds; each request logs four lines. Then every line is read back from
the collector and checked against what was logged, by worker and sequence
number, and one table is printed.

The latencies are those of single log calls as the service sees them, with the
load generator, the service and the collector sharing this machine.

The exit status is 1 if a line is missing, torn, repeated or out of order.

Examples:
  rollway demo
  rollway demo -for 10s -rate 0 -workers 16   as fast as it goes
`,
	setup: setupDemo,
}

// demoOptions are the flags of demo.
type demoOptions struct {
	length  time.Duration
	rate    int // requests a second, all workers together; 0: as fast as it goes
	workers int
	keep    bool
}

func setupDemo(flags *flag.FlagSet) func(*call, []string) error {
	var o demoOptions
	flags.DurationVar(&o.length, "for", 3*time.Second, "how long to send requests, a `TIME` such as 10s")
	flags.IntVar(&o.rate, "rate", 2000, "`N` requests a second, all workers together; 0: as fast as it goes")
	flags.IntVar(&o.workers, "workers", 8, "`N` clients send at the same time")
	flags.BoolVar(&o.keep, "keep", false, "keep the folder with the data, and say where it is")
	return func(c *call, args []string) error {
		switch {
		case len(args) > 0:
			return usagef("unexpected argument %q", args[0])
		case o.length <= 0 || o.length > time.Hour:
			return usagef("-for %v: give a time from a moment to an hour", o.length)
		case o.rate < 0:
			return usagef("-rate %d: it must not be negative", o.rate)
		case o.workers < 1 || o.workers > 1000:
			return usagef("-workers %d: give 1 to 1000", o.workers)
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
	length   time.Duration // from the first log call to the last
	requests int
	load     loadResult
	slab     slab.Stats
	stored   uint64
	verdict  verdict
}

// whole reports whether every line logged was found once and in order.
func (r *demoReport) whole() bool {
	v := r.verdict
	return v.missing == 0 && v.torn == 0 && v.repeated == 0 && v.disordered == 0 && v.found == r.load.calls
}

func (r *demoReport) print(w io.Writer) error {
	h := r.load.latency
	at := func(percent float64) string {
		return roundLatency(time.Duration(h.ValueAtPercentile(percent))).String()
	}
	for _, row := range [][2]string{
		{"log calls", count(r.load.calls)},
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
		{"lines/s", count(int(float64(r.load.calls) / r.length.Seconds()))},
		{"requests/s", count(int(float64(r.requests) / r.length.Seconds()))},
	} {
		if _, err := fmt.Fprintf(w, "%-26s%12s\n", row[0], row[1]); err != nil {
			return err
		}
	}
	return nil
}

// roundLatency keeps three digits or so.
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

// runDemo carries the demo out. The collector and the service are stopped and,
// unless they are to be kept, the data are removed when it returns.
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
	// What the collector has to say of itself is of interest if it is bad.
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
	c.say("collector %s, %d workers, %s …", base, o.workers, o.length)

	report := &demoReport{}
	load, err := driveService(ctx, log, o)
	if err != nil {
		return nil, errors.Join(err, log.Close())
	}
	report.load, report.requests, report.length = load, load.requests, load.took

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
	if report.verdict, err = verify(resp.Body, load.perWorker); err != nil {
		return nil, fmt.Errorf("read back: %w", err)
	}
	return report, nil
}
