package ui

import (
	"crypto/sha256"
	"crypto/tls"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// browser keeps cookies as one would, by name.
type browser struct {
	cookies map[string]string
	last    *http.Cookie
	secure  bool
}

func (b *browser) request() *http.Request {
	r := httptest.NewRequest(http.MethodPost, "http://logs.example:4318/ui/session", nil)
	if b.secure {
		r.TLS = &tls.ConnectionState{}
	}
	for name, value := range b.cookies {
		r.AddCookie(&http.Cookie{Name: name, Value: value})
	}
	return r
}

func (b *browser) take(w *httptest.ResponseRecorder) {
	for _, c := range w.Result().Cookies() {
		if b.last = c; c.MaxAge < 0 {
			delete(b.cookies, c.Name)
		} else {
			b.cookies[c.Name] = c.Value
		}
	}
}

func (b *browser) begin(s *Sessions, token string) {
	w := httptest.NewRecorder()
	s.Begin(w, b.request(), sha256.Sum256([]byte(token)))
	b.take(w)
}

func newBrowser() *browser { return &browser{cookies: map[string]string{}} }

// A cookie is for the browser's own requests to the collector alone, and does not tell the token.
func TestCookie(t *testing.T) {
	for _, secure := range []bool{false, true} {
		s, b := new(Sessions), newBrowser()
		b.secure = secure
		b.begin(s, "secret-0123456789")
		c := b.last
		if !c.HttpOnly || c.SameSite != http.SameSiteStrictMode || c.Secure != secure || c.Path != "/" || c.Domain != "" || strings.HasPrefix(c.Name, "__Host-") != secure {
			t.Errorf("%v", c)
		}
		if len(c.Value) != 43 || strings.Contains(c.Value, "secret") || !strings.Contains(c.Name, "4318") {
			t.Errorf("%s=%s", c.Name, c.Value)
		}
		found := s.Of(b.request())
		if found == nil || found.Token != sha256.Sum256([]byte("secret-0123456789")) {
			t.Fatal("no session")
		}
		w := httptest.NewRecorder()
		s.End(w, b.request())
		if s.Of(b.request()) != nil || found.Ends.Err() == nil || w.Result().Cookies()[0].MaxAge >= 0 {
			t.Error("it goes on after the end")
		}
	}
}

// Nobody can choose the id of another one's session, and a login ends what was there before.
func TestFixation(t *testing.T) {
	s, attacker := new(Sessions), newBrowser()
	attacker.begin(s, "of the attacker")
	victim := newBrowser()
	for name, value := range attacker.cookies {
		victim.cookies[name] = value
	}
	before := attacker.last.Value
	victim.begin(s, "of the victim")
	if victim.last.Value == before {
		t.Error("a login keeps the id")
	}
	if s.Of(attacker.request()) != nil {
		t.Error("the id from before is one of a session")
	}
	chosen := newBrowser()
	chosen.cookies[victim.last.Name] = "AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA"
	if s.Of(chosen.request()) != nil {
		t.Error("an id that was made up is one of a session")
	}
	two := victim.request()
	two.Header.Add("Cookie", victim.last.Name+"="+before)
	if s.Of(two) != nil {
		t.Error("one of two cookies counts")
	}
}

// The cookie of TLS does not count without, under the name that other pages can set, and the other
// way round.
func TestCookieOfTLS(t *testing.T) {
	s, b := new(Sessions), newBrowser()
	b.secure = true
	b.begin(s, "x")
	plain := newBrowser()
	plain.cookies[strings.TrimPrefix(b.last.Name, "__Host-")] = b.last.Value
	if s.Of(plain.request()) != nil {
		t.Error("a session of TLS is one without")
	}
	plain = newBrowser()
	plain.begin(s, "y")
	plain.secure = true
	if s.Of(plain.request()) != nil {
		t.Error("a session without TLS is one with it")
	}
	proxied := newBrowser()
	r := proxied.request()
	r.Header.Set("Origin", "https://logs.example:4318")
	w := httptest.NewRecorder()
	s.Begin(w, r, sha256.Sum256(nil))
	if c := w.Result().Cookies()[0]; !c.Secure || !strings.HasPrefix(c.Name, "__Host-") {
		t.Errorf("after a proxy that speaks TLS: %v", c)
	}
}

func TestExpiry(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, b := new(Sessions), newBrowser()
		b.begin(s, "x")
		time.Sleep(maxIdle - time.Minute)
		if s.Of(b.request()) == nil {
			t.Error("it ends early")
		}
		time.Sleep(maxIdle + time.Minute)
		if s.Of(b.request()) != nil {
			t.Error("it does not end without requests")
		}
		b.begin(s, "x")
		ends := s.Of(b.request()).Ends
		for begun := time.Now(); time.Since(begun) < maxAge-time.Hour; time.Sleep(time.Hour) {
			if s.Of(b.request()) == nil {
				t.Fatal("it ends early")
			}
		}
		time.Sleep(time.Hour + time.Minute)
		if s.Of(b.request()) != nil || ends.Err() == nil {
			t.Error("it never ends")
		}
		newBrowser().begin(s, "y")
		if len(s.list) != 1 {
			t.Errorf("%d sessions are kept", len(s.list))
		}
	})
}

// Who logs in again and again ends sessions of the same token only.
func TestBound(t *testing.T) {
	s, other := new(Sessions), newBrowser()
	other.begin(s, "other")
	var first *browser
	for range 3 * maxOfOne {
		b := newBrowser()
		if b.begin(s, "many"); first == nil {
			first = b
		}
	}
	if n := len(s.list); n != maxOfOne+1 || s.Of(other.request()) == nil || s.Of(first.request()) != nil {
		t.Errorf("%d sessions", n)
	}
	for i := range 3 * maxSessions {
		newBrowser().begin(s, fmt.Sprint("of ", i))
	}
	if n := len(s.list); n != maxSessions {
		t.Errorf("%d sessions", n)
	}
}

// A token that is gone ends its sessions.
func TestKeep(t *testing.T) {
	s, a, b := new(Sessions), newBrowser(), newBrowser()
	a.begin(s, "a")
	b.begin(s, "b")
	ends := s.Of(a.request()).Ends
	s.Keep(func(token [32]byte) bool { return token == sha256.Sum256([]byte("b")) })
	if s.Of(a.request()) != nil || ends.Err() == nil || s.Of(b.request()) == nil {
		t.Error("the wrong one goes on")
	}
}
