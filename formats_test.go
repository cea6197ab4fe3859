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
	"regexp"
	"runtime"
	"strings"
	"testing"
	"time"
	"unicode/utf8"
)

var aTime = time.Date(2026, 5, 28, 12, 40, 0, 123456789, time.UTC)

// handleAt logs through l's Handler with a time of the test's choice.
func handleAt(l *Logger, at time.Time, msg string, attrs ...slog.Attr) {
	r := slog.NewRecord(at, slog.LevelInfo, msg, 0)
	r.AddAttrs(attrs...)
	_ = l.Handler().Handle(context.Background(), r)
}

func TestJSONOptions(t *testing.T) {
	tokyo := time.FixedZone("", 9*3600)
	for _, c := range []struct {
		enc  JSON
		want string
	}{
		{JSON{Time: RFC3339Milli}, `{"time":"2026-05-28T12:40:00.123Z","level":"INFO","msg":"m","attrs":{"d":1500000,"t":"2026-05-28T12:40:00.123Z"}}`},
		{JSON{Time: UnixSeconds, Duration: Seconds}, `{"time":1779972000,"level":"INFO","msg":"m","attrs":{"d":0.0015,"t":1779972000}}`},
		{JSON{Time: UnixMilli, Duration: Milliseconds}, `{"time":1779972000123,"level":"INFO","msg":"m","attrs":{"d":1.5,"t":1779972000123}}`},
		{JSON{Time: UnixNano, Duration: DurationString}, `{"time":1779972000123456789,"level":"INFO","msg":"m","attrs":{"d":"1.5ms","t":1779972000123456789}}`},
		{JSON{Time: time.Kitchen}, `{"time":"12:40PM","level":"INFO","msg":"m","attrs":{"d":1500000,"t":"12:40PM"}}`},
		{JSON{Location: tokyo}, `{"time":"2026-05-28T21:40:00.123456789+09:00","level":"INFO","msg":"m","attrs":{"d":1500000,"t":"2026-05-28T21:40:00.123456789+09:00"}}`},
		{JSON{Location: time.UTC}, `{"time":"2026-05-28T12:40:00.123456789Z","level":"INFO","msg":"m","attrs":{"d":1500000,"t":"2026-05-28T12:40:00.123456789Z"}}`},
		{JSON{Layout: "level:severity msg:message time:@timestamp attrs:"}, `{"severity":"INFO","message":"m","@timestamp":"2026-05-28T12:40:00.123456789Z","d":1500000,"t":"2026-05-28T12:40:00.123456789Z"}`},
		{JSON{Layout: "attrs: msg"}, `{"d":1500000,"t":"2026-05-28T12:40:00.123456789Z","msg":"m"}`},
		{JSON{Layout: "msg  attrs:labels"}, `{"msg":"m","labels":{"d":1500000,"t":"2026-05-28T12:40:00.123456789Z"}}`},
		{JSON{Layout: "level"}, `{"level":"INFO"}`},
		{JSON{Layout: "level time:d attrs:"}, `{"level":"INFO","d":"2026-05-28T12:40:00.123456789Z","attrs.d":1500000,"t":"2026-05-28T12:40:00.123456789Z"}`},
	} {
		l, b := newTestLogger(t, c.enc)
		handleAt(l, aTime, "m", slog.Duration("d", 1500*time.Microsecond), slog.Time("t", aTime))
		if got := b.String(); got != c.want+"\n" {
			t.Errorf("%+v:\n got %swant %s", c.enc, got, c.want)
		}
	}
}

