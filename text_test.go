package rollway

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"math"
	"runtime"
	"strings"
	"testing"
	"testing/slogtest"
	"time"
)

func TestTextLayout(t *testing.T) {
	for _, c := range []struct {
		enc  Encoder
		want string
	}{
		{Logfmt{}, `time=2026-05-28T12:40:00.123456789Z level=INFO msg="m 1" service=pay logger=db trace_id=t error="a b" d=1500000 w=1 g.h.b=2`},
		{Logfmt{Layout: "level:severity msg:message time:@timestamp attrs"}, `severity=INFO message="m 1" @timestamp=2026-05-28T12:40:00.123456789Z d=1500000 service=pay w=1 error="a b" trace_id=t g.h.b=2`},
		{Logfmt{Layout: "attrs:labels error:err msg"}, `labels.d=1500000 labels.service=pay labels.w=1 labels.trace_id=t labels.g.h.b=2 err="a b" msg="m 1"`},
		{Logfmt{Layout: "attrs: logger:name", Duration: Milliseconds}, `d=1.5 service=pay w=1 error="a b" trace_id=t g.h.b=2 name=db`},
		{Logfmt{Layout: "level"}, `level=INFO`},
		{Logfmt{Time: UnixMilli, Layout: "time msg"}, `time=1779972000123 msg="m 1"`},
		{Logfmt{Time: time.Kitchen, Layout: "time msg"}, `time=12:40PM msg="m 1"`},
		{Logfmt{Time: time.RFC850, Layout: "time msg"}, `time="Thursday, 28-May-26 12:40:00 UTC" msg="m 1"`},
		{Logfmt{Time: RFC3339Milli, Location: time.FixedZone("", 9*3600), Layout: "time msg"}, `time=2026-05-28T21:40:00.123+09:00 msg="m 1"`},
		{Console{UTC: true}, `12:40:00.123 INFO  db: m 1 error="a b" d=1.5ms w=1 g.h.b=2 service=pay trace_id=t`},
		{Console{UTC: true, Layout: "msg level attrs:"}, `m 1 INFO  d=1.5ms service=pay w=1 error="a b" trace_id=t g.h.b=2`},
		{Console{UTC: true, Layout: "msg:msg level:lvl time:at logger:log"}, `msg="m 1" lvl=INFO at=12:40:00.123 log=db`},
		{Console{UTC: true, TimeFormat: time.RFC850, Layout: "time:at"}, `at="Thursday, 28-May-26 12:40:00 UTC"`},
		{Console{TimeFormat: string(UnixMilli), Duration: Seconds, Layout: "time attrs:a"}, `1779972000123 a.d=0.0015 a.service=pay a.w=1 a.error="a b" a.trace_id=t a.g.h.b=2`},
		{Console{TimeFormat: string(RFC3339Milli), Location: time.FixedZone("", 3600), Layout: "time msg"}, `2026-05-28T13:40:00.123+01:00 m 1`},
	} {
		l, b := newTestLogger(t, c.enc)
		ctx := ContextWith(t.Context(), slog.Duration("d", 1500*time.Microsecond))
		l = l.Named("db").With(slog.String("service", "pay"), slog.Int("w", 1))
		r := slog.NewRecord(aTime, slog.LevelInfo, "m 1", 0)
		r.AddAttrs(slog.String("error", "a b"), slog.String("trace_id", "t"), slog.Group("g", slog.Group("h", slog.Int("b", 2))))
		if err := l.Handler().Handle(ctx, r); err != nil {
			t.Fatal(err)
		}
		if got := b.String(); got != c.want+"\n" {
			t.Errorf("%#v:\n got %swant %s", c.enc, got, c.want)
		}
	}
	for _, enc := range []Encoder{Logfmt{Layout: "tim"}, Console{Layout: "level level"}, Console{Duration: 9}, Logfmt{Bytes: 9}, Logfmt{Errors: 7}, Console{Errors: 7}, JSON{Bytes: -1}} {
		if _, err := New(Options{Outputs: []Output{{Writer: io.Discard, Encoder: enc}}}); err == nil {
			t.Errorf("%#v was taken", enc)
		}
	}
}

