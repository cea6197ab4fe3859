package otellog_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/rollway/rollway"
	"github.com/rollway/rollway/bridge/otellog"
	"github.com/rollway/rollway/file"
	"go.opentelemetry.io/otel/log"
	"go.opentelemetry.io/otel/log/embedded"
	sdklog "go.opentelemetry.io/otel/sdk/log"
	"go.opentelemetry.io/otel/trace"
)

type object struct{ n int }

func (o *object) AppendLog(a *rollway.Object) { a.Add(slog.Int("n", o.n), slog.String("s", "x\n")) }

type list []string

func (l list) AppendLog(a *rollway.Array) {
	for _, s := range l {
		a.Add(slog.StringValue(s))
	}
}

func TestOutput(t *testing.T) {
	p, e := newProvider(t)
	var other rollwayLines
	l := newLogger(t, rollway.Options{Outputs: []rollway.Output{otellog.NewOutput(p, otellog.Options{Name: "pay", Version: "v1"}), {Writer: &other}}, Stack: rollway.LevelPanic})
	ctx := trace.ContextWithSpanContext(rollway.ContextWith(t.Context(), slog.String("request_id", "r1")), spanContext)
	before := time.Now().Add(-time.Second)
	l.With(slog.String("service", "payment-api"), slog.Any("o", &object{7})).WithGroup("g").WithGroup("h").Warn(ctx, "charged\n",
		slog.Duration("took", 1500), slog.Bool("ok", true), slog.Float64("f", 1.5), slog.Any("ints", []int{1, 2}), slog.Any("list", list{"a", "b"}),
		slog.Any("bytes", []byte{1, 2}), slog.Any("error", errors.New("in a group")))
	r := e.one(t)
	attrs := attrsOf(r)
	if file, _ := attrs["code.file.path"].(string); !strings.HasSuffix(file, "/output_test.go") || attrs["code.line.number"] == int64(0) {
		t.Errorf("source: %v", attrs)
	}
	if function := attrs["code.function.name"]; function != "github.com/rollway/rollway/bridge/otellog_test.TestOutput" {
		t.Errorf("function: %v", function)
	}
	delete(attrs, "code.function.name")
	delete(attrs, "code.file.path")
	delete(attrs, "code.line.number")
	want := map[string]any{
		"request_id": "r1", "service.name": "payment-api", "o": map[string]any{"n": int64(7), "s": "x\n"},
		"g": map[string]any{"h": map[string]any{"took": int64(1500), "ok": true, "f": 1.5, "ints": []int64{1, 2}, "list": []any{"a", "b"},
			"bytes": []byte{1, 2}, "error": "in a group"}},
	}
	if !reflect.DeepEqual(attrs, want) {
		t.Errorf("got  %v\nwant %v", attrs, want)
	}
	if r.TraceID() != spanContext.TraceID() || r.SpanID() != spanContext.SpanID() || r.TraceFlags() != trace.FlagsSampled {
		t.Errorf("span: %v %v %v", r.TraceID(), r.SpanID(), r.TraceFlags())
	}
	if r.Body().AsString() != "charged\n" || r.Severity() != log.SeverityWarn || r.SeverityText() != "WARN" || r.Timestamp().Before(before) || r.InstrumentationScope().Name != "pay" || r.InstrumentationScope().Version != "v1" {
		t.Errorf("got %v", r)
	}
	if len(other) != 1 || !strings.Contains(other[0], `"request_id":"r1"`) {
		t.Errorf("the other output: %q", other)
	}

	// What has a place of its own, without a span in the context.
	l.Named("db").Log(t.Context(), rollway.LevelPanic, "m", slog.String("trace_id", traceID), slog.String("span_id", spanID), slog.Any("error", errors.New("gone")), slog.Int("n", 1))
	r = e.one(t)
	attrs = attrsOf(r)
	if stack, _ := attrs["code.stacktrace"].(string); !strings.HasPrefix(stack, "github.com/rollway/rollway/bridge/otellog_test.TestOutput\n\t") {
		t.Errorf("stack: %v", attrs)
	}
	if r.TraceID().String() != traceID || r.SpanID().String() != spanID || attrs["exception.message"] != "gone" || attrs["exception.type"] != "*errors.errorString" ||
		attrs["n"] != int64(1) || r.InstrumentationScope().Name != "db" || attrs["trace_id"] != nil {
		t.Errorf("got %v %v", r, attrs)
	}
	l.Info(t.Context(), "m", slog.String("trace_id", "no id"), slog.Int("service", 3))
	if attrs := attrsOf(e.one(t)); attrs["trace_id"] != "no id" || attrs["service"] != int64(3) {
		t.Errorf("got %v", attrs)
	}
	l.Debug(ctx, "below the level")
	if got := e.take(); len(got) != 0 {
		t.Errorf("a record below the level: %v", got)
	}
	if err := l.Flush(t.Context()); err != nil {
		t.Error(err)
	}
	if n := l.Stats().Outputs[0].Written; n != 3 {
		t.Errorf("Stats count %d records, want 3", n)
	}

	// A trace that Options.Trace found, which is not OpenTelemetry's.
	l = newLogger(t, rollway.Options{Outputs: []rollway.Output{otellog.NewOutput(p, otellog.Options{})},
		Trace: func(context.Context) ([16]byte, [8]byte, bool) {
			return spanContext.TraceID(), spanContext.SpanID(), true
		}})
	l.Info(t.Context(), "m")
	if r := e.one(t); r.TraceID() != spanContext.TraceID() || r.InstrumentationScope().Name != "rollway" {
		t.Errorf("got %v", r)
	}
}