func TestLayoutSlots(t *testing.T) {
	l, b := newTestLogger(t, JSON{Layout: "error:err service:app{is} logger:name msg attrs:"})
	l.Named("n").With(slog.String("service", "s"), slog.Int("w", 1)).WithGroup("g").Info(t.Context(), "m")
	l.Named("n").Info(t.Context(), "m", slog.Any("error", io.EOF), slog.Int("a", 1))
	l.Info(t.Context(), "m", slog.Group("g"))
	l.Info(t.Context(), "m", slog.String("service", "{"), slog.Int("app", 1))
	want := `{"app":{"is":"s"},"name":"n","msg":"m","w":1}
{"err":"EOF","name":"n","msg":"m","a":1}
{"msg":"m"}
{"app":{"is":"{"},"msg":"m","attrs.app":1}
`
	if b.String() != want {
		t.Errorf("got\n%swant\n%s", b.String(), want)
	}
}

// TestLayoutNamesApart: each key is there once, whatever attributes are called.
func TestLayoutNamesApart(t *testing.T) {
	var b, other bytes.Buffer
	l := mustNew(t, Options{Outputs: []Output{{Writer: &b, Encoder: JSON{Layout: "level msg service error:err attrs:"}}, {Writer: &other}}, Caller: LevelOff,
		Extract: []func(context.Context, []slog.Attr) []slog.Attr{func(_ context.Context, dst []slog.Attr) []slog.Attr {
			return append(dst, slog.Int("msg", 1), slog.Int("x", 2))
		}}})
	l.Info(t.Context(), "m", slog.String("level", "ERROR"), slog.Group("", slog.Int("level", 2), slog.Int("n", 3)), slog.Any("error", io.EOF), slog.Int("err", 4), slog.Int("error", 5))
	l.With(slog.Int("level", 6), slog.String("service", "s")).WithGroup("g").Info(t.Context(), "m", slog.Int("level", 7))
	l.Info(ContextWith(t.Context(), slog.Int("err", 8)), "m", slog.Int("service", 9))
	want := `{"level":"INFO","msg":"m","err":5,"attrs.msg":1,"x":2,"attrs.level":2,"n":3,"attrs.err":4}
{"level":"INFO","msg":"m","service":"s","attrs.msg":1,"x":2,"attrs.level":6,"g":{"level":7}}
{"level":"INFO","msg":"m","attrs.err":8,"attrs.msg":1,"x":2,"attrs.service":9}
`
	if b.String() != want {
		t.Errorf("got\n%swant\n%s", b.String(), want)
	}
	if first, _, _ := strings.Cut(other.String(), "\n"); !strings.HasSuffix(first, `"error":5,"attrs":{"msg":1,"x":2,"level":2,"n":3,"err":4}}`) {
		t.Errorf("the other format: %s", first)
	}
}

// TestTimesOutOfRange: a time in a zone of the user's stays RFC 3339.
func TestTimesOutOfRange(t *testing.T) {
	east, west := time.FixedZone("", 9*3600), time.FixedZone("", -9*3600)
	last, first := time.Date(9999, 12, 31, 23, 0, 0, 0, time.UTC), time.Date(0, 1, 1, 0, 0, 0, 0, time.UTC)
	for _, c := range []struct {
		enc  JSON
		t    time.Time
		want string
	}{
		{JSON{Location: east}, last, `"9999-12-31T23:59:59.999999999+09:00"`},
		{JSON{Location: west}, first, `"0000-01-01T00:00:00.000000000-09:00"`},
		{JSON{Location: west, Time: RFC3339Milli}, last, `"9999-12-31T14:00:00.000-09:00"`},
		{JSON{Time: RFC3339Milli}, last.AddDate(50, 0, 0), `"9999-12-31T23:59:59.999Z"`},
		{JSON{Time: UnixNano}, last, `9223372036854775807`},
		{JSON{Time: UnixMilli}, first, `-62167219200000`},
	} {
		c.enc.Layout = "attrs:"
		l, b := newTestLogger(t, c.enc)
		l.Info(t.Context(), "m", slog.Time("t", c.t))
		if got, want := b.String(), `{"t":`+c.want+"}\n"; got != want {
			t.Errorf("%+v: got %swant %s", c.enc, got, want)
		}
	}
}