// TestTextNearestWins: a fixed field is taken from the call, then the context,
// then the Logger, as in JSON, and an attribute of its name is told apart.
func TestTextNearestWins(t *testing.T) {
	for enc, want := range map[Encoder][]string{
		Logfmt{Layout: "msg service error attrs"}:  {"msg=m service=call", "msg=m service=ctx", "msg=m service=with", "msg=m error=2", "msg=m attrs.service=5 attrs.msg=x", "msg=m g.service=s"},
		Console{Layout: "msg service error attrs"}: {"m service=call", "m service=ctx", "m service=with", "m error=2", "m attrs.service=5 msg=x", "m g.service=s"},
	} {
		l, b := newTestLogger(t, enc)
		w := l.With(slog.String("service", "with"))
		ctx := ContextWith(t.Context(), slog.String("service", "ctx"))
		w.Info(ctx, "m", slog.String("service", "call"))
		w.Info(ctx, "m")
		w.Info(t.Context(), "m")
		l.Info(t.Context(), "m", slog.Int("error", 1), slog.Int("error", 2))
		l.Info(t.Context(), "m", slog.Int("service", 5), slog.String("msg", "x"))
		l.WithGroup("g").Info(t.Context(), "m", slog.String("service", "s"))
		if got := b.String(); got != strings.Join(want, "\n")+"\n" {
			t.Errorf("%T: got\n%s", enc, got)
		}
	}
}

func TestTextErrorDetail(t *testing.T) {
	err := fmt.Errorf("open: %w", &fs.PathError{Op: "open", Path: "x", Err: fs.ErrNotExist})
	l, b := newTestLogger(t, Logfmt{Layout: "msg error attrs", Errors: ErrorDetail})
	l.Error(t.Context(), "m", slog.Any("error", err), slog.Any("cause", io.EOF))
	l.With(slog.Any("error", io.EOF)).WithGroup("g").Error(t.Context(), "m", slog.Any("e", errors.Join(io.EOF, loudError{})))
	l.Error(t.Context(), "m", slog.Any("error", io.EOF), slog.Any("error", io.ErrUnexpectedEOF))
	if got, want := b.String(), `msg=m error="open: open x: file does not exist" error.type=*fmt.wrapError error.causes.0="open x: file does not exist" error.causes.0.type=*fs.PathError error.causes.1="file does not exist" error.causes.1.type=*errors.errorString cause=EOF cause.type=*errors.errorString
msg=m error=EOF error.type=*errors.errorString g.e="!PANIC: no text today" g.e.type=*errors.joinError g.e.errors.0=EOF g.e.errors.0.type=*errors.errorString g.e.errors.1="!PANIC: no text today" g.e.errors.1.type=rollway.loudError
msg=m error="unexpected EOF" error.type=*errors.errorString
`; got != want {
		t.Errorf("got\n%swant\n%s", got, want)
	}

	l, b = newTestLogger(t, Logfmt{Layout: "error attrs:labels", Errors: ErrorDetail})
	l.Error(t.Context(), "m", slog.Any("error", io.EOF), slog.Int("n", 1))
	if got, want := b.String(), "error=EOF error.type=*errors.errorString labels.n=1\n"; got != want {
		t.Errorf("got %swant %s", got, want)
	}

	c, b := newTestLogger(t, Console{TimeFormat: "-", Errors: ErrorDetail})
	c.Error(t.Context(), "m", slog.Any("error", err), slog.Int("n", 1))
	c.With(slog.Any("error", io.EOF), slog.Any("x", io.EOF)).Error(t.Context(), "m")
	c.With(slog.Any("error", io.EOF)).WithGroup("group").Error(t.Context(), "m", slog.Any("long key", errors.New("a\n    b\x1b[0m")))
	c.With(slog.Any("error", io.EOF)).Error(t.Context(), "m", slog.String("error", "not EOF"))
	if got, want := b.String(), `- ERROR m error="open: open x: file does not exist" n=1
    error      *fmt.wrapError
    caused by  *fs.PathError: open x: file does not exist
    caused by  *errors.errorString: file does not exist
- ERROR m error=EOF x=EOF
    error      *errors.errorString
    x          *errors.errorString
- ERROR m error=EOF "group.long key"="a\n    b\x1b[0m"
    error      *errors.errorString
    "group.long key"  *errors.errorString
- ERROR m error="not EOF"
`; got != want {
		t.Errorf("got\n%swant\n%s", got, want)
	}

	pcs := make([]uintptr, 1)
	runtime.Callers(1, pcs)
	stacked := fmt.Errorf("wrapped: %w", withStackTrace{[]frame{frame(pcs[0])}})
	b.Reset()
	c.Error(t.Context(), "m", slog.Any("error", stacked))
	if got := b.String(); !strings.Contains(got, "\n    github.com/rollway/rollway.TestTextErrorDetail  /") || !strings.Contains(got, "/text_test.go:") {
		t.Errorf("no stack: %s", got)
	}
	l, b = newTestLogger(t, Logfmt{Errors: ErrorDetail})
	l.Error(t.Context(), "m", slog.Any("error", stacked))
	if got := b.String(); !strings.Contains(got, ` error.stack="github.com/rollway/rollway.TestTextErrorDetail\n\t/`) || strings.Count(got, "\n") != 1 {
		t.Errorf("no stack: %s", got)
	}
}

