package relay

import (
	"log/slog"
	"sync"
	"time"
)

// A notice is a message of the log that is said at most once a second, with how
// often it was held back in between. Safe for concurrent use.
type limitedLog struct {
	mu   sync.Mutex
	last time.Time // guarded by mu
	held int       // guarded by mu
}

const logEvery = time.Second

func (n *limitedLog) log(log *slog.Logger, level slog.Level, msg string, args ...any) {
	n.mu.Lock()
	if now := time.Now(); now.Sub(n.last) >= logEvery {
		n.last = now
	} else {
		n.held++
		n.mu.Unlock()
		return
	}
	held := n.held
	n.held = 0
	n.mu.Unlock()
	if held > 0 {
		args = append(args, slog.Int("held_back", held))
	}
	log.Log(background, level, msg, args...)
}
