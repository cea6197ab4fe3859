package rollway

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math"
	"net"
	"runtime"
	"strings"
	"testing"
	"time"
	"unicode/utf8"
)

// newTestLogger returns a Logger that writes to the buffer at every level,
// without callers.
func newTestLogger(t testing.TB, enc Encoder) (*Logger, *bytes.Buffer) {
	t.Helper()
	var b bytes.Buffer
	l, err := New(Options{Outputs: []Output{{Writer: &b, Level: slog.Level(-100), Encoder: enc}}, Caller: LevelOff})
	if err != nil {
		t.Fatal(err)
	}
	return l, &b
}

// line returns what was written since the last call, checked to be one valid
// JSON object in UTF-8 on one line, without its time.
func oneLine(t testing.TB, b *bytes.Buffer) string {
	t.Helper()
	got := b.String()
	b.Reset()
	if strings.Count(got, "\n") != 1 || !strings.HasSuffix(got, "\n") {
		t.Fatalf("not one line: %q", got)
	}
	if !json.Valid([]byte(got)) || !utf8.ValidString(got) {
		t.Fatalf("not valid JSON in UTF-8: %q", got)
	}
	const start = `{"time":"2006-01-02T15:04:05.000000000Z",`
	if !strings.HasPrefix(got, `{"time":"`) || len(got) < len(start) || got[len(start)-2:len(start)] != `",` {
		t.Fatalf("no time in front: %q", got)
	}
	return "{" + strings.TrimSuffix(got[len(start):], "\n")
}

type point struct{ X, Y int }

type loudError struct{}

func (loudError) Error() string { panic("no text today") }

type pointerError struct{ text string }

func (e *pointerError) Error() string { return e.text }

type secret struct{}

func (secret) LogValue() slog.Value { return slog.StringValue("REDACTED") }

type userValue struct{ id int }

func (u userValue) LogValue() slog.Value {
	return slog.GroupValue(slog.Int("id", u.id), slog.Any("password", secret{}))
}

type panickingValuer struct{}

func (panickingValuer) LogValue() slog.Value { panic("valuer") }

type selfValuer struct{}

func (s selfValuer) LogValue() slog.Value { return slog.AnyValue(s) }

type nestingValuer struct{}

func (n nestingValuer) LogValue() slog.Value { return slog.GroupValue(slog.Any("n", n)) }

type badMarshaler struct{}

func (badMarshaler) MarshalJSON() ([]byte, error) { return []byte("\"a\xffb\""), nil }

type lyingMarshaler struct{}

func (lyingMarshaler) MarshalJSON() ([]byte, error) { return []byte(`{"a":`), nil }

type panickingString struct{}

func (panickingString) String() string { panic(panickingString{}) }

