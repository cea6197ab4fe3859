package httplog_test

import (
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/rollway/rollway"
	"github.com/rollway/rollway/httplog"
)

func TestLevelHandler(t *testing.T) {
	v, err := rollway.NewLevels("")
	if err != nil {
		t.Fatal(err)
	}
	h := httplog.LevelHandler(v)
	for _, c := range []struct {
		method, body string
		header       http.Header
		status       int
		want         string // a part of the answer
	}{
		{"GET", "", nil, 200, "info\n"},
		{"PUT", "warn,db.*=debug\n", nil, 200, "warn,db.*=debug\n"},
		{"GET", "", nil, 200, "warn,db.*=debug\n"},
		{"POST", "loud,db.*=trace", nil, 400, `"loud" is no level: take one of trace`},
		{"POST", " \n", nil, 400, "the body is empty"},
		{"POST", strings.Repeat("a", 64<<10+1), nil, 413, "longer than 64 KiB"},
		{"DELETE", "", nil, 405, "PUT and POST set them"},
		{"POST", "off", http.Header{"Sec-Fetch-Site": {"cross-site"}}, 403, "cross-origin"},
		{"POST", "off", http.Header{"Origin": {"https://elsewhere.example"}}, 403, "cross-origin"},
		{"GET", "", nil, 200, "warn,db.*=debug\n"}, // none of these changed anything
		{"POST", "error", http.Header{"Sec-Fetch-Site": {"same-origin"}}, 200, "error\n"},
	} {
		r := httptest.NewRequest(c.method, "/levels", strings.NewReader(c.body))
		for k, vs := range c.header {
			r.Header[k] = vs
		}
		w := httptest.NewRecorder()
		h.ServeHTTP(w, r)
		if w.Code != c.status || !strings.Contains(w.Body.String(), c.want) || c.status == 405 && w.Header().Get("Allow") == "" {
			t.Errorf("%s %.40q: %d %q, want %d %q", c.method, c.body, w.Code, w.Body.String(), c.status, c.want)
		}
	}
	if got := v.Level("db"); got != slog.LevelError {
		t.Errorf("level of db is %v", got)
	}
}