// TestErrorTree: joined errors stay apart, each with what it wraps.
func TestErrorTree(t *testing.T) {
	join := errors.Join(io.EOF, nil, fmt.Errorf("read: %w", io.ErrNoProgress))
	tree := fmt.Errorf("all: %w", fmt.Errorf("%w and %w", join, errors.Join(io.ErrShortWrite)))
	deep := io.EOF
	for range 50 {
		deep = errors.Join(deep, io.EOF)
	}
	for _, c := range []struct {
		enc  Encoder
		err  error
		want string
	}{
		{JSON{Layout: "error", Errors: ErrorDetail}, join, `{"error":{"type":"*errors.joinError","message":"EOF\nread: multiple Read calls return no data or error","errors":[` +
			`{"type":"*errors.errorString","message":"EOF"},` +
			`{"type":"*fmt.wrapError","message":"read: multiple Read calls return no data or error","causes":[{"type":"*errors.errorString","message":"multiple Read calls return no data or error"}]}]}}`},
		{JSON{Layout: "error", Errors: ErrorDetail}, tree, `{"error":{"type":"*fmt.wrapError","message":"all: EOF\nread: multiple Read calls return no data or error and short write","causes":[` +
			`{"type":"*fmt.wrapErrors","message":"EOF\nread: multiple Read calls return no data or error and short write","errors":[` +
			`{"type":"*errors.joinError","message":"EOF\nread: multiple Read calls return no data or error","errors":[` +
			`{"type":"*errors.errorString","message":"EOF"},` +
			`{"type":"*fmt.wrapError","message":"read: multiple Read calls return no data or error","causes":[{"type":"*errors.errorString","message":"multiple Read calls return no data or error"}]}]},` +
			`{"type":"*errors.joinError","message":"short write","causes":[{"type":"*errors.errorString","message":"short write"}]}]}]}}`},
		{Logfmt{Layout: "attrs", Errors: ErrorDetail}, tree, `e="all: EOF\nread: multiple Read calls return no data or error and short write" e.type=*fmt.wrapError ` +
			`e.causes.0="EOF\nread: multiple Read calls return no data or error and short write" e.causes.0.type=*fmt.wrapErrors ` +
			`e.causes.0.errors.0="EOF\nread: multiple Read calls return no data or error" e.causes.0.errors.0.type=*errors.joinError ` +
			`e.causes.0.errors.0.errors.0=EOF e.causes.0.errors.0.errors.0.type=*errors.errorString ` +
			`e.causes.0.errors.0.errors.1="read: multiple Read calls return no data or error" e.causes.0.errors.0.errors.1.type=*fmt.wrapError ` +
			`e.causes.0.errors.0.errors.1.causes.0="multiple Read calls return no data or error" e.causes.0.errors.0.errors.1.causes.0.type=*errors.errorString ` +
			`e.causes.0.errors.1="short write" e.causes.0.errors.1.type=*errors.joinError e.causes.0.errors.1.causes.0="short write" e.causes.0.errors.1.causes.0.type=*errors.errorString`},
		{Console{Layout: "attrs", Errors: ErrorDetail}, tree, `e="all: EOF\nread: multiple Read calls return no data or error and short write"
    e          *fmt.wrapError
    caused by  *fmt.wrapErrors: EOF\nread: multiple Read calls return no data or error and short write
      one of     *errors.joinError: EOF\nread: multiple Read calls return no data or error
        one of     *errors.errorString: EOF
        one of     *fmt.wrapError: read: multiple Read calls return no data or error
        caused by  *errors.errorString: multiple Read calls return no data or error
      one of     *errors.joinError: short write
      caused by  *errors.errorString: short write`},
		{JSON{Layout: "error", Errors: ErrorDetail}, deep, ""},
		{Logfmt{Layout: "error", Errors: ErrorDetail}, deep, ""},
		{Console{Layout: "error", Errors: ErrorDetail}, deep, ""},
	} {
		l, b := newTestLogger(t, c.enc)
		key := "error"
		if strings.HasPrefix(c.want, "e=") {
			key = "e"
		}
		l.Info(t.Context(), "m", slog.Any(key, c.err))
		l.With(slog.Any(key, c.err)).Info(t.Context(), "m")
		got, again, _ := strings.Cut(b.String(), "\n"+b.String()[:5])
		if again = b.String()[:5] + again; got+"\n" != again || c.want != "" && got != c.want {
			t.Errorf("%#v:\n got %s\nwith %swant %s", c.enc, got, again, c.want)
		}
		if n := strings.Count(got, "errorString") + strings.Count(got, "joinError"); c.want == "" && n != 16+1 {
			t.Errorf("%#v: %d errors: %s", c.enc, n, got)
		}
	}
}

