package ui

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/base64"
	"net"
	"net/http"
	"strings"
	"sync"
	"time"
)

// Bounds of sessions.
const (
	maxSessions = 1000
	maxOfOne    = 100            // with one token
	maxIdle     = 12 * time.Hour // without a request
	maxAge      = 7 * 24 * time.Hour
)

// Sessions are those of people who have given a token. They are in memory: people log in again
// after a restart. A browser has an id of 256 random bits in a cookie, never the token; nobody
// else can choose it. The zero Sessions has none. It is safe for concurrent use.
type Sessions struct {
	mu   sync.Mutex
	list map[digest]*Session // guarded by mu; by the SHA-256 of the id
}

type digest = [sha256.Size]byte

// A Session is that of one person.
type Session struct {
	Token digest          // the SHA-256 of the token's secret
	Ends  context.Context // when the session does

	id    digest
	plain bool // the cookie may come without TLS
	end   context.CancelFunc
	used  time.Time // guarded by Sessions.mu
}

// Begin begins a session for the token with the SHA-256, and sets its cookie. The session that the
// request comes with ends.
func (s *Sessions) Begin(w http.ResponseWriter, r *http.Request, token digest) {
	s.End(w, r)
	var raw [32]byte
	rand.Read(raw[:]) // never fails
	id := base64.RawURLEncoding.EncodeToString(raw[:])
	n := &Session{Token: token, id: sha256.Sum256([]byte(id)), plain: !isSecure(r), used: time.Now()}
	n.Ends, n.end = context.WithTimeout(context.Background(), maxAge)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.sweepLocked(n.used)
	s.makeRoomLocked(token)
	if s.list == nil {
		s.list = make(map[digest]*Session)
	}
	s.list[n.id] = n
	http.SetCookie(w, cookie(r, !n.plain, id, int(maxAge/time.Second)))
}

// sweepLocked ends what was not used for long.
func (s *Sessions) sweepLocked(now time.Time) {
	for _, old := range s.list {
		if old.Ends.Err() != nil || now.Sub(old.used) > maxIdle {
			s.endLocked(old)
		}
	}
}

// makeRoomLocked ends a session, if need be, for one more of the token: of those with the token, if
// there are too many, or of the tokens that have the most, the one that was used longest ago.
func (s *Sessions) makeRoomLocked(token digest) {
	counts, most := make(map[digest]int), 0
	for _, old := range s.list {
		counts[old.Token]++
		most = max(most, counts[old.Token])
	}
	full := counts[token] >= maxOfOne
	if !full && len(s.list) < maxSessions {
		return
	}
	var oldest *Session
	for _, old := range s.list {
		loses := full && old.Token == token || !full && counts[old.Token] == most
		if loses && (oldest == nil || old.used.Before(oldest.used)) {
			oldest = old
		}
	}
	s.endLocked(oldest)
}

func (s *Sessions) endLocked(old *Session) {
	old.end()
	delete(s.list, old.id)
}

// Of returns the session of a request, or nil. The caller asks OwnPage first.
func (s *Sessions) Of(r *http.Request) *Session {
	for _, secure := range []bool{true, false} {
		cookies := r.CookiesNamed(cookieName(r, secure))
		if len(cookies) != 1 { // one of several is another page's
			continue
		}
		id := sha256.Sum256([]byte(cookies[0].Value))
		s.mu.Lock()
		found, now := s.list[id], time.Now()
		switch {
		case found == nil || subtle.ConstantTimeCompare(found.id[:], id[:]) != 1, found.plain == secure, found.plain && r.TLS != nil:
			found = nil
		case found.Ends.Err() != nil || now.Sub(found.used) > maxIdle:
			s.endLocked(found)
			found = nil
		default:
			found.used = now
		}
		s.mu.Unlock()
		if found != nil {
			return found
		}
	}
	return nil
}

// End ends the session of a request, if it has one, and has the browser forget it.
func (s *Sessions) End(w http.ResponseWriter, r *http.Request) {
	found := s.Of(r)
	if found == nil {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.endLocked(found)
	http.SetCookie(w, cookie(r, !found.plain, "", -1))
}

// Keep ends the sessions whose token is not known any more.
func (s *Sessions) Keep(known func(token digest) bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, old := range s.list {
		if !known(old.Token) {
			s.endLocked(old)
		}
	}
}

// isSecure reports whether the browser of a request, which is one of OwnPage, uses TLS: to the
// collector or, as the page's origin tells, to a proxy in front of it.
func isSecure(r *http.Request) bool {
	return r.TLS != nil || strings.HasPrefix(r.Header.Get("Origin"), "https://")
}

// cookieName has the port in it: browsers send a cookie to all ports of a host. A name that begins
// with __Host- cannot be set by pages of other hosts, or without TLS.
func cookieName(r *http.Request, secure bool) string {
	name := "rollway"
	if _, port, err := net.SplitHostPort(r.Host); err == nil {
		name += "-" + port
	}
	if secure {
		return "__Host-" + name
	}
	return name
}

func cookie(r *http.Request, secure bool, value string, age int) *http.Cookie {
	return &http.Cookie{Name: cookieName(r, secure), Value: value, Path: "/", MaxAge: age, Secure: secure, HttpOnly: true, SameSite: http.SameSiteStrictMode}
}
