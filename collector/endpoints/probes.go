package endpoints

// A Probe is what clients ask with GET or HEAD before they send. The answer is the
// original's: 200 and Body, or what of Refused and Unready applies.
type Probe struct {
	Path    string // as for http.ServeMux
	Asked   string // who asks; for people
	Type    string // of all answers; "": application/json
	Body    string
	Refused string // with 403 to clients without a token that may write; "": nobody needs one
	Unready string // with 503 while nothing can be stored; "": it makes no difference
}

// Probes is every Probe. Elasticsearch's are in package elastic: they depend on the path.
// OPTIONS is answered alike at each Endpoint, by its methods.
var Probes = []Probe{
	{Path: "/services/collector/health", Asked: "Splunk's clients, Vector, the OpenTelemetry Collector", Body: hecHealthy, Unready: hecUnhealthy},
	{Path: "/services/collector/health/1.0", Asked: "the same", Body: hecHealthy, Unready: hecUnhealthy},
	{Path: "/ready", Asked: "Vector at Loki", Type: plainText, Body: "ready\n", Unready: "Ingester not ready: nothing can be stored\n"},
	{Path: "/api/v1/validate", Asked: "Datadog's Agent, Vector", Body: `{"valid":true}`, Refused: `{"errors":["Forbidden"]}`},
	{Path: "/api/relay/healthcheck/live/{$}", Asked: "balancers in front of Sentry's Relay", Body: relayHealthy},
	{Path: "/api/relay/healthcheck/ready/{$}", Asked: "the same", Body: relayHealthy, Unready: `{"is_healthy":false}`},
	{Path: "/_health/{$}", Asked: "balancers in front of Sentry", Type: plainText, Body: "ok", Unready: "not ready"},
	{Path: "/health", Asked: "balancers in front of VictoriaLogs", Type: plainText, Body: "OK", Unready: "not ready"},
}

const (
	plainText    = "text/plain; charset=utf-8"
	hecHealthy   = `{"text":"HEC is healthy","code":17}`
	hecUnhealthy = `{"text":"HEC is unhealthy, queues are full","code":18}`
	relayHealthy = `{"is_healthy":true}`
)