// TestConsoleStack: frames in columns, indented, whatever they are made of.
func TestConsoleStack(t *testing.T) {
	l, b := newTestLogger(t, Console{TimeFormat: "-"})
	l.Error(t.Context(), "m", slog.String("stack", "main.f\n\t/src/main.go:12\nmain.(*server).handle\n\t/src/a\x1b.go:7 +0x1d\ngoroutine 1 [running]:\n- ERROR forged\n"), slog.Int("n", 1))
	want := `- ERROR m n=1
    main.f                 /src/main.go:12
    main.(*server).handle  /src/a\x1b.go:7 +0x1d
    goroutine 1 [running]:
    - ERROR forged
`
	if b.String() != want {
		t.Errorf("got\n%swant\n%s", b.String(), want)
	}
	b.Reset()
	l.WithGroup("g").Error(t.Context(), "m", slog.String("stack", "a\nb"))
	l.Error(t.Context(), "m", slog.String("stack", "one line"))
	if got, want := b.String(), `- ERROR m g.stack="a\nb"`+"\n"+`- ERROR m stack="one line"`+"\n"; got != want {
		t.Errorf("got %swant %s", got, want)
	}
	b.Reset()
	func() {
		defer func() { _ = recover() }()
		defer l.FlushOnPanic()
		panic("p")
	}()
	if got := b.String(); !strings.HasPrefix(got, "- PANIC panic: p\n    ") || !strings.Contains(got, "rollway.TestConsoleStack.func") {
		t.Errorf("got %s", got)
	}
}

