package collector

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"mime"
	"net/http"
	"net/netip"
	"net/url"
	"strings"
	"unicode"

	"github.com/rollway/rollway/collector/access"
	"github.com/rollway/rollway/collector/receiver"
	"github.com/rollway/rollway/collector/ui"
)

// A caller is who reads or operates: a program that sends its token with each request, or a person
// whose browser has a session, or whom a trusted proxy names. Receivers know no persons.
type caller struct {
	token *access.Token // nil: there are no tokens, and everybody may do everything
	user  string        // the person; "": a program
	ends  context.Context
}

// maxUser is how long the name of a person may be.
const maxUser = 200

// caller returns who sends a request and has the right, or one of several, or why it is refused.
//
// A browser adds a session's cookie, or what lets it pass a proxy, to each request, whichever page
// makes it. So these count only for requests of the collector's own page.
func (c *Collector) caller(r *http.Request, right access.Right) (who caller, err error) {
	s := c.state.Load()
	user, token := s.proxied(r)
	if s.tokens == nil {
		return caller{user: user}, nil
	}
	if !ui.OwnPage(r) {
		who.token, err = s.identify(r, right)
		return who, err
	}
	switch session := c.sessions.Of(r); {
	case user != "" && token == nil:
		return who, &receiver.Refusal{Code: http.StatusForbidden, Text: fmt.Sprintf("no token is called as %q or one of its roles", user)}
	case user != "":
		who = caller{token: token, user: user}
	case session != nil && access.Credentials(r) == "" && s.tokens.FindSum(session.Token) != nil:
		who = caller{token: s.tokens.FindSum(session.Token), ends: session.Ends}
		who.user = who.token.Name
	default:
		who.token, err = s.identify(r, right)
		return who, err
	}
	return who, mayNot(who.token, right)
}

// proxied returns the person whom a trusted proxy names in a header, and the token with that
// person's rights: the first that is called as one of the roles in another header or, without such a
// setting, as the person.
func (s *state) proxied(r *http.Request) (user string, token *access.Token) {
	peer, _ := netip.ParseAddrPort(r.RemoteAddr)
	names := r.Header.Values(s.userHeader)
	if s.userHeader == "" || len(names) != 1 || names[0] == "" || len(names[0]) > maxUser || !s.proxies.Trusts(peer.Addr()) {
		return "", nil
	}
	user = strings.Map(func(c rune) rune {
		if unicode.IsPrint(c) {
			return c
		}
		return unicode.ReplacementChar
	}, names[0])
	roles := []string{names[0]}
	if s.roleHeader != "" {
		if roles = r.Header.Values(s.roleHeader); len(roles) == 1 {
			roles = strings.Split(roles[0], ",")
		} else {
			roles = nil // a second header may be the browser's own
		}
	}
	for _, role := range roles {
		if token = s.tokens.Named(strings.TrimSpace(role)); token != nil && !token.OfPages() {
			return user, token
		}
	}
	return user, nil
}

// mayNot returns why a token may not do something, or nil.
func mayNot(token *access.Token, right access.Right) error {
	if token.May(right) {
		return nil
	}
	return &receiver.Refusal{Code: http.StatusForbidden, Text: "token " + token.Name + " may not " + strings.Join(right.Names(), " or ")}
}

const sessionPath = ui.Prefix + "session"

// serveSession answers who is logged in, and logs in and out.
func (c *Collector) serveSession(w http.ResponseWriter, r *http.Request) {
	ui.SetSecure(w.Header())
	if r.Method != http.MethodGet && r.Method != http.MethodHead && !ui.OwnPage(r) {
		writeRefusal(w, &receiver.Refusal{Code: http.StatusForbidden, Text: "only the collector's own page logs in and out"})
		return
	}
	switch r.Method {
	case http.MethodGet, http.MethodHead:
		c.tellSession(w, r)
	case http.MethodPost:
		c.logIn(w, r)
	case http.MethodDelete:
		c.sessions.End(w, r)
		writeJSON(w, http.StatusOK, map[string]any{"authenticated": false})
	default:
		w.Header().Set("Allow", "GET, HEAD, POST, DELETE")
		writeJSON(w, http.StatusMethodNotAllowed, map[string]any{"error": fmt.Sprintf("method %.20q is not allowed here", r.Method)})
	}
}

// session is what the page knows of who uses it.
type session struct {
	Authenticated bool     `json:"authenticated"`
	User          string   `json:"user"`
	Tenant        string   `json:"tenant"` // "": of all
	Rights        []string `json:"rights"`
	Tokens        bool     `json:"tokens"` // false: there are none, and everybody may do everything
	Proxied       bool     `json:"proxied"`
	Version       string   `json:"version"`
}

func (c *Collector) tellSession(w http.ResponseWriter, r *http.Request) {
	s := session{Tokens: c.state.Load().tokens != nil, Rights: []string{}}
	if who, err := c.caller(r, access.All); err == nil {
		s.Authenticated, s.Version, s.User, s.Proxied = true, Version(), who.user, who.user != "" && who.ends == nil
		rights := access.All
		if who.token != nil {
			s.Tenant, rights = who.token.Tenant(), who.token.Rights
		}
		s.Rights = rights.Names()
	}
	writeJSON(w, http.StatusOK, s)
}

// maxLogin bounds the body of a login.
const maxLogin = 4 << 10

func (c *Collector) logIn(w http.ResponseWriter, r *http.Request) {
	secret, err := loginToken(w, r)
	if err != nil {
		writeRefusal(w, &receiver.Refusal{Code: http.StatusBadRequest, Text: `expected {"token":"SECRET"}, or the form field token`})
		return
	}
	s := c.state.Load()
	if s.tokens == nil {
		c.tellSession(w, r)
		return
	}
	token := s.tokens.Find(secret)
	switch {
	case token == nil:
		err = &receiver.Refusal{Code: http.StatusUnauthorized, Text: "the token is not known here"}
	case token.OfPages():
		err = &receiver.Refusal{Code: http.StatusForbidden, Text: "token " + token.Name + " is for web pages of its origins"}
	default:
		err = mayNot(token, access.Read)
	}
	if err != nil {
		writeRefusal(w, err)
		return
	}
	c.sessions.Begin(w, r, access.Sum(secret))
	c.audit(r, caller{token: token, user: token.Name}, "logged in", nil)
	writeJSON(w, http.StatusOK, session{Authenticated: true, User: token.Name, Tenant: token.Tenant(), Rights: token.Rights.Names(), Tokens: true, Version: Version()})
}

// loginToken reads the token in JSON or a form.
func loginToken(w http.ResponseWriter, r *http.Request) (string, error) {
	text, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxLogin))
	if err != nil {
		return "", err
	}
	if kind, _, _ := mime.ParseMediaType(r.Header.Get("Content-Type")); kind == "application/x-www-form-urlencoded" {
		form, err := url.ParseQuery(string(text))
		return form.Get("token"), err
	}
	var ask struct{ Token string }
	err = json.Unmarshal(text, &ask)
	return ask.Token, err
}
