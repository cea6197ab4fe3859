package query

import (
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"os"
	"slices"
	"strings"
)

// Guard passes on to next the requests that a web page of another site cannot
// have made, and answers the others 403. Without it, any page that a user of
// this machine opens could read the logs of a collector on loopback: its name
// may be made to resolve to 127.0.0.1 once it is loaded.
//
//  1. The Host header is an IP address, localhost, a name below .localhost, or
//     one of hosts, which are names without a port.
//  2. An Origin header, if there is one, names the same host and port as Host.
//  3. A Sec-Fetch-Site header, if there is one, does not tell of a page of another origin, except
//     for what opens as a page of its own: how long an answer takes, too, tells of what is stored.
//
// setting is what hosts come from, for the answer.
func Guard(next http.Handler, setting string, hosts []string) http.Handler {
	allowed := make([]string, len(hosts))
	for i, h := range hosts {
		allowed[i] = strings.ToLower(h)
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		name := hostName(r.Host)
		if !isLocalName(name) && !slices.Contains(allowed, name) {
			writeError(w, http.StatusForbidden, fmt.Errorf("host %s is not served here; use an IP address, localhost, the machine's name or the host listened on, or add the name to %s", show(r.Host), setting))
			return
		}
		if origin := r.Header.Get("Origin"); origin != "" {
			u, err := url.Parse(origin)
			if err != nil || !strings.EqualFold(u.Host, r.Host) {
				writeError(w, http.StatusForbidden, fmt.Errorf("pages of %s may not reach this collector; open them from the collector itself", show(origin)))
				return
			}
		}
		if ofOtherOrigin(r) {
			writeError(w, http.StatusForbidden, errors.New("pages of other origins may not reach this collector; open them from the collector itself"))
			return
		}
		next.ServeHTTP(w, r)
	})
}

// ofOtherOrigin reports whether a browser tells that a page of another origin makes the request, and
// that the answer does not take that page's place.
func ofOtherOrigin(r *http.Request) bool {
	switch r.Header.Get("Sec-Fetch-Site") {
	case "", "same-origin", "none":
		return false
	}
	opens := r.Method == http.MethodGet && r.Header.Get("Sec-Fetch-Mode") == "navigate" && r.Header.Get("Sec-Fetch-Dest") == "document"
	return !opens
}

// Names returns the hosts for a Guard of the address listen: hosts, separated by blanks,
// the host in listen, and the machine's name.
func Names(hosts, listen string) []string {
	names := strings.Fields(hosts)
	if host, _, err := net.SplitHostPort(listen); err == nil && host != "" {
		names = append(names, host)
	}
	if name, err := os.Hostname(); err == nil {
		names = append(names, name)
	}
	return names
}

// hostName is a Host header in lower case without port, brackets and the dot of
// the root.
func hostName(host string) string {
	if name, _, err := net.SplitHostPort(host); err == nil {
		host = name
	}
	if strings.HasPrefix(host, "[") && strings.HasSuffix(host, "]") {
		host = host[1 : len(host)-1]
	}
	return strings.ToLower(strings.TrimSuffix(host, "."))
}

func isLocalName(name string) bool {
	if name == "localhost" || strings.HasSuffix(name, ".localhost") {
		return true
	}
	_, err := netip.ParseAddr(name)
	return err == nil
}
