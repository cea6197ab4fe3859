package rollway

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"regexp"
	"slices"
	"strings"
	"testing"
)

func TestLevelFormats(t *testing.T) {
	for form, want := range map[LevelFormat]string{
		LevelUpper:    `"TRACE" "DEBUG" "INFO+2" "WARN" "ERROR+1" "PANIC" "FATAL" "FATAL+2"`,
		LevelLower:    `"trace" "debug" "info+2" "warn" "error+1" "panic" "fatal" "fatal+2"`,
		LevelNumber:   `-8 -4 2 4 9 10 12 14`,
		LevelSyslog:   `7 7 5 4 3 2 2 0`,
		LevelSeverity: `"DEBUG" "DEBUG" "NOTICE" "WARNING" "ERROR" "CRITICAL" "CRITICAL" "EMERGENCY"`,
	} {
		texts := strings.Fields(want)
		var lines [4]bytes.Buffer
		var o Options
		for i, enc := range []Encoder{JSON{Level: form}, JSON{Level: form, Layout: "level:l"}, Logfmt{Level: form, Layout: "level"}, Console{Level: form, Layout: "level msg"}} {
			o.Outputs = append(o.Outputs, Output{Writer: &lines[i], Encoder: enc, Level: LevelTrace})
		}
		l := mustNew(t, o)
		for i, level := range []slog.Level{-8, -4, 2, 4, 9, 10, 12, 14} {
			l.LogAt(t.Context(), aTime, 0, level, "m")
			plain := strings.Trim(texts[i], `"`)
			for j, want := range []string{
				`{"time":"2026-05-28T12:40:00.123456789Z","level":` + texts[i] + `,"msg":"m"}`,
				`{"l":` + texts[i] + `}`, "level=" + plain, fmt.Sprintf("%-5s m", plain),
			} {
				if got := strings.TrimSuffix(lines[j].String(), "\n"); got != want {
					t.Errorf("level %d, form %d: %s, want %s", level, form, got, want)
				}
				lines[j].Reset()
			}
		}
	}
}

func TestSourceFormats(t *testing.T) {
	const file, function = `/forms_test\.go`, `github\.com/rollway/rollway\.TestSourceFormats`
	for form, want := range map[SourceFormat][2]string{
		SourceShort:    {`"[^/"]+` + file + `:(\d+)"`, `[^/=]+` + file + `:(\d+)`},
		SourceFull:     {`"(?:/|[A-Z]:/).*[^/"]+` + file + `:(\d+)"`, `(?:/|[A-Z]:/).*[^/]+` + file + `:(\d+)`},
		SourceFunction: {`"` + function + `()"`, function + `()`},
		SourceObject:   {`{"file":"[^"]+` + file + `","line":(\d+),"function":"` + function + `"}`, `.*` + file + `:(\d+)`},
		SourceECS:      {`{"file.name":"[^"]+` + file + `","file.line":(\d+),"function":"` + function + `"}`, `.*` + file + `:(\d+)`},
	} {
		var lines [4]bytes.Buffer
		var o Options
		for i, enc := range []Encoder{JSON{Source: form}, JSON{Source: form, Layout: "source:at"}, Logfmt{Source: form}, Console{Source: form, Layout: "source"}} {
			o.Outputs = append(o.Outputs, Output{Writer: &lines[i], Encoder: enc})
		}
		l := mustNew(t, o)
		l.Warn(t.Context(), "m")
		for i, pattern := range []string{`"source":` + want[0] + `}\n$`, `^{"at":` + want[0] + `}\n$`, `source=` + want[1] + `\n$`, `^source=` + want[1] + `\n$`} {
			if got := regexp.MustCompile(pattern).FindStringSubmatch(lines[i].String()); got == nil || got[1] == "0" {
				t.Errorf("form %d: %s, want it to match %s", form, &lines[i], pattern)
			}
		}
	}
}

