package rollway

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"runtime"
	"strings"
	"testing"
	"time"
)

func TestLogAt(t *testing.T) {
	var b bytes.Buffer
	l := mustNew(t, Options{Outputs: []Output{{Writer: &b}}, Stack: LevelPanic})
	ctx := ContextWith(t.Context(), slog.Int("c", 1))
	pcs := make([]uintptr, 1)
	runtime.Callers(1, pcs)
	_, _, here, _ := runtime.Caller(0)
	l.WithGroup("g").LogAt(ctx, aTime, pcs[0], slog.LevelWarn, "m", slog.Int("a", 1))
	want := fmt.Sprintf(`/at_test.go:%d","attrs":{"c":1,"g":{"a":1}}}`, here-1) + "\n"
	if got := b.String(); !strings.HasPrefix(got, `{"time":"2026-05-28T12:40:00.123456789Z","level":"WARN","msg":"m","source":"`) || !strings.HasSuffix(got, want) {
		t.Errorf("got %s", got)
	}
	b.Reset()
	before := time.Now().Add(-time.Second)
	l.LogAt(noContext, time.Time{}, 0, slog.LevelError, "no source, now")
	if got := oneLine(t, bytes.NewBufferString(b.String())); got != `{"level":"ERROR","msg":"no source, now"}` {
		t.Errorf("got %s", got)
	}
	if at, err := time.Parse(time.RFC3339Nano, b.String()[9:39]); err != nil || at.Before(before) {
		t.Errorf("time of %s: %v", b.String(), err)
	}
	b.Reset()
	l.LogAt(ctx, aTime, pcs[0], slog.LevelInfo, "below Caller")
	l.LogAt(ctx, aTime, pcs[0], slog.LevelDebug, "below the output")
	if got := b.String(); strings.Contains(got, "source") || strings.Contains(got, "below the output") {
		t.Errorf("got %s", got)
	}
	b.Reset()
	l.LogAt(ctx, time.Time{}, 0, LevelFatal, "m")
	if got := oneLine(t, &b); !strings.Contains(got, `"stack":"github.com/rollway/rollway.TestLogAt`) {
		t.Errorf("the stack does not begin with the caller: %s", got)
	}
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	l.LogAt(ctx, aTime, 0, slog.LevelError, "after Close")
	if s := l.Stats(); s.Outputs[0].Rejected != 1 || b.Len() != 0 {
		t.Errorf("%+v, %s", s, b.String())
	}

	var late bytes.Buffer
	first := true
	o := Options{Outputs: []Output{{Writer: &late}}, Redact: &Redaction{Keys: []string{"secret"}}, Caller: LevelOff,
		Sampling: &Sampling{Period: time.Hour, First: 1},
		Extract:  []func(context.Context, []slog.Attr) []slog.Attr{func(_ context.Context, dst []slog.Attr) []slog.Attr { return append(dst, slog.Bool("first", first)) }},
		Trace:    func(context.Context) ([16]byte, [8]byte, bool) { return [16]byte{1}, [8]byte{2}, true }}
	l = mustNew(t, o)
	for range 3 {
		l.LogAt(ctx, aTime, 0, slog.LevelInfo, "m", slog.String("secret", "x"))
	}
	if got, want := oneLine(t, &late), `{"level":"INFO","msg":"m","trace_id":"01000000000000000000000000000000","span_id":"0200000000000000","attrs":{"c":1,"first":true,"secret":"[REDACTED]"}}`; got != want {
		t.Errorf("got %s\nwant %s", got, want)
	}
}

type keepContext struct {
	ctx   context.Context
	trace [16]byte
	span  [8]byte
	attrs []slog.Attr
}

func (k *keepContext) AppendLine(dst []byte, r *Record) []byte {
	k.ctx, k.trace, k.span, k.attrs = r.Context(), r.TraceID, r.SpanID, nil
	for a := range r.Attrs {
		k.attrs = append(k.attrs, a)
	}
	return append(dst, r.Message...)
}

// TestRecordHasTheContext: and the trace, by every way of logging.
func TestRecordHasTheContext(t *testing.T) {
	var enc keepContext
	traced := [16]byte{0x6f, 15: 1}
	l := mustNew(t, Options{Outputs: []Output{{Writer: new(bytes.Buffer), Encoder: Custom{&enc}}},
		Trace: func(ctx context.Context) ([16]byte, [8]byte, bool) {
			return traced, [8]byte{7: 2}, ctx.Value(traceKey{}) != nil
		}})
	ctx := context.WithValue(t.Context(), traceKey{}, "x")
	for name, log := range map[string]func(context.Context){
		"Info":    func(ctx context.Context) { l.Info(ctx, "m") },
		"LogAt":   func(ctx context.Context) { l.LogAt(ctx, aTime, 0, slog.LevelInfo, "m") },
		"Handler": func(ctx context.Context) { slog.New(l.Handler()).InfoContext(ctx, "m") },
	} {
		log(ctx)
		if enc.ctx != ctx || enc.trace != traced || enc.span != [8]byte{7: 2} || len(enc.attrs) != 0 {
			t.Errorf("%s: %+v", name, enc)
		}
		log(t.Context())
		if enc.ctx != t.Context() || enc.trace != [16]byte{} {
			t.Errorf("%s without a trace: %+v", name, enc)
		}
	}
	l.Info(noContext, "m")
	if enc.ctx == nil {
		t.Error("a Record's Context is nil")
	}
}

type traceKey struct{}
