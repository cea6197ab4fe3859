package relay

import (
	"log/slog"
	"sync"
	"time"
)

// limitedLog logs a message at most once a second, with the number of those it has
// suppressed. It is safe for concurrent use.
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
