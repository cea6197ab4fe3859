package collector

import (
	"net"
	"net/http"
	"net/netip"
	"strings"
	"time"

	"github.com/rollway/rollway/collector/access"
	"github.com/rollway/rollway/collector/clients"
	"github.com/rollway/rollway/collector/receiver"
	"github.com/rollway/rollway/internal/promtext"
)

// Seen is what a receiver is to fill in about its request.
func (w *answerWriter) Seen(from receiver.Sender) *clients.Seen {
	w.from = from
	return &w.seen
}

// sawRequest counts a request once it is answered.
func (c *Collector) sawRequest(now time.Time, endpoint string, sw *answerWriter, r *http.Request) {
	s, state := &sw.seen, c.state.Load()
	if s.Requests == 0 { // no receiver has answered
		s.Requests, s.Refused, s.Text = 1, clients.Reason(sw.status(r)), sw.text
	}
	if s.Refused == "" && (endpoint == "/healthz" || endpoint == "/readyz") {
		return // a probe sends nothing and gets nothing
	}
	s.Addr, s.Receiver, s.Header = state.client(r), endpoint, r.Header
	token, _ := sw.from.(*access.Token)
	if token == nil && state.tokens != nil { // it was refused, or reads
		token = state.tokens.Find(access.Credentials(r))
	}
	if token != nil {
		s.Token, s.Tenant = token.Name, token.Tenant()
	}
	if s.Refused != "" {
		s.Path = r.URL.Path
		if endpoint == otherPath {
			s.Text = "there is no such path here" // the answer repeats it as it is
		}
	}
	c.clients.Add(now, s)
}

// otherPath is the endpoint of requests for paths that do not exist.
const otherPath = "other"

// status is that of the answer, or the one of HTTP that is like its status of gRPC, which
// only the handler of unknown methods sets besides receivers.
func (w *answerWriter) status(r *http.Request) int {
	if r.ProtoMajor == 2 && len(w.Header()["Grpc-Status"]) > 0 {
		return http.StatusNotFound
	}
	return w.code
}

// sawConnection counts a connection of HTTP that ends before it has a request.
func (c *Collector) sawConnection(from net.Addr, reason, text string) {
	peer, _ := netip.ParseAddrPort(from.String())
	c.clients.Add(time.Now(), &clients.Seen{Addr: peer.Addr(), Receiver: "http", Requests: 1, Refused: reason, Text: text})
}

// serveClients answers who sends what: to a token of a tenant what that tenant sends.
func (c *Collector) serveClients(w http.ResponseWriter, r *http.Request) {
	writeJSON(w, http.StatusOK, map[string]any{"since": c.began, "clients": c.clients.Clients(tenantOf(r))})
}

func (c *Collector) refused() promtext.Metric {
	var list []promtext.Sample
	c.clients.Refusals(func(r clients.Refusal, n uint64) {
		list = append(list, promtext.Of(n, r.Receiver, r.Reason, r.Token, r.Network))
	})
	return promtext.Counters("refused_total", "Requests and connections that were turned away, by receiver, reason, token and the client's network.",
		[]string{"receiver", "reason", "token", "network"}, list...)
}

// errorText is the beginning of an answer that refuses a request.
func errorText(p []byte) string {
	text := strings.TrimSpace(string(p[:min(len(p), 200)]))
	return strings.TrimSuffix(strings.TrimPrefix(text, `{"error":"`), `"}`)
}
