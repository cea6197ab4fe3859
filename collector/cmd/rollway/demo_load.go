package main

import (
	"context"
	"fmt"
	"hash/crc32"
	"log/slog"
	"math/rand/v2"
	"strings"
	"sync"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"
	"github.com/rollway/rollway"
)

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

// loadResult is what the producers did.
type loadResult struct {
	calls   []int // by producer
	took    time.Duration
	latency *hdrhistogram.Histogram // of log calls, nanoseconds
}

func (r *loadResult) total() (n int) {
	for _, c := range r.calls {
		n += c
	}
	return n
}

// produce logs from o.producers goroutines until o.length is over or ctx ends.
func produce(ctx context.Context, log *rollway.Logger, o demoOptions) loadResult {
	start := time.Now()
	ctx, cancel := context.WithDeadline(ctx, start.Add(o.length))
	defer cancel()
	log = log.With(slog.String("service", "payment-api"))
	res := loadResult{calls: make([]int, o.producers), latency: newLatency()}
	latencies := make([]*hdrhistogram.Histogram, o.producers)
	var wg sync.WaitGroup
	for id := range o.producers {
		latencies[id] = newLatency()
		wg.Go(func() {
			for due(ctx, start, res.calls[id]*o.producers+id, o.rate) {
				took := logOne(ctx, log, id, res.calls[id])
				_ = latencies[id].RecordValue(int64(min(took, time.Minute)))
				res.calls[id]++
			}
		})
	}
	wg.Wait()
	res.took = time.Since(start)
	for _, h := range latencies {
		res.latency.Merge(h)
	}
	return res
}

// due waits until it is time for the nth line of all producers and reports whether
// the demo goes on. A line that is late does not delay the schedule.
func due(ctx context.Context, start time.Time, n, rate int) bool {
	if rate > 0 {
		select {
		case <-time.After(time.Until(start.Add(time.Duration(float64(n) / float64(rate) * float64(time.Second))))):
		case <-ctx.Done():
		}
	}
	return ctx.Err() == nil
}

// logOne logs line seq of a producer with a checksum, by which verify recognizes it,
// and returns how long the call took. Lines of many lengths end at every place of a
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

// newLatency records nanoseconds up to a minute, to three digits.
func newLatency() *hdrhistogram.Histogram { return hdrhistogram.New(1, int64(time.Minute), 3) }
