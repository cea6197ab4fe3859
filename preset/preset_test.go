package preset

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"path/filepath"
	"reflect"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/rollway/rollway"
)

var at = time.Date(2026, 5, 28, 12, 40, 0, 123456789, time.UTC)

// lineOf returns what a Logger with the format writes.
func lineOf(t *testing.T, format rollway.JSON, o rollway.Options, call func(*rollway.Logger)) string {
	t.Helper()
	var b bytes.Buffer
	o.Outputs = []rollway.Output{{Writer: &b, Encoder: format, Level: rollway.LevelTrace}}
	o.Trace = func(context.Context) ([16]byte, [8]byte, bool) { return [16]byte{0x5b}, [8]byte{0xee}, true }
	l, err := rollway.New(o)
	if err != nil {
		t.Fatal(err)
	}
	call(l)
	return b.String()
}

// An error with a stack.
type deep struct{ error }

func (deep) Callers() []uintptr { return []uintptr{reflect.ValueOf(TestFields).Pointer() + 1} }

// TestFields holds the presets to the names that are published:
// https://www.elastic.co/docs/reference/ecs and the specification of ecs-logging;
// https://cloud.google.com/logging/docs/structured-logging and LogEntry, and ServiceContext of
// https://cloud.google.com/error-reporting/docs/formatting-error-messages.
func TestFields(t *testing.T) {
	const trace, span = "5b000000000000000000000000000000", "ee00000000000000"
	here := map[string]any{}
	for _, c := range []struct {
		name   string
		format rollway.JSON
		want   map[string]any
	}{
		{"ecs", ECS(), map[string]any{
			"@timestamp": "2026-05-28T12:40:00.123456789Z", "log.level": "warn", "message": "slow", "ecs.version": "8.17.0", "service.name": "shop", "log.logger": "db",
			"log.origin": here, "trace.id": trace, "span.id": span, "event.action": "pay", "attrs.message": "mine", "error.stack_trace": "main.go:1",
			"error": map[string]any{"type": "preset.deep", "message": "EOF", "causes": nil, "stack_trace": nil},
		}},
		{"gcp", GCP("shop-1"), map[string]any{
			"time": "2026-05-28T12:40:00.123456789Z", "severity": "WARNING", "message": "slow", "serviceContext": map[string]any{"service": "shop"}, "logger": "db",
			"logging.googleapis.com/sourceLocation": here, "logging.googleapis.com/trace": "projects/shop-1/traces/" + trace, "logging.googleapis.com/spanId": span,
			"event.action": "pay", "attrs.message": "mine", "error": "EOF", "stack_trace": "main.go:1",
		}},
	} {
		line := lineOf(t, c.format, rollway.Options{}, func(l *rollway.Logger) {
			h := l.Named("db").With(slog.String("service", "shop")).Handler()
			r := slog.NewRecord(at, slog.LevelWarn, "slow", reflect.ValueOf(TestFields).Pointer()+1)
			r.AddAttrs(slog.String("event.action", "pay"), slog.String("message", "mine"), slog.Any("error", deep{io.EOF}), slog.String("stack", "main.go:1"))
			_ = h.Handle(t.Context(), r)
		})
		got := map[string]any{}
		if err := json.Unmarshal([]byte(line), &got); err != nil {
			t.Fatal(err)
		}
		for key, want := range c.want {
			v := got[key]
			if object, ok := v.(map[string]any); ok { // with values of this file
				for member := range object {
					if want, ok := want.(map[string]any)[member]; ok && want == nil {
						object[member] = nil
					}
				}
			}
			if reflect.DeepEqual(want, here) {
				object, _ := v.(map[string]any)
				file, number := "file", "line"
				if c.name == "ecs" {
					file, number = "file.name", "file.line"
				}
				path, _ := object[file].(string)
				n, _ := object[number].(float64)
				if len(object) != 3 || !filepath.IsAbs(path) || filepath.Base(path) != "preset_test.go" || n < 1 || object["function"] != "github.com/rollway/rollway/preset.TestFields" {
					t.Errorf("%s: %s is %v", c.name, key, v)
				}
				continue
			}
			if m, ok := want.(map[string]any); ok {
				delete(m, "causes")
				if o, ok := v.(map[string]any); ok {
					delete(o, "causes")
				}
			}
			if !reflect.DeepEqual(v, want) {
				t.Errorf("%s: %s is %v, want %v", c.name, key, v, want)
			}
		}
		if len(got) != len(c.want) {
			t.Errorf("%s: other keys: %s", c.name, line)
		}
	}
	for format, want := range map[string]string{
		lineOf(t, GCP(""), rollway.Options{}, func(l *rollway.Logger) { l.Info(t.Context(), "m") }): `"logging.googleapis.com/trace":"` + trace + `"`,
		lineOf(t, GCP("p"), rollway.Options{}, func(l *rollway.Logger) {
			l.With(slog.String("trace_id", `a"b`)).WithGroup("g").Info(context.TODO(), "m")
		}): `"logging.googleapis.com/trace":"projects/p/traces/`,
		lineOf(t, ECS(), rollway.Options{}, func(l *rollway.Logger) { l.Info(t.Context(), "m", slog.String("error", "oh")) }): `"error":{"message":"oh"}`,
		lineOf(t, ECS(), rollway.Options{}, func(l *rollway.Logger) { l.With(slog.Int("error", 7)).Info(t.Context(), "m") }):  `"error":{"message":"7"}`,
	} {
		if !strings.Contains(format, want) {
			t.Errorf("%s lacks %s", format, want)
		}
	}
}

