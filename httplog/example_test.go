package httplog_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"regexp"
	"strings"
	"time"

	"github.com/rollway/rollway"
	"github.com/rollway/rollway/httplog"
)

// stable is an io.Writer that replaces what differs from run to run, so that
// the example's output can be checked.
type stable struct{}

var varies = regexp.MustCompile(`("time":|"duration":)("[^"]*"|[0-9]+)`)

func (stable) Write(p []byte) (int, error) {
	if _, err := os.Stdout.Write(varies.ReplaceAll(p, []byte(`$1…`))); err != nil {
		return 0, err
	}
	return len(p), nil
}

func Example() {
	log, err := rollway.New(rollway.Options{Outputs: []rollway.Output{{Writer: stable{}}}})
	if err != nil {
		panic(err)
	}
	mux := http.NewServeMux()
	mux.HandleFunc("POST /charge/{customer}", func(w http.ResponseWriter, r *http.Request) {
		rollway.FromContext(r.Context()).Info(r.Context(), "charging")
		w.WriteHeader(http.StatusPaymentRequired)
	})
	handler := httplog.Middleware(log, httplog.Options{})(mux)

	r := httptest.NewRequest("POST", "/charge/cus_123?token=secret", nil)
	r.Header.Set("X-Request-Id", "req-7")
	handler.ServeHTTP(httptest.NewRecorder(), r)
	// Output:
	// {"time":…,"level":"INFO","msg":"charging","attrs":{"request_id":"req-7"}}
	// {"time":…,"level":"WARN","msg":"http request","attrs":{"request_id":"req-7","method":"POST","path":"/charge/cus_123","route":"POST /charge/{customer}","status":402,"bytes":0,"duration":…,"remote":"192.0.2.1:1234"}}
}

func ExampleLevelHandler() {
	levels, err := rollway.NewLevels("info")
	if err != nil {
		panic(err)
	}
	handler := httplog.LevelHandler(levels)

	for _, rules := range []string{"info,db.*=debug", "loud"} {
		w := httptest.NewRecorder()
		handler.ServeHTTP(w, httptest.NewRequest("PUT", "/levels", strings.NewReader(rules)))
		fmt.Println(w.Code, strings.TrimSpace(w.Body.String()))
	}
	// Output:
	// 200 info,db.*=debug
	// 400 set levels: level rule "loud": "loud" is no level: take one of trace, debug, info, warn, error, panic, fatal, off
}

func Example_sampling() {
	log, err := rollway.New(rollway.Options{
		Outputs:  []rollway.Output{{Writer: stable{}}},
		Sampling: &rollway.Sampling{Period: time.Hour, First: 1, Attrs: []string{"route", "status"}},
	})
	if err != nil {
		panic(err)
	}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /pay/{id}", func(http.ResponseWriter, *http.Request) {})
	mux.HandleFunc("GET /user", http.NotFound)
	handler := httplog.Middleware(log, httplog.Options{NewID: func() string { return "id" }})(mux)
	for _, path := range []string{"/pay/1", "/user", "/pay/2", "/user", "/pay/3"} {
		handler.ServeHTTP(httptest.NewRecorder(), httptest.NewRequest("GET", path, nil))
	}
	log.Close()
	// Unordered output:
	// {"time":…,"level":"INFO","msg":"http request","attrs":{"request_id":"id","method":"GET","path":"/pay/1","route":"GET /pay/{id}","status":200,"bytes":0,"duration":…,"remote":"192.0.2.1:1234"}}
	// {"time":…,"level":"WARN","msg":"http request","attrs":{"request_id":"id","method":"GET","path":"/user","route":"GET /user","status":404,"bytes":19,"duration":…,"remote":"192.0.2.1:1234"}}
	// {"time":…,"level":"INFO","msg":"rollway: 2 lines left out by sampling","attrs":{"of":"http request route=\"GET /pay/{id}\" status=200","left_out":2}}
	// {"time":…,"level":"WARN","msg":"rollway: 1 line left out by sampling","attrs":{"of":"http request route=\"GET /user\" status=404","left_out":1}}
}
