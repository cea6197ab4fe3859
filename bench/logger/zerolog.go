package logger

import (
	"io"

	"github.com/rollway/rollway/bench/internal/rivals"
	"github.com/rs/zerolog"
)

// MarshalZerologObject makes a User a zerolog object.
func (u *User) MarshalZerologObject(e *zerolog.Event) {
	e.Str("name", u.Name).Str("email", u.Email).Time("created_at", u.CreatedAt)
}

type zerologUsers []*User

func (us zerologUsers) MarshalZerologArray(a *zerolog.Array) {
	for _, u := range us {
		a.Object(u)
	}
}

func zerologLoops(w io.Writer) map[string]func(n int) {
	log := rivals.Zerolog(w)
	withCaller := log.With().Caller().Logger()
	derived := log.With().Str("customer", customer).Str("route", route).Int("retry", retry).Int64("size", size).
		Float64("ratio", ratio).Bool("cached", cached).Dur("took", took).Time("when", when).Str("string", customer).Int("int", retry).Logger()
	return map[string]func(n int){
		caseDisabled: func(n int) {
			for range n {
				log.Debug().Str("customer", customer).Int("retry", retry).Dur("took", took).Msg(message)
			}
		},
		caseDisabledGuarded: func(n int) {
			for range n {
				if e := log.Debug(); e.Enabled() {
					e.Str("customer", customer).Int("retry", retry).Dur("took", took).Msg(message)
				}
			}
		},
		caseDisabledMessage: func(n int) {
			for range n {
				log.Debug().Msg(message)
			}
		},
		caseMessage: func(n int) {
			for range n {
				log.Info().Msg(message)
			}
		},
		caseError: func(n int) {
			for range n {
				log.Info().Err(errDeclined).Msg(message)
			}
		},
		caseSix: func(n int) {
			for range n {
				log.Info().Str("customer", customer).Int("retry", retry).Int64("size", size).Float64("ratio", ratio).
					Bool("cached", cached).Dur("took", took).Msg(message)
			}
		},
		caseSixError: func(n int) {
			for range n {
				log.Info().Str("customer", customer).Int("retry", retry).Int64("size", size).Float64("score", score).
					Err(errDeclined).Dur("took", took).Msg(message)
			}
		},
		caseTen: func(n int) {
			for range n {
				log.Info().Int("int", retry).Ints("ints", tenInts).Str("string", customer).Strs("strings", tenStrings).
					Time("when", when).Times("times", tenTimes).Object("user1", oneUser).Object("user2", oneUser).
					Array("users", zerologUsers(tenUsers)).Err(errDeclined).Msg(message)
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
