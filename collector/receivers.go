package collector

import (
	"net/http"

	"github.com/rollway/rollway/collector/receiver"
	"github.com/rollway/rollway/collector/receiver/elastic"
	"github.com/rollway/rollway/collector/receiver/loki"
	"github.com/rollway/rollway/collector/receiver/otlp"
	"github.com/rollway/rollway/collector/receiver/sentry"
	"github.com/rollway/rollway/collector/receiver/splunk"
)

// receivers are the paths where clients of other kinds send their events, each
// with its protocol. What a client asks beside that, such as who is there, has
// a handler in place of a protocol.
var receivers = []struct {
	path     string // as for http.ServeMux
	does     string // for the page that lists endpoints; "" leaves it out
	protocol receiver.Protocol
	handler  http.Handler
	methods  []string // for protocol, besides POST
	grpc     bool     // protocol is a method of gRPC
}{
	{path: "/v1/logs", does: "take logs of OpenTelemetry: OTLP in protocol buffers or JSON", protocol: otlp.Protocol},
	{path: "/_bulk", does: "take documents as Elasticsearch does, also at /INDEX/_bulk and below /elastic", protocol: elastic.Bulk, methods: put},
	{path: "/{index}/_bulk", protocol: elastic.Bulk, methods: put},
	{path: elastic.Prefix + "/_bulk", protocol: elastic.Bulk, methods: put},
	{path: elastic.Prefix + "/{index}/_bulk", protocol: elastic.Bulk, methods: put},
	{path: "/_bulk/{$}", protocol: elastic.Bulk, methods: put}, // of Fluent Bit with a pipeline
	{path: "/{index}/_bulk/{$}", protocol: elastic.Bulk, methods: put},
	{path: elastic.Prefix + "/_bulk/{$}", protocol: elastic.Bulk, methods: put},
	{path: elastic.Prefix + "/{index}/_bulk/{$}", protocol: elastic.Bulk, methods: put},
	{path: "/api/{project}/envelope/{$}", does: "take events and logs in Sentry's envelopes, and events at /api/PROJECT/store/", protocol: sentry.Envelope},
	{path: "/api/{project}/envelope", protocol: sentry.Envelope},
	{path: "/api/{project}/store/{$}", protocol: sentry.Store},
	{path: "/api/{project}/store", protocol: sentry.Store},
	{path: "/services/collector/event", does: "take events as Splunk's HTTP Event Collector does, and lines at /services/collector/raw", protocol: splunk.Event},
	{path: "/services/collector/event/1.0", protocol: splunk.Event},
	{path: "/services/collector", protocol: splunk.Event},
	{path: "/services/collector/raw", protocol: splunk.Raw},
	{path: "/services/collector/raw/1.0", protocol: splunk.Raw},
	{path: "/services/collector/ack", handler: splunk.Acks},
	{path: otlp.GRPCPath, protocol: otlp.GRPC, grpc: true},
	{path: "/loki/api/v1/push", does: "take logs as Grafana Loki does", protocol: loki.Protocol},
	{path: "/api/v1/push", protocol: loki.Protocol},
	{path: "/api/prom/push", protocol: loki.Protocol},
}

var put = []string{http.MethodPut}

// handlersOfReceivers calls route for each of receivers.
func (c *Collector) handlersOfReceivers(route func(path string, h http.Handler)) {
	for _, d := range receivers {
		h := d.handler
		switch {
		case d.grpc:
			h = c.receiver.GRPC(d.protocol)
		case d.protocol != nil:
			h = c.receiver.Handler(d.protocol, append([]string{http.MethodPost}, d.methods...)...)
		}
		route(d.path, h)
	}
	for _, path := range []string{"/services/collector/health", "/services/collector/health/1.0"} {
		route(path, splunk.Health(c.health.ready))
	}
}
