package collector

import (
	"net/http"
	"strings"

	"github.com/rollway/rollway/collector/access"
	"github.com/rollway/rollway/collector/endpoints"
	"github.com/rollway/rollway/collector/query"
)

// Header values of answers to web pages, shared by all of them.
var (
	varyOrigin     = []string{"Origin"}
	varyPreflight  = []string{"Origin, Access-Control-Request-Method, Access-Control-Request-Headers"}
	yes            = []string{"true"}
	readByPages    = []string{"Retry-After, X-Sentry-Rate-Limits, X-Sentry-Error, X-Elastic-Product"}
	keptByBrowsers = []string{"7200"} // seconds; none keeps an answer for longer
)

// take serves an endpoint to which clients send events by methods. They may call the
// collector by any name. Of web pages, whose requests browsers mark with their origin, it
// takes those of the collector itself, under a name in hosts, and those of origins that a
// token lists; only these are told so, in answer to the question that browsers ask first.
func (c *Collector) take(methods []string, hosts []string, next http.Handler) http.Handler {
	allow := []string{strings.Join(methods, ", ") + ", OPTIONS"}
	next = answerOptions(allow, next)
	guarded := query.Guard(next, "hosts", hosts)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		origin := r.Header["Origin"]
		if len(origin) == 0 || origin[0] == "" {
			next.ServeHTTP(w, r)
			return
		}
		if !c.state.Load().tokens.ListsOrigin(origin[0]) {
			guarded.ServeHTTP(w, r)
			return
		}
		h := w.Header()
		h["Access-Control-Allow-Origin"] = origin[:1]
		h["Access-Control-Allow-Credentials"] = yes // sendBeacon has them; nothing reads cookies
		h["Vary"], h["Access-Control-Expose-Headers"] = varyOrigin, readByPages
		if r.Method == http.MethodOptions && r.Header.Get("Access-Control-Request-Method") != "" {
			answerPreflight(h, r.Header, methods)
			w.WriteHeader(http.StatusNoContent)
			return
		}
		next.ServeHTTP(w, r)
	})
}

// answerPreflight allows a page what it asks for: receivers read headers, and no header
// makes them do something that the token may not.
func answerPreflight(h, asked http.Header, methods []string) {
	h["Vary"], h["Access-Control-Max-Age"] = varyPreflight, keptByBrowsers
	delete(h, "Access-Control-Expose-Headers")
	h.Set("Access-Control-Allow-Methods", strings.Join(methods, ", "))
	if names := asked["Access-Control-Request-Headers"]; len(names) > 0 {
		h["Access-Control-Allow-Headers"] = names
	}
	if asked.Get("Access-Control-Request-Private-Network") != "" {
		h["Access-Control-Allow-Private-Network"] = yes
	}
}

// answerOptions answers which methods there are, as clients ask to see whether anybody is there.
func answerOptions(allow []string, next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method != http.MethodOptions {
			next.ServeHTTP(w, r)
			return
		}
		h := w.Header()
		h["Allow"] = allow
		h.Set("Content-Length", "0")
	})
}

// probe answers a question of endpoints.Probes.
func (c *Collector) probe(p endpoints.Probe) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		h, code, body := w.Header(), http.StatusOK, p.Body
		if p.Refused != "" {
			if _, err := c.state.Load().identify(r, access.Write); err != nil {
				code, body = http.StatusForbidden, p.Refused
			}
		}
		if p.Unready != "" && c.health.Ready() != nil {
			code, body = http.StatusServiceUnavailable, p.Unready
			h.Set("Retry-After", "1")
		}
		h.Set("Content-Type", "application/json")
		if p.Type != "" {
			h.Set("Content-Type", p.Type)
		}
		h.Set("X-Content-Type-Options", "nosniff")
		w.WriteHeader(code)
		w.Write([]byte(body)) // a client that is gone needs no answer
	})
}