func TestLayoutErrors(t *testing.T) {
	_, err := New(Options{Outputs: []Output{{Writer: io.Discard, Encoder: JSON{Layout: "tim level level msg: service:a{b time:a{b}"}}}})
	if err == nil {
		t.Fatal("no error")
	}
	for _, want := range []string{"Outputs[0].Encoder", `field "tim" of Layout is not one of`, `"level" appears twice`, `"msg" of Layout has no name`, `"service" of Layout has a {`, `"time" of Layout has a {`} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("%q does not say %q", err, want)
		}
	}
	for _, enc := range []Encoder{JSON{Duration: 9}, JSON{Errors: -1}, Logfmt{Duration: -1}, Custom{}} {
		if _, err := New(Options{Outputs: []Output{{Writer: io.Discard, Encoder: enc}}}); err == nil {
			t.Errorf("%#v was taken", enc)
		}
	}
}

func TestLogfmt(t *testing.T) {
	l, b := newTestLogger(t, Logfmt{})
	for _, c := range []struct {
		l     *Logger
		msg   string
		attrs []slog.Attr
		want  string
	}{
		{l, "plain", nil, `level=INFO msg=plain`},
		{l, "two words", []slog.Attr{slog.Int("n", 3), slog.String("s", "a=b"), slog.String("e", "")}, `level=INFO msg="two words" n=3 s="a=b" e=""`},
		{l.Named("db").With(slog.String("service", "pay")).WithGroup("g h"), "m", []slog.Attr{slog.Group("i", slog.Bool("ok", true))}, `level=INFO msg=m service=pay logger=db g_h.i.ok=true`},
		{l, "a\nlevel=ERROR msg=forged\x1b[0m\u202e\x7f\xff", []slog.Attr{slog.String("k\n= \"", "v\n")}, `level=INFO msg="a\nlevel=ERROR msg=forged\u001b[0m\u202e\u007f` + "\uFFFD" + `" k____="v\n"`},
		{l, "m", []slog.Attr{slog.Duration("d", time.Second), slog.Time("t", aTime), slog.Float64("f", 1.5), slog.Any("err", io.EOF), slog.String("u", "𝔘\U000e0001")}, `level=INFO msg=m d=1000000000 t=2026-05-28T12:40:00.123456789Z f=1.5 err=EOF u="𝔘\udb40\udc01"`},
	} {
		handleAt(c.l, aTime, c.msg, c.attrs...)
		if got, want := b.String(), "time=2026-05-28T12:40:00.123456789Z "+c.want+"\n"; got != want {
			t.Errorf("\n got %swant %s", got, want)
		}
		b.Reset()
	}
	unix, b := newTestLogger(t, Logfmt{Time: UnixMilli, Duration: DurationString})
	handleAt(unix, aTime, "m", slog.Duration("d", time.Second), slog.Time("t", aTime))
	if got, want := b.String(), "time=1779972000123 level=INFO msg=m d=1s t=1779972000123\n"; got != want {
		t.Errorf("got %swant %s", got, want)
	}
}

// FuzzLogfmt: one line of printable text, from which the values come back.
func FuzzLogfmt(f *testing.F) {
	f.Add("msg", "value")
	f.Add("a\nb=c", "\x1b[0m\"\\\u2028")
	f.Add("", "\xff\x7f\U000e0001")
	f.Add("0", " v=")
	f.Fuzz(func(t *testing.T, msg, value string) {
		l, b := newTestLogger(t, Logfmt{})
		handleAt(l, aTime, msg, slog.String(msg, "x"), slog.String("v", value))
		got := b.String()
		for i, r := range strings.TrimSuffix(got, "\n") {
			if r != utf8.RuneError && mayForge(r) {
				t.Fatalf("rune %U at %d of %q", r, i, got)
			}
		}
		if strings.Contains(value, " v=") {
			return // the value contains what is looked for below
		}
		_, last, ok := strings.Cut(got[strings.LastIndex(got, " v="):], "=")
		last = strings.TrimSuffix(last, "\n")
		if strings.HasPrefix(last, `"`) {
			if err := json.Unmarshal([]byte(last), &last); err != nil {
				t.Fatalf("%v: %q", err, got)
			}
		}
		if !ok || last != replaced(value) {
			t.Fatalf("%q came back as %q in %q", value, last, got)
		}
	})
}