func TestJSONValues(t *testing.T) {
	l, b := newTestLogger(t, JSON{})
	var nilErr *pointerError
	cases := []struct {
		attr slog.Attr
		want string // inside attrs; "" for nothing
	}{
		{slog.String("k", "v\"\\\n\x00\x1b\x7f\u2028é😀\xff"), `"k":"v\"\\\n\u0000\u001b` + "\x7f\u2028é😀\uFFFD" + `"`},
		{slog.String("a\n\"\xff", "v"), `"a\n\"` + "\uFFFD" + `":"v"`},
		{slog.String("", "v"), `"":"v"`},
		{slog.Int("k", -5), `"k":-5`},
		{slog.Uint64("k", math.MaxUint64), `"k":18446744073709551615`},
		{slog.Int64("k", math.MinInt64), `"k":-9223372036854775808`},
		{slog.Float64("k", 0.1), `"k":0.1`},
		{slog.Any("k", float32(0.5)), `"k":0.5`},
		{slog.Float64("k", math.NaN()), `"k":"NaN"`},
		{slog.Float64("k", math.Inf(-1)), `"k":"-Inf"`},
		{slog.Float64("k", 1e21), `"k":1e+21`},
		{slog.Bool("k", true), `"k":true`},
		{slog.Duration("k", 1500*time.Millisecond), `"k":1500000000`},
		{slog.Time("k", time.Date(2026, 5, 28, 14, 40, 0, 5, time.FixedZone("", 7200))), `"k":"2026-05-28T12:40:00.000000005Z"`},
		{slog.Time("k", time.Time{}), `"k":"0001-01-01T00:00:00.000000000Z"`},
		{slog.Time("k", time.Date(9999, 12, 31, 23, 59, 59, 999999999, time.UTC)), `"k":"9999-12-31T23:59:59.999999999Z"`},
		{slog.Time("k", time.Date(20000, 1, 1, 0, 0, 0, 0, time.UTC)), `"k":"9999-12-31T23:59:59.999999999Z"`},
		{slog.Any("k", nil), `"k":null`},
		{slog.Any("", nil), ``},
		{slog.Attr{}, ``},
		{slog.Any("k", errors.New("it\nbroke")), `"k":"it\nbroke"`},
		{slog.Any("k", fmt.Errorf("outer: %w", io.EOF)), `"k":"outer: EOF"`},
		{slog.Any("k", loudError{}), `"k":"!PANIC: no text today"`},
		{slog.Any("k", nilErr), `"k":"\u003cnil\u003e"`},
		{slog.Any("k", []string{"a", "b\n"}), `"k":["a","b\n"]`},
		{slog.Any("k", []string(nil)), `"k":null`},
		{slog.Any("k", []int{}), `"k":[]`},
		{slog.Any("k", &[]string{"a"}), `"k":["a"]`},
		{slog.Any("k", (*[]int)(nil)), `"k":null`},
		{slog.Any("k", &[]time.Time{time.Unix(0, 1)}), `"k":["1970-01-01T00:00:00.000000001Z"]`},
		{slog.Any("k", []int{1, -2}), `"k":[1,-2]`},
		{slog.Any("k", []float64{1.5, math.Inf(1)}), `"k":[1.5,"+Inf"]`},
		{slog.Any("k", []bool{true, false}), `"k":[true,false]`},
		{slog.Any("k", []int64{7}), `"k":[7]`},
		{slog.Any("k", []time.Duration{time.Second}), `"k":[1000000000]`},
		{slog.Any("k", []time.Time{time.Unix(0, 1)}), `"k":["1970-01-01T00:00:00.000000001Z"]`},
		{slog.Any("k", []byte("hi")), `"k":"aGk="`},
		{slog.Any("k", point{1, 2}), `"k":{"X":1,"Y":2}`},
		{slog.Any("k", map[string]any{"b": 1, "a": "<x>"}), `"k":{"a":"<x>","b":1}`},
		{slog.Any("k", net.IPv4(127, 0, 0, 1)), `"k":"127.0.0.1"`},
		{slog.Any("k", json.RawMessage(" {\n\"a\" : 1 } ")), `"k":{"a":1}`},
		{slog.Any("k", make(chan int)), `"k":"!ERROR: unsupported type: chan int"`},
		{slog.Any("k", map[string]any{"a": math.NaN()}), `"k":{"a":"NaN"}`},
		{slog.Any("k", badMarshaler{}), `"k":"a` + "\uFFFD" + `b"`},
		{slog.Any("k", lyingMarshaler{}), `"k":"!ERROR: not JSON, 5 bytes"`},
		{slog.Any("k", secret{}), `"k":"REDACTED"`},
		{slog.Any("k", userValue{7}), `"k":{"id":7,"password":"REDACTED"}`},
		{slog.Any("k", panickingValuer{}), `"k":"!PANIC: valuer"`},
		{slog.Any("k", selfValuer{}), `"k":"!ERROR: LogValue returned a LogValuer 100 times"`},
		{slog.Group("g"), ``},
		{slog.Group("g", slog.Group("h")), ``},
		{slog.Group("g", slog.Int("a", 1), slog.Group("h", slog.Int("b", 2)), slog.Attr{}), `"g":{"a":1,"h":{"b":2}}`},
		{slog.Group("", slog.Int("a", 1), slog.Int("b", 2)), `"a":1,"b":2`},
		{slog.Any("k", slog.LevelWarn), `"k":"WARN"`},
	}
	for _, c := range cases {
		want := `{"level":"INFO","msg":"m"}`
		if c.want != "" {
			want = `{"level":"INFO","msg":"m","attrs":{` + strings.NewReplacer(`\u003c`, "<", `\u003e`, ">").Replace(c.want) + `}}`
		}
		l.Info(t.Context(), "m", c.attr)
		if got := oneLine(t, b); got != want {
			t.Errorf("%v:\n got %s\nwant %s", c.attr.Key, got, want)
		}
		// The same through With, and inside a group.
		l.With(c.attr).Info(t.Context(), "m")
		if got := oneLine(t, b); got != want {
			t.Errorf("With(%v):\n got %s\nwant %s", c.attr.Key, got, want)
		}
		l.WithGroup("g").With(c.attr).Info(t.Context(), "m")
		if c.want != "" {
			want = strings.Replace(want, `"attrs":{`, `"attrs":{"g":{`, 1) + "}"
		}
		if got := oneLine(t, b); got != want {
			t.Errorf("WithGroup.With(%v):\n got %s\nwant %s", c.attr.Key, got, want)
		}
	}
	l.Info(t.Context(), "m", slog.Any("k", nestingValuer{}))
	if got := oneLine(t, b); !strings.Contains(got, "too deep or too large") {
		t.Errorf("a LogValuer without end: %s", got)
	}
}

