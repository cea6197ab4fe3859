package rollway

import (
	"bytes"
	"context"
	"log/slog"
	"strings"
	"sync"
	"testing"
)

var noContext context.Context // a nil one must not hurt

func TestContextAttrs(t *testing.T) {
	l, b := newTestLogger(t, JSON{})
	ctx := ContextWith(t.Context(), slog.String("request_id", "r1"), slog.String("service", "from context"))
	inner := ContextWith(ctx, slog.Int("user", 7))
	for _, c := range []struct {
		log  func()
		want string
	}{
		{func() { l.Info(ctx, "m") }, `{"level":"INFO","msg":"m","service":"from context","attrs":{"request_id":"r1"}}`},
		{func() { l.Info(inner, "m", slog.Int("a", 1)) }, `{"level":"INFO","msg":"m","service":"from context","attrs":{"request_id":"r1","user":7,"a":1}}`},
		// In front of the Logger's attributes, outside its groups; nearer wins.
		{func() {
			l.With(slog.Int("w", 1), slog.String("service", "from With")).WithGroup("g").Info(inner, "m", slog.Int("a", 1))
		}, `{"level":"INFO","msg":"m","service":"from context","attrs":{"request_id":"r1","user":7,"w":1,"g":{"a":1}}}`},
		{func() { l.Info(ctx, "m", slog.String("service", "from call")) }, `{"level":"INFO","msg":"m","service":"from call","attrs":{"request_id":"r1"}}`},
		{func() { l.Info(ContextWith(t.Context(), slog.String("service", "alone")), "m") }, `{"level":"INFO","msg":"m","service":"alone"}`},
		{func() { l.Info(ContextWith(t.Context(), slog.Group("empty")), "m") }, `{"level":"INFO","msg":"m"}`},
		{func() { l.Info(noContext, "m") }, `{"level":"INFO","msg":"m"}`},
		{func() { slog.New(l.Handler()).InfoContext(inner, "m") }, `{"level":"INFO","msg":"m","service":"from context","attrs":{"request_id":"r1","user":7}}`},
	} {
		c.log()
		if got := oneLine(t, b); got != c.want {
			t.Errorf(" got %s\nwant %s", got, c.want)
		}
	}
	if got := ContextAttrs(inner); len(got) != 3 || got[2].Key != "user" || ContextAttrs(t.Context()) != nil {
		t.Errorf("ContextAttrs = %v", got)
	}
	if ContextWith(ctx) != ctx {
		t.Error("ContextWith of nothing made a new context")
	}
	console, text := newTestLogger(t, Console{TimeFormat: "-"})
	console.Info(inner, "m", slog.Int("a", 1))
	if got, want := text.String(), "- INFO  m request_id=r1 user=7 a=1 service=\"from context\"\n"; got != want {
		t.Errorf("console: got %q, want %q", got, want)
	}
}

// TestContextAttrsTwoLoggers: a context is not bound to the Logger that met it
// first, nor its bytes to the format of that one.
func TestContextAttrsTwoLoggers(t *testing.T) {
	one, b1 := newTestLogger(t, JSON{})
	two, b2 := newTestLogger(t, Console{TimeFormat: "-"})
	ctx := ContextWith(t.Context(), slog.Int("a", 1))
	var wg sync.WaitGroup
	for _, l := range []*Logger{one, two} {
		wg.Go(func() {
			for range 1000 {
				l.Info(ctx, "m")
			}
		})
	}
	wg.Wait()
	if n := strings.Count(b1.String(), `,"attrs":{"a":1}}`); n != 1000 {
		t.Errorf("%d right JSON lines", n)
	}
	if n := strings.Count(b2.String(), "- INFO  m a=1\n"); n != 1000 {
		t.Errorf("%d right console lines", n)
	}
}

func TestTrace(t *testing.T) {
	var b bytes.Buffer
	type key struct{}
	l := mustNew(t, Options{Outputs: []Output{{Writer: &b}}, Trace: func(ctx context.Context) (tid [16]byte, sid [8]byte, ok bool) {
		switch ctx.Value(key{}) {
		case "panic":
			panic("tracer")
		case nil:
			return tid, sid, false
		}
		return [16]byte{0x6f, 15: 1}, [8]byte{0xab, 7: 2}, true
	}})
	const want = `{"level":"INFO","msg":"m","trace_id":"6f000000000000000000000000000001","span_id":"ab00000000000002"}`
	ctx := context.WithValue(t.Context(), key{}, "x")
	l.With(slog.String("trace_id", "older")).Info(ctx, "m")
	if got := oneLine(t, &b); got != want {
		t.Errorf("got %s", got)
	}
	slog.New(l.Handler()).InfoContext(ctx, "m")
	if got := oneLine(t, &b); got != want {
		t.Errorf("slog: got %s", got)
	}
	for _, ctx := range []context.Context{t.Context(), context.WithValue(t.Context(), key{}, "panic")} {
		l.Info(ctx, "m")
		if got := oneLine(t, &b); got != `{"level":"INFO","msg":"m"}` {
			t.Errorf("got %s", got)
		}
	}
}

func TestLoggerInContext(t *testing.T) {
	l, _ := newTestLogger(t, JSON{})
	if got := FromContext(NewContext(t.Context(), l)); got != l {
		t.Error("FromContext does not return what NewContext put in")
	}
	if FromContext(t.Context()) == nil || FromContext(noContext) != FromContext(t.Context()) {
		t.Error("FromContext without a Logger has no fallback")
	}
}

func TestExtract(t *testing.T) {
	type tenant struct{}
	extract := []func(context.Context, []slog.Attr) []slog.Attr{
		func(ctx context.Context, dst []slog.Attr) []slog.Attr { // panics without one
			return append(dst, slog.String("tenant", ctx.Value(tenant{}).(string)))
		},
		func(_ context.Context, dst []slog.Attr) []slog.Attr { return append(dst, slog.Int("b", 2)) },
	}
	ctx := context.WithValue(ContextWith(t.Context(), slog.Int("a", 1)), tenant{}, "t1")
	for name, c := range map[string]struct {
		o    Options
		want string
	}{
		"plain":  {Options{}, `{"level":"INFO","msg":"m","attrs":{"a":1,"tenant":"t1","b":2,"g":{"c":3}}}`},
		"redact": {Options{Redact: &Redaction{Keys: []string{"tenant"}}}, `{"level":"INFO","msg":"m","attrs":{"a":1,"tenant":"[REDACTED]","b":2,"g":{"c":3}}}`},
	} {
		var b, text bytes.Buffer
		c.o.Extract = extract
		c.o.Outputs = []Output{{Writer: &b}, {Writer: &text, Encoder: Console{TimeFormat: "-"}}}
		l := mustNew(t, c.o)
		l.WithGroup("g").Info(ctx, "m", slog.Int("c", 3))
		if got := oneLine(t, &b); got != c.want {
			t.Errorf("%s: got %s\nwant %s", name, got, c.want)
		}
		if name == "plain" && text.String() != "- INFO  m a=1 tenant=t1 b=2 g.c=3\n" {
			t.Errorf("console: %s", text.String())
		}
		slog.New(l.Handler()).InfoContext(t.Context(), "m")
		if got := oneLine(t, &b); got != `{"level":"INFO","msg":"m","attrs":{"b":2}}` {
			t.Errorf("%s: without a tenant: %s", name, got)
		}
	}
}
