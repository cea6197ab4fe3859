// Package endpoints lists the paths of the receivers and their protocols.
package endpoints

import (
	"net/http"

	"github.com/rollway/rollway/collector/receiver"
	"github.com/rollway/rollway/collector/receiver/datadog"
	"github.com/rollway/rollway/collector/receiver/elastic"
	"github.com/rollway/rollway/collector/receiver/gelf"
	"github.com/rollway/rollway/collector/receiver/journald"
	"github.com/rollway/rollway/collector/receiver/loki"
	"github.com/rollway/rollway/collector/receiver/otlp"
	"github.com/rollway/rollway/collector/receiver/sentry"
	"github.com/rollway/rollway/collector/receiver/splunk"
)

// An Endpoint is a path to which clients send their events.
type Endpoint struct {
	Path     string            // as for http.ServeMux
	Does     string            // for the page that lists endpoints; "": it does not list this one
	Protocol receiver.Protocol // nil: Handler answers
	Handler  http.Handler      // for what clients ask besides, such as acknowledgements
	Methods  []string          // besides POST
	GRPC     bool              // Protocol is a method of gRPC
}

// All is every Endpoint except /api/logs.
var All = []Endpoint{
	{Path: "/v1/logs", Does: "take logs of OpenTelemetry: OTLP in protocol buffers or JSON", Protocol: otlp.Protocol},
	{Path: "/otlp/v1/logs", Protocol: otlp.Protocol}, // Loki's
	{Path: "/_bulk", Does: "take documents as Elasticsearch does, also at /INDEX/_bulk and below /elastic", Protocol: elastic.Bulk, Methods: put},
	{Path: "/{index}/_bulk", Protocol: elastic.Bulk, Methods: put},
	{Path: elastic.Prefix + "/_bulk", Protocol: elastic.Bulk, Methods: put},
	{Path: elastic.Prefix + "/{index}/_bulk", Protocol: elastic.Bulk, Methods: put},
	{Path: "/_bulk/{$}", Protocol: elastic.Bulk, Methods: put}, // of Fluent Bit with a pipeline
	{Path: "/{index}/_bulk/{$}", Protocol: elastic.Bulk, Methods: put},
	{Path: elastic.Prefix + "/_bulk/{$}", Protocol: elastic.Bulk, Methods: put},
	{Path: elastic.Prefix + "/{index}/_bulk/{$}", Protocol: elastic.Bulk, Methods: put},
	{Path: "/{index}/_doc", Does: "take one document, also at /INDEX/_doc/ID and /INDEX/_create/ID", Protocol: elastic.Document, Methods: put},
	{Path: elastic.Prefix + "/{index}/_doc", Protocol: elastic.Document, Methods: put},
	{Path: elastic.Prefix + "/{index}/_doc/{id}", Protocol: elastic.Document, Methods: put},
	{Path: elastic.Prefix + "/{index}/_create/{id}", Protocol: elastic.Document, Methods: put},
	{Path: "/api/{project}/envelope/{$}", Does: "take events and logs in Sentry's envelopes, and events at /api/PROJECT/store/", Protocol: sentry.Envelope},
	{Path: "/api/{project}/envelope", Protocol: sentry.Envelope},
	{Path: "/api/{project}/store/{$}", Protocol: sentry.Store},
	{Path: "/api/{project}/store", Protocol: sentry.Store},
	{Path: "/services/collector/event", Does: "take events as Splunk's HTTP Event Collector does, and lines at /services/collector/raw", Protocol: splunk.Event},
	{Path: "/services/collector/event/1.0", Protocol: splunk.Event},
	{Path: "/services/collector", Protocol: splunk.Event},
	{Path: "/services/collector/raw", Protocol: splunk.Raw},
	{Path: "/services/collector/raw/1.0", Protocol: splunk.Raw},
	{Path: "/services/collector/ack", Handler: splunk.Acks},
	{Path: "/api/v2/logs", Does: "take logs as Datadog does", Protocol: datadog.Protocol},
	{Path: "/v1/input", Protocol: datadog.Protocol},
	{Path: "/insert/jsonline", Does: "take lines of JSON as VictoriaLogs does", Protocol: receiver.Plain},
	{Path: otlp.GRPCPath, Protocol: otlp.GRPC, GRPC: true},
	{Path: "/gelf", Does: "take messages as Graylog does: GELF", Protocol: gelf.HTTP},
	{Path: "/upload", Does: "take entries of systemd's journal from systemd-journal-upload", Protocol: journald.Upload},
	{Path: "/loki/api/v1/push", Does: "take logs as Grafana Loki does", Protocol: loki.Protocol},
	{Path: "/api/v1/push", Protocol: loki.Protocol},
	{Path: "/api/prom/push", Protocol: loki.Protocol},
}

// put is for clients that use it in place of POST.
var put = []string{http.MethodPut}
