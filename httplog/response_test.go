package httplog_test

import (
	"bufio"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/rollway/rollway"
	"github.com/rollway/rollway/httplog"
)

func TestHijack(t *testing.T) {
	for name, hijack := range map[string]func(w http.ResponseWriter) (net.Conn, *bufio.ReadWriter, error){
		"assertion": func(w http.ResponseWriter) (net.Conn, *bufio.ReadWriter, error) { return w.(http.Hijacker).Hijack() },
		"controller": func(w http.ResponseWriter) (net.Conn, *bufio.ReadWriter, error) {
			return http.NewResponseController(w).Hijack()
		},
	} {
		t.Run(name, func(t *testing.T) {
			srv, s := serve(t, httplog.Options{}, func(w http.ResponseWriter, r *http.Request) {
				c, b, err := hijack(w)
				if err != nil {
					t.Error(err)
					return
				}
				defer c.Close()
				b.WriteString("HTTP/1.1 200 OK\r\nContent-Length: 3\r\nConnection: close\r\n\r\nraw")
				b.Flush()
			})
			if _, body, err := do(t, "GET", srv.URL); err != nil || body != "raw" {
				t.Fatalf("%q, %v", body, err)
			}
			if r := s.wait(t, 1)[0]; r.Attrs["hijacked"] != true || r.Attrs["status"] != nil || r.Attrs["bytes"] != nil || r.Attrs["aborted"] != nil {
				t.Errorf("got %s", r.Line)
			}
		})
	}
}

// TestFlush: what is flushed is there while the handler still runs.
func TestFlush(t *testing.T) {
	release := make(chan struct{})
	srv, s := serve(t, httplog.Options{}, func(w http.ResponseWriter, r *http.Request) {
		io.WriteString(w, "first\n")
		if err := http.NewResponseController(w).Flush(); err != nil {
			t.Error(err)
		}
		<-release
		io.WriteString(w, "second\n")
	})
	resp, err := http.Get(srv.URL)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	b := bufio.NewReader(resp.Body)
	if line, err := b.ReadString('\n'); line != "first\n" || err != nil {
		t.Errorf("%q, %v", line, err)
	}
	close(release)
	if rest, err := io.ReadAll(b); string(rest) != "second\n" || err != nil {
		t.Errorf("%q, %v", rest, err)
	}
	if r := s.wait(t, 1)[0]; r.Attrs["bytes"] != int64(13) {
		t.Errorf("got %s", r.Line)
	}
}

// TestDeadline: what the wrapper does not know reaches the connection.
func TestDeadline(t *testing.T) {
	srv, _ := serve(t, httplog.Options{}, func(w http.ResponseWriter, r *http.Request) {
		if err := http.NewResponseController(w).SetWriteDeadline(time.Now().Add(time.Minute)); err != nil {
			t.Error(err)
		}
	})
	if _, _, err := do(t, "GET", srv.URL); err != nil {
		t.Fatal(err)
	}
}

func TestReadFrom(t *testing.T) {
	path := filepath.Join(t.TempDir(), "page")
	if err := os.WriteFile(path, []byte(strings.Repeat("0123456789", 100_000)), 0o600); err != nil {
		t.Fatal(err)
	}
	srv, s := serve(t, httplog.Options{}, func(w http.ResponseWriter, r *http.Request) {
		if _, ok := w.(io.ReaderFrom); !ok {
			t.Error("no io.ReaderFrom")
		}
		http.ServeFile(w, r, path)
	})
	_, body, err := do(t, "GET", srv.URL)
	if err != nil || len(body) != 1_000_000 {
		t.Fatalf("%d bytes, %v", len(body), err)
	}
	if r := s.wait(t, 1)[0]; r.Attrs["bytes"] != int64(1_000_000) || r.Attrs["status"] != int64(200) {
		t.Errorf("got %s", r.Line)
	}
}

