package collector

import (
	"context"
	"crypto/tls"
	"net/http"
	"strings"
	"sync/atomic"

	"github.com/rollway/rollway/collector/access"
	"github.com/rollway/rollway/collector/admission"
	"github.com/rollway/rollway/collector/query"
	"github.com/rollway/rollway/collector/receiver"
	"github.com/rollway/rollway/collector/secrets"
)

// serverTLS returns what the HTTP server is to speak; nil: plain HTTP. Each
// handshake uses the state in force when it begins.
func serverTLS(now *atomic.Pointer[state]) *tls.Config {
	if now.Load().tls == nil {
		return nil
	}
	return &tls.Config{
		MinVersion:         tls.VersionTLS12,
		NextProtos:         secrets.HTTPVersions,
		GetConfigForClient: func(*tls.ClientHelloInfo) (*tls.Config, error) { return now.Load().tls, nil },
	}
}

// streamTLS is serverTLS for what is not HTTP.
func streamTLS(now *atomic.Pointer[state]) *tls.Config {
	return &tls.Config{
		MinVersion: tls.VersionTLS12,
		GetConfigForClient: func(*tls.ClientHelloInfo) (*tls.Config, error) {
			config := now.Load().tls.Clone()
			config.NextProtos = nil
			return config, nil
		},
	}
}

// identify returns the token of a request that may do what it asks for, or why
// it may not. Without tokens both are nil.
func (s *state) identify(r *http.Request, right access.Right) (*access.Token, error) {
	if s.tokens == nil {
		return nil, nil
	}
	secret := access.Credentials(r)
	if secret == "" {
		return nil, &receiver.Refusal{Code: http.StatusUnauthorized, Text: `a token is needed here; send it as "Authorization: Bearer SECRET"`}
	}
	token := s.tokens.Find(secret)
	switch {
	case token == nil:
		return nil, &receiver.Refusal{Code: http.StatusUnauthorized, Text: "the token is not known here"}
	case !token.May(right):
		return nil, mayNot(token, right)
	case token.OfPages() && !token.ListsOrigin(r.Header.Get("Origin")):
		return nil, &receiver.Refusal{Code: http.StatusForbidden, Text: "token " + token.Name + " is for web pages of its origins"}
	case !token.OfPages() && ofOtherPage(r):
		return nil, &receiver.Refusal{Code: http.StatusForbidden, Text: "token " + token.Name + " is not for web pages: use one with origins, which may be public"}
	}
	return token, nil
}

// ofOtherPage reports whether a page that is not the collector's own has its visitor's
// browser send a request.
func ofOtherPage(r *http.Request) bool {
	origin := r.Header.Get("Origin")
	_, host, _ := strings.Cut(origin, "://")
	return origin != "" && !strings.EqualFold(host, r.Host)
}

// callerKey is where readers leaves the caller in a request's context.
type callerKey struct{}

// callerOf returns the caller of a request that readers let through.
func callerOf(r *http.Request) caller {
	who, _ := r.Context().Value(callerKey{}).(caller)
	return who
}

// tenantOf returns the tenant that a request, which readers let through, may know alone;
// "": of all.
func tenantOf(r *http.Request) string {
	if token := callerOf(r).token; token != nil {
		return token.Tenant()
	}
	return ""
}

// readers lets those through who may read. A token of a tenant finds that
// tenant's lines. What a person asks for ends with the session.
func (c *Collector) readers(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		who, err := c.caller(r, access.Read)
		if err != nil {
			writeRefusal(w, err)
			return
		}
		ctx := context.WithValue(r.Context(), callerKey{}, who)
		if who.ends != nil {
			var cancel context.CancelFunc
			ctx, cancel = context.WithCancel(ctx)
			defer cancel()
			defer context.AfterFunc(who.ends, cancel)()
		}
		switch conn := admission.ConnOf(ctx); {
		case who.token != nil:
			if answer, is := w.(*answerWriter); is {
				answer.from = who.token
			}
			ctx = admission.WithPrincipal(ctx, who.token.Principal())
		case conn != nil:
			p := conn.Client(c.state.Load().client(r))
			defer c.admission.Release(p)
			ctx = admission.WithPrincipal(ctx, p)
		}
		r = r.WithContext(ctx)
		if tenant := tenantOf(r); tenant != "" {
			r = query.Only(r, tenant)
		}
		next.ServeHTTP(w, r)
	})
}

// writeRefusal answers a request with an error of identify.
func writeRefusal(w http.ResponseWriter, err error) {
	refusal := err.(*receiver.Refusal)
	if refusal.Code == http.StatusUnauthorized {
		w.Header().Set("WWW-Authenticate", "Bearer")
	}
	writeJSON(w, refusal.Code, map[string]any{"error": refusal.Text})
}
