//go:build !race

// Under the race detector sync.Pool drops values at random, which allocates.

package rollway

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math"
	"regexp"
	"runtime"
	"runtime/debug"
	"testing"
	"time"
)

// mallocsPerCall returns the allocations of n calls of f, divided by n, from
// the difference of runtime.MemStats.Mallocs: testing.AllocsPerRun rounds down
// and so hides a half. No collection may empty the pools meanwhile. The runtime
// itself allocates now and then, so the least of some measurements counts.
func mallocsPerCall(n int, f func()) float64 {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1))
	defer debug.SetGCPercent(debug.SetGCPercent(-1))
	for range 20 {
		f() // fills pools and caches
	}
	least := math.Inf(1)
	for range 5 {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		for range n {
			f()
		}
		runtime.ReadMemStats(&after)
		if least = min(least, float64(after.Mallocs-before.Mallocs)/float64(n)); least == 0 {
			break
		}
	}
	return least
}

// Values that the compiler cannot know. What is put into an interface is a
// pointer, as Go allocates for anything else; so is what a program logs that
// must not.
var (
	dynInts     = []int{1, 2, 3, 4, 5, 6, 7, 8, 9, 10}
	dynFloats   = []float64{1, 2.5, 1e30}
	dynBools    = []bool{true, false}
	dynStrings  = []string{"a", "b b", "c\n"}
	dynTimes    = []time.Time{dyn.t, dyn.t}
	dynTimeouts = []time.Duration{dyn.d, time.Hour}
	dynBytes    = []byte("some bytes\xff\n")
	dynRaw      = json.RawMessage(`{"a": [1, 2, {"b": "c\ud83d\ude00 d"}], "n": 12.5e3}`)
	dynUser     = &user{7, nil}
	dynTags     = &listed{"a", "b\n"}
	dynPanicky  = "an escape: \x1b[31m and a quote \" and \u2028"
	dynGroup    = slog.GroupValue(slog.Int("a", 1), slog.String("b c", "d e"), slog.Attr{Key: "h", Value: slog.GroupValue(slog.Duration("d", dyn.d))})
	dynValuer   = &valuer{"resolved"}
	dynGroups   = &groupValuer{dynGroup}
	dynStringer = &stringed{"a stringer"}
	errDyn      = errors.New("card declined")
	errWrapped  = fmt.Errorf("charge: %w", fmt.Errorf("bank: %w", errDyn))
	dynPC       = callerPC(0)
)

type listed []string

func (l *listed) AppendLog(a *Array) {
	for _, s := range *l {
		a.Add(slog.StringValue(s))
	}
}

type valuer struct{ text string }

func (v *valuer) LogValue() slog.Value { return slog.StringValue(v.text) }

type stringed struct{ text string }

func (s *stringed) String() string { return s.text }

// callShapes are the ways to log. Each must cost 0 allocations in every format.
var callShapes = map[string]func(*Logger, context.Context){
	"0": func(l *Logger, ctx context.Context) { l.Info(ctx, dyn.msg) },
	"2": func(l *Logger, ctx context.Context) {
		l.Info(ctx, dyn.msg, slog.String("a", dyn.str), slog.Int("b", dyn.i))
	},
	"6": func(l *Logger, ctx context.Context) {
		l.Info(ctx, dyn.msg, slog.String("customer", dyn.str), slog.Int("retry", dyn.i), slog.Float64("ratio", dyn.f),
			slog.Bool("ok", dyn.b), slog.Duration("took", dyn.d), slog.Time("at", dyn.t))
	},
	"10": func(l *Logger, ctx context.Context) {
		l.Info(ctx, dyn.msg, slog.String("a", dyn.str), slog.Int("b", dyn.i), slog.Float64("c", dyn.f),
			slog.Bool("d", dyn.b), slog.Duration("e", dyn.d), slog.Time("f", dyn.t),
			slog.Uint64("g", uint64(dyn.i)), slog.String("h", dyn.str), slog.Int64("i", int64(dyn.i)), slog.String("j", dyn.str))
	},
	"Trace": func(l *Logger, ctx context.Context) { l.Trace(ctx, dyn.msg, slog.String("a", dyn.str)) },
	"Debug": func(l *Logger, ctx context.Context) {
		l.Debug(ctx, dyn.msg, slog.String("a", dyn.str), slog.Int("b", dyn.i))
	},
	"Warn":  func(l *Logger, ctx context.Context) { l.Warn(ctx, dyn.msg, slog.String("a", dyn.str)) },
	"Error": func(l *Logger, ctx context.Context) { l.Error(ctx, dyn.msg, slog.Any("error", errDyn)) },
	"wrapped errors": func(l *Logger, ctx context.Context) {
		l.Error(ctx, dyn.msg, slog.Any("e", errWrapped), slog.Any("error", errWrapped))
	},
	"slots": func(l *Logger, ctx context.Context) {
		l.Info(ctx, dyn.msg, slog.String("service", dyn.str), slog.String("trace_id", dyn.str))
	},
	"Log": func(l *Logger, ctx context.Context) { l.Log(ctx, slog.LevelInfo+2, dyn.msg, slog.String("a", dyn.str)) },
	"LogAt": func(l *Logger, ctx context.Context) {
		l.LogAt(ctx, dyn.t, dynPC, slog.LevelWarn, dyn.msg, slog.String("a", dyn.str))
	},
	"escapes": func(l *Logger, ctx context.Context) {
		l.Info(ctx, dynPanicky, slog.String(dynPanicky, dynPanicky), slog.String("msg", dynPanicky))
	},
	"groups": func(l *Logger, ctx context.Context) {
		l.Info(ctx, dyn.msg, slog.Attr{Key: "g", Value: dynGroup}, slog.Attr{Value: dynGroup})
	},
	"LogValuer": func(l *Logger, ctx context.Context) {
		l.Info(ctx, dyn.msg, slog.Any("v", dynValuer), slog.Any("g", dynGroups))
	},
	"slices": func(l *Logger, ctx context.Context) {
		l.Info(ctx, dyn.msg, slog.Any("ints", &dynInts), slog.Any("strings", &dynStrings), slog.Any("times", &dynTimes),
			slog.Any("floats", &dynFloats), slog.Any("bools", &dynBools), slog.Any("timeouts", &dynTimeouts))
	},
	"objects": func(l *Logger, ctx context.Context) {
		l.Info(ctx, dyn.msg, slog.Any("user", dynUser), slog.Any("tags", dynTags))
	},
	"raw JSON": func(l *Logger, ctx context.Context) { l.Info(ctx, dyn.msg, slog.Any("raw", &dynRaw)) },
	"bytes":    func(l *Logger, ctx context.Context) { l.Info(ctx, dyn.msg, slog.Any("bytes", &dynBytes)) },
	"Enabled":  func(l *Logger, ctx context.Context) { _ = l.Enabled(ctx, slog.LevelInfo) },
}

