package logger

import (
	"io"

	"github.com/phuslu/log"
	"github.com/rollway/rollway/bench/internal/rivals"
)

// MarshalObject makes a User a phuslu object.
func (u *User) MarshalObject(e *log.Entry) {
	e.Str("name", u.Name).Str("email", u.Email).TimeFormat("created_at", rivals.TimeFormat, u.CreatedAt)
}

// phusluLoops has durations in milliseconds with a fraction, the only form
// that phuslu's Dur has.
func phusluLoops(w io.Writer) map[string]func(n int) {
	logger := rivals.PhusluLogger(log.IOWriter{Writer: w})
	withCaller := rivals.PhusluLogger(log.IOWriter{Writer: w})
	withCaller.Caller = 1
	derived := rivals.PhusluLogger(log.IOWriter{Writer: w})
	derived.Context = log.NewContext(nil).Str("customer", customer).Str("route", route).Int("retry", retry).Int64("size", size).
		Float64("ratio", ratio).Bool("cached", cached).Dur("took", took).TimeFormat("when", rivals.TimeFormat, when).
		Str("string", customer).Int("int", retry).Value()
	return map[string]func(n int){
		caseDisabled: func(n int) {
			for range n {
				logger.Debug().Str("customer", customer).Int("retry", retry).Dur("took", took).Msg(message)
			}
		},
		caseDisabledGuarded: func(n int) {
			for range n {
				if e := logger.Debug(); e.Enabled() {
					e.Str("customer", customer).Int("retry", retry).Dur("took", took).Msg(message)
				}
			}
		},
		caseDisabledMessage: func(n int) {
			for range n {
				logger.Debug().Msg(message)
			}
		},
		caseMessage: func(n int) {
			for range n {
				logger.Info().Msg(message)
			}
		},
		caseError: func(n int) {
			for range n {
				logger.Info().Err(errDeclined).Msg(message)
			}
		},
		caseSix: func(n int) {
			for range n {
				logger.Info().Str("customer", customer).Int("retry", retry).Int64("size", size).Float64("ratio", ratio).
					Bool("cached", cached).Dur("took", took).Msg(message)
			}
		},
		caseSixError: func(n int) {
			for range n {
				logger.Info().Str("customer", customer).Int("retry", retry).Int64("size", size).Float64("score", score).
					Err(errDeclined).Dur("took", took).Msg(message)
			}
		},
		caseTen: func(n int) {
			for range n {
				logger.Info().Int("int", retry).Ints("ints", tenInts).Str("string", customer).Strs("strings", tenStrings).
					TimeFormat("when", rivals.TimeFormat, when).TimesFormat("times", rivals.TimeFormat, tenTimes).Object("user1", oneUser).
					Object("user2", oneUser).Objects("users", tenUsers).Err(errDeclined).Msg(message)
			}
		},
		caseContext: func(n int) {
			for range n {
				derived.Info().Msg(message)
			}
		},
		caseCaller: func(n int) {
			for range n {
				withCaller.Info().Msg(message)
			}
		},
	}
}