type failing struct{ panics bool }

func (f failing) Read([]byte) (int, error) {
	if f.panics {
		panic("source")
	}
	return 0, errors.New("no source")
}

// TestReadFromFails: a source that fails at once leaves room for a status, one
// that panics does not.
func TestReadFromFails(t *testing.T) {
	srv, s := serve(t, httplog.Options{}, func(w http.ResponseWriter, r *http.Request) {
		if _, err := io.Copy(w, failing{r.URL.Path == "/panics"}); err != nil {
			w.WriteHeader(http.StatusBadGateway)
		}
	})
	if resp, _, err := do(t, "GET", srv.URL); err != nil || resp.StatusCode != 502 {
		t.Errorf("%v %v", resp, err)
	}
	if r := s.wait(t, 1)[0]; r.Attrs["status"] != int64(502) {
		t.Errorf("got %s", r.Line)
	}
	if _, body, err := do(t, "GET", srv.URL+"/panics"); err == nil {
		t.Errorf("answered %q", body)
	}
}

// TestHTTP2: its writer flushes and cannot be hijacked.
func TestHTTP2(t *testing.T) {
	var s sink
	log, err := rollway.New(rollway.Options{Outputs: []rollway.Output{{Writer: &s}}})
	if err != nil {
		t.Fatal(err)
	}
	srv := httptest.NewUnstartedServer(httplog.Middleware(log, httplog.Options{})(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, flushes := w.(http.Flusher)
		_, hijacks := w.(http.Hijacker)
		if r.ProtoMajor != 2 || !flushes || hijacks {
			t.Errorf("HTTP/%d: flushes %v, hijacks %v", r.ProtoMajor, flushes, hijacks)
		}
		if r.URL.Path == "/panic" {
			panic("h2")
		}
		io.WriteString(w, "ok")
	})))
	srv.EnableHTTP2 = true
	srv.StartTLS()
	defer srv.Close()
	for path, want := range map[string]int{"/": 200, "/panic": 500} {
		resp, err := srv.Client().Get(srv.URL + path)
		if err != nil {
			t.Fatal(err)
		}
		resp.Body.Close()
		if resp.StatusCode != want {
			t.Errorf("%s: %d", path, resp.StatusCode)
		}
	}
	s.wait(t, 3)
}

// TestUpgrades: the wrapper has the optional methods that the writer below has,
// itself or by Unwrap, and no other.
func TestUpgrades(t *testing.T) {
	type (
		plain struct{ http.ResponseWriter }
		f     struct {
			plain
			http.Flusher
		}
		h struct {
			plain
			http.Hijacker
		}
		fh struct {
			plain
			http.Flusher
			http.Hijacker
		}
	)
	log, err := rollway.New(rollway.Options{Outputs: []rollway.Output{{Writer: io.Discard}}})
	if err != nil {
		t.Fatal(err)
	}
	base := plain{httptest.NewRecorder()}
	for _, c := range []struct {
		w                http.ResponseWriter
		flushes, hijacks bool
	}{
		{base, false, false}, {f{plain: base}, true, false}, {h{plain: base}, false, true}, {fh{plain: base}, true, true}, {unwraps{base}, true, false},
	} {
		m := httplog.Middleware(log, httplog.Options{})(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			_, flushes := w.(http.Flusher)
			_, hijacks := w.(http.Hijacker)
			_, unwraps := w.(interface{ Unwrap() http.ResponseWriter })
			if flushes != c.flushes || hijacks != c.hijacks || !unwraps {
				t.Errorf("%T: flushes %v, hijacks %v, Unwrap %v", c.w, flushes, hijacks, unwraps)
			}
		}))
		m.ServeHTTP(c.w, httptest.NewRequest("GET", "/", nil))
	}
}

type unwraps struct{ http.ResponseWriter }

func (unwraps) Unwrap() http.ResponseWriter { return httptest.NewRecorder() }
