package logger

import (
	"errors"
	"os"
	"time"
)

// User is zap's object for its benchmark of heavy fields.
type User struct {
	Name      string    `json:"name"`
	Email     string    `json:"email"`
	CreatedAt time.Time `json:"created_at"`
}

// The values that are logged. They are variables, and changed once at start,
// so that no library profits from constants.
var (
	message     = "request finished"
	customer    = "cus_8f14e45fceea"
	route       = "/api/v1/charges"
	retry       = 3
	size        = int64(48_213)
	ratio       = 0.8125
	score       = 97.5312
	cached      = true
	took        = 1_234_567 * time.Nanosecond
	when        = time.Date(2026, 5, 28, 12, 40, 0, 123456789, time.UTC)
	errDeclined = errors.New("card declined by issuer")

	tenInts    = []int{1, 2, 3, 4, 5, 6, 7, 8, 9, 0}
	tenStrings = []string{"a", "bb", "ccc", "dddd", "eeeee", "ffffff", "ggggggg", "hhhhhhhh", "iiiiiiiii", "jjjjjjjjjj"}
	tenTimes   = make([]time.Time, 10)
	oneUser    = &User{Name: "Jane Doe", Email: "jane@example.com", CreatedAt: when}
	tenUsers   = make([]*User, 10)
)

func init() {
	if len(os.Args) == 0 { // never, but the compiler does not know
		message, customer, route, retry, size, ratio, score, cached, took = "", "", "", 0, 0, 0, 0, false, 0
	}
	for i := range 10 {
		tenTimes[i] = when.Add(time.Duration(i) * time.Second)
		tenUsers[i] = oneUser
	}
}

// The names of the cases.
const (
	caseDisabled        = "disabled-3"
	caseDisabledGuarded = "disabled-3-guarded"
	caseDisabledMessage = "disabled-message"
	caseMessage         = "message"
	caseError           = "error"
	caseSix             = "attrs-6"
	caseSixError        = "attrs-6-error"
	caseTen             = "attrs-10-heavy"
	caseContext         = "context-10"
	caseCaller          = "caller"
	caseSlog            = "slog-attrs-6"
)

// Cases lists the scenarios of the logger.
func Cases() []Case {
	return []Case{
		{Name: caseDisabled},
		{Name: caseDisabledGuarded},
		{Name: caseDisabledMessage},
		{Name: caseMessage, Lines: 1},
		{Name: caseError, Lines: 1, attrs: map[string]any{"error": errDeclined}},
		{Name: caseSix, Lines: 1, attrs: sixValues()},
		{Name: caseSixError, Lines: 1, attrs: sixErrorValues()},
		{Name: caseTen, Lines: 1, attrs: tenValues()},
		{Name: caseContext, Lines: 1, attrs: contextValues()},
		{Name: caseCaller, Lines: 1},
	}
}

// SlogCase is the scenario of the slog handlers.
func SlogCase() Case { return Case{Name: caseSlog, Lines: 1, attrs: sixValues()} }

func sixValues() map[string]any {
	return map[string]any{"customer": customer, "retry": retry, "size": size, "ratio": ratio, "cached": cached, "took": took}
}

func sixErrorValues() map[string]any {
	return map[string]any{"customer": customer, "retry": retry, "size": size, "score": score, "error": errDeclined, "took": took}
}

func tenValues() map[string]any {
	return map[string]any{
		"int": retry, "ints": tenInts, "string": customer, "strings": tenStrings, "when": when, "times": tenTimes,
		"user1": oneUser, "user2": oneUser, "users": tenUsers, "error": errDeclined,
	}
}

func contextValues() map[string]any {
	return map[string]any{
		"customer": customer, "route": route, "retry": retry, "size": size, "ratio": ratio,
		"cached": cached, "took": took, "when": when, "string": customer, "int": retry,
	}
}
