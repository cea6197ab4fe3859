package main

import (
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// What one journal has is not in the next one at the same address: a collector
// whose data folder is new gets the file from its start.
func TestSendToAnotherJournal(t *testing.T) {
	dir := t.TempDir()
	file, state := dir+"/log", dir+"/state"
	writeFile(t, file, "one\ntwo\n")
	f := newFakeCollector(t)
	send := func(journal, wantSaid string, want ...string) {
		t.Helper()
		f.mu.Lock()
		f.journal = journal
		f.mu.Unlock()
		cli(t, "", "send", "-addr", f.URL, "-state", state, file).want(t, 0, wantSaid)
		if got := f.messages(t); strings.Join(got, " ") != strings.Join(want, " ") {
			t.Errorf("journal %q got %q, want %q", journal, got, want)
		}
	}
	send("a1", "sent 2 lines", "one", "two")
	send("a1", "nothing new after line 2")
	send("b2", "the collector has a new journal", "one", "two")
	send("b2", "nothing new after line 2")
	send("", "nothing new after line 2") // a collector that does not say
	send("b2", "nothing new after line 2")
}

// The same with the real collector, whose folder is removed between two runs.
func TestSendToEmptiedCollector(t *testing.T) {
	dir := t.TempDir()
	file, data := dir+"/log", dir+"/data"
	writeFile(t, file, "one\ntwo\n")
	var addr string
	for range 2 {
		args := []string{"-data", data}
		if addr != "" {
			args = append(args, "-listen", strings.TrimPrefix(addr, "http://"))
		}
		d := serveDaemon(t, args...)
		addr = d.addr
		for range 2 { // the second time there is nothing new
			cli(t, "", "send", "-addr", addr, "-state", dir+"/state", file).want(t, 0)
		}
		if got := len(d.query(t, "file=log")); got != 2 {
			t.Errorf("%d lines are found, want 2", got)
		}
		d.end(t)
		if err := os.RemoveAll(data); err != nil {
			t.Fatal(err)
		}
	}
}

// A run that gives up says how many lines it leaves.
func TestSendGivesUp(t *testing.T) {
	f, dir := newFakeCollector(t), t.TempDir()
	path := filepath.Join(dir, "in.log")
	text, _ := numbered(0, 2500)
	writeFile(t, path, text)
	f.setBefore(func(n int, w http.ResponseWriter, _ []string) bool {
		if n > 1 {
			w.WriteHeader(http.StatusServiceUnavailable)
		}
		return n > 1
	})
	cli(t, "", "send", "-addr", f.URL, "-state", dir, "-retry", "0", path).want(t, 1, "sent 1,000 lines", "1,000 lines read but not accepted")
}

// Without its memory a second run would send everything again: send says so before
// it sends, or after what it could not help.
func TestSendWithoutMemory(t *testing.T) {
	f, dir := newFakeCollector(t), t.TempDir()
	path, state := filepath.Join(dir, "in.log"), filepath.Join(dir, "state")
	writeFile(t, path, "one\n")
	cli(t, "", "send", "-addr", f.URL, "-state", path, path).want(t, 1, "nothing was sent", "-state", "-again")
	if got := f.messages(t); len(got) != 0 {
		t.Errorf("sent %q", got)
	}
	cli(t, "", "send", "-addr", f.URL, "-state", path, "-again", path).want(t, 0, "cannot be resumed", "sent 1 line")

	f.setBefore(func(int, http.ResponseWriter, []string) bool {
		os.RemoveAll(state)
		writeFile(t, state, "")
		return false
	})
	cli(t, "", "send", "-addr", f.URL, "-state", state, path).want(t, 1, "sent 1 line", "in.log was sent, but save the position", "would send it again")
}

// A second run leaves a file to the first, under whichever name.
func TestSendTwiceAtOnce(t *testing.T) {
	f, dir := newFakeCollector(t), t.TempDir()
	path := filepath.Join(dir, "in.log")
	writeFile(t, path, "one\n")
	f.setBefore(func(int, http.ResponseWriter, []string) bool {
		f.mu.Unlock()
		defer f.mu.Lock()
		for _, flag := range []string{"-eof", "-again"} {
			cli(t, "", "send", flag, "-addr", f.URL, "-state", dir, path).want(t, 1, "another rollway send is sending it")
		}
		return false
	})
	cli(t, "", "send", "-addr", f.URL, "-state", dir, path).want(t, 0, "sent 1 line")
	cli(t, "", "send", "-addr", f.URL, "-state", dir, path).want(t, 0, "nothing new")
}

// An answer of /healthz that is cut says nothing of the journal: it is asked again.
func TestSendCutHealth(t *testing.T) {
	f, dir := newFakeCollector(t), t.TempDir()
	f.journal = "a1"
	path, cut := filepath.Join(dir, "in.log"), false
	front := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/healthz" && !cut {
			cut = true
			w.Header().Set("Content-Length", "100")
			w.Write([]byte("{"))
			return
		}
		f.ServeHTTP(w, r)
	}))
	defer front.Close()
	writeFile(t, path, "one\n")
	cli(t, "", "send", "-addr", front.URL, "-state", dir, path).want(t, 0, "read the answer of "+front.URL+"/healthz", "sent 1 line")
}

// A redirect to another host, or out of TLS, does not get the token.
func TestTokenStaysWithItsHost(t *testing.T) {
	t.Setenv(tokenEnv, "secret")
	var got []string
	other := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		got = append(got, r.Header.Get("Authorization"))
	}))
	defer other.Close()
	own := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		got = append(got, r.Header.Get("Authorization"))
		if r.URL.Path == "/again" {
			http.Redirect(w, r, other.URL, http.StatusFound)
		} else {
			http.Redirect(w, r, "/again", http.StatusFound)
		}
	}))
	defer own.Close()
	cli(t, "", "query", "-addr", own.URL).want(t, 0)
	if want := []string{"Bearer secret", "Bearer secret", ""}; !slices.Equal(got, want) {
		t.Errorf("requests with %q, want %q", got, want)
	}
	request := func(url string) *http.Request {
		r := httptest.NewRequest(http.MethodGet, url, nil)
		r.Header.Set("Authorization", "Bearer secret")
		return r
	}
	for _, tt := range []struct {
		from, to string
		keeps    bool
	}{
		{"https", "https", true},
		{"https", "http", false},
		{"http", "https", true},
	} {
		next := request(tt.to + "://own:4318/again")
		err := keepToken(next, []*http.Request{request(tt.from + "://own:4318/")})
		if err != nil || (next.Header.Get("Authorization") != "") != tt.keeps {
			t.Errorf("from %s to %s: %v, %q", tt.from, tt.to, err, next.Header)
		}
	}
}
