package logger

import (
	"io"

	"github.com/rollway/rollway/bench/internal/rivals"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
)

// MarshalLogObject makes a User a zap object.
func (u *User) MarshalLogObject(enc zapcore.ObjectEncoder) error {
	enc.AddString("name", u.Name)
	enc.AddString("email", u.Email)
	enc.AddTime("created_at", u.CreatedAt)
	return nil
}

type zapUsers []*User

func (us zapUsers) MarshalLogArray(enc zapcore.ArrayEncoder) error {
	for _, u := range us {
		if err := enc.AppendObject(u); err != nil {
			return err
		}
	}
	return nil
}

func zapLoops(w io.Writer) map[string]func(n int) {
	log := zap.New(rivals.ZapCore(w))
	withCaller := zap.New(rivals.ZapCore(w), zap.AddCaller())
	derived := log.With(zap.String("customer", customer), zap.String("route", route), zap.Int("retry", retry),
		zap.Int64("size", size), zap.Float64("ratio", ratio), zap.Bool("cached", cached), zap.Duration("took", took),
		zap.Time("when", when), zap.String("string", customer), zap.Int("int", retry))
	return map[string]func(n int){
		caseDisabled: func(n int) {
			for range n {
				log.Debug(message, zap.String("customer", customer), zap.Int("retry", retry), zap.Duration("took", took))
			}
		},
		caseDisabledGuarded: func(n int) {
			for range n {
				if e := log.Check(zap.DebugLevel, message); e != nil {
					e.Write(zap.String("customer", customer), zap.Int("retry", retry), zap.Duration("took", took))
				}
			}
		},
		caseDisabledMessage: func(n int) {
			for range n {
				log.Debug(message)
			}
		},
		caseMessage: func(n int) {
			for range n {
				log.Info(message)
			}
		},
		caseError: func(n int) {
			for range n {
				log.Info(message, zap.Error(errDeclined))
			}
		},
		caseSix: func(n int) {
			for range n {
				log.Info(message, zap.String("customer", customer), zap.Int("retry", retry), zap.Int64("size", size),
					zap.Float64("ratio", ratio), zap.Bool("cached", cached), zap.Duration("took", took))
			}
		},
		caseSixError: func(n int) {
			for range n {
				log.Info(message, zap.String("customer", customer), zap.Int("retry", retry), zap.Int64("size", size),
					zap.Float64("score", score), zap.Error(errDeclined), zap.Duration("took", took))
			}
		},
		caseTen: func(n int) {
			for range n {
				log.Info(message, zap.Int("int", retry), zap.Ints("ints", tenInts), zap.String("string", customer),
					zap.Strings("strings", tenStrings), zap.Time("when", when), zap.Times("times", tenTimes),
					zap.Object("user1", oneUser), zap.Object("user2", oneUser), zap.Array("users", zapUsers(tenUsers)), zap.Error(errDeclined))
			}
		},
		caseContext: func(n int) {
			for range n {
				derived.Info(message)
			}
		},
		caseCaller: func(n int) {
			for range n {
				withCaller.Info(message)
			}
		},
	}
}
