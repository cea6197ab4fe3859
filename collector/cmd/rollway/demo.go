package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"hash/crc32"
	"io"
	"log/slog"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/rollway/rollway"
	"github.com/rollway/rollway/collector"
	"github.com/rollway/rollway/collector/config"
	"github.com/rollway/rollway/internal/backoff"
	"github.com/rollway/rollway/internal/promtext"
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

// demo is one run of the command, with its flags.
type demo struct {
	length    time.Duration
	rate      int // lines a second, all producers together; 0: as fast as it goes
	producers int
	keep      bool

	logged  []int // lines by producer
	took    time.Duration
	latency promtext.Histogram // of log calls
	slab    slab.Stats
	stored  uint64
	verdict verdict
}

func setupDemo(flags *flag.FlagSet) action {
	d := &demo{}
	flags.DurationVar(&d.length, "for", 3*time.Second, "how long to log, a `TIME` such as 10s")
	flags.IntVar(&d.rate, "rate", 8000, "`N` lines a second, all producers together; 0: as fast as it goes")
	flags.IntVar(&d.producers, "producers", 8, "`N` goroutines log at the same time")
	flags.BoolVar(&d.keep, "keep", false, "keep the folder with the data, and say where it is")
	return func(c *call, _ []string) error {
		switch {
		case d.length <= 0 || d.length > time.Hour:
			return usagef("-for %v: give a time from a moment to an hour", d.length)
		case d.rate < 0:
			return usagef("-rate %d: it must not be negative", d.rate)
		case d.producers < 1 || d.producers > 1000:
			return usagef("-producers %d: give 1 to 1000", d.producers)
		}
		if err := d.run(c); err != nil {
			return err
		}
		if err := d.print(c); err != nil {
			return err
		}
		if d.verdict.first != "" {
			c.say("the first: %s", d.verdict.first)
		}
		if v := d.verdict; v.missing+v.torn+v.repeated+v.disordered > 0 || v.found != d.total() {
			return errors.New("lines are missing, torn, repeated or out of order: see the table")
		}
		return nil
	}
}

func (d *demo) total() (n int) {
	for _, lines := range d.logged {
		n += lines
	}
	return n
}

func (d *demo) print(c *call) error {
	text, values := "", map[string]any{}
	for _, row := range []struct {
		name  string
		value any
	}{
		{"log calls", d.total()},
		{"accepted by slab.Writer", int(d.slab.Accepted)},
		{"stored by the collector", int(d.stored)},
		{"read back and verified", d.verdict.found},
		{"dropped", int(d.slab.Dropped.Total())},
		{"missing", d.verdict.missing},
		{"torn", d.verdict.torn},
		{"repeated", d.verdict.repeated},
		{"out of order", d.verdict.disordered},
		{"log call p50", d.latency.Quantile(0.5)},
		{"log call p99", d.latency.Quantile(0.99)},
		{"log call p99.9", d.latency.Quantile(0.999)},
		{"log call max", d.latency.Quantile(1)},
		{"lines/s", int(float64(d.total()) / d.took.Seconds())},
	} {
		key := strings.NewReplacer(" ", "_", ".", "_", "/", "_per_").Replace(strings.ToLower(row.name))
		shown := ""
		switch v := row.value.(type) {
		case int:
			shown, values[key] = count(v), v
		case time.Duration:
			shown, values[key+"_ns"] = shortTime(v), v
		}
		text += fmt.Sprintf("%-26s%12s\n", row.name, shown)
	}
	return c.show(values, text)
}

// run logs and reads back. Before it returns it stops the collector and, without -keep,
// removes the data.
func (d *demo) run(c *call) (err error) {
	ctx, stop := interruptible()
	defer stop()
	dir, err := os.MkdirTemp("", "rollway-demo-")
	if err != nil {
		return fmt.Errorf("make a folder for the data: %w", err)
	}
	defer func() {
		if d.keep {
			c.say("data kept in %s", dir)
		} else if removeErr := os.RemoveAll(dir); err == nil {
			err = removeErr
		}
	}()
	cfg := config.Default()
	cfg.Listen, cfg.Data = "127.0.0.1:0", filepath.Join(dir, "data")
	own, err := ownLog(c, slog.LevelWarn)
	if err != nil {
		return err
	}
	defer own.Close()
	col, err := collector.New(cfg, slog.New(own.Handler()))
	if err != nil {
		return err
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
		return err
	}
	sw, err := slab.New(rw, slab.Options{Full: slab.Block})
	if err != nil {
		return err
	}
	log, err := rollway.New(rollway.Options{Outputs: []rollway.Output{{Writer: sw, Level: slog.LevelInfo, Encoder: rollway.JSON{}}}})
	if err != nil {
		return errors.Join(err, sw.Close())
	}
	c.say("collector %s, %d producers, %s …", base, d.producers, d.length)
	d.produce(ctx, log)
	flushing, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	if err := errors.Join(log.Flush(flushing), log.Shutdown(flushing)); err != nil {
		return fmt.Errorf("flush: %w", err)
	}
	d.slab, d.stored = sw.Stats(), col.Stats().Receive.Stored

	cl, err := newClient(base)
	if err != nil {
		return err
	}
	resp, err := cl.get(context.Background(), "/api/query", nil, nil)
	if err != nil {
		return fmt.Errorf("read back: %w", err)
	}
	defer resp.Body.Close()
	if d.verdict, err = verify(resp.Body, d.logged); err != nil {
		return fmt.Errorf("read back: %w", err)
	}
	return nil
}

