package logger

import (
	"context"
	"io"
	"log/slog"

	"github.com/rollway/rollway"
)

func newRollway(w io.Writer, caller slog.Level) *rollway.Logger {
	log, err := rollway.New(rollway.Options{Outputs: []rollway.Output{{Writer: w}}, Caller: caller})
	if err != nil {
		panic(err) // the options above are right
	}
	return log
}

func rollwayLoops(w io.Writer) map[string]func(n int) {
	ctx := context.Background()
	log := newRollway(w, rollway.LevelOff)
	withCaller := newRollway(w, slog.LevelInfo)
	derived := log.With(slog.String("customer", customer), slog.String("route", route), slog.Int("retry", retry),
		slog.Int64("size", size), slog.Float64("ratio", ratio), slog.Bool("cached", cached), slog.Duration("took", took),
		slog.Time("when", when), slog.String("string", customer), slog.Int("int", retry))
	return map[string]func(n int){
		caseDisabled: func(n int) {
			for range n {
				log.Debug(ctx, message, slog.String("customer", customer), slog.Int("retry", retry), slog.Duration("took", took))
			}
		},
		caseDisabledGuarded: func(n int) {
			for range n {
				if log.Enabled(ctx, slog.LevelDebug) {
					log.Debug(ctx, message, slog.String("customer", customer), slog.Int("retry", retry), slog.Duration("took", took))
				}
			}
		},
		caseDisabledMessage: func(n int) {
			for range n {
				log.Debug(ctx, message)
			}
		},
		caseMessage: func(n int) {
			for range n {
				log.Info(ctx, message)
			}
		},
		caseError: func(n int) {
			for range n {
				log.Info(ctx, message, slog.Any("error", errDeclined))
			}
		},
		caseSix: func(n int) {
			for range n {
				log.Info(ctx, message, slog.String("customer", customer), slog.Int("retry", retry), slog.Int64("size", size),
					slog.Float64("ratio", ratio), slog.Bool("cached", cached), slog.Duration("took", took))
			}
		},
		caseSixError: func(n int) {
			for range n {
				log.Info(ctx, message, slog.String("customer", customer), slog.Int("retry", retry), slog.Int64("size", size),
					slog.Float64("score", score), slog.Any("error", errDeclined), slog.Duration("took", took))
			}
		},
		caseTen: func(n int) {
			for range n {
				log.Info(ctx, message, slog.Int("int", retry), slog.Any("ints", &tenInts), slog.String("string", customer),
					slog.Any("strings", &tenStrings), slog.Time("when", when), slog.Any("times", &tenTimes), slog.Any("user1", oneUser),
					slog.Any("user2", oneUser), slog.Any("users", (*rollwayUsers)(&tenUsers)), slog.Any("error", errDeclined))
			}
		},
		caseContext: func(n int) {
			for range n {
				derived.Info(ctx, message)
			}
		},
		caseCaller: func(n int) {
			for range n {
				withCaller.Info(ctx, message)
			}
		},
	}
}

// AppendLog writes a User without reflection, as the other libraries' users do.
func (u *User) AppendLog(o *rollway.Object) {
	o.Add(slog.String("name", u.Name), slog.String("email", u.Email), slog.Time("created_at", u.CreatedAt))
}

type rollwayUsers []*User

func (us *rollwayUsers) AppendLog(a *rollway.Array) {
	for _, u := range *us {
		a.Object(u)
	}
}