// TestConsoleMessage: a message cannot be taken for attributes, nor for a
// line below another one.
func TestConsoleMessage(t *testing.T) {
	l, b := newTestLogger(t, Console{Layout: "msg attrs"})
	for _, msg := range []string{"paid", "paid amount=100", "    at main.f", "", `say "hi"`, " a"} {
		l.Info(t.Context(), msg, slog.Int("n", 1))
	}
	want := `paid n=1
"paid amount=100" n=1
"    at main.f" n=1
"" n=1
say "hi" n=1
" a" n=1
`
	if b.String() != want {
		t.Errorf("got\n%swant\n%s", b.String(), want)
	}
}

func TestTextValues(t *testing.T) {
	raw := json.RawMessage(" {\"a b\" : \"\u009b\x7f\u2028 c=d\"}\n")
	attrs := []slog.Attr{
		slog.Any("bytes", []byte("a b\xff")), slog.Any("ptr", &[]byte{'h', 'i'}), slog.Any("empty", []byte{}), slog.Any("none", []byte(nil)),
		slog.Any("raw", raw), slog.Any("raws", &raw), slog.Any("bad", json.RawMessage("{")), slog.Any("list", &[]string{"a", "b", "c"}),
		slog.Any("ds", []time.Duration{time.Second}), slog.Any("ts", []time.Time{time.Unix(0, 0)}), slog.Any("level", slog.LevelWarn),
		slog.Uint64("u", 1<<63), slog.Float64("m", 1e6), slog.Float64("nan", math.NaN()), slog.Float64("inf", math.Inf(-1)), slog.Float64("big", 1e300), slog.Any("quoted", jsonString("a\"b")), slog.Any("plain", jsonString("a.b")),
	}
	for enc, want := range map[Encoder]string{
		Logfmt{Layout: "attrs"}: `bytes="a b` + "\uFFFD" + `" ptr=hi empty="" none="" raw="{\"a b\":\"\u009b\u007f\u2028 c=d\"}" raws="{\"a b\":\"\u009b\u007f\u2028 c=d\"}" bad="!ERROR: not JSON, 1 bytes" list="[\"a\",\"b\",\"c\"]" ds=[1000000000] ts="[\"1970-01-01T00:00:00.000000000Z\"]" level=WARN u=9223372036854775808 m=1000000 nan=NaN inf=-Inf big=1e+300 quoted="a\"b" plain=a.b`,
		Logfmt{Layout: "attrs", Bytes: BytesHex, Duration: Seconds}:          `bytes=612062ff ptr=6869 empty="" none="" raw="{\"a b\":\"\u009b\u007f\u2028 c=d\"}" raws="{\"a b\":\"\u009b\u007f\u2028 c=d\"}" bad="!ERROR: not JSON, 1 bytes" list="[\"a\",\"b\",\"c\"]" ds=[1] ts="[\"1970-01-01T00:00:00.000000000Z\"]" level=WARN u=9223372036854775808 m=1000000 nan=NaN inf=-Inf big=1e+300 quoted="a\"b" plain=a.b`,
		Console{Layout: "attrs", Bytes: BytesBase64, Duration: DurationAuto}: `bytes=YSBi/w== ptr="aGk=" empty="" none="" raw={"a b":"\u009b\u007f\u2028 c=d"} raws={"a b":"\u009b\u007f\u2028 c=d"} bad="!ERROR: not JSON, 1 bytes" list=["a","b","c"] ds=["1s"] ts=["1970-01-01T00:00:00.000000000Z"] level=WARN u=9223372036854775808 m=1000000 nan=NaN inf=-Inf big=1e+300 quoted="a\"b" plain=a.b`,
	} {
		if strings.Contains(want, "YSBi") {
			want = strings.Replace(want, "YSBi/w==", `"YSBi/w=="`, 1)
		}
		l, b := newTestLogger(t, enc)
		l.Info(t.Context(), "m", attrs...)
		l.With(attrs...).Info(t.Context(), "m")
		if got := b.String(); got != want+"\n"+want+"\n" {
			t.Errorf("%#v:\n got %s\nwant %s", enc, got, want)
		}
	}
}

