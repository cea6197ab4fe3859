package collector

import (
	"encoding/json"
	"fmt"
	"log"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"github.com/rollway/rollway/collector/access"
	"github.com/rollway/rollway/collector/config"
	"github.com/rollway/rollway/collector/endpoints"
	"github.com/rollway/rollway/collector/query"
	"github.com/rollway/rollway/collector/receiver/elastic"
	"github.com/rollway/rollway/collector/receiver/otlp"
	"github.com/rollway/rollway/collector/ui"
)

// A page is an endpoint with what it is for, as GET / lists it.
type page struct{ pattern, does string }

var ownEndpoints = []page{
	{"POST /api/logs", "take events: a JSON object, an array of them, or one per line; plain or packed"},
	{"GET  /api/query", "find lines: ?q=EXPRESSION&since=1h&until=…&limit=N or &last=N"},
	{"GET  /api/context", "lines around a line: ?offset=N&before=20&after=20&by=service"},
	{"GET  /api/hits", "count them by time and level: ?q=EXPRESSION&since=1d&step=1h&by=FIELD"},
	{"GET  /api/stats", "what a query with pipes gives, as a table in JSON: ?q=EXPRESSION | stats count() by service"},
	{"GET  /api/explain", "how a query is understood, what it reads, and how long its steps take: ?q=EXPRESSION&since=1d"},
	{"GET  /api/fields", "which fields the lines have, with types and how many values: ?q=EXPRESSION&since=1d"},
	{"GET  /api/facets", "the most frequent values of fields: ?field=service,level&q=EXPRESSION&since=1d&limit=N"},
	{"GET  /api/tail", "follow lines as server-sent events: ?q=EXPRESSION"},
	{"GET  /api/rejected", "read rejected events: ?reason=&receiver=&tenant=&text=&since=&until=&limit=N or &last=N"},
	{"POST /api/rejected/replay", "send dead letters again: {\"ids\":[\"ID\"]}"},
	{"POST /api/explain-event", "what would become of an event, step by step; nothing is stored: ?as=/api/logs"},
	{"GET  /api/pipeline", "receivers, rules, journal, sinks, ledger: how it all fares"},
	{"GET  /api/clients", "who sends what: requests, events, bytes, refusals and the last error of each client"},
	{"GET  /api/ledger", "what became of each event since the start, as counted; 'rollway reconcile' compares it with the journal"},
	{"GET  /api/backup", "all that is kept, as a tar archive for 'rollway restore'; 'rollway backup' checks it too"},
	{"GET  /ui/", "the page for people; a browser is led there from /"},
	{"GET  /metrics", "figures for Prometheus"},
	{"GET  /healthz", "200 while the process lives"},
	{"GET  /readyz", "200 while lines can be stored, 503 and the reason otherwise"},
}

// handler routes requests. errorLog gets the errors of collecting metrics.
func (c *Collector) handler(errorLog *log.Logger) http.Handler {
	mux, exact := http.NewServeMux(), make(map[string]http.Handler)
	inTime := c.config.Timeouts.Write
	route := func(path string, h http.Handler) {
		h = c.measured(path, inTime, h)
		mux.Handle(path, h)
		if !strings.Contains(path, "{") {
			exact[path] = h
		}
	}
	hosts := query.Names(c.config.Hosts, c.config.Listen)
	take := func(path string, h http.Handler, methods ...string) {
		route(path, c.take(append([]string{http.MethodPost}, methods...), hosts, h))
	}
	reading := func(h http.Handler) http.Handler { return c.readers(query.Guard(h, "hosts", hosts)) }
	take(logsPath, c.receiver)
	c.routeReceivers(take)
	for _, p := range endpoints.Probes {
		route(p.Path, readOnly(c.probe(p)))
	}
	// These set deadlines of their own.
	for path, h := range c.api.Handlers() {
		mux.Handle(path, c.measured(path, 0, reading(c.audited(h))))
	}
	mux.Handle(rejectedPath, c.measured(rejectedPath, 0, reading(c.audited(http.HandlerFunc(c.serveRejected)))))
	route(replayPath, reading(http.HandlerFunc(c.serveReplay)))
	route(explainEventPath, reading(http.HandlerFunc(c.serveExplainEvent)))
	route("/api/pipeline", reading(readOnly(http.HandlerFunc(c.servePipeline))))
	route("/api/clients", reading(readOnly(http.HandlerFunc(c.serveClients))))
	mux.Handle(backupPath, c.measured(backupPath, 0, reading(http.HandlerFunc(c.serveBackup))))
	route("/api/ledger", reading(readOnly(http.HandlerFunc(c.serveLedger))))
	route("/metrics", reading(readOnly(c.serveMetrics(errorLog))))
	route("/healthz", readOnly(http.HandlerFunc(c.serveHealth)))
	route("/readyz", readOnly(http.HandlerFunc(c.serveReady)))
	index := http.Handler(http.HandlerFunc(c.serveIndex))
	if c.ServesPage() {
		for path, file := range ui.Files() {
			if path == ui.Prefix {
				path += "{$}" // and nothing below it, which /{index}/_bulk may be
			}
			mux.Handle(path, c.measured(ui.Prefix, inTime, query.Guard(readOnly(file), "hosts", hosts)))
		}
		route(sessionPath, query.Guard(http.HandlerFunc(c.serveSession), "hosts", hosts))
		index = toPage(index)
	}
	mux.Handle("/{$}", c.measured("/", inTime, elastic.Handshake(readOnly(index))))
	mux.Handle("/", c.measured(otherPath, inTime, otlp.Unimplemented(elastic.Handshake(http.HandlerFunc(serveUnknown)))))
	return &routes{exact, mux, elastic.Documents(mux)}
}