type rollwayLines []string

func (l *rollwayLines) Write(p []byte) (int, error) { *l = append(*l, string(p)); return len(p), nil }

type panickingProvider struct{ embedded.LoggerProvider }

func (panickingProvider) Logger(string, ...log.LoggerOption) log.Logger { return panickingLogger{} }

type panickingLogger struct{ embedded.Logger }

func (panickingLogger) Emit(context.Context, log.Record)                    { panic("emit") }
func (panickingLogger) Enabled(context.Context, log.EnabledParameters) bool { return true }

// TestOutputPanics: it is counted, told, and disturbs no other output.
func TestOutputPanics(t *testing.T) {
	var told []error
	var other rollwayLines
	l := newLogger(t, rollway.Options{
		Outputs: []rollway.Output{otellog.NewOutput(panickingProvider{}, otellog.Options{}), {Writer: &other}},
		OnError: func(err error) { told = append(told, err) },
	})
	l.Info(t.Context(), "m")
	if s := l.Stats().Outputs[0]; s.Dropped.GaveUp != 1 || s.Written != 0 || len(other) != 1 {
		t.Errorf("%+v, %d lines in the other", s, len(other))
	}
	if err := l.Close(); err != nil { // waits until it is told
		t.Error(err)
	}
	if len(told) != 1 || !strings.Contains(told[0].Error(), "emit") {
		t.Errorf("told %v", told)
	}
}

// hangingProcessor takes no record until release is closed.
type hangingProcessor struct {
	inside  chan struct{} // gets one for each record that comes
	release chan struct{}
}

func (p hangingProcessor) OnEmit(context.Context, *sdklog.Record) error {
	p.inside <- struct{}{}
	<-p.release
	return nil
}

func (hangingProcessor) Enabled(context.Context, sdklog.EnabledParameters) bool { return true }

func (hangingProcessor) ForceFlush(context.Context) error { return nil }
func (hangingProcessor) Shutdown(context.Context) error   { return nil }

// TestProviderThatHangs: the only call that waits for it is the one that is in
// it. A file, before the output or after it, has every line in order, also
// the last one of the process.
func TestProviderThatHangs(t *testing.T) {
	for _, place := range []int{0, 1} {
		t.Run(fmt.Sprintf("place %d", place), func(t *testing.T) { testProviderThatHangs(t, place) })
	}
}

func testProviderThatHangs(t *testing.T, place int) {
	h := hangingProcessor{make(chan struct{}, 10), make(chan struct{})}
	path := filepath.Join(t.TempDir(), "log")
	f, err := file.Open(path, file.Options{})
	if err != nil {
		t.Fatal(err)
	}
	stuck := otellog.NewOutput(sdklog.NewLoggerProvider(sdklog.WithProcessor(h)), otellog.Options{})
	stuck.Name = "stuck"
	outputs := []rollway.Output{{Writer: f, Encoder: rollway.Logfmt{Layout: "msg attrs:"}}, stuck}
	if place == 0 {
		outputs[0], outputs[1] = outputs[1], outputs[0]
	}
	told := make(chan string, 10)
	exited := false
	const timeout = time.Second
	l := newLogger(t, rollway.Options{Outputs: outputs, CloseTimeout: timeout,
		Exit: func(int) { exited = true }, OnError: func(err error) { told <- err.Error() }})
	var inside sync.WaitGroup
	inside.Go(func() { l.Info(t.Context(), "inside") })
	<-h.inside

	const goroutines, lines = 4, 200
	var wg sync.WaitGroup
	start := time.Now()
	for g := range goroutines {
		wg.Go(func() {
			for i := range lines {
				l.Info(t.Context(), "line", slog.Int("g", g), slog.Int("i", i))
			}
		})
	}
	wg.Wait()
	const slack = 10 * time.Second               // on a busy machine; calls that all wait for MaxWait take 20 s
	if took := time.Since(start); took > slack { // MaxWait, once
		t.Errorf("%d calls took %v", goroutines*lines, took)
	}
	start = time.Now()
	l.Fatal(t.Context(), "last")
	if took := time.Since(start); !exited || took > timeout+slack {
		t.Errorf("exited %v after %v", exited, took)
	}
	if s := l.Stats().Outputs[place]; s.Accepted != goroutines*lines+2 || s.Dropped.Full != goroutines*lines+1 || s.Pending != 1 {
		t.Errorf("%+v", s)
	}
	close(h.release)
	inside.Wait()
	if err := l.Close(); err != nil {
		t.Error(err)
	}
	got, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	next, n := [goroutines]int{}, 0
	for text := range strings.Lines(string(got)) {
		n++
		var g, i int
		if _, err := fmt.Sscanf(text, "msg=line g=%d i=%d", &g, &i); err != nil {
			continue
		}
		if i != next[g] {
			t.Errorf("goroutine %d: line %d where %d was due", g, i, next[g])
		}
		next[g]++
	}
	if next != [goroutines]int{lines, lines, lines, lines} || n != goroutines*lines+2 || !strings.Contains(string(got), "msg=last source=") && !strings.Contains(string(got), "msg=last\n") {
		t.Errorf("%v in %d lines: %s", next, n, got)
	}
	if text := <-told; !strings.Contains(text, "stuck") {
		t.Errorf("told %s", text)
	}
}

