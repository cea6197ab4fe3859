package stdlog_test

import (
	"context"
	"log"
	"log/slog"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/rollway/rollway"
	"github.com/rollway/rollway/rollwaytest"
	"github.com/rollway/rollway/slab"
	"github.com/rollway/rollway/stdlog"
)

func newLogger(t *testing.T) (*rollway.Logger, *rollwaytest.Recorder) {
	t.Helper()
	rec := new(rollwaytest.Recorder)
	l, err := rollway.New(rollway.Options{
		Outputs: []rollway.Output{{Writer: rec, Level: rollway.LevelTrace}},
		Caller:  rollway.LevelTrace,
	})
	if err != nil {
		t.Fatal(err)
	}
	return l, rec
}

func one(t *testing.T, rec *rollwaytest.Recorder) rollwaytest.Record {
	t.Helper()
	got := rec.Records()
	if len(got) != 1 || len(rec.Invalid()) > 0 {
		t.Fatalf("%d records, want 1: %v %v", len(got), got, rec.Invalid())
	}
	rec.Reset()
	return got[0]
}

func TestNew(t *testing.T) {
	l, rec := newLogger(t)
	std := stdlog.New(l.Named("http").With(slog.String("service", "pay")), stdlog.Options{Level: slog.LevelError})
	for name, call := range map[string]func(){
		"Printf":  func() { std.Printf("peer %d\nis gone", 7) },
		"Print":   func() { std.Print("peer 7\nis gone") },
		"Println": func() { std.Println("peer 7\nis gone") },
		"Output":  func() { std.Output(1, "peer 7\nis gone") },
	} {
		call()
		r := one(t, rec)
		if r.Msg != "peer 7\nis gone" || r.Level != slog.LevelError || r.Service != "pay" || r.Logger != "http" {
			t.Errorf("%s: got %s", name, r.Line)
		}
		if source, _ := r.Source.(string); !strings.HasPrefix(source, "stdlog/stdlog_test.go:") {
			t.Errorf("%s: source %q", name, source)
		}
	}
	std.Print("")
	if r := one(t, rec); r.Msg != "" {
		t.Errorf("got %s", r.Line)
	}
	std.Print("two newlines end this\n\n")
	if r := one(t, rec); r.Msg != "two newlines end this\n" {
		t.Errorf("got %s", r.Line)
	}
}

func TestPrefixes(t *testing.T) {
	l, rec := newLogger(t)
	std := stdlog.New(l, stdlog.Options{Prefixes: true, Level: slog.LevelInfo + 1})
	for _, c := range []struct {
		line, msg string
		level     slog.Level
	}{
		{"[WARN] low on disk", "low on disk", slog.LevelWarn},
		{"[warning]low", "low", slog.LevelWarn},
		{"[ERR]\tgone", "gone", slog.LevelError},
		{"ERROR: gone: far", "gone: far", slog.LevelError},
		{"error:", "", slog.LevelError},
		{"Debug: x", "x", slog.LevelDebug},
		{"TRACE: x", "x", rollway.LevelTrace},
		{"[WARN+1] x", "x", slog.LevelWarn + 1},
		{"[FATAL] is but a word", "is but a word", rollway.LevelFatal},
		{"[WARN]\nfirst\nsecond", "\nfirst\nsecond", slog.LevelWarn},
		{"no level", "no level", slog.LevelInfo + 1},
		{"error", "error", slog.LevelInfo + 1},
		{"[WARN", "[WARN", slog.LevelInfo + 1},
		{"[]", "[]", slog.LevelInfo + 1},
		{": x", ": x", slog.LevelInfo + 1},
		{"", "", slog.LevelInfo + 1},
		{"[core] [WARN] x", "[core] [WARN] x", slog.LevelInfo + 1},
		{"http: panic serving", "http: panic serving", slog.LevelInfo + 1},
		{"error in line 3: x", "error in line 3: x", slog.LevelInfo + 1},
	} {
		std.Print(c.line)
		if r := one(t, rec); r.Msg != c.msg || r.Level != c.level {
			t.Errorf("%q: got %v %q, want %v %q", c.line, r.Level, r.Msg, c.level, c.msg)
		}
	}
	stdlog.New(l, stdlog.Options{}).Print("[WARN] as it is")
	if r := one(t, rec); r.Msg != "[WARN] as it is" || r.Level != slog.LevelInfo {
		t.Errorf("got %s", r.Line)
	}
}

func FuzzPrefixes(f *testing.F) {
	for _, s := range []string{"[WARN] x", "error: x", "[", "]", "[]:", "WARN+9999999999999999999: x", "[TRACE-3] x", "\xff: x"} {
		f.Add(s)
	}
	var rec rollwaytest.Recorder
	l, err := rollway.New(rollway.Options{Outputs: []rollway.Output{{Writer: &rec, Level: slog.Level(-1 << 31)}}})
	if err != nil {
		f.Fatal(err)
	}
	w := stdlog.NewWriter(l, stdlog.Options{Prefixes: true})
	f.Fuzz(func(t *testing.T, s string) {
		if n, err := w.Write([]byte(s)); n != len(s) || err != nil {
			t.Fatalf("Write = %d, %v", n, err)
		}
		if len(rec.Invalid()) > 0 {
			t.Fatalf("%q: %v", s, rec.Invalid())
		}
		want := strings.ToValidUTF8(strings.TrimSuffix(s, "\n"), "")
		for _, r := range rec.Records() {
			if msg := strings.ReplaceAll(r.Msg, "\ufffd", ""); !strings.HasSuffix(strings.ReplaceAll(want, "\ufffd", ""), msg) {
				t.Errorf("%q became %q", s, r.Msg)
			}
		}
		rec.Reset()
	})
}

