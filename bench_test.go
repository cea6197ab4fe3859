package rollway

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"testing"
	"time"
)

type countingWriter struct{ n int }

func (w *countingWriter) Write(p []byte) (int, error) { w.n += len(p); return len(p), nil }

var dyn = struct {
	msg, str string
	i        int
	f        float64
	b        bool
	d        time.Duration
	t        time.Time
}{"request finished with a message of some length", "cus_8123912", 42, 3.25, true, 1530 * time.Microsecond, time.Unix(1790000000, 12345)}

func benchLogger(b testing.TB) *Logger {
	l, err := New(Options{Outputs: []Output{{Writer: &countingWriter{}}}, Caller: LevelOff})
	if err != nil {
		b.Fatal(err)
	}
	return l
}

type benchUser struct {
	name, email string
	created     time.Time
}

func (u *benchUser) AppendLog(o *Object) {
	o.Add(slog.String("name", u.name), slog.String("email", u.email), slog.Time("created_at", u.created))
}

type benchUsers []*benchUser

func (us *benchUsers) AppendLog(a *Array) {
	for _, u := range *us {
		a.Object(u)
	}
}

// What zap's own benchmark logs: lists of ten, two objects, a list of ten.
var (
	benchPerson  = &benchUser{"Jane Doe", "jane@example.com", time.Date(1980, 1, 1, 12, 0, 0, 0, time.UTC)}
	benchPeople  = slices.Repeat(benchUsers{benchPerson}, 10)
	benchInts    = []int{1, 23, 456, 7890, -1, 0, 99999, 12, 3, 1234567}
	benchStrings = slices.Repeat([]string{"some text of a usual length"}, 10)
	benchTimes   = slices.Repeat([]time.Time{time.Date(2026, 11, 21, 8, 0, 0, 12345, time.UTC)}, 10)
	errBench     = errors.New("fail")
)

func BenchmarkLogger(b *testing.B) {
	ctx := context.Background()
	b.Run("disabled3", func(b *testing.B) {
		l := benchLogger(b)
		for b.Loop() {
			l.Debug(ctx, dyn.msg, slog.String("a", dyn.str), slog.Int("b", dyn.i), slog.Bool("c", dyn.b))
		}
	})
	b.Run("disabledGuarded", func(b *testing.B) {
		l := benchLogger(b)
		for b.Loop() {
			if l.Enabled(ctx, slog.LevelDebug) {
				l.Debug(ctx, dyn.msg, slog.String("a", dyn.str), slog.Int("b", dyn.i), slog.Bool("c", dyn.b))
			}
		}
	})
	b.Run("message", func(b *testing.B) {
		l := benchLogger(b)
		b.ReportAllocs()
		for b.Loop() {
			l.Info(ctx, dyn.msg)
		}
	})
	b.Run("attrs6", func(b *testing.B) {
		l := benchLogger(b)
		b.ReportAllocs()
		for b.Loop() {
			l.Info(ctx, dyn.msg, slog.String("customer", dyn.str), slog.Int("retry", dyn.i), slog.Float64("ratio", dyn.f),
				slog.Bool("ok", dyn.b), slog.Duration("took", dyn.d), slog.Time("at", dyn.t))
		}
	})
	b.Run("caller", func(b *testing.B) {
		l, _ := New(Options{Outputs: []Output{{Writer: &countingWriter{}}}, Caller: LevelTrace})
		b.ReportAllocs()
		for b.Loop() {
			l.Info(ctx, dyn.msg)
		}
	})
	b.Run("context10", func(b *testing.B) {
		l := benchLogger(b).With(slog.String("a", dyn.str), slog.Int("b", dyn.i), slog.String("c", dyn.str), slog.Int("d", dyn.i),
			slog.String("e", dyn.str), slog.Int("f", dyn.i), slog.String("g", dyn.str), slog.Int("h", dyn.i), slog.String("i", dyn.str), slog.Int("j", dyn.i))
		b.ReportAllocs()
		for b.Loop() {
			l.Info(ctx, dyn.msg)
		}
	})
	b.Run("heavy", func(b *testing.B) {
		l := benchLogger(b)
		b.ReportAllocs()
		for b.Loop() {
			l.Info(ctx, dyn.msg, slog.Int("int", dyn.i), slog.Any("ints", &benchInts), slog.String("string", dyn.str),
				slog.Any("strings", &benchStrings), slog.Time("when", dyn.t), slog.Any("times", &benchTimes), slog.Any("user1", benchPerson),
				slog.Any("user2", benchPerson), slog.Any("users", &benchPeople), slog.Any("error", errBench))
		}
	})
	b.Run("slog6", func(b *testing.B) {
		l := slog.New(benchLogger(b).Handler())
		b.ReportAllocs()
		for b.Loop() {
			l.LogAttrs(ctx, slog.LevelInfo, dyn.msg, slog.String("customer", dyn.str), slog.Int("retry", dyn.i), slog.Float64("ratio", dyn.f),
				slog.Bool("ok", dyn.b), slog.Duration("took", dyn.d), slog.Time("at", dyn.t))
		}
	})
}

// BenchmarkReplaceAttr is what a function that changes nothing costs.
func BenchmarkReplaceAttr(b *testing.B) {
	for name, replace := range map[string]func([]string, slog.Attr) slog.Attr{"without": nil, "with": func(_ []string, a slog.Attr) slog.Attr { return a }} {
		b.Run(name, func(b *testing.B) {
			l, err := New(Options{Outputs: []Output{{Writer: &countingWriter{}}}, Caller: LevelOff, ReplaceAttr: replace})
			if err != nil {
				b.Fatal(err)
			}
			b.ReportAllocs()
			for b.Loop() {
				l.Info(context.Background(), dyn.msg, slog.String("customer", dyn.str), slog.Int("retry", dyn.i), slog.Float64("ratio", dyn.f),
					slog.Bool("ok", dyn.b), slog.Duration("took", dyn.d), slog.Time("at", dyn.t))
			}
		})
	}
}
