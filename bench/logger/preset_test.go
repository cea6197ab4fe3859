package logger

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"math"
	"math/rand/v2"
	"reflect"
	"runtime"
	"testing"
	"time"

	"github.com/rollway/rollway"
	"github.com/rollway/rollway/preset"
	"github.com/rs/zerolog"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
)

// An attribute in each library.
type threefold struct {
	slog.Attr
	zap.Field
	zerolog func(*zerolog.Event)
}

func randomAttribute(r *rand.Rand, key string, depth int) threefold {
	switch n := r.Int64() >> r.IntN(64); r.IntN(12) {
	case 0:
		return threefold{slog.Int64(key, n), zap.Int64(key, n), func(e *zerolog.Event) { e.Int64(key, n) }}
	case 1:
		return threefold{slog.Uint64(key, uint64(n)), zap.Uint64(key, uint64(n)), func(e *zerolog.Event) { e.Uint64(key, uint64(n)) }}
	case 2:
		f := r.NormFloat64() * math.Pow(10, float64(r.IntN(40)-20))
		return threefold{slog.Float64(key, f), zap.Float64(key, f), func(e *zerolog.Event) { e.Float64(key, f) }}
	case 3:
		return threefold{slog.Bool(key, n&1 == 1), zap.Bool(key, n&1 == 1), func(e *zerolog.Event) { e.Bool(key, n&1 == 1) }}
	case 4:
		d := time.Duration(n)
		return threefold{slog.Duration(key, d), zap.Duration(key, d), func(e *zerolog.Event) { e.Dur(key, d) }}
	case 5:
		at := time.Unix(0, n&(1<<61-1))
		return threefold{slog.Time(key, at), zap.Time(key, at), func(e *zerolog.Event) { e.Time(key, at) }}
	case 6:
		err := errors.New("fail \"" + key)
		return threefold{slog.Any(key, err), zap.NamedError(key, err), func(e *zerolog.Event) { e.AnErr(key, err) }}
	case 7:
		list := []string{key, "", "é\n"}
		return threefold{slog.Any(key, list), zap.Strings(key, list), func(e *zerolog.Event) { e.Strs(key, list) }}
	case 8:
		m := map[string]any{"a": n, "b": []any{1.5, nil}}
		return threefold{slog.Any(key, m), zap.Any(key, m), func(e *zerolog.Event) { e.Any(key, m) }}
	case 9:
		if depth < 3 {
			a, b := randomAttribute(r, "a", depth+1), randomAttribute(r, "b", depth+1)
			return threefold{slog.Group(key, a.Attr, b.Attr), zap.Dict(key, a.Field, b.Field), func(e *zerolog.Event) {
				d := zerolog.Dict()
				a.zerolog(d)
				b.zerolog(d)
				e.Dict(key, d)
			}}
		}
	}
	s := string([]rune{rune(r.IntN(0x3000)), '"', rune(r.IntN(0x80))})
	return threefold{slog.String(key, s), zap.String(key, s), func(e *zerolog.Event) { e.Str(key, s) }}
}

type fixedClock struct{ time.Time }

func (c fixedClock) Now() time.Time                       { return c.Time }
func (c fixedClock) NewTicker(time.Duration) *time.Ticker { return nil }

// from returns msg and sets pc to that of its caller.
func from(pc *uintptr, msg string) string {
	var pcs [1]uintptr
	runtime.Callers(2, pcs[:])
	*pc = pcs[0]
	return msg
}

