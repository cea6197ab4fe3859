package production

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/rollway/rollway"
)

// open is Open without any variable of the environment and without a default.
func open(t *testing.T, o Options) *Logger {
	t.Helper()
	o.NoDefault = true
	for _, s := range settings {
		t.Setenv(variables+s.name, "")
	}
	l, err := Open("payment-api", o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	return l
}

func TestFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "service.log")
	l := open(t, Options{File: path, Level: "warn,db=debug"})
	ctx := context.Background()
	l.Info(ctx, "left out")
	l.Named("db").Debug(ctx, "connected", slog.Int("connections", 3))
	if err := l.Levels.Set("info"); err != nil {
		t.Fatal(err)
	}
	l.Info(ctx, "charged")
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for line := range strings.Lines(string(b)) {
		var r struct {
			Msg, Service, Logger string
			Attrs                map[string]any
		}
		if err := json.Unmarshal([]byte(line), &r); err != nil {
			t.Fatalf("%s: %v", line, err)
		}
		got = append(got, fmt.Sprint(r.Service, " ", r.Logger, " ", r.Msg, " ", r.Attrs["connections"]))
	}
	want := []string{"payment-api db connected 3", "payment-api  charged <nil>"}
	if strings.Join(got, "\n") != strings.Join(want, "\n") {
		t.Errorf("the file has\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

func TestFormat(t *testing.T) {
	t.Setenv("GOOGLE_CLOUD_PROJECT", "shop")
	trace := func(context.Context) (id [16]byte, span [8]byte, ok bool) { return [16]byte{1}, span, true }
	for _, c := range []struct {
		o    Options
		want string
	}{
		{Options{}, `"level":"WARN","msg":"m","service":"payment-api"`},
		{Options{LevelText: "syslog", Source: "function"}, `"level":4,"msg":"m","service":"payment-api","source":"github.com/rollway/rollway/production.TestFormat"`},
		{Options{Format: "logfmt", LevelText: "lower"}, "level=warn msg=m service=payment-api source=production/production_test.go:"},
		{Options{Format: "console", LevelText: "number"}, "4     m service=payment-api"},
		{Options{Format: "ecs"}, `"log.level":"warn","message":"m","ecs.version":"8.17.0","service.name":"payment-api"`},
		{Options{Format: "ecs", LevelText: "upper"}, `"log.level":"WARN","message":"m"`},
		{Options{Format: "gcp", Source: "short"}, `"logging.googleapis.com/sourceLocation":"production/production_test.go:`},
		{Options{Format: "gcp"}, `"logging.googleapis.com/trace":"projects/shop/traces/01000000000000000000000000000000"`},
		{Options{Format: "slog"}, `"level":"WARN","source":{"file":`},
		{Options{Format: "zap"}, `{"level":"warn","ts":1`},
		{Options{Format: "zerolog"}, `"message":"m"}`},
	} {
		c.o.File, c.o.Logger.Trace = filepath.Join(t.TempDir(), "service.log"), trace
		l := open(t, c.o)
		l.Warn(context.Background(), "m")
		if err := l.Close(); err != nil {
			t.Fatal(err)
		}
		if b, err := os.ReadFile(c.o.File); err != nil || !strings.Contains(string(b), c.want) {
			t.Errorf("%s %s %s: %s, %v, want %s", c.o.Format, c.o.LevelText, c.o.Source, b, err, c.want)
		}
	}
}

func TestFileRotates(t *testing.T) {
	dir := t.TempDir()
	l := open(t, Options{File: filepath.Join(dir, "service.log"), MaxSize: 2000, Keep: 2})
	for i := range 200 {
		l.Info(context.Background(), "charged", slog.Int("i", i))
		if err := l.Sync(context.Background()); err != nil {
			t.Fatal(err)
		}
	}
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	files, _ := os.ReadDir(dir)
	packed := 0
	for _, f := range files {
		if strings.HasSuffix(f.Name(), ".gz") {
			packed++
		}
	}
	if len(files) != 3 || packed != 1 {
		t.Errorf("%d files, %d of them packed; want the current one, a plain and a packed one: %v", len(files), packed, files)
	}
}

func TestRemote(t *testing.T) {
	var body bytes.Buffer
	var authorization string
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		authorization = r.Header.Get("Authorization")
		_, _ = io.Copy(&body, r.Body)
		fmt.Fprintf(w, `{"accepted":%d}`, bytes.Count(body.Bytes(), []byte("\n")))
	}))
	defer server.Close()
	l := open(t, Options{Remote: server.URL + "/api/logs", Token: "secret", Spill: t.TempDir()})
	l.Error(context.Background(), "failed to charge")
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(body.String(), `"msg":"failed to charge"`) || authorization != "Bearer secret" {
		t.Errorf("the peer got %q and %q", authorization, &body)
	}
	var metrics bytes.Buffer
	if err := l.WriteMetrics(&metrics); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"rollway_logger_lines_written_total", "rollway_slab_lines_written_total 1", "rollway_remote_"} {
		if !strings.Contains(metrics.String(), want) {
			t.Errorf("the metrics lack %s:\n%s", want, &metrics)
		}
	}
	if strings.Contains(metrics.String(), "secret") {
		t.Errorf("the metrics have the token:\n%s", &metrics)
	}
}

