package rollway

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"log/slog"
	"math/rand/v2"
	"strings"
	"testing"
	"testing/slogtest"
	"time"
)

// TestSlogtest lifts attrs to the top, where slogtest looks for attributes.
func TestSlogtest(t *testing.T) {
	var b bytes.Buffer
	slogtest.Run(t,
		func(t *testing.T) slog.Handler {
			b.Reset()
			return mustNew(t, Options{Outputs: []Output{{Writer: &b}}}).Handler()
		},
		func(t *testing.T) map[string]any {
			var m map[string]any
			if err := json.Unmarshal(b.Bytes(), &m); err != nil {
				t.Fatalf("%v: %s", err, b.String())
			}
			if attrs, ok := m["attrs"].(map[string]any); ok {
				delete(m, "attrs")
				for k, v := range attrs {
					m[k] = v
				}
			}
			return m
		})
}

// TestHandlerBeyondSlogtest holds what slogtest does not look at and what
// handlers in use get wrong: the second record, derived handlers in use at the
// same time, groups that stay empty.
func TestHandlerBeyondSlogtest(t *testing.T) {
	l, b := newTestLogger(t, JSON{})
	h := l.Handler()
	record := func(attrs ...slog.Attr) slog.Record {
		r := slog.NewRecord(time.Unix(1, 2), slog.LevelInfo, "m", 0)
		r.AddAttrs(attrs...)
		return r
	}
	const head = `{"time":"1970-01-01T00:00:01.000000002Z","level":"INFO","msg":"m"`
	handle := func(name string, h slog.Handler, r slog.Record, want string) {
		t.Helper()
		if err := h.Handle(context.Background(), r); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if got := b.String(); got != want+"\n" {
			t.Errorf("%s:\n got %swant %s", name, got, want)
		}
		b.Reset()
	}
	grouped := h.WithAttrs([]slog.Attr{slog.Int("a", 1)}).WithGroup("g")
	for range 2 {
		handle("record after record", grouped, record(slog.Int("b", 2)), head+`,"attrs":{"a":1,"g":{"b":2}}}`)
	}
	handle("group without attributes", grouped, record(), head+`,"attrs":{"a":1}}`)
	handle("group with an empty group", grouped, record(slog.Group("x")), head+`,"attrs":{"a":1}}`)
	handle("only empty groups", h.WithGroup("g").WithGroup("h"), record(), head+`}`)
	handle("attributes after groups", grouped.WithAttrs([]slog.Attr{slog.Int("c", 3)}).WithGroup("h"), record(slog.Int("d", 4)),
		head+`,"attrs":{"a":1,"g":{"c":3,"h":{"d":4}}}}`)
	handle("no attributes given", h.WithAttrs(nil), record(), head+`}`)
	handle("empty group name", h.WithGroup(""), record(slog.Int("a", 1)), head+`,"attrs":{"a":1}}`)
	handle("LogValuer that panics", h, record(slog.Any("v", panickingValuer{})), head+`,"attrs":{"v":"!PANIC: valuer"}}`)
	handle("LogValuer that gives a group", h, record(slog.Any("", userValue{1}), slog.Any("u", userValue{2})),
		head+`,"attrs":{"id":1,"password":"REDACTED","u":{"id":2,"password":"REDACTED"}}}`)
	handle("more than five attributes", h, record(slog.Int("a", 1), slog.Int("b", 2), slog.Int("c", 3), slog.Int("d", 4), slog.Int("e", 5), slog.Int("f", 6), slog.Int("g", 7)),
		head+`,"attrs":{"a":1,"b":2,"c":3,"d":4,"e":5,"f":6,"g":7}}`)

	zero := slog.NewRecord(time.Time{}, slog.LevelWarn, "m", 0)
	handle("zero time", h, zero, `{"level":"WARN","msg":"m"}`)
	year1500 := slog.NewRecord(time.Date(1500, 1, 1, 0, 0, 0, 0, time.UTC), slog.LevelInfo, "m", 0)
	handle("a time that int64 nanoseconds cannot hold", h, year1500, `{"time":"1500-01-01T00:00:00.000000000Z","level":"INFO","msg":"m"}`)

	withSource := mustNew(t, Options{Outputs: []Output{{Writer: b}}, Caller: slog.LevelInfo}).Handler()
	handle("PC 0", withSource, record(), head+`}`)
}

