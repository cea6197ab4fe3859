package logger

import (
	"context"
	"io"
	"log/slog"

	"github.com/phuslu/log"
	"github.com/rollway/rollway"
	"github.com/rollway/rollway/bench/internal/rivals"
	"github.com/rs/zerolog"
	"go.uber.org/zap/exp/zapslog"
)

func slogLoops(w io.Writer) map[string]func(n int) {
	ctx := context.Background()
	log := slog.New(slog.NewJSONHandler(w, nil))
	withCaller := slog.New(slog.NewJSONHandler(w, &slog.HandlerOptions{AddSource: true}))
	derived := log.With(slog.String("customer", customer), slog.String("route", route), slog.Int("retry", retry),
		slog.Int64("size", size), slog.Float64("ratio", ratio), slog.Bool("cached", cached), slog.Duration("took", took),
		slog.Time("when", when), slog.String("string", customer), slog.Int("int", retry))
	return map[string]func(n int){
		caseDisabled: func(n int) {
			for range n {
				log.LogAttrs(ctx, slog.LevelDebug, message, slog.String("customer", customer), slog.Int("retry", retry), slog.Duration("took", took))
			}
		},
		caseDisabledGuarded: func(n int) {
			for range n {
				if log.Enabled(ctx, slog.LevelDebug) {
					log.LogAttrs(ctx, slog.LevelDebug, message, slog.String("customer", customer), slog.Int("retry", retry), slog.Duration("took", took))
				}
			}
		},
		caseDisabledMessage: func(n int) {
			for range n {
				log.LogAttrs(ctx, slog.LevelDebug, message)
			}
		},
		caseMessage: func(n int) {
			for range n {
				log.LogAttrs(ctx, slog.LevelInfo, message)
			}
		},
		caseError: func(n int) {
			for range n {
				log.LogAttrs(ctx, slog.LevelInfo, message, slog.Any("error", errDeclined))
			}
		},
		caseSix: slogSix(log),
		caseSixError: func(n int) {
			for range n {
				log.LogAttrs(ctx, slog.LevelInfo, message, slog.String("customer", customer), slog.Int("retry", retry), slog.Int64("size", size),
					slog.Float64("score", score), slog.Any("error", errDeclined), slog.Duration("took", took))
			}
		},
		caseTen: func(n int) {
			for range n {
				log.LogAttrs(ctx, slog.LevelInfo, message, slog.Int("int", retry), slog.Any("ints", tenInts), slog.String("string", customer),
					slog.Any("strings", tenStrings), slog.Time("when", when), slog.Any("times", tenTimes), slog.Any("user1", oneUser),
					slog.Any("user2", oneUser), slog.Any("users", tenUsers), slog.Any("error", errDeclined))
			}
		},
		caseContext: func(n int) {
			for range n {
				derived.LogAttrs(ctx, slog.LevelInfo, message)
			}
		},
		caseCaller: func(n int) {
			for range n {
				withCaller.LogAttrs(ctx, slog.LevelInfo, message)
			}
		},
	}
}

// SlogHandlers lists the handlers that are measured behind a *slog.Logger.
func SlogHandlers() []Library {
	handlers := []struct {
		name string
		make func(w io.Writer) slog.Handler
	}{
		{"rollway", func(w io.Writer) slog.Handler { return newRollway(w, rollway.LevelOff).Handler() }},
		{"log/slog", func(w io.Writer) slog.Handler { return slog.NewJSONHandler(w, nil) }},
		{"zerolog", func(w io.Writer) slog.Handler { return zerolog.NewSlogHandler(rivals.Zerolog(w)) }},
		{"zap", func(w io.Writer) slog.Handler { return zapslog.NewHandler(rivals.ZapCore(w)) }},
		{"phuslu/log", func(w io.Writer) slog.Handler {
			return rivals.PhusluLogger(log.IOWriter{Writer: w}).Slog().Handler()
		}},
	}
	var libraries []Library
	for _, h := range handlers {
		libraries = append(libraries, Library{Name: h.name, Loops: func(w io.Writer) map[string]func(n int) {
			return map[string]func(n int){caseSlog: slogSix(slog.New(h.make(w)))}
		}})
	}
	return libraries
}

func slogSix(log *slog.Logger) func(n int) {
	ctx := context.Background()
	return func(n int) {
		for range n {
			log.LogAttrs(ctx, slog.LevelInfo, message, slog.String("customer", customer), slog.Int("retry", retry), slog.Int64("size", size),
				slog.Float64("ratio", ratio), slog.Bool("cached", cached), slog.Duration("took", took))
		}
	}
}