// same compares two lines value for value.
func same(t *testing.T, got, want string) {
	t.Helper()
	var values [2]map[string]any
	for i, line := range []string{got, want} {
		d := json.NewDecoder(strings.NewReader(line))
		d.UseNumber()
		if err := d.Decode(&values[i]); err != nil {
			t.Fatalf("%s: %v", line, err)
		}
	}
	delete(values[0], "trace_id") // slog has no traces
	delete(values[0], "span_id")
	dropEmpty(values[1]) // slog has some groups that have lost all members
	if !reflect.DeepEqual(values[0], values[1]) {
		t.Fatalf("got  %swant %s", got, want)
	}
}

func dropEmpty(m map[string]any) {
	for key, v := range m {
		if inner, ok := v.(map[string]any); ok {
			if dropEmpty(inner); len(inner) == 0 {
				delete(m, key)
			}
		}
	}
}

// TestSlog compares with slog.JSONHandler on random attributes, and functions for
// ReplaceAttr that rename, drop and change them and the fields.
func TestSlog(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	for range 2000 {
		n := 0
		key := func() string { n++; return fmt.Sprint("kéy", n) }
		var value func(depth int) slog.Value
		value = func(depth int) slog.Value {
			switch k := random.IntN(12); {
			case k < 3 && depth < 3:
				var group []slog.Attr
				for range random.IntN(4) {
					a := slog.Attr{Key: key(), Value: value(depth + 1)}
					if random.IntN(8) == 0 {
						a.Key = ""
					}
					if a.Key != "" || a.Value.Kind() == slog.KindGroup {
						group = append(group, a)
					}
				}
				return slog.GroupValue(group...)
			case k == 3:
				return slog.TimeValue(at.Add(time.Duration(random.Int64N(1e15))))
			case k == 4:
				return slog.DurationValue(time.Duration(random.Int64()))
			case k == 5:
				return slog.AnyValue(io.ErrUnexpectedEOF)
			case k == 6:
				return slog.Float64Value(random.NormFloat64())
			case k == 7:
				return slog.AnyValue(map[string]any{"a": []any{1, "x"}})
			case k == 8:
				return slog.AnyValue(valuer{value(depth + 1)})
			case k == 9:
				return slog.Uint64Value(random.Uint64())
			}
			return slog.StringValue(string(rune(random.IntN(0x3000))))
		}
		attrs := func() (out []slog.Attr) {
			for range random.IntN(5) {
				out = append(out, slog.Attr{Key: key(), Value: value(0)})
			}
			return out
		}
		replace := replacers[random.IntN(len(replacers))]
		var b bytes.Buffer
		var ours slog.Handler
		var theirs slog.Handler
		var steps []func(slog.Handler) slog.Handler
		for range random.IntN(4) {
			if list := attrs(); random.IntN(2) == 0 {
				steps = append(steps, func(h slog.Handler) slog.Handler { return h.WithAttrs(list) })
			} else {
				name := key()
				steps = append(steps, func(h slog.Handler) slog.Handler { return h.WithGroup(name) })
			}
		}
		r := slog.NewRecord(at.In(time.Local), slog.Level(random.IntN(4)*4-4), "msg \""+key(), 0)
		if random.IntN(4) == 0 {
			r.Time = time.Time{}
		}
		if random.IntN(2) == 0 {
			r.PC = reflect.ValueOf(TestSlog).Pointer() + 1
		}
		r.AddAttrs(attrs()...)
		theirs = slog.NewJSONHandler(&b, &slog.HandlerOptions{AddSource: r.PC != 0, Level: rollway.LevelTrace, ReplaceAttr: replace})
		line := lineOf(t, Slog(), rollway.Options{ReplaceAttr: replace, Caller: rollway.LevelTrace}, func(l *rollway.Logger) {
			ours = l.Handler()
			for _, step := range steps {
				ours, theirs = step(ours), step(theirs)
			}
			if err := errors.Join(ours.Handle(t.Context(), r), theirs.Handle(t.Context(), r)); err != nil {
				t.Fatal(err)
			}
		})
		if json.Valid(b.Bytes()) { // slog forgets a comma after a group that has lost all members
			same(t, line, b.String())
		}
	}
}

