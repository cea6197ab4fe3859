package main

import (
	"encoding/json"
	"fmt"
	"log/slog"
	"math"
	"net"
	"net/http"
	"net/http/pprof"
	"runtime/metrics"
	"time"
)

// serveDebug answers under /debug/ at addr what profilers ask, until stop is
// called.
func serveDebug(addr string, log *slog.Logger) (at net.Addr, stop func(), err error) {
	l, err := net.Listen("tcp", addr)
	if err != nil {
		return nil, nil, fmt.Errorf("cannot listen on %s (debug_listen): %w", addr, err)
	}
	if a, ok := l.Addr().(*net.TCPAddr); ok && !a.IP.IsLoopback() {
		log.Warn("profiles are open to the network: whoever reaches this address can read the memory's contents and slow the process down", "address", a.String())
	}
	mux := http.NewServeMux()
	mux.HandleFunc("/debug/pprof/", pprof.Index)
	mux.HandleFunc("/debug/pprof/cmdline", pprof.Cmdline)
	mux.HandleFunc("/debug/pprof/profile", pprof.Profile)
	mux.HandleFunc("/debug/pprof/symbol", pprof.Symbol)
	mux.HandleFunc("/debug/pprof/trace", pprof.Trace)
	mux.HandleFunc("/debug/runtime", runtimeMetrics)
	// Profiles take as long as was asked for, so answers have no time limit.
	server := &http.Server{Handler: mux, ReadHeaderTimeout: 10 * time.Second, ReadTimeout: 10 * time.Second}
	go server.Serve(l)
	return l.Addr(), func() { server.Close() }, nil
}

// runtimeMetrics answers what package runtime/metrics has, as a JSON object by
// name; of a histogram its count and quantiles.
func runtimeMetrics(w http.ResponseWriter, _ *http.Request) {
	all := metrics.All()
	samples := make([]metrics.Sample, len(all))
	for i := range all {
		samples[i].Name = all[i].Name
	}
	metrics.Read(samples)
	out := make(map[string]any, len(samples))
	for _, s := range samples {
		switch s.Value.Kind() {
		case metrics.KindUint64:
			out[s.Name] = s.Value.Uint64()
		case metrics.KindFloat64:
			out[s.Name] = s.Value.Float64()
		case metrics.KindFloat64Histogram:
			out[s.Name] = summary(s.Value.Float64Histogram())
		}
	}
	w.Header().Set("Content-Type", "application/json")
	enc := json.NewEncoder(w)
	enc.SetIndent("", "  ")
	enc.Encode(out) // a client that is gone needs no answer
}

// summary is a histogram's count, and the upper bounds of the buckets that its
// quantiles are in (of the last bucket, which has none, the lower).
func summary(h *metrics.Float64Histogram) map[string]any {
	total := uint64(0)
	for _, n := range h.Counts {
		total += n
	}
	out := map[string]any{"count": total}
	for name, q := range map[string]float64{"p50": 0.5, "p99": 0.99, "max": 1} {
		out[name] = quantile(h, uint64(math.Ceil(q*float64(total))))
	}
	return out
}

// quantile is the bound of the bucket that holds value number n, from 1.
func quantile(h *metrics.Float64Histogram, n uint64) float64 {
	if n == 0 {
		return 0
	}
	for i, count := range h.Counts {
		if count < n {
			n -= count
			continue
		}
		if bound := h.Buckets[i+1]; !math.IsInf(bound, 1) {
			return bound
		}
		return h.Buckets[i]
	}
	return 0
}