// demoMessages are logged in turn. Some need escapes.
var demoMessages = []struct {
	level slog.Level
	text  string
}{
	{slog.LevelInfo, "customer loaded"},
	{slog.LevelInfo, "charged"},
	{slog.LevelWarn, "refunded by hand: \"goodwill\"\tsee notes"},
	{slog.LevelError, "dispute could not be filed\nupstream said: 502 ✗"},
}

// produce logs from all producers until the time is over or ctx ends.
func (d *demo) produce(ctx context.Context, log *rollway.Logger) {
	start := time.Now()
	ctx, cancel := context.WithDeadline(ctx, start.Add(d.length))
	defer cancel()
	log = log.With(slog.String("service", "payment-api"))
	d.logged = make([]int, d.producers)
	var wg sync.WaitGroup
	for id := range d.producers {
		wg.Go(func() {
			for seq := 0; d.due(ctx, start, seq*d.producers+id); seq++ {
				d.latency.Record(logOne(ctx, log, id, seq))
				d.logged[id]++
			}
		})
	}
	wg.Wait()
	d.took = time.Since(start)
}

// due waits until it is time for the nth line of all producers and reports whether
// the demo goes on. A line that is late does not delay the schedule.
func (d *demo) due(ctx context.Context, start time.Time, n int) bool {
	if d.rate > 0 {
		backoff.Sleep(ctx, time.Until(start.Add(time.Duration(float64(n)/float64(d.rate)*float64(time.Second)))))
	}
	return ctx.Err() == nil
}

// logOne logs line seq of a producer with a checksum, by which verify recognizes it,
// and returns how long the call took. Lines of many lengths end at every offset of a
// slab.
func logOne(ctx context.Context, log *rollway.Logger, producer, seq int) time.Duration {
	m := demoMessages[seq%len(demoMessages)]
	customer := fmt.Sprintf("cus_%06d%s", rand.IntN(1_000_000), strings.Repeat("x", rand.IntN(200)))
	sum := lineSum(producer, seq, m.text, customer)
	start := time.Now()
	log.Log(ctx, m.level, m.text,
		slog.Int("producer", producer), slog.Int("seq", seq), slog.String("customer", customer), slog.Uint64("sum", uint64(sum)))
	return time.Since(start)
}

func lineSum(producer, seq int, msg, customer string) uint32 {
	return crc32.ChecksumIEEE(fmt.Appendf(nil, "%d %d %s %s", producer, seq, msg, customer))
}

// A verdict compares the lines that came back with those that were logged.
type verdict struct {
	found      int    // lines that were logged, each counted once
	missing    int    // lines that were logged and did not come back
	torn       int    // lines that do not parse, fail their checksum, or were never logged
	repeated   int    // lines that came back before
	disordered int    // lines after a later one of their producer
	first      string // the first bad line, and why it is bad
}

// verify reads canonical lines from r. logged is the number of lines of each
// producer, whose sequence numbers begin at 0. Lines that announce losses belong to no
// producer and are skipped: the lines they announce are missing.
func verify(r io.Reader, logged []int) (v verdict, err error) {
	seen, next := make([][]bool, len(logged)), make([]int, len(logged))
	for id, n := range logged {
		seen[id] = make([]bool, n)
		v.missing += n
	}
	in := bufio.NewReaderSize(r, 256<<10)
	for {
		line, err := in.ReadBytes('\n')
		if err != nil && !errors.Is(err, io.EOF) {
			return v, err
		}
		if len(line) == 0 {
			break
		}
		var e struct {
			Msg     string `json:"msg"`
			Service string `json:"service"`
			Attrs   struct {
				Producer *int   `json:"producer"`
				Seq      int    `json:"seq"`
				Customer string `json:"customer"`
				Sum      uint32 `json:"sum"`
				Dropped  int    `json:"dropped"`
			} `json:"attrs"`
		}
		parsed := err == nil && json.Unmarshal(line, &e) == nil
		a := e.Attrs
		if parsed && a.Producer == nil && a.Dropped > 0 {
			continue
		}
		if !parsed || a.Producer == nil || *a.Producer < 0 || *a.Producer >= len(logged) || a.Seq < 0 || a.Seq >= logged[*a.Producer] ||
			e.Service != "payment-api" || a.Sum != lineSum(*a.Producer, a.Seq, e.Msg, a.Customer) {
			v.note(&v.torn, "torn", line)
			continue
		}
		id := *a.Producer
		switch {
		case seen[id][a.Seq]:
			v.note(&v.repeated, "repeated", line)
			continue
		case a.Seq < next[id]:
			v.note(&v.disordered, "out of order", line)
		default:
			next[id] = a.Seq + 1
		}
		seen[id][a.Seq] = true
		v.found++
		v.missing--
	}
	return v, nil
}

func (v *verdict) note(counter *int, what string, line []byte) {
	*counter++
	if v.first == "" {
		v.first = fmt.Sprintf("%s: %s", what, appendPlain(nil, line))
	}
}