func TestConsole(t *testing.T) {
	l, b := newTestLogger(t, Console{UTC: true, TimeFormat: "-"})
	ctx := t.Context()
	var nilErr *pointerError
	for _, c := range []struct {
		log  func()
		want string
	}{
		{func() { l.Info(ctx, "plain message") }, "- INFO  plain message\n"},
		{func() { l.Error(ctx, "m", slog.Any("error", io.EOF), slog.Int("n", 3)) }, "- ERROR m error=EOF n=3\n"},
		{func() {
			l.Named("db").With(slog.String("service", "pay")).WithGroup("g").Info(ctx, "m", slog.Group("h", slog.Int("a", 1)))
		}, "- INFO  db: m g.h.a=1 service=pay\n"},
		{func() {
			l.Info(ctx, "m", slog.String("empty", ""), slog.String("two words", "a b"), slog.String("eq", "a=b"), slog.String("q", `say "hi"\`))
		}, `- INFO  m empty="" "two words"="a b" eq="a=b" q="say \"hi\"\\"` + "\n"},
		{func() {
			l.Info(ctx, "m", slog.Duration("d", 1500*time.Millisecond), slog.Bool("b", true), slog.Float64("f", 0.5), slog.Time("t", time.Unix(0, 5)), slog.Uint64("u", 7))
		}, "- INFO  m d=1.5s b=true f=0.5 t=1970-01-01T00:00:00.000000005Z u=7\n"},
		// Nothing forges a line or reaches the terminal.
		{func() { l.Info(ctx, "a\n12:00 ERROR forged\r\x1b[2Jb\x00\u202e\u2028é😀\xff") }, `- INFO  a\n12:00 ERROR forged\r\x1b[2Jb\x00\u202e\u2028é😀` + "\uFFFD\n"},
		{func() { l.Info(ctx, "m", slog.String("k\n\x1b", "v\n\x1b[31m\x9b")) }, `- INFO  m "k\n\x1b"="v\n\x1b[31m` + "\uFFFD\"\n"},
		{func() { l.Named("n\n").WithGroup("g\n").Info(ctx, "m", slog.Int("a", 1)) }, `- INFO  n\n: m "g\n.a"=1` + "\n"},
		{func() { l.Info(ctx, "m", slog.Any("e", loudError{}), slog.Any("n", nilErr)) }, `- INFO  m e="!PANIC: no text today" n=<nil>` + "\n"},
		{func() {
			l.Info(ctx, "m", slog.Any("p", point{1, 2}), slog.Any("s", []string{"a", "b"}), slog.Any("z", nil))
		}, `- INFO  m p={"X":1,"Y":2} s=["a","b"] z=null` + "\n"},
		{func() { l.Info(ctx, "m", slog.Any("s", panickingString{})) }, `- INFO  m s="!PANIC: rollway.panickingString"` + "\n"},
		{func() { l.Info(ctx, "m", slog.Any("v", selfValuer{}), slog.Any("u", userValue{1})) }, `- INFO  m v="!ERROR: LogValue returned a LogValuer 100 times" u.id=1 u.password=REDACTED` + "\n"},
	} {
		c.log()
		if got := b.String(); got != c.want {
			t.Errorf("\n got %swant %s", got, c.want)
		}
		b.Reset()
	}
	l.Info(ctx, "m", slog.Any("k", nestingValuer{}))
	if got := b.String(); !strings.Contains(got, "too deep or too large") {
		t.Errorf("a LogValuer without end: %s", got)
	}
}

func TestConsoleColor(t *testing.T) {
	l, b := newTestLogger(t, Console{Color: ColorAlways, TimeFormat: "-"})
	l.Warn(t.Context(), "m", slog.Int("a", 1))
	if got, want := b.String(), "\x1b[2m-\x1b[0m \x1b[33mWARN \x1b[0m m \x1b[2ma=\x1b[0m1\n"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	l, b = newTestLogger(t, Console{TimeFormat: "-"})
	l.Warn(t.Context(), "m")
	if strings.Contains(b.String(), "\x1b") {
		t.Errorf("colour in a buffer: %q", b.String())
	}
}

// FuzzConsole: whatever is logged is one line of printable text in UTF-8.
func FuzzConsole(f *testing.F) {
	f.Add("msg", "key", "value")
	f.Add("a\nb\x1b[0m", "k=\"", "\x9b\xc2\x9b\u202e\u2066")
	f.Fuzz(func(t *testing.T, msg, key, value string) {
		l, b := newTestLogger(t, Console{})
		l.Named(key).WithGroup(key).Info(t.Context(), msg, slog.String(key, value), slog.Any("b", []byte(value)))
		for i, r := range strings.TrimSuffix(b.String(), "\n") {
			if r != '\uFFFD' && mayForge(r) {
				t.Fatalf("rune %U at %d of %q", r, i, b.String())
			}
		}
	})
}

// TestHandlerAgainstSlog: in random sequences of With, WithGroup and calls on
// loggers that were used before, attributes and groups are those of slog's own
// handler, in every format.
func TestHandlerAgainstSlog(t *testing.T) {
	var ours, theirs, text bytes.Buffer
	h := mustNew(t, Options{Caller: LevelOff, Outputs: []Output{
		{Writer: &ours, Encoder: JSON{Layout: "attrs:"}}, {Writer: &text, Encoder: Logfmt{Layout: "attrs"}},
	}}).Handler()
	drop := func(groups []string, a slog.Attr) slog.Attr {
		if len(groups) == 0 && (a.Key == slog.TimeKey || a.Key == slog.LevelKey || a.Key == slog.MessageKey) {
			return slog.Attr{}
		}
		return a
	}
	ref := slog.NewJSONHandler(&theirs, &slog.HandlerOptions{ReplaceAttr: drop})
	refText := slog.NewTextHandler(&theirs, &slog.HandlerOptions{ReplaceAttr: drop})
	for seed := range uint64(500) {
		rng := rand.New(rand.NewPCG(seed, 1))
		loggers := [][3]*slog.Logger{{slog.New(h), slog.New(ref), slog.New(refText)}}
		for step := range 15 {
			from, key := loggers[rng.IntN(len(loggers))], "k"+itoa(step)
			args := []any{key, step}
			for range rng.IntN(3) {
				args = append(args, slog.Group("q"+key, "x", 1, slog.Group("empty"), slog.Group("", "y", 2)))
			}
			theirArgs := args[:min(len(args), 3)] // ours joins groups of one name
			switch rng.IntN(4) {
			case 0:
				loggers = append(loggers, [3]*slog.Logger{from[0].With(args...), from[1].With(theirArgs...), from[2].With(theirArgs...)})
				continue
			case 1:
				loggers = append(loggers, [3]*slog.Logger{from[0].WithGroup(key), from[1].WithGroup(key), from[2].WithGroup(key)})
				continue
			case 2:
				args, theirArgs = nil, nil
			}
			for _, b := range []*bytes.Buffer{&ours, &theirs, &text} {
				b.Reset()
			}
			from[0].Info("m", args...)
			from[1].Info("m", theirArgs...)
			if ours.String() != theirs.String() {
				t.Fatalf("seed %d:\n got %swant %s", seed, ours.String(), theirs.String())
			}
			theirs.Reset()
			from[2].Info("m", theirArgs...)
			if text.String() != theirs.String() {
				t.Fatalf("seed %d, text:\n got %swant %s", seed, text.String(), theirs.String())
			}
		}
	}
}