// TestAllocations holds every call shape in every format to 0 allocations.
func TestAllocations(t *testing.T) {
	minute := TimeFormat(time.RFC850)
	detail := map[string][]Encoder{
		"json":         {JSON{}},
		"json, layout": {JSON{Layout: "msg level time:at error service trace_id attrs:", Time: minute, Bytes: BytesHex, Duration: Seconds}},
		"json, detail": {JSON{Errors: ErrorDetail, Time: UnixMilli}},
		"json, forms": {JSON{Layout: "time:@timestamp level:l v=8 msg source:log.origin trace_id:trace=t/ error stack:s attrs:", Time: UnixFloat,
			Level: LevelLower, Source: SourceECS, Errors: ErrorECS}},
		"json, numbers":    {JSON{Level: LevelSyslog, Source: SourceFunction}},
		"logfmt":           {Logfmt{}},
		"logfmt, layout":   {Logfmt{Layout: "msg level time:at error trace_id attrs:labels", Time: RFC3339Milli, Bytes: BytesHex, Duration: Seconds}},
		"logfmt, detail":   {Logfmt{Errors: ErrorDetail, Bytes: BytesBase64, Time: UnixNano}},
		"logfmt, forms":    {Logfmt{Level: LevelSeverity, Source: SourceFull, Time: UnixFloat}},
		"console":          {Console{}},
		"console, colour":  {Console{Color: ColorAlways, UTC: true}},
		"console, detail":  {Console{Errors: ErrorDetail, TimeFormat: string(UnixSeconds), Layout: "level:lvl msg:m time error attrs source"}},
		"custom":           {Custom{new(plainEncoder)}},
		"all at once":      {JSON{}, Logfmt{}, Console{}, Custom{new(plainEncoder)}},
		"all with a twist": {JSON{Errors: ErrorDetail}, Logfmt{Errors: ErrorDetail}, Console{Errors: ErrorDetail}},
	}
	for name, encoders := range detail {
		o := Options{Trace: func(ctx context.Context) ([16]byte, [8]byte, bool) {
			return [16]byte{1}, [8]byte{2}, ctx.Value(traceOn{}) != nil
		}}
		for _, enc := range encoders {
			o.Outputs = append(o.Outputs, Output{Writer: io.Discard, Encoder: enc})
		}
		if name == "logfmt" || name == "all at once" { // levels that change
			o.Outputs = append(o.Outputs, Output{Writer: io.Discard, Level: new(slog.LevelVar), Encoder: encoders[0]})
		}
		l := mustNew(t, o)
		plain := context.Background()
		full := context.WithValue(ContextWith(plain, slog.String("request_id", dyn.str), slog.Any("error", errWrapped)), traceOn{}, true)
		derived := l.Named("db").With(slog.String("service", dyn.str), slog.Int("n", dyn.i), slog.Any("error", errWrapped)).WithGroup("g h").With(slog.Int("m", dyn.i)).WithGroup("i")
		for where, call := range map[string]func(func(*Logger, context.Context)){
			"plain":   func(f func(*Logger, context.Context)) { f(l, plain) },
			"context": func(f func(*Logger, context.Context)) { f(l, full) },
			"derived": func(f func(*Logger, context.Context)) { f(derived, plain) },
			"both":    func(f func(*Logger, context.Context)) { f(derived, full) },
		} {
			for shape, f := range callShapes {
				if got := mallocsPerCall(100, func() { call(f) }); got > 0.05 {
					t.Errorf("%s, %s, %s: %.2f allocations a call, want 0", name, where, shape, got)
				}
			}
		}
		// A Stringer's text is its own affair; one that has it ready costs nothing
		// where it is text that is written.
		if name == "logfmt" || name == "console" {
			if got := mallocsPerCall(100, func() { l.Info(plain, dyn.msg, slog.Any("s", dynStringer)) }); got > 0.05 {
				t.Errorf("%s: a Stringer costs %.2f allocations", name, got)
			}
		}
	}
}