func TestRedirect(t *testing.T) {
	var before strings.Builder
	log.SetOutput(&before)
	defer log.SetOutput(os.Stderr)
	log.SetPrefix("p ")
	defer log.SetPrefix("")
	l, rec := newLogger(t)
	restore := stdlog.Redirect(l, stdlog.Options{})
	log.Print("redirected")
	restore()
	log.Print("restored")
	r := one(t, rec)
	if source, _ := r.Source.(string); r.Msg != "redirected" || !strings.HasPrefix(source, "stdlog/stdlog_test.go:") {
		t.Errorf("got %s", r.Line)
	}
	if got := before.String(); !strings.HasPrefix(got, "p 2") || !strings.HasSuffix(got, " restored\n") {
		t.Errorf("after restore: %q", got)
	}
}

func TestPanicFlushes(t *testing.T) {
	var file rollwaytest.Recorder
	buffer, err := slab.New(&file, slab.Options{FlushInterval: time.Hour})
	if err != nil {
		t.Fatal(err)
	}
	defer buffer.Close()
	l, err := rollway.New(rollway.Options{Outputs: []rollway.Output{{Writer: buffer}}})
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if p := recover(); p != "no card" {
			t.Errorf("recovered %v", p)
		}
		r := one(t, &file) // it is there although nobody else flushed
		if source, _ := r.Source.(string); r.Msg != "no card" || r.Level != rollway.LevelPanic || !strings.HasPrefix(source, "stdlog/stdlog_test.go:") {
			t.Errorf("got %s", r.Line)
		}
	}()
	stdlog.New(l, stdlog.Options{}).Panicf("no %s", "card")
}

// TestFatal runs itself as a child: the line of log.Fatal, which ends the
// process, is in the file behind a buffer that would not have written for an
// hour.
func TestFatal(t *testing.T) {
	if path := os.Getenv("STDLOG_FATAL"); path != "" {
		f, err := os.Create(path)
		if err != nil {
			t.Fatal(err)
		}
		buffer, err := slab.New(f, slab.Options{FlushInterval: time.Hour})
		if err != nil {
			t.Fatal(err)
		}
		l, err := rollway.New(rollway.Options{Outputs: []rollway.Output{{Writer: buffer}}, CloseTimeout: time.Minute})
		if err != nil {
			t.Fatal(err)
		}
		stdlog.Redirect(l, stdlog.Options{})
		log.Print("before")
		log.Fatalln("the end")
	}
	path := filepath.Join(t.TempDir(), "log")
	cmd := exec.Command(os.Args[0], "-test.run=^TestFatal$")
	cmd.Env = append(os.Environ(), "STDLOG_FATAL="+path)
	if out, err := cmd.CombinedOutput(); cmd.ProcessState.ExitCode() != 1 {
		t.Fatalf("%v: %s", err, out)
	}
	lines, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	var rec rollwaytest.Recorder
	rec.Write(lines)
	if r, ok := rec.Find("the end"); !ok || r.Level != rollway.LevelFatal || len(rec.Records()) != 2 {
		t.Errorf("the file holds %q", lines)
	}
}

// TestHTTPServer: a real server's error log.
func TestHTTPServer(t *testing.T) {
	l, rec := newLogger(t)
	srv := &http.Server{
		Handler:  http.HandlerFunc(func(http.ResponseWriter, *http.Request) { panic("handler") }),
		ErrorLog: stdlog.New(l, stdlog.Options{Level: slog.LevelError}),
	}
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	var wg sync.WaitGroup
	wg.Go(func() { srv.Serve(ln) })
	if resp, err := http.Get("http://" + ln.Addr().String()); err == nil {
		resp.Body.Close()
		t.Error("answered")
	}
	if err := srv.Shutdown(context.Background()); err != nil {
		t.Error(err)
	}
	wg.Wait()
	var found bool
	for _, r := range rec.Records() {
		source, _ := r.Source.(string)
		if strings.HasPrefix(r.Msg, "http: panic serving") && strings.Contains(r.Msg, "\ngoroutine ") {
			found = r.Level == slog.LevelError && strings.HasPrefix(source, "http/server.go:")
		}
	}
	if !found {
		t.Errorf("got %v", rec.Records())
	}
}

func TestConcurrent(t *testing.T) {
	l, rec := newLogger(t)
	std := stdlog.New(l, stdlog.Options{Prefixes: true})
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			for range 100 {
				std.Print("[WARN] line\nand its second")
			}
		})
	}
	wg.Wait()
	for _, r := range rec.Records() {
		if r.Msg != "line\nand its second" || r.Level != slog.LevelWarn {
			t.Fatalf("got %s", r.Line)
		}
	}
	if n := len(rec.Records()); n != 800 {
		t.Errorf("%d records", n)
	}
}

func BenchmarkPrintf(b *testing.B) {
	l, err := rollway.New(rollway.Options{Outputs: []rollway.Output{{Writer: nowhere{}}}})
	if err != nil {
		b.Fatal(err)
	}
	std := stdlog.New(l, stdlog.Options{})
	b.ReportAllocs()
	for b.Loop() {
		std.Printf("peer %s is gone", "p7")
	}
}

type nowhere struct{}

func (nowhere) Write(p []byte) (int, error) { return len(p), nil }
