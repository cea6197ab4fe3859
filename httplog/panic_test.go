package httplog_test

import (
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"regexp"
	"runtime"
	"strings"
	"sync"
	"testing"

	"github.com/rollway/rollway"
	"github.com/rollway/rollway/httplog"
	"github.com/rollway/rollway/internal/testkit"
)

var regexpOf = regexp.MustCompile

func charge(card *struct{ number int }) int { return card.number }

// TestPanicHasOneStack: that of the panic, also where Options.Stack adds one to
// each line of that level.
func TestPanicHasOneStack(t *testing.T) {
	s := new(sink)
	log, err := rollway.New(rollway.Options{Outputs: []rollway.Output{{Writer: s}}, Stack: slog.LevelError})
	if err != nil {
		t.Fatal(err)
	}
	srv := httptest.NewServer(httplog.Middleware(log, httplog.Options{})(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { charge(nil) })))
	defer srv.Close()
	if _, _, err := do(t, "GET", srv.URL); err != nil {
		t.Fatal(err)
	}
	got := s.wait(t, 2)
	for _, r := range got {
		if strings.Count(r.Line, `"stack":`) != 1 {
			t.Errorf("stacks in %s", r.Line)
		}
	}
	// The line of the request comes first.
	if stack, _ := got[1].Attrs["stack"].(string); !strings.HasPrefix(stack, "github.com/rollway/rollway/httplog_test.charge\n\t") {
		t.Errorf("not the panic's stack: %s", got[1].Line)
	}
}

func TestPanic(t *testing.T) {
	for name, o := range map[string]httplog.Options{"ends here": {}, "repanic": {Repanic: true}} {
		t.Run(name, func(t *testing.T) {
			srv, s := serve(t, o, func(w http.ResponseWriter, r *http.Request) {
				w.Header().Set("Cache-Control", "max-age=31536000")
				w.Header().Set("Content-Encoding", "gzip")
				w.Header().Set("Content-Length", "7")
				charge(nil)
			})
			var netHTTP testkit.Buffer
			srv.Config.ErrorLog.SetOutput(&netHTTP)
			resp, body, err := do(t, "GET", srv.URL+"/x", "X-Request-Id", "r1")
			if err != nil || resp.StatusCode != 500 || body != "Internal Server Error\n" || resp.Header.Get("X-Request-Id") != "r1" {
				t.Fatalf("%v %v %q", err, resp, body)
			}
			if h := resp.Header; h.Get("Cache-Control") != "" || h.Get("Content-Encoding") != "" {
				t.Errorf("header of another response: %v", h)
			}
			got := s.wait(t, 2)
			line, p := got[0], got[1]
			stack, _ := p.Attrs["stack"].(string)
			if p.Level != rollway.LevelPanic || !strings.Contains(p.Msg, "panic: runtime error: invalid memory address") ||
				!strings.HasPrefix(stack, "github.com/rollway/rollway/httplog_test.charge\n\t") || p.Attrs["request_id"] != "r1" {
				t.Errorf("panic's line: %s", p.Line)
			}
			if source, _ := p.Source.(string); !strings.HasPrefix(source, "httplog/panic_test.go:") {
				t.Errorf("source %q is not that of the panic", source)
			}
			if line.Level != slog.LevelError || line.Attrs["status"] != int64(500) || line.Attrs["bytes"] != int64(22) || line.Attrs["aborted"] != nil {
				t.Errorf("request's line: %s", line.Line)
			}
			srv.Close() // waits for the handler
			if f, n := s.flushes.Load(), s.syncs.Load(); f != 1 || n != 1 {
				t.Errorf("%d flushes, %d syncs", f, n)
			}
			if passed := strings.Contains(netHTTP.String(), "invalid memory address"); passed != o.Repanic {
				t.Errorf("net/http saw the panic: %v, want %v: %s", passed, o.Repanic, netHTTP.String())
			}
		})
	}
}

// TestPanicInTheMiddle: a client must not take a part of a response for the
// whole.
func TestPanicInTheMiddle(t *testing.T) {
	for name, o := range map[string]httplog.Options{"ends here": {}, "repanic": {Repanic: true}} {
		t.Run(name, func(t *testing.T) {
			srv, s := serve(t, o, func(w http.ResponseWriter, r *http.Request) {
				io.WriteString(w, "half a ")
				w.(http.Flusher).Flush()
				panic("the rest is missing")
			})
			_, body, err := do(t, "GET", srv.URL)
			if err == nil {
				t.Errorf("the client got %q and no error", body)
			}
			got := s.wait(t, 2)
			if got[1].Msg != "panic: the rest is missing" || got[0].Attrs["aborted"] != true || got[0].Attrs["status"] != int64(200) || got[0].Level != slog.LevelError {
				t.Errorf("got %s\nand %s", got[0].Line, got[1].Line)
			}
		})
	}
}

type secretError struct{}

func (secretError) Error() string        { return "secret" }
func (secretError) LogValue() slog.Value { return slog.StringValue("shown") }

// TestPanicRedacts: what a LogValuer hides stays hidden when a handler panics with
// an error that wraps it.
func TestPanicRedacts(t *testing.T) {
	s := new(sink)
	log, err := rollway.New(rollway.Options{Outputs: []rollway.Output{{Writer: s}}, Redact: &rollway.Redaction{Keys: []string{"password"}}})
	if err != nil {
		t.Fatal(err)
	}
	h := httplog.Middleware(log, httplog.Options{})(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {
		panic(fmt.Errorf("charge: %w", secretError{}))
	}))
	h.ServeHTTP(httptest.NewRecorder(), httptest.NewRequest("GET", "/", nil))
	if got := s.wait(t, 2)[1]; got.Msg != "panic: charge: shown" {
		t.Errorf("got %s", got.Line)
	}
}

func TestAbortHandler(t *testing.T) {
	srv, s := serve(t, httplog.Options{}, func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) })
	if _, _, err := do(t, "GET", srv.URL); err == nil {
		t.Error("the request was answered")
	}
	r := s.wait(t, 1)[0]
	if r.Msg != "http request" || r.Attrs["aborted"] != true || r.Attrs["status"] != nil || r.Level != slog.LevelInfo || s.flushes.Load() != 0 {
		t.Errorf("got %s", r.Line)
	}
}

func TestGoexit(t *testing.T) {
	var s sink
	log, err := rollway.New(rollway.Options{Outputs: []rollway.Output{{Writer: &s}}})
	if err != nil {
		t.Fatal(err)
	}
	h := httplog.Middleware(log, httplog.Options{})(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { runtime.Goexit() }))
	var wg sync.WaitGroup
	wg.Go(func() { h.ServeHTTP(httptest.NewRecorder(), httptest.NewRequest("GET", "/", nil)) })
	wg.Wait()
	if r := s.wait(t, 1)[0]; r.Attrs["aborted"] != true {
		t.Errorf("got %s", r.Line)
	}
}
