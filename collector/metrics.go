package collector

import (
	"net/http"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"

	"github.com/rollway/rollway/collector/receiver"
	"github.com/rollway/rollway/collector/sink"
)

// metrics is what GET /metrics shows: the Stats of the parts at the time of
// asking, and the durations of requests.
type metrics struct {
	registry  *prometheus.Registry
	durations *prometheus.HistogramVec
}

func newMetrics(c *Collector) *metrics {
	m := &metrics{
		registry: prometheus.NewRegistry(),
		durations: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name:    "rollway_http_request_duration_seconds",
			Help:    "Time from the request's headers to the end of its answer, by endpoint and status; tails are not in it.",
			Buckets: []float64{.0001, .00025, .0005, .001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10, 30},
		}, []string{"endpoint", "code"}),
	}
	m.registry.MustRegister(
		m.durations,
		&statsCollector{c},
		collectors.NewGoCollector(),
		collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}),
		collectors.NewBuildInfoCollector(),
	)
	return m
}

// measured observes the duration of the requests that next answers.
func (c *Collector) measured(endpoint string, next http.Handler) http.Handler {
	d := &durations{all: c.metrics.durations, endpoint: endpoint}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		start := time.Now()
		sw := &statusWriter{ResponseWriter: w, code: http.StatusOK}
		defer func() { d.observe(sw.code, time.Since(start)) }()
		next.ServeHTTP(sw, r)
	})
}

// durations are those of one endpoint's requests.
type durations struct {
	all      *prometheus.HistogramVec
	endpoint string
	last     atomic.Pointer[durationsOf] // to look it up among all takes longer than to observe
}

// durationsOf are those of requests with one status.
type durationsOf struct {
	code int
	prometheus.Observer
}

func (d *durations) observe(code int, took time.Duration) {
	of := d.last.Load()
	if of == nil || of.code != code {
		of = &durationsOf{code, d.all.WithLabelValues(d.endpoint, strconv.Itoa(code))}
		d.last.Store(of)
	}
	of.Observe(took.Seconds())
}

// statusWriter remembers the status.
type statusWriter struct {
	http.ResponseWriter
	code    int
	written bool
}

func (w *statusWriter) WriteHeader(code int) {
	if !w.written && code >= 200 {
		w.code, w.written = code, true
	}
	w.ResponseWriter.WriteHeader(code)
}

func (w *statusWriter) Write(p []byte) (int, error) {
	w.written = true
	return w.ResponseWriter.Write(p)
}

// Unwrap is for http.ResponseController.
func (w *statusWriter) Unwrap() http.ResponseWriter { return w.ResponseWriter }

// statsCollector turns Stats into metrics.
type statsCollector struct{ c *Collector }

// A metric is one figure of a Stats.
type metric struct {
	desc  *prometheus.Desc
	kind  prometheus.ValueType
	value func(*Stats) float64
}

func counter(name, help string, value func(*Stats) uint64) metric {
	return metric{prometheus.NewDesc("rollway_"+name+"_total", help, nil, nil), prometheus.CounterValue, func(s *Stats) float64 { return float64(value(s)) }}
}

func gauge(name, help string, value func(*Stats) float64) metric {
	return metric{prometheus.NewDesc("rollway_"+name, help, nil, nil), prometheus.GaugeValue, value}
}

