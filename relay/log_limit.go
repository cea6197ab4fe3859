package relay

import (
	"log/slog"
	"sync"
	"time"
)

// limitedLog logs each message at most once a second, with the number of those it has
// suppressed. It is safe for concurrent use.
type limitedLog struct {
	to *slog.Logger

	mu    sync.Mutex
	notes map[string]*limitedNote // guarded by mu; by message
}

type limitedNote struct {
	last time.Time
	held int
}

const logEvery = time.Second

func (l *limitedLog) log(level slog.Level, msg string, args ...any) {
	l.mu.Lock()
	n := l.notes[msg]
	if n == nil {
		n = new(limitedNote)
		l.notes[msg] = n
	}
	now := time.Now()
	if now.Sub(n.last) < logEvery {
		n.held++
		l.mu.Unlock()
		return
	}
	held := n.held
	*n = limitedNote{last: now}
	l.mu.Unlock()
	if held > 0 {
		args = append(args, slog.Int("held_back", held))
	}
	l.to.Log(background, level, msg, args...)
}