func TestMetricsHandler(t *testing.T) {
	l := open(t, Options{File: filepath.Join(t.TempDir(), "service.log")})
	for method, want := range map[string]int{"GET": 200, "HEAD": 200, "POST": 405} {
		w := httptest.NewRecorder()
		l.MetricsHandler().ServeHTTP(w, httptest.NewRequest(method, "/metrics", nil))
		if w.Code != want {
			t.Errorf("%s: status %d, want %d", method, w.Code, want)
		}
		if method == "GET" && !strings.Contains(w.Body.String(), "# TYPE rollway_file_lines_written_total counter") {
			t.Errorf("no metrics of the file:\n%s", w.Body)
		}
	}
}

func TestFill(t *testing.T) {
	dir := t.TempDir()
	config := filepath.Join(dir, "log.json")
	for _, c := range []struct {
		name, config string
		vars         map[string]string
		give, want   Options
		err          string
	}{
		{name: "variables", vars: map[string]string{"FILE": "a.log", "FORMAT": "ecs", "LEVEL_TEXT": "upper", "SOURCE": "full", "LEVEL": "debug", "MAX_SIZE": "1000", "KEEP": "3", "SPILL": "s", "REMOTE": "r", "CA": "c", "TOKEN": "t"},
			want: Options{File: "a.log", Format: "ecs", LevelText: "upper", Source: "full", Level: "debug", MaxSize: 1000, Keep: 3, Spill: "s", Remote: "r", CA: "c", Token: "t"}},
		{name: "the program's come first, then variables, then the file", config: `{"file":"file.log","level":"error","keep":4}`,
			vars: map[string]string{"FILE": "variable.log", "LEVEL": "debug"}, give: Options{File: "program.log"},
			want: Options{File: "program.log", Level: "debug", Keep: 4}},
		{name: "an unknown key", config: `{"fil":"a.log"}`, err: `log.json: unknown key "fil": the keys are level, format, level_text, source, file, max_size, keep, remote, spill, ca`},
		{name: "capitals", config: `{"File":"a.log"}`, err: `log.json: unknown key "File"`},
		{name: "a token in the file", config: `{"token":"secret"}`, err: `log.json: unknown key "token"`},
		{name: "the wrong type", config: `{"file":7,"keep":"many"}`, err: "log.json: file: 7 is not a string in quotes\nkeep: \"many\" is not a whole number"},
		{name: "no JSON", config: `{`, err: "log.json: unexpected end of JSON input"},
		{name: "more than one value", config: `{} {}`, err: "log.json: invalid character"},
		{name: "a bad number", vars: map[string]string{"KEEP": "ten", "MAX_SIZE": "1.5"}, err: "ROLLWAY_MAX_SIZE: \"1.5\" is no whole number\nROLLWAY_KEEP: \"ten\" is no whole number"},
		{name: "no file", vars: map[string]string{"LOG_CONFIG": filepath.Join(dir, "none.json")}, err: "none.json: no such file or directory"},
	} {
		t.Run(c.name, func(t *testing.T) {
			if c.config != "" {
				if err := os.WriteFile(config, []byte(c.config), 0o600); err != nil {
					t.Fatal(err)
				}
				c.give.Config, c.want.Config = config, config
			}
			got, err := c.give.fill(func(name string) (string, bool) {
				v, ok := c.vars[strings.TrimPrefix(name, variables)]
				return v, ok
			})
			if c.err != "" {
				if err == nil || !strings.Contains(err.Error(), c.err) {
					t.Fatalf("the error is %v, want one with %q", err, c.err)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if fmt.Sprint(got) != fmt.Sprint(c.want) {
				t.Errorf("got %+v\nwant %+v", got, c.want)
			}
		})
	}
}

func TestOpenErrors(t *testing.T) {
	for _, c := range []struct {
		o    Options
		want string
	}{
		{Options{File: "a.log", Remote: "http://127.0.0.1:1/api/logs"}, "two destinations"},
		{Options{Spill: "spill"}, "ROLLWAY_REMOTE"},
		{Options{Format: "JSON"}, `"JSON" is no ROLLWAY_FORMAT: choose one of console, ecs, gcp, json, logfmt, slog, zap, zerolog`},
		{Options{LevelText: "loud", Source: "line"}, "\"loud\" is no ROLLWAY_LEVEL_TEXT: choose one of lower, number, severity, syslog, upper\n\"line\" is no ROLLWAY_SOURCE: choose one of full, function, object, short"},
		{Options{Level: "loud"}, "loud"},
		{Options{File: filepath.Join("no", "such", "folder", "a.log")}, "no such file or directory"},
		{Options{Remote: "https://127.0.0.1:1", CA: "production.go"}, "production.go has no certificate"},
		{Options{MaxSize: -1, File: "a.log"}, "MaxSize"},
		{Options{Logger: rollway.Options{MaxLine: 1}, File: filepath.Join(t.TempDir(), "a.log")}, "MaxLine"},
	} {
		c.o.NoDefault = true
		if l, err := Open("x", c.o); err == nil || !strings.Contains(err.Error(), c.want) || !strings.HasPrefix(err.Error(), "production: ") {
			if err == nil {
				l.Close()
			}
			t.Errorf("%+v: the error is %v, want one with %q", c.o, err, c.want)
		}
	}
}

// TestProgram runs a program that uses nothing but Open, slog and log.
func TestProgram(t *testing.T) {
	if os.Getenv("ROLLWAY_TEST_PROGRAM") != "" {
		program()
		return
	}
	path := filepath.Join(t.TempDir(), "service.log")
	for _, c := range []struct{ file, service string }{{"", "payment-api"}, {path, "production.test"}} {
		cmd := exec.Command(os.Args[0], "-test.run=^TestProgram$")
		cmd.Env = append(os.Environ(), "ROLLWAY_TEST_PROGRAM="+c.service, "ROLLWAY_FILE="+c.file, "ROLLWAY_LEVEL=debug")
		var stderr bytes.Buffer
		cmd.Stderr = &stderr
		if err := cmd.Run(); err != nil {
			t.Fatalf("%v: %s", err, &stderr)
		}
		got := stderr.String()
		if c.file != "" {
			b, err := os.ReadFile(c.file)
			if err != nil {
				t.Fatal(err)
			}
			if got != "" {
				t.Errorf("with a file, standard error has %q", got)
			}
			got = string(b)
		}
		lines := strings.Count(got, `"service":"`+c.service+`"`)
		for _, msg := range []string{"from the Logger", "from slog", "from log", "from the default", "from a context"} {
			if !strings.Contains(got, `"msg":"`+msg+`"`) {
				t.Errorf("no line %q", msg)
			}
		}
		if lines != 5 || strings.Count(got, "\n") != 5 {
			t.Errorf("%d lines of the service %s in\n%s", lines, c.service, got)
		}
	}
}
