package collector

import (
	"fmt"
	"log"
	"net/http"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/rollway/rollway/collector/admission"
	"github.com/rollway/rollway/collector/clients"
	"github.com/rollway/rollway/collector/journal"
	"github.com/rollway/rollway/collector/receiver"
	"github.com/rollway/rollway/collector/sink"
	"github.com/rollway/rollway/internal/probe"
	"github.com/rollway/rollway/internal/promtext"
	"github.com/rollway/rollway/internal/recordlog"
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
		tables(func() []promtext.Table {
			s := c.Stats()
			ready := promtext.Flag("ready", "1 while lines can be stored, as /readyz says.", c.health.Ready() == nil)
			return []promtext.Table{s.table(), s.tableOfSinks(), tableOfTenants(s.Receive.Tenants), c.backups.table(), c.tableOfMachine(), {ready, c.refused()}}
		}),
		collectors.NewGoCollector(),
		collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}),
		collectors.NewBuildInfoCollector(),
	)
	return m
}

// measured observes the duration of the requests that next answers, and who sends them.
// From the first byte of an answer on the client has timeout to take it; 0: for as long as
// it likes.
func (c *Collector) measured(endpoint string, timeout time.Duration, next http.Handler) http.Handler {
	d := &durations{all: c.metrics.durations, endpoint: endpoint}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		start := time.Now()
		sw := &answerWriter{ResponseWriter: w, code: http.StatusOK, timeout: timeout}
		defer func() {
			now := time.Now()
			if endpoint != tailPath {
				d.observe(sw.code, now.Sub(start))
			}
			c.sawRequest(now, endpoint, sw, r)
		}()
		next.ServeHTTP(sw, r)
	})
}

const tailPath = "/api/tail" // which takes as long as its client likes

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

// answerWriter remembers the status, and sets the deadline for the answer.
type answerWriter struct {
	http.ResponseWriter
	timeout time.Duration // 0: there is no deadline
	code    int
	begun   bool
	text    string // of an answer that refuses the request
	seen    clients.Seen
	from    receiver.Sender // as a receiver knows it
}

func (w *answerWriter) WriteHeader(code int) {
	if !w.begun && code >= 200 {
		w.code = code
		w.begin()
	}
	w.ResponseWriter.WriteHeader(code)
}

func (w *answerWriter) Write(p []byte) (int, error) {
	w.begin()
	if w.code >= 400 && w.text == "" && w.seen.Requests == 0 {
		w.text = errorText(p)
	}
	return w.ResponseWriter.Write(p)
}

func (w *answerWriter) begin() {
	if w.begun {
		return
	}
	w.begun = true
	if w.timeout > 0 {
		// The server takes it off again before the next request. A ResponseWriter
		// without deadlines has no slow clients.
		_ = http.NewResponseController(w.ResponseWriter).SetWriteDeadline(time.Now().Add(w.timeout))
	}
}

// Unwrap is for http.ResponseController.
func (w *answerWriter) Unwrap() http.ResponseWriter { return w.ResponseWriter }

// tables publishes what it returns. It describes nothing in advance, as rules, sinks and
// tenants may be any.
type tables func() []promtext.Table

// Describe implements prometheus.Collector.
func (tables) Describe(chan<- *prometheus.Desc) {}

// Collect implements prometheus.Collector.
func (f tables) Collect(out chan<- prometheus.Metric) {
	for _, t := range f() {
		t.Visit(func(name, help string, counter bool, labels, values []string, v float64) {
			kind := prometheus.GaugeValue
			if counter {
				kind = prometheus.CounterValue
			}
			out <- prometheus.MustNewConstMetric(prometheus.NewDesc("rollway_"+name, help, labels, nil), kind, v, values...)
		})
	}
}

// samples returns a sample for each key of counts.
func samples[K comparable](counts map[K]uint64) (list []promtext.Sample) {
	for k, n := range counts {
		list = append(list, promtext.Of(n, fmt.Sprint(k)))
	}
	return list
}

func findings(list []journal.Finding) (samples []promtext.Sample) {
	counts := make(map[journal.FindingKind]int)
	for _, kind := range recordlog.FolderKinds { // so that each is there
		counts[kind] = 0
	}
	for _, f := range list {
		counts[f.Kind]++
	}
	for kind, n := range counts {
		state := "open"
		if f := (journal.Finding{Kind: kind}); f.Harmless() {
			state = "noted"
		}
		samples = append(samples, promtext.Of(n, string(kind), state))
	}
	return samples
}