type traceOn struct{}

// TestAllocationsOfHandler: up to five attributes slog itself allocates
// nothing for a record, and neither does the Handler in any format.
func TestAllocationsOfHandler(t *testing.T) {
	for _, enc := range []Encoder{JSON{}, Logfmt{}, Console{}, Custom{new(plainEncoder)}} {
		l := mustNew(t, Options{Outputs: []Output{{Writer: io.Discard, Encoder: enc}}})
		s := slog.New(l.Handler()).With(slog.String("service", dyn.str)).WithGroup("g").With(slog.Int("n", dyn.i))
		got := mallocsPerCall(1000, func() {
			s.LogAttrs(context.Background(), slog.LevelWarn, dyn.msg, slog.String("a", dyn.str), slog.Int("b", dyn.i), slog.Time("f", dyn.t),
				slog.Any("error", errDyn), slog.Attr{Key: "g", Value: dynGroup})
		})
		if got > 0.005 {
			t.Errorf("%T: %.4f allocations a call, want 0", enc, got)
		}
	}
}

// TestAllocationsBounded holds what cannot be had for nothing to its price.
func TestAllocationsBounded(t *testing.T) {
	ctx := context.Background()
	for _, enc := range []Encoder{JSON{}, Logfmt{}, Console{}} {
		l := mustNew(t, Options{Outputs: []Output{{Writer: io.Discard, Encoder: enc}}})
		for name, c := range map[string]struct {
			f    func()
			most float64
		}{
			"a slice in an interface":    {func() { l.Info(ctx, dyn.msg, slog.Any("v", dynInts)) }, 1},
			"raw JSON in an interface":   {func() { l.Info(ctx, dyn.msg, slog.Any("v", dynRaw)) }, 1},
			"bytes in an interface":      {func() { l.Info(ctx, dyn.msg, slog.Any("v", dynBytes)) }, 1},
			"a group made in the call":   {func() { l.Info(ctx, dyn.msg, slog.Attr{Key: "g", Value: slog.GroupValue(slog.Int("a", dyn.i))}) }, 1},
			"a slog.Group made so":       {func() { l.Info(ctx, dyn.msg, slog.Group("g", slog.Int("a", dyn.i))) }, 2},
			"an error that is new":       {func() { l.Info(ctx, dyn.msg, slog.Any("e", &pointerError{dyn.str})) }, 1},
			"a disabled call with boxes": {func() { l.Debug(ctx, dyn.msg, slog.Any("v", dynInts)) }, 1},
		} {
			if got := mallocsPerCall(100, c.f); got > c.most+0.05 {
				t.Errorf("%T: %s costs %.2f allocations, want at most %v", enc, name, got, c.most)
			}
		}
	}
}

// TestPriceOfReplaceAttr holds docs/LOGGER.md to what it costs in allocations.
func TestPriceOfReplaceAttr(t *testing.T) {
	l := mustNew(t, Options{Outputs: []Output{{Writer: io.Discard}}, ReplaceAttr: func(_ []string, a slog.Attr) slog.Attr { return a }})
	if got := mallocsPerCall(100, func() { callShapes["6"](l, context.Background()) }); got > 7 {
		t.Errorf("%.1f allocations a call", got)
	}
}

// TestReplaceNothing: a function that changes nothing changes no line.
func TestReplaceNothing(t *testing.T) {
	for _, enc := range []Encoder{JSON{}, JSON{Layout: "level:l msg source error attrs:"}, Logfmt{}, Console{}, JSON{Errors: ErrorDetail}} {
		for shape, call := range callShapes {
			var lines []string
			for _, replace := range []func([]string, slog.Attr) slog.Attr{nil, func(_ []string, a slog.Attr) slog.Attr { return a }} {
				l, b := changedLogger(t, enc, func(o *Options) { o.ReplaceAttr = replace })
				for _, log := range []*Logger{l, l.With(slog.String("service", "s"), slog.Any("n", dynValuer)).WithGroup("g").With(slog.Int("m", 1))} {
					call(log, ContextWith(context.Background(), slog.Int("c", 1)))
				}
				lines = append(lines, regexp.MustCompile(`(?m)"time":"[^"]*"|time=\S*|^\S+`).ReplaceAllString(b.String(), "TIME"))
			}
			if lines[0] != lines[1] {
				t.Errorf("%T, %s: with ReplaceAttr\n%swithout\n%s", enc, shape, lines[1], lines[0])
			}
		}
	}
}