// viaPreset writes a record by a preset of Rollway.
func viaPreset(t *testing.T, format rollway.JSON, name string, r slog.Record, attrs []threefold) string {
	var b bytes.Buffer
	l, err := rollway.New(rollway.Options{Caller: rollway.LevelTrace, Outputs: []rollway.Output{{Writer: &b, Encoder: format, Level: rollway.LevelTrace}}})
	if err != nil {
		t.Fatal(err)
	}
	for _, a := range attrs {
		r.AddAttrs(a.Attr)
	}
	if err := l.Named(name).Handler().Handle(context.Background(), r); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

func sameValues(t *testing.T, got, want string) {
	t.Helper()
	var values [2]any
	for i, line := range []string{got, want} {
		if err := json.Unmarshal([]byte(line), &values[i]); err != nil {
			t.Fatalf("%s: %v", line, err)
		}
	}
	if !reflect.DeepEqual(values[0], values[1]) {
		t.Fatalf("the preset writes\n%sthe library\n%s", got, want)
	}
}

// TestPresets compares the lines of presets with those of the libraries.
func TestPresets(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	zerologLevels := map[slog.Level]zerolog.Level{-8: zerolog.TraceLevel, -4: zerolog.DebugLevel, 0: zerolog.InfoLevel, 4: zerolog.WarnLevel, 8: zerolog.ErrorLevel}
	zapLevels := map[slog.Level]zapcore.Level{-4: zap.DebugLevel, 0: zap.InfoLevel, 4: zap.WarnLevel, 8: zap.ErrorLevel}
	// Package rivals changes zerolog's defaults.
	format, message, unit, durations, now := zerolog.TimeFieldFormat, zerolog.MessageFieldName, zerolog.DurationFieldUnit, zerolog.DurationFieldFormat, zerolog.TimestampFunc
	defer func() {
		zerolog.TimeFieldFormat, zerolog.MessageFieldName, zerolog.DurationFieldUnit, zerolog.DurationFieldFormat, zerolog.TimestampFunc = format, message, unit, durations, now
	}()
	zerolog.TimeFieldFormat, zerolog.MessageFieldName, zerolog.DurationFieldUnit, zerolog.DurationFieldFormat = time.RFC3339, "message", time.Millisecond, zerolog.DurationFormatFloat
	for range 3000 {
		at := time.Unix(0, random.Int64N(1<<61))
		level := slog.Level(random.IntN(5)*4 - 8)
		msg := string([]rune{rune(random.IntN(0x3000)), '\n'})
		var attrs []threefold
		for i := range random.IntN(6) {
			attrs = append(attrs, randomAttribute(random, string(rune('a'+i))+"\"", 0))
		}
		var pc uintptr
		var b bytes.Buffer
		if zapLevel, ok := zapLevels[level]; ok {
			name := []string{"", "db.pool"}[random.IntN(2)]
			log := zap.New(zapcore.NewCore(zapcore.NewJSONEncoder(zap.NewProductionEncoderConfig()), zapcore.AddSync(&b), zap.DebugLevel), zap.AddCaller(), zap.WithClock(fixedClock{at}))
			var fields []zap.Field
			for _, a := range attrs {
				fields = append(fields, a.Field)
			}
			log.Named(name).Log(zapLevel, from(&pc, msg), fields...)
			sameValues(t, viaPreset(t, preset.Zap(), name, slog.NewRecord(at, level, msg, pc), attrs), b.String())
			b.Reset()
		}
		zerolog.TimestampFunc = func() time.Time { return at }
		log := zerolog.New(&b).With().Timestamp().Caller().Logger()
		e := log.WithLevel(zerologLevels[level])
		for _, a := range attrs {
			a.zerolog(e)
		}
		e.Msg(from(&pc, msg))
		sameValues(t, viaPreset(t, preset.Zerolog(), "", slog.NewRecord(at, level, msg, pc), attrs), b.String())
	}
}

// BenchmarkPresets is what the presets cost beside the default format.
func BenchmarkPresets(b *testing.B) {
	for name, format := range map[string]rollway.JSON{"json": {}, "ecs": preset.ECS(), "gcp": preset.GCP("p"), "slog": preset.Slog(), "zap": preset.Zap(), "zerolog": preset.Zerolog()} {
		b.Run(name, func(b *testing.B) {
			l, err := rollway.New(rollway.Options{Outputs: []rollway.Output{{Writer: io.Discard, Encoder: format}}})
			if err != nil {
				b.Fatal(err)
			}
			ctx := context.Background()
			b.ReportAllocs()
			for b.Loop() {
				l.Warn(ctx, "request finished", slog.String("customer", "cus_123"), slog.Int("retry", 3), slog.Duration("took", 1530*time.Microsecond))
			}
		})
	}
}
