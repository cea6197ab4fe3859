package collector

import (
	"encoding/json"
	"net"
	"net/http"
	"net/netip"
	"regexp"
	"strings"
	"time"

	"github.com/rollway/rollway/collector/access"
	"github.com/rollway/rollway/collector/clients"
	"github.com/rollway/rollway/collector/receiver"
)

// maxErrorText bounds the bytes of an answer in which its error is looked for.
const maxErrorText = 4 << 10

// sawRequest counts a request when it is answered.
func (c *Collector) sawRequest(now time.Time, endpoint string, sw *answerWriter, r *http.Request) {
	state := c.state.Load()
	peer, _ := netip.ParseAddrPort(r.RemoteAddr)
	s := clients.Seen{
		Addr: state.proxies.Client(peer.Addr(), r.Header), Receiver: endpoint, Requests: 1,
		Events: sw.seen.Events, Rejected: sw.seen.Rejected, Bytes: sw.seen.Bytes,
	}
	if agent := r.Header["User-Agent"]; len(agent) > 0 {
		s.Agent = agent[0]
	}
	token, _ := sw.seen.Sender.(*access.Token)
	if token == nil && state.tokens != nil { // it was refused, or reads
		token = state.tokens.Find(access.Credentials(r))
	}
	if token != nil {
		s.Token, s.Tenant = token.Name, token.Tenant()
	}
	status := sw.status(r)
	switch s.Refused = clients.Reason(status); {
	case s.Refused == "":
		if endpoint == "/healthz" || endpoint == "/readyz" {
			return // it sends nothing, and is told nothing
		}
	case endpoint == otherPath: // the answer repeats the path
		s.Path, s.Text = withoutSecrets(r.URL.Path), "there is no such path here"
	default:
		s.Path, s.Text = withoutSecrets(r.URL.Path), sw.errorText()
	}
	c.clients.Add(now, &s)
}

// secret is what may be a key in a path, where some protocols have it.
var secret = regexp.MustCompile(`[0-9A-Za-z]*[0-9][0-9A-Za-z]{7,}|[0-9A-Za-z]{7,}[0-9][0-9A-Za-z]*|[A-Za-z]{20,}`)

func withoutSecrets(path string) string {
	return secret.ReplaceAllString(path[:min(len(path), 200)], "…")
}

// otherPath is the endpoint of all that is none.
const otherPath = "other"

// status is that of the answer, or the one of HTTP that is like its status of gRPC.
func (w *answerWriter) status(r *http.Request) int {
	switch {
	case w.seen.Code != 0:
		return w.seen.Code
	case w.code == http.StatusOK && r.ProtoMajor == 2 && w.seen.Requests == 0 && len(w.Header()["Grpc-Status"]) > 0:
		return http.StatusNotFound // no other handler than that of unknown methods sets it
	}
	return w.code
}

// errorText is what a refused client was told.
func (w *answerWriter) errorText() string {
	var answer struct {
		Error string `json:"error"`
	}
	switch {
	case w.seen.Requests > 0:
		return w.seen.Text
	case json.Unmarshal([]byte(w.text), &answer) == nil:
		return answer.Error
	}
	text, _, _ := strings.Cut(w.text, "\n")
	return text
}

// sawStream counts what has come on a connection or in a datagram.
func (c *Collector) sawStream(s receiver.Seen) {
	of := clients.Seen{
		Addr: s.Peer, Receiver: s.Receiver, Requests: s.Requests, Events: s.Events, Rejected: s.Rejected, Bytes: s.Bytes,
		Refused: s.Reason, Text: s.Text,
	}
	if of.Refused == "" {
		of.Refused = clients.Reason(s.Code)
	}
	if s.Sender != nil {
		of.Tenant = s.Sender.Tenant()
	}
	c.clients.Add(time.Now(), &of)
}

// sawConnection counts a connection of HTTP that ends before it has a request.
func (c *Collector) sawConnection(from net.Addr, reason, text string) {
	peer, _ := netip.ParseAddrPort(from.String())
	c.clients.Add(time.Now(), &clients.Seen{Addr: peer.Addr(), Receiver: "http", Requests: 1, Refused: reason, Text: text})
}

// serveClients answers who sends what: to a token of a tenant what that tenant sends.
func (c *Collector) serveClients(w http.ResponseWriter, r *http.Request) {
	token, _ := c.state.Load().identify(r, access.Read)
	list := c.clients.Clients(func(one *clients.Client) bool {
		return token == nil || token.Tenant() == "" || one.Tenant == token.Tenant()
	})
	writeJSON(w, http.StatusOK, map[string]any{"since": c.began, "clients": list})
}