type shout struct{ calls int }

func (s *shout) AppendLine(dst []byte, r *Record) []byte {
	s.calls++
	dst = append(dst, r.Level.String()...)
	dst = append(dst, '!')
	dst = append(dst, strings.ToUpper(r.Message)...)
	for a := range r.Attrs {
		dst = append(dst, ' ')
		dst = append(dst, a.String()...)
	}
	if r.Logger != "" {
		dst = append(dst, " by "+r.Logger...)
	}
	if r.Message == "panic" {
		panic("encoder")
	}
	return dst
}

func TestCustomFormat(t *testing.T) {
	enc := new(shout)
	var a, b bytes.Buffer
	l := mustNew(t, Options{Caller: LevelOff, Outputs: []Output{{Writer: &a, Encoder: Custom{enc}}, {Writer: &b, Encoder: Custom{enc}}}})
	ctx := ContextWith(t.Context(), slog.Int("c", 0))
	l.Named("db").With(slog.Int("w", 1)).WithGroup("g").With(slog.Int("x", 2)).WithGroup("h").Info(ctx, "hi", slog.Int("y", 3))
	l.WithGroup("g").Info(t.Context(), "no group")
	l.Info(t.Context(), "panic")
	want := "INFO!HI c=0 w=1 g=[x=2 h=[y=3]] by db\nINFO!NO GROUP\n" +
		`{"level":"ERROR","msg":"rollway: the LineEncoder panicked: encoder","attrs":{"msg":"panic"}}` + "\n"
	if a.String() != want || b.String() != want {
		t.Errorf("got\n%s%swant\n%s", a.String(), b.String(), want)
	}
	if enc.calls != 3 {
		t.Errorf("%d calls of the encoder for 3 records to 2 outputs", enc.calls)
	}
}

type user struct {
	id   int
	tags tags
}

func (u *user) AppendLog(o *Object) {
	o.Add(slog.Int("id", u.id), slog.Any("tags", u.tags), slog.Group("empty"))
}

type tags []string

func (t tags) AppendLog(a *Array) {
	for _, s := range t {
		a.Add(slog.StringValue(s))
	}
}

type endless struct{}

func (e endless) AppendLog(a *Array) { a.Add(slog.IntValue(1), slog.AnyValue(e)) }

type halfway struct{}

func (halfway) AppendLog(o *Object) { o.Add(slog.Int("a", 1)); panic("halfway") }

func TestAppenders(t *testing.T) {
	l, b := newTestLogger(t, JSON{})
	l.Info(t.Context(), "m", slog.Any("u", &user{7, tags{"a\n", "b"}}), slog.Any("none", tags(nil)), slog.Any("h", halfway{}))
	if got, want := oneLine(t, b), `{"level":"INFO","msg":"m","attrs":{"u":{"id":7,"tags":["a\n","b"]},"none":[],"h":"!PANIC: halfway"}}`; got != want {
		t.Errorf("got %s\nwant %s", got, want)
	}
	l.Info(t.Context(), "m", slog.Any("e", endless{}))
	if got := oneLine(t, b); !strings.Contains(got, "too deep or too large") {
		t.Errorf("got %s", got)
	}
	text, b := newTestLogger(t, Console{TimeFormat: "-"})
	text.Info(t.Context(), "m", slog.Any("u", &user{7, tags{"a"}}))
	if got, want := b.String(), `- INFO  m u={"id":7,"tags":["a"]}`+"\n"; got != want {
		t.Errorf("got %s\nwant %s", got, want)
	}
}

type withCallers struct{ pcs []uintptr }

func (withCallers) Error() string        { return "with callers" }
func (e withCallers) Callers() []uintptr { return e.pcs }