// simple are the metrics without labels. Events: received = stored + rejected +
// failed + duplicate + dropped.
var simple = []metric{
	counter("events_received", "Events read, over HTTP, TCP and UDP.", func(s *Stats) uint64 { return s.Receive.Received }),
	counter("events_stored", "Events in the journal.", func(s *Stats) uint64 { return s.Receive.Stored }),
	counter("events_failed", "Events that could not be stored; their senders were told.", func(s *Stats) uint64 { return s.Receive.Failed }),
	counter("events_duplicate", "Events that had been stored before, by the key of their request or chunk.", func(s *Stats) uint64 { return s.Receive.Duplicate }),
	gauge("events_storing", "Events that are being stored and have no outcome yet.", func(s *Stats) float64 { return float64(s.Receive.Storing) }),
	counter("events_rejected_kept", "Rejected events that were written to the file of them.", func(s *Stats) uint64 { return s.Rejected.Kept }),
	counter("events_rejected_lost", "Rejected events that could not be, or were too large for it.", func(s *Stats) uint64 { return s.Rejected.Lost }),
	counter("received_bytes", "Bytes of bodies and TCP streams as sent.", func(s *Stats) uint64 { return s.Receive.WireBytes }),
	counter("unpacked_bytes", "Bytes of bodies and TCP streams, unpacked.", func(s *Stats) uint64 { return s.Receive.UnpackedBytes }),
	counter("stored_bytes", "Bytes of canonical lines stored.", func(s *Stats) uint64 { return s.Receive.StoredBytes }),
	counter("requests_aborted", "Requests whose client went away while sending.", func(s *Stats) uint64 { return s.Receive.Aborted }),
	counter("panics", "Requests and connections that ended in a panic.", func(s *Stats) uint64 { return s.Receive.Panics }),
	gauge("in_flight_bytes", "Bytes that requests being worked on take up, of limits.in_flight.", func(s *Stats) float64 { return float64(s.Receive.InFlight) }),
	gauge("http_connections", "Connections of HTTP and gRPC open now, whoever serves them.", func(s *Stats) float64 { return float64(s.Connections.Open) }),
	gauge("http_connections_limit", "How many of them there may be, by limits.max_connections or the limit on open files.", func(s *Stats) float64 { return float64(s.Connections.Most) }),
	counter("http_connections_accepted", "Connections of HTTP and gRPC let in.", func(s *Stats) uint64 { return s.Connections.Accepted }),
	counter("http_connections_refused", "Those answered 503 and closed, as too many were open.", func(s *Stats) uint64 { return s.Connections.Refused }),
	gauge("tcp_connections", "TCP connections open now.", func(s *Stats) float64 { return float64(s.Receive.Connections) }),
	counter("tcp_connections_accepted", "TCP connections taken.", func(s *Stats) uint64 { return s.Receive.ConnectionsTotal }),
	counter("tcp_connections_refused", "TCP connections closed at once, as limits.max_streams were open.", func(s *Stats) uint64 { return s.Receive.ConnectionsRefused }),
	counter("tcp_store_retries", "Batches from TCP and UDP that had to wait for a full journal.", func(s *Stats) uint64 { return s.Receive.StoreRetries }),
	counter("udp_datagrams", "Datagrams read.", func(s *Stats) uint64 { return s.Receive.Datagrams }),
	counter("udp_datagrams_dropped", "Datagrams that the system dropped before they could be read; counted on Linux.", func(s *Stats) uint64 { return s.Receive.DatagramsDropped }),

	gauge("journal_first_offset", "Offset of the oldest line kept.", func(s *Stats) float64 { return float64(s.Journal.First) }),
	gauge("journal_next_offset", "Offset of the next line.", func(s *Stats) float64 { return float64(s.Journal.Next) }),
	gauge("journal_start_offset", "Where the journal ended when it was opened: all behind it was stored since.", func(s *Stats) float64 { return float64(s.Start) }),
	gauge("journal_synced_offset", "Lines below this offset survive the end of the machine.", func(s *Stats) float64 { return float64(s.Journal.Synced) }),
	gauge("journal_segments", "Segment files.", func(s *Stats) float64 { return float64(s.Journal.Segments) }),
	gauge("journal_bytes", "Bytes in segment files.", func(s *Stats) float64 { return float64(s.Journal.Bytes) }),
	gauge("journal_readers", "Readers open: queries, tails and sinks.", func(s *Stats) float64 { return float64(s.Journal.Readers) }),
	gauge("journal_keys", "Idempotency keys remembered.", func(s *Stats) float64 { return float64(s.Journal.Keys) }),
	counter("journal_appends", "Batches stored.", func(s *Stats) uint64 { return s.Journal.Appends }),
	counter("journal_appended_lines", "Lines stored; next offset - start offset.", func(s *Stats) uint64 { return s.Journal.Records }),
	counter("journal_duplicate_lines", "Lines that were not stored, as their key says that they have been.", func(s *Stats) uint64 { return s.Journal.DuplicateRecords }),
	counter("journal_groups", "Writes that stored them; many batches share one.", func(s *Stats) uint64 { return s.Journal.Groups }),
	counter("journal_fsyncs", "Calls of fdatasync.", func(s *Stats) uint64 { return s.Journal.Fsyncs }),
	counter("journal_full", "Batches refused as the journal or its disk is full.", func(s *Stats) uint64 { return s.Journal.Full }),
	counter("journal_write_errors", "Batches refused for another error of the disk.", func(s *Stats) uint64 { return s.Journal.WriteErrors }),
	counter("journal_sync_errors", "Calls of fdatasync that failed.", func(s *Stats) uint64 { return s.Journal.SyncErrors }),
	counter("journal_packed_segments", "Segments packed with zstd.", func(s *Stats) uint64 { return s.Journal.PackedSegments }),
	counter("journal_packed_from_bytes", "Bytes of those segments before.", func(s *Stats) uint64 { return s.Journal.PackedFrom }),
	counter("journal_packed_to_bytes", "Bytes of those segments afterwards.", func(s *Stats) uint64 { return s.Journal.PackedTo }),
	counter("journal_deleted_segments", "Segments removed by retention.", func(s *Stats) uint64 { return s.Journal.DeletedSegments }),
	counter("journal_deleted_lines", "Lines removed by retention.", func(s *Stats) uint64 { return s.Journal.DeletedRecords }),
	counter("journal_missed_lines", "Lines that readers found missing, summed over readers.", func(s *Stats) uint64 { return s.Journal.MissedRecords }),

	counter("queries", "Queries begun.", func(s *Stats) uint64 { return s.Query.Queries }),
	counter("tails", "Tails begun.", func(s *Stats) uint64 { return s.Query.Tails }),
	counter("reads_refused", "Queries and tails answered 503, as too many were running or the collector was stopping.", func(s *Stats) uint64 { return s.Query.Refused }),
	gauge("queries_running", "Queries running now.", func(s *Stats) float64 { return float64(s.Query.RunningQueries) }),
	gauge("tails_running", "Tails running now.", func(s *Stats) float64 { return float64(s.Query.RunningTails) }),
	counter("lines_scanned", "Lines looked at by queries and tails.", func(s *Stats) uint64 { return s.Query.Scanned }),
	counter("lines_matched", "Lines found by queries and tails.", func(s *Stats) uint64 { return s.Query.Matched }),
}