type jsonString string

func (s jsonString) MarshalJSON() ([]byte, error) { return json.Marshal(string(s)) }

// TestTextIsNotMixedUp: the buffers of a scratch go from one format to the
// next, and from a value's own log call back to the line around it.
func TestTextIsNotMixedUp(t *testing.T) {
	var a, b, c bytes.Buffer
	l := mustNew(t, Options{Caller: LevelOff, Outputs: []Output{
		{Writer: &a, Encoder: Console{Layout: "msg attrs", Errors: ErrorDetail}}, {Writer: &b, Encoder: Logfmt{Layout: "msg attrs"}}, {Writer: &c, Encoder: JSON{Layout: "msg attrs"}},
	}})
	l.WithGroup("g").Info(t.Context(), "outer", slog.Any("e", loggingError{l}), slog.Any("o", loggingObject{l}), slog.Int("n", 1))
	if !strings.HasPrefix(a.String(), "inner g.n=2 o={\"a\":1}\n") || !strings.HasSuffix(a.String(), "outer g.e=text g.o={\"b\":2} g.n=1\n    g.e        rollway.loggingError\n") {
		t.Errorf("console: got\n%s", a.String())
	}
	if !strings.HasSuffix(b.String(), "\nmsg=outer g.e=text g.o=\"{\\\"b\\\":2}\" g.n=1\n") {
		t.Errorf("logfmt: got\n%s", b.String())
	}
	if !strings.HasSuffix(c.String(), "\n"+`{"msg":"outer","attrs":{"g":{"e":"text","o":{"b":2},"n":1}}}`+"\n") {
		t.Errorf("json: got\n%s", c.String())
	}
}

type loggingError struct{ l *Logger }

func (e loggingError) Error() string {
	e.l.Info(context.Background(), "inner", slog.Group("g", slog.Int("n", 2)), slog.Any("o", halfObject{}))
	return "text"
}

type halfObject struct{}

func (halfObject) AppendLog(o *Object) { o.Add(slog.Int("a", 1)) }

type loggingObject struct{ l *Logger }

func (v loggingObject) AppendLog(o *Object) {
	v.l.Info(context.Background(), "object")
	o.Add(slog.Int("b", 2))
}

// TestTextSlogtest reads the lines of the text formats back as slogtest wants
// them: keys with dots are in groups.
func TestTextSlogtest(t *testing.T) {
	for name, enc := range map[string]Encoder{"logfmt": Logfmt{Layout: "time level msg attrs"}, "console": Console{Layout: "time:time level:level msg:msg attrs"}} {
		t.Run(name, func(t *testing.T) {
			var b bytes.Buffer
			slogtest.Run(t, func(t *testing.T) slog.Handler {
				b.Reset()
				return mustNew(t, Options{Outputs: []Output{{Writer: &b, Encoder: enc}}, Caller: LevelOff}).Handler()
			}, func(t *testing.T) map[string]any {
				m := make(map[string]any)
				for _, word := range words(strings.TrimSuffix(b.String(), "\n")) {
					key, value, _ := strings.Cut(word, "=")
					in, path := m, strings.Split(key, ".")
					for _, group := range path[:len(path)-1] {
						if in[group] == nil {
							in[group] = make(map[string]any)
						}
						in = in[group].(map[string]any)
					}
					in[path[len(path)-1]] = value
				}
				return m
			})
		})
	}
}
