package httplog_test

import (
	"context"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/rollway/rollway"
	"github.com/rollway/rollway/httplog"
	"github.com/rollway/rollway/rollwaytest"
)

// sink records lines and counts flushes and syncs.
type sink struct {
	rollwaytest.Recorder
	flushes, syncs atomic.Int32
}

func (s *sink) Sync() error {
	s.syncs.Add(1)
	return nil
}

func (s *sink) Flush(context.Context) error {
	s.flushes.Add(1)
	return nil
}

// wait returns the n records that are to come: a line is written after the
// client has its answer.
func (s *sink) wait(t *testing.T, n int) []rollwaytest.Record {
	t.Helper()
	for deadline := time.Now().Add(time.Minute); len(s.Records()) < n && time.Now().Before(deadline); {
		time.Sleep(time.Millisecond)
	}
	got := s.Records()
	if len(got) != n || len(s.Invalid()) > 0 {
		t.Fatalf("%d records, want %d: %v %v", len(got), n, got, s.Invalid())
	}
	return got
}

func newLog(t *testing.T) (*rollway.Logger, *sink) {
	t.Helper()
	s := new(sink)
	log, err := rollway.New(rollway.Options{Outputs: []rollway.Output{{Writer: s}}})
	if err != nil {
		t.Fatal(err)
	}
	return log, s
}

// serve starts a server with h behind the middleware.
func serve(t *testing.T, o httplog.Options, h http.HandlerFunc) (*httptest.Server, *sink) {
	t.Helper()
	log, s := newLog(t)
	srv := httptest.NewUnstartedServer(httplog.Middleware(log, o)(h))
	srv.Config.ErrorLog = slog.NewLogLogger(slog.DiscardHandler, slog.LevelInfo)
	srv.Start()
	t.Cleanup(srv.Close)
	return srv, s
}

func do(t *testing.T, method, url string, header ...string) (*http.Response, string, error) {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), method, url, nil)
	if err != nil {
		t.Fatal(err)
	}
	for i := 0; i < len(header); i += 2 {
		r.Header.Add(header[i], header[i+1])
	}
	resp, err := http.DefaultClient.Do(r)
	if err != nil {
		return nil, "", err
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	return resp, string(body), err
}

const (
	traceID = "4bf92f3577b34da6a3ce929d0e0e4736"
	spanID  = "00f067aa0ba902b7"
	parent  = "00-" + traceID + "-" + spanID + "-01"
)

func TestLine(t *testing.T) {
	srv, s := serve(t, httplog.Options{}, func(w http.ResponseWriter, r *http.Request) {
		log := rollway.FromContext(r.Context())
		log.Info(r.Context(), "in the handler", slog.String("id", httplog.RequestID(r.Context())))
		w.WriteHeader(http.StatusEarlyHints)
		w.WriteHeader(http.StatusCreated)
		io.WriteString(w, "12345")
		w.Write([]byte("678"))
	})
	resp, body, err := do(t, "POST", srv.URL+"/p%61y/a\u00e9?token=secret", "X-Request-Id", "req-1", "Traceparent", parent)
	if err != nil || resp.StatusCode != 201 || body != "12345678" || resp.Header.Get("X-Request-Id") != "req-1" {
		t.Fatalf("%v %v %q", err, resp, body)
	}
	got := s.wait(t, 2)
	for _, r := range got {
		if r.Attrs["request_id"] != "req-1" || r.TraceID != traceID || r.SpanID != spanID || r.Level != slog.LevelInfo {
			t.Errorf("line without the request's attributes: %s", r.Line)
		}
	}
	if got[0].Msg != "in the handler" || got[0].Attrs["id"] != "req-1" {
		t.Errorf("handler's line: %s", got[0].Line)
	}
	a := got[1].Attrs
	if got[1].Msg != "http request" || a["method"] != "POST" || a["path"] != "/pay/a\u00e9" || a["status"] != int64(201) || a["bytes"] != int64(8) {
		t.Errorf("request's line: %s", got[1].Line)
	}
	if d, ok := a["duration"].(int64); !ok || d <= 0 || d > int64(time.Minute) {
		t.Errorf("duration: %s", got[1].Line)
	}
	if remote, _ := a["remote"].(string); !strings.HasPrefix(remote, "127.0.0.1:") {
		t.Errorf("remote: %s", got[1].Line)
	}
	if strings.Contains(got[1].Line, "secret") || got[1].Source != nil || len(a) != 7 {
		t.Errorf("more than is to be said: %s", got[1].Line)
	}
}

func TestQueryRouteAttrs(t *testing.T) {
	log, s := newLog(t)
	mux := http.NewServeMux()
	mux.HandleFunc("GET /user/{id}", func(http.ResponseWriter, *http.Request) {})
	o := httplog.Options{Query: true, Attrs: func(r *http.Request) []slog.Attr { return []slog.Attr{slog.String("user", r.PathValue("id"))} }}
	srv := httptest.NewServer(httplog.Middleware(log, o)(mux))
	defer srv.Close()
	if _, _, err := do(t, "GET", srv.URL+"/user/7?a=b&c=%0a"); err != nil {
		t.Fatal(err)
	}
	r := s.wait(t, 1)[0]
	if a := r.Attrs; a["query"] != "a=b&c=%0a" || a["route"] != "GET /user/{id}" || a["user"] != "7" || a["status"] != int64(200) || a["bytes"] != int64(0) {
		t.Errorf("got %s", r.Line)
	}
}