type valuer struct{ v slog.Value }

func (v valuer) LogValue() slog.Value { return v.v }

var replacers = []func([]string, slog.Attr) slog.Attr{
	nil,
	func(_ []string, a slog.Attr) slog.Attr { return a },
	func(groups []string, a slog.Attr) slog.Attr { // renames the fields, and what is in groups
		if name, ok := map[string]string{"time": "ts", "level": "severity", "msg": "message", "source": "from"}[a.Key]; ok && len(groups) == 0 {
			a.Key = name
		} else if len(groups) > 0 {
			a.Key = strings.Join(groups, "/") + "/" + a.Key
		}
		return a
	},
	func(groups []string, a slog.Attr) slog.Attr { // drops much, fields too
		if len(groups) == 0 && (a.Key == "time" || a.Key == "source") || strings.HasSuffix(a.Key, "2") || strings.HasSuffix(a.Key, "5") || a.Value.Kind() == slog.KindTime {
			return slog.Attr{}
		}
		return a
	},
	func(groups []string, a slog.Attr) slog.Attr { // changes values
		switch v := a.Value.Any().(type) {
		case slog.Level:
			a.Value = slog.IntValue(int(v))
		case *slog.Source:
			v.File = filepath.Base(v.File)
		case time.Time:
			a.Value = slog.TimeValue(v.Add(time.Hour))
		case time.Duration:
			a.Value = slog.StringValue(v.String())
		case string:
			a.Value = slog.AnyValue(valuer{slog.StringValue(strconv.Quote(v))})
		case uint64:
			a.Value = slog.GroupValue(slog.Int64("more", int64(v)), slog.Int64("", 1), slog.Attr{})
		}
		return a
	},
	func(groups []string, a slog.Attr) slog.Attr { // makes groups without a name of the fields
		if len(groups) == 0 && a.Key == "msg" {
			return slog.Group("", slog.Attr{Key: "text", Value: a.Value}, slog.Int("length", len(a.Value.String())))
		}
		return a
	},
}
