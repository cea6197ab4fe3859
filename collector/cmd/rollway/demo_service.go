package main

import (
	"context"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"log/slog"
	"math/rand/v2"
	"net"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"
	"github.com/rollway/rollway"
)

// A producer logs on behalf of one worker, whose requests follow one another,
// and so has an order of its own. mu is for the requests of the same worker
// that the server handles on different connections.
type producer struct {
	mu      sync.Mutex
	id      int
	seq     int                     // of the next line; guarded by mu
	latency *hdrhistogram.Histogram // of log calls, nanoseconds; guarded by mu
}

// sampleService is a small web shop's payment service.
type sampleService struct {
	log       *rollway.Logger
	producers []*producer
}

// line logs one line with what verify needs to know it again: the producer, the
// sequence number, and a checksum over the part of the text that varies.
func (s *sampleService) line(ctx context.Context, p *producer, level slog.Level, msg, customer string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	sum := lineSum(p.id, p.seq, msg, customer)
	start := time.Now()
	s.log.Log(ctx, level, msg,
		slog.Int("producer", p.id), slog.Int("seq", p.seq), slog.String("customer", customer), slog.Uint64("sum", uint64(sum)))
	took := time.Since(start)
	p.seq++
	// Out of the histogram's range is a call of more than a minute.
	_ = p.latency.RecordValue(min(int64(took), int64(time.Minute)))
}

func lineSum(producer, seq int, msg, customer string) uint32 {
	return crc32.ChecksumIEEE(fmt.Appendf(nil, "%d %d %s %s", producer, seq, msg, customer))
}

func (s *sampleService) handler() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("POST /charge", s.handle(slog.LevelInfo, "charged"))
	mux.HandleFunc("POST /refund", s.handle(slog.LevelWarn, "refunded by hand: \"goodwill\"\tsee notes"))
	mux.HandleFunc("POST /dispute", s.handle(slog.LevelError, "dispute could not be filed\nupstream said: 502 ✗"))
	return mux
}

// handle is a handler whose request ends with the given line.
func (s *sampleService) handle(level slog.Level, outcome string) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		id, err := strconv.Atoi(r.Header.Get("X-Worker"))
		if err != nil || id < 0 || id >= len(s.producers) {
			http.Error(w, "who are you?", http.StatusBadRequest)
			return
		}
		p, ctx, customer := s.producers[id], r.Context(), r.URL.Query().Get("customer")
		s.line(ctx, p, slog.LevelInfo, r.Method+" "+r.URL.Path, customer)
		s.line(ctx, p, slog.LevelInfo, "customer loaded", customer)
		s.line(ctx, p, level, outcome, customer)
		s.line(ctx, p, slog.LevelInfo, "answered", customer)
		w.WriteHeader(http.StatusNoContent)
	}
}

// loadResult is what driving the service yielded.
type loadResult struct {
	requests  int
	calls     int   // of the log
	perWorker []int // of the log
	took      time.Duration
	latency   *hdrhistogram.Histogram
}

// driveService starts the sample service on a free loopback port and sends it
// requests from o.workers clients until o.length is over or ctx ends.
func driveService(ctx context.Context, log *rollway.Logger, o demoOptions) (res loadResult, err error) {
	s := &sampleService{log: log.With(slog.String("service", "payment-api"))}
	for id := range o.workers {
		s.producers = append(s.producers, &producer{id: id, latency: newLatency()})
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return res, fmt.Errorf("listen for the sample service: %w", err)
	}
	server := &http.Server{Handler: s.handler(), ReadHeaderTimeout: 10 * time.Second}
	served := make(chan error, 1)
	go func() { served <- server.Serve(l) }()

	clients := &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: o.workers}, Timeout: 30 * time.Second}
	base := "http://" + l.Addr().String()
	start := time.Now()
	ctx, cancel := context.WithDeadline(ctx, start.Add(o.length))
	defer cancel()
	requests, errs := make([]int, o.workers), make([]error, o.workers)
	var wg sync.WaitGroup
	for id := range o.workers {
		wg.Go(func() { requests[id], errs[id] = drive(ctx, clients, base, id, start, o) })
	}
	wg.Wait()
	res.took = time.Since(start)
	clients.CloseIdleConnections()

	stopping, cancelStop := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancelStop()
	errs = append(errs, server.Shutdown(stopping))
	if err := <-served; !errors.Is(err, http.ErrServerClosed) {
		errs = append(errs, err)
	}
	res.latency = newLatency()
	for id, p := range s.producers {
		p.mu.Lock()
		res.requests += requests[id]
		res.calls += p.seq
		res.perWorker = append(res.perWorker, p.seq)
		res.latency.Merge(p.latency)
		p.mu.Unlock()
	}
	return res, errors.Join(errs...)
}

// drive is one worker. With a rate, each request has its time by the schedule,
// and one that is late does not move the others.
func drive(ctx context.Context, clients *http.Client, base string, id int, start time.Time, o demoOptions) (requests int, err error) {
	paths := []string{"/charge", "/charge", "/charge", "/refund", "/dispute"}
	for ctx.Err() == nil {
		if o.rate > 0 {
			n := requests*o.workers + id // of all requests
			due := start.Add(time.Duration(float64(n) / float64(o.rate) * float64(time.Second)))
			select {
			case <-time.After(time.Until(due)):
			case <-ctx.Done():
				return requests, nil
			}
		}
		// Names of many lengths, so that lines end at every place of a buffer.
		customer := fmt.Sprintf("cus_%06d%s", rand.IntN(1_000_000), strings.Repeat("x", rand.IntN(200)))
		req, err := http.NewRequest(http.MethodPost, base+paths[rand.IntN(len(paths))]+"?customer="+customer, nil)
		if err != nil {
			return requests, err
		}
		req.Header.Set("X-Worker", strconv.Itoa(id))
		resp, err := clients.Do(req)
		if err != nil {
			return requests, fmt.Errorf("worker %d: %w", id, err)
		}
		_, err = io.Copy(io.Discard, resp.Body)
		resp.Body.Close()
		if err == nil && resp.StatusCode != http.StatusNoContent {
			err = errors.New("status " + resp.Status)
		}
		if err != nil {
			return requests, fmt.Errorf("worker %d: %w", id, err)
		}
		requests++
	}
	return requests, nil
}

// newLatency holds nanoseconds up to a minute, to three digits.
func newLatency() *hdrhistogram.Histogram { return hdrhistogram.New(1, int64(time.Minute), 3) }