func TestJSONFixedKeys(t *testing.T) {
	l, b := newTestLogger(t, JSON{})
	ctx := t.Context()
	for _, c := range []struct {
		log  func()
		want string
	}{
		{func() { l.Named("db").Named("pool").Info(ctx, "m") }, `{"level":"INFO","msg":"m","logger":"db.pool"}`},
		{func() {
			l.Named("db").With(slog.String("span_id", "s"), slog.String("service", "pay"), slog.Int("a", 1)).Info(ctx, "m")
		},
			`{"level":"INFO","msg":"m","service":"pay","logger":"db","span_id":"s","attrs":{"a":1}}`},
		{func() {
			l.With(slog.String("service", "pay")).Error(ctx, "m", slog.Any("error", io.EOF), slog.String("trace_id", "t"), slog.Int("a", 1))
		},
			`{"level":"ERROR","msg":"m","service":"pay","trace_id":"t","error":"EOF","attrs":{"a":1}}`},
		// The last one wins.
		{func() { l.With(slog.String("service", "a")).Info(ctx, "m", slog.String("service", "b")) },
			`{"level":"INFO","msg":"m","service":"b"}`},
		{func() { l.Info(ctx, "m", slog.Any("error", io.EOF), slog.String("error", "second")) },
			`{"level":"INFO","msg":"m","error":"second"}`},
		// Of another kind, or in a group, they are attributes like others.
		{func() { l.Info(ctx, "m", slog.Int("service", 1), slog.Int("trace_id", 2)) },
			`{"level":"INFO","msg":"m","attrs":{"service":1,"trace_id":2}}`},
		{func() { l.WithGroup("g").Info(ctx, "m", slog.String("service", "x"), slog.Any("error", io.EOF)) },
			`{"level":"INFO","msg":"m","attrs":{"g":{"service":"x","error":"EOF"}}}`},
		{func() { l.With(slog.String("service", "x")).WithGroup("g").Info(ctx, "m") },
			`{"level":"INFO","msg":"m","service":"x"}`},
		{func() {
			l.With(slog.Int("a", 1)).WithGroup("g").With(slog.Int("b", 2)).WithGroup("h").Info(ctx, "m", slog.Int("c", 3))
		},
			`{"level":"INFO","msg":"m","attrs":{"a":1,"g":{"b":2,"h":{"c":3}}}}`},
		{func() { l.With(slog.Int("a", 1)).WithGroup("g").With(slog.Int("b", 2)).WithGroup("h").Info(ctx, "m") },
			`{"level":"INFO","msg":"m","attrs":{"a":1,"g":{"b":2}}}`},
		{func() { l.WithGroup("g").WithGroup("h").Info(ctx, "m", slog.Int("c", 3)) },
			`{"level":"INFO","msg":"m","attrs":{"g":{"h":{"c":3}}}}`},
		{func() { l.WithGroup("g").WithGroup("h").With(slog.Group("empty")).Info(ctx, "m", slog.Group("empty")) },
			`{"level":"INFO","msg":"m"}`},
		{func() { l.WithGroup("").Named("").With().Info(ctx, "m") }, `{"level":"INFO","msg":"m"}`},
		{func() { l.Log(ctx, slog.LevelWarn+1, "m") }, `{"level":"WARN+1","msg":"m"}`},
		{func() { l.Log(ctx, LevelFatal, "m") }, `{"level":"FATAL","msg":"m"}`},
		{func() { l.Trace(ctx, "") }, `{"level":"TRACE","msg":""}`},
	} {
		c.log()
		if got := oneLine(t, b); got != c.want {
			t.Errorf(" got %s\nwant %s", got, c.want)
		}
	}
}

