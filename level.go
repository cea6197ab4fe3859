package rollway

import (
	"log/slog"
	"math"

	"github.com/rollway/rollway/internal/jsonline"
)

// The levels are slog's, with their numbers, and three more. A level between
// two named ones is written as the lower name and the distance: WARN+1.
const (
	LevelTrace = jsonline.LevelTrace // -8
	LevelDebug = slog.LevelDebug     // -4
	LevelInfo  = slog.LevelInfo      // 0
	LevelWarn  = slog.LevelWarn      // 4
	LevelError = slog.LevelError     // 8
	LevelPanic = jsonline.LevelPanic // 10
	LevelFatal = jsonline.LevelFatal // 12

	// LevelOff is above every level: an Output with it takes nothing, a
	// Logger with Options.Caller set to it captures no caller.
	LevelOff slog.Level = math.MaxInt32

	lowestLevel slog.Level = math.MinInt32
)