// table lists the metrics except for those of sinks. Events: received = stored +
// rejected + failed + duplicate + dropped + ignored.
func (s *Stats) table() promtext.Table {
	rejected := make(map[string]uint64)
	for _, reason := range receiver.Reasons() {
		rejected[reason] = s.Receive.Rejected[reason]
	}
	return promtext.Table{
		promtext.Counter("events_received_total", "Events read, over HTTP, TCP and UDP.", s.Receive.Received),
		promtext.Counter("events_stored_total", "Events in the journal.", s.Receive.Stored),
		promtext.Counter("events_failed_total", "Events that could not be stored; their senders were told.", s.Receive.Failed),
		promtext.Counter("events_duplicate_total", "Events that had been stored before, by the key of their request or chunk.", s.Receive.Duplicate),
		promtext.Gauge("events_storing", "Events that are being stored and have no outcome yet.", s.Receive.Storing),
		promtext.Gauge("dead_letters_start_events", "Events that dead letters were of at the start; start + events = kept + dropped + pending.", s.Rejected.Start),
		promtext.Counter("dead_letters_events_total", "Rejected events that were to be kept as dead letters.", s.Rejected.Rejected),
		promtext.Gauge("dead_letters_kept_events", "Events that dead letters are of now.", s.Rejected.Kept),
		promtext.Gauge("dead_letters_pending_events", "Rejected events that wait to be written.", s.Rejected.Pending),
		promtext.Gauge("dead_letters_bytes", "Bytes that dead letters take up, of rejected.keep_size.", s.Rejected.Bytes),
		promtext.Counter("received_bytes_total", "Bytes of bodies and TCP streams as sent.", s.Receive.WireBytes),
		promtext.Counter("unpacked_bytes_total", "Bytes of bodies and TCP streams, unpacked.", s.Receive.UnpackedBytes),
		promtext.Counter("stored_bytes_total", "Bytes of canonical lines stored.", s.Receive.StoredBytes),
		promtext.Counter("requests_aborted_total", "Requests whose client went away while sending.", s.Receive.Aborted),
		promtext.Counter("panics_total", "Requests and connections that ended in a panic.", s.Receive.Panics),
		promtext.Counter("ahead_batches_total", "Batches stored with an event more than a minute ahead of this machine's clock: one of the two is wrong.", s.Receive.Ahead),
		promtext.Gauge("in_flight_bytes", "Bytes that requests being worked on take up, of limits.in_flight.", s.Receive.InFlight),
		promtext.Gauge("http_connections", "Connections of HTTP and gRPC open now.", s.Connections.Open),
		promtext.Gauge("http_connections_limit", "How many of them there may be, by limits.max_connections or the limit on open files.", s.Connections.Most),
		promtext.Counter("http_connections_accepted_total", "Connections of HTTP and gRPC let in.", s.Connections.Accepted),
		promtext.Counters("http_connections_evicted_total", "Those that were closed to let in a client that had fewer: idle, their request arriving, or their answer unread.", []string{"reason"},
			promtext.Of(s.Connections.Evicted[admission.Idle], "idle"), promtext.Of(s.Connections.Evicted[admission.Arriving], "arriving"), promtext.Of(s.Connections.Evicted[admission.Unread], "unread")),
		promtext.Counter("http_connections_refused_total", "Those answered 503 and closed, as too many were open.", s.Connections.Refused),
		promtext.Gauge("tcp_connections", "TCP connections open now.", s.Receive.Connections),
		promtext.Counter("tcp_connections_accepted_total", "TCP connections taken.", s.Receive.ConnectionsTotal),
		promtext.Counter("tcp_connections_refused_total", "TCP connections closed at once, as limits.max_streams were open.", s.Receive.ConnectionsRefused),
		promtext.Counter("tcp_store_retries_total", "Batches from TCP and UDP that had to wait for a full journal.", s.Receive.StoreRetries),
		promtext.Counter("udp_datagrams_total", "Datagrams read.", s.Receive.Datagrams),
		promtext.Counter("udp_datagrams_dropped_total", "Datagrams that the system dropped before they could be read; counted on Linux.", s.Receive.DatagramsDropped),

		promtext.Gauge("journal_first_offset", "Offset of the oldest line kept.", s.Journal.First),
		promtext.Gauge("journal_next_offset", "Offset of the next line.", s.Journal.Next),
		promtext.Gauge("journal_start_offset", "Where the journal ended when it was opened: all after it was stored since.", s.Start),
		promtext.Gauge("journal_synced_offset", "Lines below this offset survive the end of the machine.", s.Journal.Synced),
		promtext.Gauge("journal_segments", "Segment files.", s.Journal.Segments),
		promtext.Gauge("journal_bytes", "Bytes in segment files.", s.Journal.Bytes),
		promtext.Gauge("journal_readers", "Readers open: queries, tails and sinks.", s.Journal.Readers),
		promtext.Gauge("journal_keys", "Idempotency keys remembered.", s.Journal.Keys),
		promtext.Counter("journal_appends_total", "Batches stored.", s.Journal.Appends),
		promtext.Counter("journal_appended_lines_total", "Lines stored; next offset - start offset.", s.Journal.Records),
		promtext.Counter("journal_duplicate_lines_total", "Lines that were not stored, as their key says that they have been.", s.Journal.DuplicateRecords),
		promtext.Counter("journal_groups_total", "Writes that stored them; many batches share one.", s.Journal.Groups),
		promtext.Counter("journal_fsyncs_total", "Calls of fdatasync.", s.Journal.Fsyncs),
		promtext.Counter("journal_full_total", "Batches refused as the journal or its disk is full.", s.Journal.Full),
		promtext.Counter("journal_write_errors_total", "Batches refused for another error of the disk.", s.Journal.WriteErrors),
		promtext.Counter("journal_sync_errors_total", "Calls of fdatasync that failed.", s.Journal.SyncErrors),
		promtext.Gauge("journal_unpacked_segments", "Full segments that wait to be packed.", s.Journal.Waiting),
		promtext.Gauge("journal_unpacked_bytes", "Bytes of those segments.", s.Journal.Unpacked),
		promtext.Counter("journal_packed_segments_total", "Segments packed with zstd.", s.Journal.PackedSegments),
		promtext.Counter("journal_packed_from_bytes_total", "Bytes of those segments before.", s.Journal.PackedFrom),
		promtext.Counter("journal_packed_to_bytes_total", "Bytes of those segments afterwards.", s.Journal.PackedTo),
		promtext.Counter("journal_deleted_segments_total", "Segments removed by retention.", s.Journal.DeletedSegments),
		promtext.Counter("journal_scrubbed_segments_total", "Sealed segments that were read again, by journal.scrub.", s.Journal.ScrubbedSegments),
		promtext.Gauges("journal_findings", "What is wrong with the journal's files, by kind. state is open until rollway verify -acknowledge, over restarts; it is noted of what an interrupted process may leave, or what is left alone.", []string{"kind", "state"}, findings(s.Findings)...),
		promtext.Counter("journal_deleted_lines_total", "Lines removed by retention, with their segments.", s.Journal.DeletedRecords),
		promtext.Counter("journal_dropped_lines_total", "Lines removed by the retention of their tenants, from segments that stay.", s.Journal.DroppedRecords),
		promtext.Counter("journal_missed_lines_total", "Lines that readers found missing, summed over readers.", s.Journal.MissedRecords),

		promtext.Counter("queries_total", "Queries begun.", s.Query.Queries),
		promtext.Counter("tails_total", "Tails begun.", s.Query.Tails),
		promtext.Counter("reads_refused_total", "Queries and tails answered 503, as too many were running or the collector was stopping.", s.Query.Refused),
		promtext.Gauge("queries_running", "Queries running now.", s.Query.RunningQueries),
		promtext.Gauge("tails_running", "Tails running now.", s.Query.RunningTails),
		promtext.Counter("lines_scanned_total", "Lines looked at by queries and tails.", s.Query.Scanned),
		promtext.Counter("lines_matched_total", "Lines found by queries and tails.", s.Query.Matched),

		promtext.Counters("events_rejected_total", "Events that cannot be stored as they are, by reason; their senders were told.", []string{"reason"}, samples(rejected)...),
		promtext.Counters("dead_letters_dropped_events_total", "Rejected events that have no dead letter, or no longer, by reason: quota went for newer ones, limit were too many in a request, queue came too fast, disk could not be written.", []string{"reason"}, samples(s.Rejected.Dropped)...),
		promtext.Counters("events_dropped_total", "Events that a rule of the configuration has left out, by rule; to their senders they are accepted.", []string{"rule"}, samples(s.Receive.Dropped)...),
		promtext.Counters("events_ignored_total", "What is no log, such as Sentry's transactions and sessions, by type; it is acknowledged and not kept.", []string{"type"}, samples(s.Receive.Ignored)...),
		promtext.Counters("ingest_requests_total", "Requests to take events, by status.", []string{"code"}, samples(s.Receive.Requests)...),
	}
}

