package remote_test

import (
	"strings"
	"testing"
	"time"

	"github.com/rollway/rollway/remote"
)

// Stats shows how the peer is: before the first connection, while it works,
// while it is away, and after.
func TestHealth(t *testing.T) {
	peer := startHTTPPeer(t)
	w := open(t, peer.URL+"/", remote.Options{})
	if s := w.Stats(); s.Connected || s.Peer != "" || !s.LastSuccess.IsZero() || s.Failures != 0 {
		t.Errorf("Stats of a new Writer = %+v", s)
	}
	begin := time.Now()
	write(t, w, numbered(0, 1))
	s := w.Stats()
	if !s.Connected || s.Peer != peer.Listener.Addr().String() || s.LastSuccess.Before(begin) || s.Failures != 0 || s.Failing || s.LastError != nil {
		t.Errorf("Stats after a success = %+v", s)
	}
	first := s.LastSuccess
	peer.always = status(503, "journal is full")
	for range 3 {
		if _, err := w.Write([]byte(numbered(1, 2))); err == nil {
			t.Error("Write to a full peer = nil")
		}
	}
	s = w.Stats()
	if s.Failures != 3 || !s.Failing || s.LastError == nil || !strings.Contains(s.LastError.Error(), "journal is full") || s.LastErrorTime.Before(first) || !s.LastSuccess.Equal(first) {
		t.Errorf("Stats after three failures = %+v", s)
	}
	peer.always = nil
	write(t, w, numbered(1, 2))
	if s := w.Stats(); s.Failures != 0 || s.Failing || s.Errors != 3 || s.LastError == nil || !s.LastSuccess.After(first) {
		t.Errorf("Stats after the peer came back = %+v", s)
	}
	settled(t, w, 2, 2)
}

// Lines to a loopback address do not leave the machine, and the rest is the
// caller's decision.
func TestPlainToken(t *testing.T) {
	for _, url := range []string{"http://127.0.0.1:1/", "http://[::1]:1/", "http://localhost:1/", "https://h/"} {
		open(t, url, remote.Options{Token: "secret"})
	}
	open(t, "http://logs.example/", remote.Options{Token: "secret", AllowPlainToken: true})
	open(t, "http://logs.example/", remote.Options{Header: map[string][]string{"X-Scope-OrgID": {"a"}}})
}