func TestForms(t *testing.T) {
	l, b := newTestLogger(t, JSON{Layout: `v=8"x stack:at trace_id:trace=a/" span_id:span=s/ msg attrs:`})
	id := slog.String("trace_id", `x"`)
	for _, log := range []*Logger{l, l.With(id), l.WithGroup("g")} {
		log.Info(t.Context(), "m", id, slog.String("stack", "s"), slog.String("v", "mine"))
	}
	want := `{"v":"8\"x","at":"s","trace":"a/\"x\"","msg":"m","attrs.v":"mine"}
{"v":"8\"x","at":"s","trace":"a/\"x\"","msg":"m","attrs.v":"mine"}
{"v":"8\"x","msg":"m","g":{"trace_id":"x\"","stack":"s","v":"mine"}}
`
	if b.String() != want {
		t.Errorf("got\n%swant\n%s", b, want)
	}
	l, b = newTestLogger(t, Logfmt{Layout: `v=8"x msg stack attrs`})
	l.Info(t.Context(), "m", slog.String("stack", "s"))
	if got, want := b.String(), `v="8\"x" msg=m stack=s`+"\n"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	l, b = newTestLogger(t, JSON{Layout: "time", Time: UnixFloat})
	handleAt(l, aTime, "m")
	if got, want := b.String(), `{"time":1779972000.1234567}`+"\n"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	for layout, want := range map[string]string{"msg:m=x": "a =", "=8": "nor a constant", "v=1 v=2": "twice", "v=1 msg:v": "have the name"} {
		if _, err := New(Options{Outputs: []Output{{Writer: io.Discard, Encoder: JSON{Layout: layout}}}}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("Layout %s: %v, want %s", layout, err, want)
		}
	}
	for _, enc := range []Encoder{JSON{Level: 9}, Logfmt{Source: -1}, Console{Errors: 7}} {
		if _, err := New(Options{Outputs: []Output{{Writer: io.Discard, Encoder: enc}}}); err == nil || !strings.Contains(err.Error(), "use one of the constants") {
			t.Errorf("%+v: %v", enc, err)
		}
	}
}

func changedLogger(t *testing.T, enc Encoder, change func(*Options)) (*Logger, *bytes.Buffer) {
	var b bytes.Buffer
	o := Options{Outputs: []Output{{Writer: &b, Level: slog.Level(-100), Encoder: enc}}, Caller: LevelOff}
	change(&o)
	return mustNew(t, o), &b
}

func TestReplaceAttr(t *testing.T) {
	var seen []string
	replace := func(groups []string, a slog.Attr) slog.Attr {
		seen = append(seen, strings.Join(groups, ".")+" "+a.Key)
		switch a.Key {
		case "time":
			return slog.Attr{}
		case "level":
			a.Key = "severity"
		case "msg":
			return slog.Int("length", len(a.Value.String()))
		case "panics":
			panic("oh")
		case "secret":
			a.Value = slog.StringValue("hidden")
		}
		return a
	}
	for _, c := range []struct {
		enc  Encoder
		want string
	}{
		{JSON{Level: LevelLower}, `{"severity":"info","length":7,"service":"s","attrs":{"c":1,"secret":"hidden","g":{"panics":"!PANIC: oh","h":{"n":1}}}}`},
		{JSON{Layout: "msg:m level:l attrs:", Level: LevelSyslog}, `{"length":7,"severity":6,"c":1,"service":"s","secret":"hidden","g":{"panics":"!PANIC: oh","h":{"n":1}}}`},
		{Logfmt{Level: LevelNumber}, `severity=0 length=7 service=s c=1 secret=hidden g.panics="!PANIC: oh" g.h.n=1`},
		{Console{}, `severity=INFO length=7 c=1 secret=hidden g.panics="!PANIC: oh" g.h.n=1 service=s`},
	} {
		seen = nil
		l, b := changedLogger(t, c.enc, func(o *Options) { o.ReplaceAttr = replace })
		l = l.With(slog.String("service", "s"), slog.String("secret", "x")).WithGroup("g")
		l.Info(ContextWith(t.Context(), slog.Int("c", 1)), "message", slog.Int("panics", 1), slog.Group("h", slog.Int("n", 1)))
		if got := b.String(); got != c.want+"\n" {
			t.Errorf("%T: %swant %s", c.enc, got, c.want)
		}
		slices.Sort(seen)
		if want := []string{" c", " level", " msg", " secret", " service", " time", "g panics", "g.h n"}; !slices.Equal(seen, want) {
			t.Errorf("%T: the function saw %q, want %q", c.enc, seen, want)
		}
	}
}