// tableOfMachine tells what only an operator can change.
func (c *Collector) tableOfMachine() (t promtext.Table) {
	if space := probe.SpaceOf(c.config.Data); space != nil {
		t = append(t,
			promtext.Gauge("data_disk_free_bytes", "What the collector may still write to the file system of its data folder.", space.Free),
			promtext.Gauge("data_disk_bytes", "The size of that file system.", space.Total))
	}
	if s := c.state.Load(); s.tls != nil {
		t = append(t, promtext.Gauge("tls_certificate_expires_timestamp_seconds", "When the certificate of tls.cert ends, in seconds since 1970.", s.tls.Certificates[0].Leaf.NotAfter.Unix()))
	}
	return t
}

// tableOfTenants lists the metrics of tenants, which are all that a token of one may read.
func tableOfTenants(tenants map[string]receiver.Events) promtext.Table {
	var received, outcomes, bytes []promtext.Sample
	for tenant, e := range tenants {
		received = append(received, promtext.Of(e.Received, tenant))
		bytes = append(bytes, promtext.Of(e.StoredBytes, tenant))
		for outcome, n := range eventsOf(&e).Outcomes {
			outcomes = append(outcomes, promtext.Of(n, tenant, outcome))
		}
	}
	return promtext.Table{
		promtext.Counters("tenant_events_received_total", "Events read of a tenant's tokens and addresses.", []string{"tenant"}, received...),
		promtext.Counters("tenant_events_total", "Those events by outcome: stored, rejected, failed, duplicate, dropped or ignored.", []string{"tenant", "outcome"}, outcomes...),
		promtext.Counters("tenant_stored_bytes_total", "Bytes of canonical lines stored of a tenant.", []string{"tenant"}, bytes...),
	}
}

