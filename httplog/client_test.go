package httplog_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/rollway/rollway/httplog"
)

// TestClientGone: the line of a request whose client did not wait for the answer
// says so, and has no status that nobody answered.
func TestClientGone(t *testing.T) {
	for name, c := range map[string]struct {
		before, after func(w http.ResponseWriter) // the client goes
		status        int64
		level         slog.Level
		aborted       any
	}{
		"nothing answered": {status: 499, level: slog.LevelWarn},
		"partly answered": {status: 200, level: slog.LevelInfo, before: func(w http.ResponseWriter) {
			io.WriteString(w, "half")
			w.(http.Flusher).Flush()
		}},
		"answered too late": {status: 503, level: slog.LevelError, after: func(w http.ResponseWriter) { w.WriteHeader(503) }},
		"aborted":           {status: 499, level: slog.LevelWarn, aborted: true, after: func(http.ResponseWriter) { panic(http.ErrAbortHandler) }},
	} {
		t.Run(name, func(t *testing.T) {
			ctx, leave := context.WithCancel(t.Context())
			srv, s := serve(t, httplog.Options{}, func(w http.ResponseWriter, r *http.Request) {
				if c.before != nil {
					c.before(w)
				}
				leave()
				<-r.Context().Done()
				if c.after != nil {
					c.after(w)
				}
			})
			r, err := http.NewRequestWithContext(ctx, "GET", srv.URL, nil)
			if err != nil {
				t.Fatal(err)
			}
			if resp, err := http.DefaultClient.Do(r); err == nil {
				resp.Body.Close()
			}
			line := s.wait(t, 1)[0]
			if a := line.Attrs; a["client_gone"] != true || a["status"] != c.status || a["aborted"] != c.aborted || line.Level != c.level {
				t.Errorf("got %s", line.Line)
			}
		})
	}
}

// TestCanceledWithCause: a program that cancels a request itself can say why, and
// then it is not the client who went away.
func TestCanceledWithCause(t *testing.T) {
	log, s := newLog(t)
	h := httplog.Middleware(log, httplog.Options{})(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	for _, cause := range []error{errors.New("the server is shut down"), nil} {
		ctx, cancel := context.WithCancelCause(t.Context())
		cancel(cause)
		h.ServeHTTP(httptest.NewRecorder(), httptest.NewRequestWithContext(ctx, "GET", "/", nil))
	}
	got := s.wait(t, 2)
	if a := got[0].Attrs; a["client_gone"] != nil || a["status"] != int64(200) {
		t.Errorf("got %s", got[0].Line)
	}
	if a := got[1].Attrs; a["client_gone"] != true || a["status"] != int64(499) {
		t.Errorf("got %s", got[1].Line)
	}
}

// TestLongTexts: a client cannot make lines long.
func TestLongTexts(t *testing.T) {
	srv, s := serve(t, httplog.Options{Query: true}, func(http.ResponseWriter, *http.Request) {})
	get := func(method, path string) map[string]any {
		t.Helper()
		s.Reset()
		if _, _, err := do(t, method, srv.URL+path); err != nil {
			t.Fatal(err)
		}
		r := s.wait(t, 1)[0]
		if len(r.Line) > 3*2100+500 {
			t.Errorf("a line of %d bytes", len(r.Line))
		}
		return r.Attrs
	}
	a := get(strings.Repeat("M", 3000), "/"+strings.Repeat("%C3%A9", 50_000)+"?"+strings.Repeat("q", 500<<10))
	for key, want := range map[string]string{
		"method": strings.Repeat("M", 2048) + "… (3000 bytes)",
		"path":   "/" + strings.Repeat("é", 1023) + "… (100001 bytes)",
		"query":  strings.Repeat("q", 2048) + "… (512000 bytes)",
	} {
		if a[key] != want {
			t.Errorf("%s is %.20q… and ends with %q", key, a[key], fmt.Sprint(a[key])[max(0, len(fmt.Sprint(a[key]))-30):])
		}
	}
	get("GET", "/"+strings.Repeat("%BF", 200_000)) // no UTF-8
	whole := "/" + strings.Repeat("p", 2047)
	if a := get("GET", whole); a["path"] != whole {
		t.Errorf("path is %q", a["path"])
	}
}
