package rollway_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"reflect"
	"runtime"
	"strings"
	"testing"

	"github.com/rollway/rollway"
)

// callerOf returns what a line says of its caller.
func callerOf(t *testing.T, line []byte) string {
	t.Helper()
	var v struct{ Source string }
	if err := json.Unmarshal(line, &v); err != nil {
		t.Fatalf("%v: %s", err, line)
	}
	return v.Source
}

var ctx = context.Background()

type embedsLogger struct{ *rollway.Logger }

type infoer interface {
	Info(context.Context, string, ...slog.Attr)
}

func inlinedWrapper(log *rollway.Logger) { log.Info(ctx, "wrapped") }

//go:noinline
func plainWrapper(log *rollway.Logger) { log.Info(ctx, "wrapped") }

// TestCallerSite calls log methods in every way that Go has, each from two
// places and each place twice, the second time from what the first remembered.
// An address that many call sites share must not be taken for one of them.
func TestCallerSite(t *testing.T) {
	var buf bytes.Buffer
	log, err := rollway.New(rollway.Options{Outputs: []rollway.Output{{Writer: &buf}}, Caller: slog.LevelInfo})
	if err != nil {
		t.Fatal(err)
	}
	skipping := log.WithCallerSkip(1)
	asInterface, embedded, value := infoer(log), embedsLogger{log}, log.Info
	expression := (*rollway.Logger).Info
	throughEmbedded := infoer(embedded)

	// Each step logs once from the line of its function literal.
	steps := []struct {
		name string
		call []func()
	}{
		{"Info", []func(){
			func() { log.Info(ctx, "m") },
			func() { log.Info(ctx, "m", slog.Int("n", 1)) },
		}},
		{"Log", []func(){
			func() { log.Log(ctx, slog.LevelError, "m") },
			func() { log.Log(ctx, slog.LevelWarn, "m") },
		}},
		{"interface", []func(){
			func() { asInterface.Info(ctx, "m") },
			func() { asInterface.Info(ctx, "m") },
		}},
		{"method value", []func(){
			func() { value(ctx, "m") },
			func() { value(ctx, "m") },
		}},
		{"method expression", []func(){
			func() { expression(log, ctx, "m") },
			func() { expression(log, ctx, "m") },
		}},
		{"embedded", []func(){
			func() { embedded.Info(ctx, "m") },
			func() { embedded.Info(ctx, "m") },
		}},
		{"embedded behind an interface", []func(){
			func() { throughEmbedded.Info(ctx, "m") },
			func() { throughEmbedded.Info(ctx, "m") },
		}},
		{"wrapper with a skip, inlined", []func(){
			func() { inlinedWrapper(skipping) },
			func() { inlinedWrapper(skipping) },
		}},
		{"wrapper with a skip", []func(){
			func() { plainWrapper(skipping) },
			func() { plainWrapper(skipping) },
		}},
		{"slog", []func(){
			func() { slog.New(log.Handler()).Info("m") },
			func() { slog.New(log.Handler()).Info("m") },
		}},
		{"deferred", []func(){
			func() { defer log.Info(ctx, "m") },
			func() { defer log.Info(ctx, "m") },
		}},
		{"generic", []func(){
			func() { logAny(log, 1) },
			func() { logAny(log, "one") },
		}},
	}
	for _, step := range steps {
		var wants []string
		for i, call := range step.call {
			want := lineOf(call)
			if step.name == "generic" {
				call()
				want = lineInLogAny
			}
			wants = append(wants, want)
			for try := range 2 {
				buf.Reset()
				call()
				if got := callerOf(t, buf.Bytes()); got != want {
					t.Errorf("%s, call %d, time %d: source %q, want %q", step.name, i, try, got, want)
				}
			}
		}
		if wants[0] == wants[1] && step.name != "generic" {
			t.Fatalf("%s: both calls are at %s", step.name, wants[0])
		}
	}
}

var lineInLogAny string

//go:noinline
func logAny[T any](log *rollway.Logger, _ T) {
	_, file, line, _ := runtime.Caller(0)
	lineInLogAny = fmt.Sprintf("%s:%d", shortFile(file), line+2)
	log.Info(ctx, "m")
}

// lineOf returns the line of the function literal f.
func lineOf(f func()) string {
	fn := runtime.FuncForPC(reflect.ValueOf(f).Pointer())
	file, line := fn.FileLine(fn.Entry())
	return fmt.Sprintf("%s:%d", shortFile(file), line)
}

func shortFile(file string) string {
	parts := strings.Split(file, "/")
	return strings.Join(parts[max(0, len(parts)-2):], "/")
}