// TestOutputForgetsDroppedRecords: a record whose line never comes is replaced by a later
// one, and is not emitted after that.
func TestOutputForgetsDroppedRecords(t *testing.T) {
	p, e := newProvider(t)
	out := otellog.NewOutput(p, otellog.Options{})
	enc := out.Encoder.(rollway.Custom)
	var lines [][]byte
	for i := range 1025 {
		lines = append(lines, enc.AppendLine(nil, &rollway.Record{Message: fmt.Sprint("m", i)}))
	}
	for i, want := range map[int]string{0: "", 1: "m1", 1024: "m1024"} {
		_, err := out.Writer.Write(append(lines[i], '\n'))
		if (err != nil) != (want == "") {
			t.Errorf("record %d: %v", i, err)
		}
		if want != "" {
			if r := e.one(t); r.Body().AsString() != want {
				t.Errorf("record %d: got %s", i, r.Body().AsString())
			}
		}
	}
	if _, err := out.Writer.Write(lines[1]); err == nil {
		t.Error("a record is emitted twice")
	}
}

// TestOutputOfAValueThatLogs: a value may log to the Logger that writes it.
func TestOutputOfAValueThatLogs(t *testing.T) {
	p, e := newProvider(t)
	l := newLogger(t, rollway.Options{Outputs: []rollway.Output{otellog.NewOutput(p, otellog.Options{})}})
	l.Info(t.Context(), "outer", slog.Any("v", logsTo{l}))
	records := e.take()
	if len(records) != 2 || records[0].Body().AsString() != "inner" || records[1].Body().AsString() != "outer" {
		t.Errorf("got %v", records)
	}
}

type logsTo struct{ l *rollway.Logger }

func (v logsTo) LogValue() slog.Value {
	v.l.Info(context.Background(), "inner")
	return slog.StringValue("seen")
}

// TestOutputScopes: names without end do not fill the memory.
func TestOutputScopes(t *testing.T) {
	p, e := newProvider(t)
	l := newLogger(t, rollway.Options{Outputs: []rollway.Output{otellog.NewOutput(p, otellog.Options{})}})
	scopes := make(map[string]bool)
	for i := range 1000 {
		name := fmt.Sprint("user", i)
		l.Named(name).Info(t.Context(), "m")
		r := e.one(t)
		scope := r.InstrumentationScope().Name
		scopes[scope] = true
		if attr := attrsOf(r)["logger"]; scope != name && (scope != "rollway" || attr != name) {
			t.Fatalf("%s: scope %s, logger %v", name, scope, attr)
		}
	}
	if len(scopes) > 257 {
		t.Errorf("%d scopes", len(scopes))
	}
}

// TestOutputConcurrent: each record is emitted once.
func TestOutputConcurrent(t *testing.T) {
	p, e := newProvider(t)
	l := newLogger(t, rollway.Options{
		Outputs: []rollway.Output{otellog.NewOutput(p, otellog.Options{})},
		MaxWait: time.Minute, // a busy machine drops nothing
	})
	var wg sync.WaitGroup
	for i := range 8 {
		wg.Go(func() {
			d := l.Named(fmt.Sprint("n", i%3))
			for j := range 50 {
				d.Info(t.Context(), fmt.Sprint(i, " ", j))
			}
		})
	}
	wg.Wait()
	seen := make(map[string]bool)
	for _, r := range e.take() {
		seen[r.Body().AsString()] = true
	}
	if s := l.Stats().Outputs[0]; len(seen) != 400 || s.Written != 400 || s.Dropped.Total() != 0 {
		t.Errorf("%d records, %+v", len(seen), s)
	}
}

// TestOutputFlush: the Logger's flush reaches the exporter of a provider that batches.
func TestOutputFlush(t *testing.T) {
	e := new(exporter)
	p := sdklog.NewLoggerProvider(sdklog.WithProcessor(sdklog.NewBatchProcessor(e, sdklog.WithExportInterval(time.Hour))))
	defer p.Shutdown(context.Background())
	l := newLogger(t, rollway.Options{Outputs: []rollway.Output{otellog.NewOutput(p, otellog.Options{})}})
	l.Info(t.Context(), "m")
	if n := len(e.take()); n != 0 {
		t.Fatalf("%d records before the flush", n)
	}
	if err := l.Flush(t.Context()); err != nil {
		t.Fatal(err)
	}
	e.one(t)
}