func TestDerivedLoggersDoNotShareMemory(t *testing.T) {
	l, b := newTestLogger(t, JSON{})
	base := l.With(slog.String("base", "x")).WithGroup("g")
	one := base.With(slog.Int("one", 1)).WithGroup("h")
	two := base.With(slog.Int("two", 2)).WithGroup("i")
	one.Info(t.Context(), "m", slog.Int("n", 1))
	if got, want := oneLine(t, b), `{"level":"INFO","msg":"m","attrs":{"base":"x","g":{"one":1,"h":{"n":1}}}}`; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	two.Info(t.Context(), "m", slog.Int("n", 2))
	if got, want := oneLine(t, b), `{"level":"INFO","msg":"m","attrs":{"base":"x","g":{"two":2,"i":{"n":2}}}}`; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

func TestTimeIsNow(t *testing.T) {
	l, b := newTestLogger(t, JSON{})
	for range 1000 {
		before := time.Now()
		l.Info(t.Context(), "m")
		after := time.Now()
		var got struct{ Time time.Time }
		if err := json.Unmarshal(b.Bytes(), &got); err != nil {
			t.Fatal(err)
		}
		b.Reset()
		// The two clocks that are compared are not read at the same instant, and
		// a machine under load may hold up the thread between the readings.
		if got.Time.Before(before.Add(-renewEvery)) || got.Time.After(after.Add(renewEvery)) {
			t.Fatalf("line says %v, but it was logged between %v and %v", got.Time, before.UTC(), after.UTC())
		}
	}
}

func TestCaller(t *testing.T) {
	var b bytes.Buffer
	l, err := New(Options{Outputs: []Output{{Writer: &b}}})
	if err != nil {
		t.Fatal(err)
	}
	l.Info(t.Context(), "m")
	if got := oneLine(t, &b); strings.Contains(got, "source") {
		t.Errorf("INFO has a source: %s", got)
	}
	for name, log := range map[string]func(){
		"Warn":   func() { l.Warn(t.Context(), "m") },
		"Log":    func() { l.Log(t.Context(), slog.LevelError, "m") },
		"With":   func() { l.With(slog.Int("a", 1)).Error(t.Context(), "m", slog.String("service", "s")) },
		"slog":   func() { slog.New(l.Handler()).Error("m") },
		"second": func() { l.Warn(t.Context(), "m") },
	} {
		log()
		if got := oneLine(t, &b); !strings.Contains(got, `/json_test.go:`) {
			t.Errorf("%s: no source of this file in %s", name, got)
		}
	}
	for range 2 { // the second time from the cache
		_, _, here, _ := runtime.Caller(0)
		l.Warn(t.Context(), "m")
		if got := oneLine(t, &b); !strings.Contains(got, fmt.Sprintf(`/json_test.go:%d"`, here+1)) {
			t.Errorf("want the line of the call, got %s", got)
		}
	}
}

// FuzzJSON holds every line to encoding/json: valid, and every string decodes
// to what it was, with U+FFFD for each byte that is not UTF-8.
func FuzzJSON(f *testing.F) {
	f.Add("msg", "key", "value", "err", int64(5), 1.5)
	f.Add("a\nb", "k\x00\"", "\xff\xfe", "\u2028", int64(-1), math.Inf(1))
	f.Add("", "error", "service", "\x1b[31m", int64(math.MinInt64), math.SmallestNonzeroFloat64)
	f.Fuzz(func(t *testing.T, msg, key, value, errText string, i int64, fl float64) {
		l, b := newTestLogger(t, JSON{})
		l.With(slog.String("w"+key, value)).WithGroup("g"+key).Info(t.Context(), msg,
			slog.String(key, value), slog.Int64("i", i), slog.Float64("f", fl), slog.Any("e", errors.New(errText)),
			slog.Any("any", map[string]string{key: value}))
		raw := b.Bytes()
		if bytes.Count(raw, []byte("\n")) != 1 || !utf8.Valid(raw) {
			t.Fatalf("not one line of UTF-8: %q", raw)
		}
		var got struct {
			Msg   string
			Attrs map[string]any
		}
		if err := json.Unmarshal(raw, &got); err != nil {
			t.Fatalf("%v: %s", err, raw)
		}
		if got.Msg != replaced(msg) {
			t.Errorf("msg is %q, want %q", got.Msg, replaced(msg))
		}
		if got.Attrs["w"+replaced(key)] != replaced(value) {
			t.Errorf("attribute of With is %q, want %q", got.Attrs["w"+replaced(key)], replaced(value))
		}
		g, _ := got.Attrs["g"+replaced(key)].(map[string]any)
		if k := replaced(key); k != "i" && k != "f" && k != "e" && k != "any" && g[k] != replaced(value) {
			t.Errorf("%q is %q, want %q", k, g[k], replaced(value))
		}
		if g["e"] != replaced(errText) && replaced(key) != "e" {
			t.Errorf("error is %q, want %q", g["e"], replaced(errText))
		}

		// Beside the fields, with names of theirs, and with values that panic.
		top, b := newTestLogger(t, JSON{Layout: "level msg error attrs:", Errors: ErrorDetail, Bytes: BytesText})
		top.With(slog.String(key, value)).Info(ContextWith(t.Context(), slog.Any(key, panics{value})), msg,
			slog.String(key, value), slog.Any("e", panickingWith{errText}), slog.Any("b", []byte(value)), slog.Group("", slog.String(key, value)))
		var flat struct{ Level, Msg string }
		if err := json.Unmarshal(b.Bytes(), &flat); err != nil || !utf8.Valid(b.Bytes()) {
			t.Fatalf("%v: %s", err, b.String())
		}
		if k := strings.ToLower(replaced(key)); flat.Level != "INFO" && k != "level" || flat.Msg != replaced(msg) && k != "msg" { // encoding/json ignores case
			t.Errorf("forged: %s", b.String())
		}
	})
}

// replaced is s with U+FFFD for each byte that is not part of
// valid UTF-8.
func replaced(s string) string { return string([]rune(s)) }

func TestHugeStrings(t *testing.T) {
	var buf bytes.Buffer
	l, b := mustNew(t, Options{Outputs: []Output{{Writer: &buf}}, MaxLine: 64 << 20}), &buf
	huge := strings.Repeat("x\n", 5<<20)
	l.Info(context.Background(), "m", slog.String("huge", huge))
	var got struct{ Attrs struct{ Huge string } }
	if err := json.Unmarshal(b.Bytes(), &got); err != nil || got.Attrs.Huge != huge {
		t.Fatalf("10 MiB string: %v", err)
	}
}
