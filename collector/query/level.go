package query

import (
	"log/slog"
	"strconv"

	"github.com/rollway/rollway/internal/levels"
)

// Bounds of the levels that an expression may compare with. Plain numbers stop
// at maxNumber: the 20 to 60 of pino and bunyan are not slog's, and a comparison
// with them would find nothing without a word why.
const (
	maxLevel  = 1 << 31
	maxNumber = 19
)

// parseLevel reads a level as an expression may name it: by a name that
// normalization knows, with or without a distance, or by slog's number.
func parseLevel(s string) (slog.Level, bool) {
	if n, err := strconv.ParseInt(s, 10, 64); err == nil {
		return slog.Level(n), n >= -maxLevel && n <= maxNumber
	}
	l, ok := levels.ParseNamed([]byte(s))
	return l, ok && l >= -maxLevel && l <= maxLevel
}