// routes finds the handler of a request: at once if its path is that of an endpoint, which mux
// finds, too, but takes longer.
type routes struct {
	exact  map[string]http.Handler
	mux    *http.ServeMux
	others http.Handler // mux, for all paths
}

// ServeHTTP implements http.Handler.
func (s *routes) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	h := s.exact[r.URL.Path]
	if h == nil || r.URL.RawPath != "" {
		h = s.others
	}
	h.ServeHTTP(w, r)
}

// ServesPage reports whether there is a page for people, at /ui/: unless the configuration decides, where it
// shows nothing to others.
func (c *Collector) ServesPage() bool {
	if c.config.UI.Serve == config.Auto {
		return c.config.Access.Tokens != "" || !reachable(c.Addr())
	}
	return c.config.UI.Serve == "on"
}

// toPage leads browsers to the page.
func toPage(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Vary", "Accept")
		if ui.WantsPage(r) {
			w.Header().Set("Location", strings.TrimPrefix(ui.Prefix, "/")) // below what a proxy may have in front
			w.WriteHeader(http.StatusFound)
			return
		}
		next.ServeHTTP(w, r)
	})
}

// routeReceivers calls route for each endpoint of a receiver.
func (c *Collector) routeReceivers(route func(path string, h http.Handler, methods ...string)) {
	for _, e := range endpoints.All {
		h := e.Handler
		switch {
		case e.GRPC:
			h = c.receiver.GRPC(e.Protocol)
		case e.Protocol != nil:
			h = c.receiver.Handler(e.Protocol, append([]string{http.MethodPost}, e.Methods...)...)
		}
		route(e.Path, h, e.Methods...)
	}
}

// readOnly answers methods other than GET and HEAD. People and clients try to send events
// to the page that lists endpoints.
func readOnly(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodGet || r.Method == http.MethodHead {
			next.ServeHTTP(w, r)
			return
		}
		text := fmt.Sprintf("method %.20q is not allowed here; use GET", r.Method)
		if r.URL.Path == "/" && (r.Method == http.MethodPost || r.Method == http.MethodPut) {
			text = "events are not taken at /; send them to /api/logs, or where GET / says for your client"
		}
		w.Header().Set("Allow", "GET, HEAD")
		writeJSON(w, http.StatusMethodNotAllowed, map[string]any{"error": text})
	})
}

// serveHealth also tells which journal this is, for clients that remember what
// they sent.
func (c *Collector) serveHealth(w http.ResponseWriter, _ *http.Request) {
	writeJSON(w, http.StatusOK, map[string]any{"status": "alive", "journal": c.journal.ID()})
}

const rejectedPath = "/api/rejected"

// serveRejected shows who may read the dead letters of its tenant. To mark them as replayed
// takes the right to write or to operate, too.
func (c *Collector) serveRejected(w http.ResponseWriter, r *http.Request) {
	if r.Method == http.MethodPost {
		if _, err := c.caller(r, access.Write|access.Operate); err != nil {
			writeRefusal(w, err)
			return
		}
	}
	c.api.ServeRejected(w, r, c.rejected, tenantOf(r))
}

func (c *Collector) serveReady(w http.ResponseWriter, _ *http.Request) {
	if err := c.health.Ready(); err != nil {
		w.Header().Set("Retry-After", "1")
		writeJSON(w, http.StatusServiceUnavailable, map[string]any{"status": "not ready", "error": err.Error()})
		return
	}
	writeJSON(w, http.StatusOK, map[string]any{"status": "ready"})
}

// listed returns the endpoints that GET / lists, with their paths as documentation writes
// them.
func listed() []page {
	list, forPeople := slices.Clone(ownEndpoints), strings.NewReplacer("{$}", "", "{project}", "PROJECT", "{index}", "INDEX")
	for _, d := range endpoints.All {
		if d.Does != "" {
			list = append(list, page{"POST " + forPeople.Replace(d.Path), d.Does})
		}
	}
	return list
}

func (c *Collector) serveIndex(w http.ResponseWriter, _ *http.Request) {
	var b strings.Builder
	b.WriteString("This is a Rollway collector: it takes logs, keeps them, and finds them again.\n\n")
	for _, e := range listed() {
		fmt.Fprintf(&b, "  %-33s  %s\n", e.pattern, e.does)
	}
	url := c.Scheme() + "://" + c.Addr().String()
	fmt.Fprintf(&b, "\nSend a line, and find it:\n\n  curl -d '{\"level\":\"info\",\"msg\":\"hello\"}' %s/api/logs\n  curl '%s/api/query?q=hello'\n", url, url)
	h := w.Header()
	h.Set("Content-Type", "text/plain; charset=utf-8")
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Content-Length", strconv.Itoa(b.Len()))
	w.Write([]byte(b.String())) // a client that is gone needs no page
}

func serveUnknown(w http.ResponseWriter, r *http.Request) {
	var list []string
	for _, e := range listed() {
		list = append(list, strings.Join(strings.Fields(e.pattern), " "))
	}
	writeJSON(w, http.StatusNotFound, map[string]any{"error": fmt.Sprintf("there is no %.100q here", r.URL.Path), "endpoints": list})
}

func writeJSON(w http.ResponseWriter, status int, v any) {
	h := w.Header()
	h.Set("Content-Type", "application/json")
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Cache-Control", "no-store")
	w.WriteHeader(status)
	enc := json.NewEncoder(w)
	enc.SetEscapeHTML(false)
	enc.Encode(v) // a client that is gone needs no answer
}