type frame uintptr

type withStackTrace struct{ frames []frame }

func (withStackTrace) Error() string         { return "with a stack trace" }
func (e withStackTrace) StackTrace() []frame { return e.frames }

type selfWrapping struct{}

func (selfWrapping) Error() string   { return "self" }
func (e selfWrapping) Unwrap() error { return e }

func TestErrorDetail(t *testing.T) {
	l, b := newTestLogger(t, JSON{Errors: ErrorDetail})
	l.Error(t.Context(), "m", slog.Any("error", fmt.Errorf("open: %w", &fs.PathError{Op: "open", Path: "x", Err: fs.ErrNotExist})))
	if got, want := oneLine(t, b), `{"level":"ERROR","msg":"m","error":{"type":"*fmt.wrapError","message":"open: open x: file does not exist","causes":[{"type":"*fs.PathError","message":"open x: file does not exist"},{"type":"*errors.errorString","message":"file does not exist"}]}}`; got != want {
		t.Errorf(" got %s\nwant %s", got, want)
	}
	l.Error(t.Context(), "m", slog.Any("e", errors.Join(io.EOF, loudError{})))
	if got, want := oneLine(t, b), `!PANIC: no text today`; !strings.Contains(got, want) {
		t.Errorf("got %s", got)
	}
	l.Error(t.Context(), "m", slog.Any("e", selfWrapping{}))
	if got := oneLine(t, b); strings.Count(got, `"message":"self"`) != 16+1 {
		t.Errorf("a cyclic chain: %s", got)
	}
	pcs := make([]uintptr, 1)
	runtime.Callers(1, pcs)
	for _, err := range []error{withCallers{pcs}, fmt.Errorf("wrapped: %w", withStackTrace{[]frame{frame(pcs[0])}})} {
		l.Error(t.Context(), "m", slog.Any("error", err))
		if got := oneLine(t, b); !strings.Contains(got, `"stack":"github.com/rollway/rollway.TestErrorDetail\n\t`) {
			t.Errorf("no stack in %s", got)
		}
	}
}

func logThroughWrapper(l *Logger) { l.Warn(context.Background(), "m") }

func TestStackAndCallerSkip(t *testing.T) {
	var b bytes.Buffer
	l := mustNew(t, Options{Outputs: []Output{{Writer: &b}}, Stack: slog.LevelError})
	l.Warn(t.Context(), "m")
	if strings.Contains(oneLine(t, &b), "stack") {
		t.Error("WARN has a stack")
	}
	for name, log := range map[string]func(){
		"Logger": func() { l.Error(t.Context(), "m", slog.Int("a", 1)) },
		"slog":   func() { slog.New(l.Handler()).Error("m", "a", 1) },
	} {
		log()
		if got := oneLine(t, &b); !regexp.MustCompile(`"attrs":\{"stack":"github.com/rollway/rollway.TestStackAndCallerSkip[^"]*",[^"]*"a":1\}`).MatchString(got) {
			t.Errorf("%s: the stack does not begin with the caller: %s", name, got)
		}
	}
	_, _, here, _ := runtime.Caller(0)
	logThroughWrapper(l.WithCallerSkip(1))
	if got := oneLine(t, &b); !strings.Contains(got, fmt.Sprintf(`/formats_test.go:%d"`, here+1)) {
		t.Errorf("WithCallerSkip: %s", got)
	}
	var text bytes.Buffer
	c := mustNew(t, Options{Outputs: []Output{{Writer: &text, Encoder: Console{}}}, Stack: slog.LevelError})
	c.Error(t.Context(), "m")
	lines := strings.Split(strings.TrimSpace(text.String()), "\n")
	if len(lines) < 3 {
		t.Fatalf("console: no stack in %q", text.String())
	}
	for _, l := range lines[1:] {
		if !strings.HasPrefix(l, "    ") {
			t.Errorf("console: a line of the stack could be taken for a record: %q", l)
		}
	}
}
