package main

import (
	"fmt"
	"log/slog"
	"math"
	"net"
	"net/http"
	"net/http/pprof"
	"runtime/metrics"
	"time"

	"github.com/rollway/rollway/collector/query"
)

// serveDebug serves profiles and runtime metrics under /debug/ at addr until stop is
// called, under the names that readers may use.
func serveDebug(addr, hosts string, log *slog.Logger) (at net.Addr, stop func(), err error) {
	l, err := net.Listen("tcp", addr)
	if err != nil {
		return nil, nil, fmt.Errorf("cannot listen on %s (debug_listen): %w", addr, err)
	}
	if a, ok := l.Addr().(*net.TCPAddr); ok && !a.IP.IsLoopback() {
		log.Warn("profiles are open to the network: anybody who reaches this address can read memory and slow the process down", "address", a.String())
	}
	mux := http.NewServeMux()
	mux.HandleFunc("/debug/pprof/", pprof.Index)
	mux.HandleFunc("/debug/pprof/cmdline", pprof.Cmdline)
	mux.HandleFunc("/debug/pprof/profile", pprof.Profile)
	mux.HandleFunc("/debug/pprof/symbol", pprof.Symbol)
	mux.HandleFunc("/debug/pprof/trace", pprof.Trace)
	mux.HandleFunc("/debug/runtime", runtimeMetrics)
	// A profile takes as long as its client asks, so there is no write timeout.
	server := &http.Server{Handler: query.Guard(mux, "hosts", query.Names(hosts, addr)), ReadHeaderTimeout: 10 * time.Second, ReadTimeout: 10 * time.Second}
	go server.Serve(l)
	return l.Addr(), func() { server.Close() }, nil
}

// runtimeMetrics writes the metrics of package runtime/metrics as a JSON object, with
// the count and quantiles of each histogram.
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
	printJSON(w, out) // the client may be gone
}

// summary returns the count of a histogram and the upper bounds of its quantiles'
// buckets. The last bucket has no upper bound; its lower bound is used.
func summary(h *metrics.Float64Histogram) map[string]any {
	total := uint64(0)
	for _, n := range h.Counts {
		total += n
	}
	out := map[string]any{"count": total}
	for name, q := range map[string]float64{"p50": 0.5, "p99": 0.99, "max": 1} {
		bound, below := 0.0, uint64(0)
		for i, n := range h.Counts {
			if n == 0 || float64(below) >= q*float64(total) {
				continue
			}
			below += n
			if bound = h.Buckets[i+1]; math.IsInf(bound, 1) {
				bound = h.Buckets[i]
			}
		}
		out[name] = bound
	}
	return out
}