// TestReplaceAttrElsewhere: redaction comes after it, long values are cut, the stack and
// sources go through it, and a function that logs ends.
func TestReplaceAttrElsewhere(t *testing.T) {
	to := func(key string, v slog.Value) func(*Options) {
		return func(o *Options) {
			o.ReplaceAttr = func(groups []string, a slog.Attr) slog.Attr {
				if a.Key == key {
					return slog.Attr{Key: "to", Value: v}
				}
				return a
			}
		}
	}
	type values = map[string]any
	lineOf := func(enc Encoder, change func(*Options), call func(*Logger)) (values, string) {
		t.Helper()
		l, b := changedLogger(t, enc, change)
		call(l)
		var v values
		if err := json.Unmarshal(b.Bytes(), &v); err != nil {
			t.Fatalf("%v: %.300s", err, b)
		}
		return v, b.String()
	}
	info := func(l *Logger) { l.Info(t.Context(), "m") }
	v, line := lineOf(JSON{}, func(o *Options) {
		to("msg", slog.AnyValue(map[string]string{"token": "abc", "text": "key abc"}))(o)
		o.Redact = &Redaction{Keys: []string{"token"}, Patterns: []*regexp.Regexp{regexp.MustCompile("a.c")}}
	}, info)
	if m, _ := v["to"].(values); m["token"] != "[REDACTED]" || m["text"] != "key [REDACTED]" {
		t.Errorf("redacted: %s", line)
	}
	for _, long := range []slog.Value{slog.StringValue(strings.Repeat("é", 5000)), slog.AnyValue(make([]int, 5000))} {
		v, line = lineOf(JSON{}, func(o *Options) { to("msg", long)(o); o.MaxLine = 1000 }, info)
		text, _ := v["to"].(string)
		if attrs, _ := v["attrs"].(values); len(line) > 1000 || attrs["cut_from_bytes"] == nil || (long.Kind() == slog.KindString) != strings.HasSuffix(text, "…") {
			t.Errorf("a long message: %s", line)
		}
	}
	v, line = lineOf(JSON{}, func(o *Options) { to("stack", slog.IntValue(1))(o); o.Stack = slog.LevelInfo }, func(l *Logger) { l.WithGroup("g").Info(t.Context(), "m") })
	if attrs, _ := v["attrs"].(values); attrs["to"] != 1.0 {
		t.Errorf("the stack: %s", line)
	}
	v, line = lineOf(JSON{}, func(o *Options) {
		o.Caller = slog.LevelInfo
		o.ReplaceAttr = func(_ []string, a slog.Attr) slog.Attr {
			if s, ok := a.Value.Any().(*slog.Source); ok {
				s.File = "x.go"
			}
			return a
		}
	}, info)
	if s, _ := v["source"].(values); s["file"] != "x.go" || s["function"] != "github.com/rollway/rollway.TestReplaceAttrElsewhere.func2" && len(s) != 3 {
		t.Errorf("the source: %s", line)
	}
	var l *Logger
	var b bytes.Buffer
	l = mustNew(t, Options{Outputs: []Output{{Writer: &b}}, ReplaceAttr: func(_ []string, a slog.Attr) slog.Attr {
		if a.Key == "again" {
			l.Info(context.Background(), "m", slog.Int("again", 1))
		}
		return a
	}})
	l.Info(t.Context(), "m", slog.Int("again", 1))
	if !strings.Contains(b.String(), "logs itself") {
		t.Errorf("a function that logs: %.300s", &b)
	}
}