func TestRequestID(t *testing.T) {
	generated := regexpOf(`^[A-Z2-7]{26}$`)
	for name, c := range map[string]struct {
		o      httplog.Options
		header []string
		want   string // "" for a generated one
	}{
		"none":     {},
		"sane":     {header: []string{"X-Request-Id", "Root=1-67891233-abc/@2"}, want: "Root=1-67891233-abc/@2"},
		"too long": {header: []string{"X-Request-Id", strings.Repeat("a", 129)}},
		"quotes":   {header: []string{"X-Request-Id", `a"b`}},
		"space":    {header: []string{"X-Request-Id", "a b"}},
		"no ASCII": {header: []string{"X-Request-Id", "\u00e4"}},
		"twice":    {header: []string{"X-Request-Id", "a", "X-Request-Id", "b"}},
		"own":      {o: httplog.Options{IgnoreClientID: true}, header: []string{"X-Request-Id", "a"}},
		"NewID":    {o: httplog.Options{NewID: func() string { return "mine" }}, want: "mine"},
		"header":   {o: httplog.Options{IDHeader: "x-correlation-id"}, header: []string{"X-Correlation-ID", "c1", "X-Request-Id", "a"}, want: "c1"},
	} {
		t.Run(name, func(t *testing.T) {
			srv, s := serve(t, c.o, func(http.ResponseWriter, *http.Request) {})
			resp, _, err := do(t, "GET", srv.URL, c.header...)
			if err != nil {
				t.Fatal(err)
			}
			header := c.o.IDHeader
			if header == "" {
				header = "X-Request-Id"
			}
			id, _ := s.wait(t, 1)[0].Attrs["request_id"].(string)
			if resp.Header.Get(header) != id || c.want != "" && id != c.want || c.want == "" && !generated.MatchString(id) {
				t.Errorf("id %q, in the response %q, want %q", id, resp.Header.Get(header), c.want)
			}
		})
	}
}

func TestTraceparentThatIsNone(t *testing.T) {
	srv, s := serve(t, httplog.Options{}, func(http.ResponseWriter, *http.Request) {})
	for _, header := range [][]string{
		{"Traceparent", "00-" + strings.Repeat("0", 32) + "-" + spanID + "-01"},
		{"Traceparent", `00-"},{"x":"` + traceID},
		{"Traceparent", parent, "Traceparent", parent},
	} {
		s.Reset()
		if _, _, err := do(t, "GET", srv.URL, header...); err != nil {
			t.Fatal(err)
		}
		if r := s.wait(t, 1)[0]; r.TraceID != "" || r.SpanID != "" {
			t.Errorf("%v: got %s", header, r.Line)
		}
	}
}

func TestMiddlewareTwice(t *testing.T) {
	log, s := newLog(t)
	m := httplog.Middleware(log, httplog.Options{})
	srv := httptest.NewServer(m(m(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))))
	defer srv.Close()
	if _, _, err := do(t, "GET", srv.URL); err != nil {
		t.Fatal(err)
	}
	got := s.wait(t, 2)
	if got[0].Attrs["request_id"] != got[1].Attrs["request_id"] || strings.Count(got[0].Line, "request_id") != 1 {
		t.Errorf("got %s\nand %s", got[0].Line, got[1].Line)
	}
}

func TestLevelAndSkip(t *testing.T) {
	status := func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/404":
			w.WriteHeader(404)
		case "/503":
			w.WriteHeader(503)
		}
	}
	get := func(o httplog.Options, want ...slog.Level) {
		t.Helper()
		srv, s := serve(t, o, status)
		for _, path := range []string{"/200", "/404", "/503"} {
			if _, _, err := do(t, "GET", srv.URL+path); err != nil {
				t.Fatal(err)
			}
		}
		var got []slog.Level
		for _, r := range s.wait(t, len(want)) {
			got = append(got, r.Level)
		}
		slices.Sort(got) // the next request may be faster than a line
		if !slices.Equal(got, want) {
			t.Errorf("levels %v, want %v", got, want)
		}
	}
	get(httplog.Options{}, slog.LevelInfo, slog.LevelWarn, slog.LevelError)
	get(httplog.Options{Level: func(r *http.Request, status int) slog.Level {
		if r.URL.Path == "/200" {
			return slog.LevelDebug // below the output
		}
		return slog.Level(status / 100)
	}}, slog.Level(4), slog.Level(5))
	get(httplog.Options{Skip: func(r *http.Request, status int) bool { return status < 500 }}, slog.LevelError)
}

// TestConcurrent: lines of requests that are served at the same time do not
// mix their attributes.
func TestConcurrent(t *testing.T) {
	srv, s := serve(t, httplog.Options{}, func(w http.ResponseWriter, r *http.Request) {
		io.WriteString(w, r.URL.Path)
	})
	var wg sync.WaitGroup
	for i := range 8 {
		wg.Go(func() {
			for j := range 25 {
				id := string(rune('a'+i)) + "-" + string(rune('a'+j))
				resp, body, err := do(t, "GET", srv.URL+"/"+id, "X-Request-Id", id)
				if err != nil || body != "/"+id || resp.Header.Get("X-Request-Id") != id {
					t.Errorf("%v %q", err, body)
				}
			}
		})
	}
	wg.Wait()
	for _, r := range s.wait(t, 200) {
		if id, _ := r.Attrs["request_id"].(string); r.Attrs["path"] != "/"+id || r.Attrs["bytes"] != int64(4) {
			t.Errorf("got %s", r.Line)
		}
	}
}