// serveMetrics answers a token of a tenant with the metrics of that tenant.
func (c *Collector) serveMetrics(errorLog *log.Logger) http.Handler {
	o := promhttp.HandlerOpts{ErrorLog: errorLog}
	all := promhttp.HandlerFor(c.metrics.registry, o)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		tenant := tenantOf(r)
		if tenant == "" {
			all.ServeHTTP(w, r)
			return
		}
		own := prometheus.NewRegistry()
		own.MustRegister(tables(func() []promtext.Table {
			return []promtext.Table{tableOfTenants(map[string]receiver.Events{tenant: c.receiver.Stats().Tenants[tenant]})}
		}))
		promhttp.HandlerFor(own, o).ServeHTTP(w, r)
	})
}

func (s *Stats) tableOfSinks() promtext.Table {
	return promtext.Each(s.Sinks, []string{"sink"}, func(k sink.Stats) ([]string, promtext.Table) {
		dropped := make(map[string]uint64)
		for _, reason := range sink.Reasons() {
			dropped[reason] = k.Dropped[reason]
		}
		return []string{k.Name}, promtext.Table{
			promtext.Counter("sink_delivered_total", "Lines delivered by a sink.", k.Delivered),
			promtext.Gauge("sink_pending", "Lines in the journal that a sink has not delivered.", k.Pending),
			promtext.Counters("sink_dropped_total", "Lines that a sink will not deliver, by reason.", []string{"reason"}, samples(dropped)...),
			promtext.Counter("sink_retries_total", "Batches that a sink tried again.", k.Retries),
			promtext.Gauge("sink_start_offset", "Offset at which a sink began; delivered, dropped and pending count from there.", k.From),
			promtext.Gauge("sink_cursor_offset", "Offset from which a sink goes on after a restart.", k.Cursor),
		}
	})
}