var (
	rejectedDesc  = prometheus.NewDesc("rollway_events_rejected_total", "Events that cannot be stored as they are, by reason; their senders were told.", []string{"reason"}, nil)
	droppedByRule = prometheus.NewDesc("rollway_events_dropped_total", "Events that a rule of the configuration has left out, by rule; to their senders they are accepted.", []string{"rule"}, nil)
	requestsDesc  = prometheus.NewDesc("rollway_ingest_requests_total", "Requests to take events, by status.", []string{"code"}, nil)
	sinkLabel     = []string{"sink"}
	deliveredDesc = prometheus.NewDesc("rollway_sink_delivered_total", "Lines delivered by a sink.", sinkLabel, nil)
	pendingDesc   = prometheus.NewDesc("rollway_sink_pending", "Lines in the journal that a sink has not delivered.", sinkLabel, nil)
	droppedDesc   = prometheus.NewDesc("rollway_sink_dropped_total", "Lines that a sink will not deliver, by reason.", []string{"sink", "reason"}, nil)
	retriesDesc   = prometheus.NewDesc("rollway_sink_retries_total", "Batches that a sink tried again.", sinkLabel, nil)
	fromDesc      = prometheus.NewDesc("rollway_sink_start_offset", "Offset at which a sink began; delivered, dropped and pending count from there.", sinkLabel, nil)
	cursorDesc    = prometheus.NewDesc("rollway_sink_cursor_offset", "Offset from which a sink goes on after a restart.", sinkLabel, nil)
	readyDesc     = prometheus.NewDesc("rollway_ready", "1 while lines can be stored, as /readyz says.", nil, nil)
)

// Describe implements prometheus.Collector.
func (sc *statsCollector) Describe(descs chan<- *prometheus.Desc) {
	for _, m := range simple {
		descs <- m.desc
	}
	descs <- rejectedDesc
	descs <- droppedByRule
	descs <- requestsDesc
	for _, d := range []*prometheus.Desc{deliveredDesc, pendingDesc, droppedDesc, retriesDesc, fromDesc, cursorDesc} {
		descs <- d
	}
	descs <- readyDesc
}

// Collect implements prometheus.Collector.
func (sc *statsCollector) Collect(out chan<- prometheus.Metric) {
	s := sc.c.Stats()
	for _, m := range simple {
		out <- prometheus.MustNewConstMetric(m.desc, m.kind, m.value(&s))
	}
	for _, reason := range receiver.Reasons() {
		out <- prometheus.MustNewConstMetric(rejectedDesc, prometheus.CounterValue, float64(s.Receive.Rejected[reason]), reason)
	}
	for rule, n := range s.Receive.Dropped {
		out <- prometheus.MustNewConstMetric(droppedByRule, prometheus.CounterValue, float64(n), rule)
	}
	for code, n := range s.Receive.Requests {
		out <- prometheus.MustNewConstMetric(requestsDesc, prometheus.CounterValue, float64(n), strconv.Itoa(code))
	}
	for _, k := range s.Sinks {
		out <- prometheus.MustNewConstMetric(deliveredDesc, prometheus.CounterValue, float64(k.Delivered), k.Name)
		out <- prometheus.MustNewConstMetric(pendingDesc, prometheus.GaugeValue, float64(k.Pending), k.Name)
		for _, reason := range sink.Reasons() {
			out <- prometheus.MustNewConstMetric(droppedDesc, prometheus.CounterValue, float64(k.Dropped[reason]), k.Name, reason)
		}
		out <- prometheus.MustNewConstMetric(retriesDesc, prometheus.CounterValue, float64(k.Retries), k.Name)
		out <- prometheus.MustNewConstMetric(fromDesc, prometheus.GaugeValue, float64(k.From), k.Name)
		out <- prometheus.MustNewConstMetric(cursorDesc, prometheus.GaugeValue, float64(k.Cursor), k.Name)
	}
	ready := 1.0
	if sc.c.health.Ready() != nil {
		ready = 0
	}
	out <- prometheus.MustNewConstMetric(readyDesc, prometheus.GaugeValue, ready)
}
