package kafka

import (
	"log/slog"
	"sync"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
)

// logEvery is how often the client may say the same.
const logEvery = 10 * time.Second

// clientLog passes on what the client warns of, such as a broker that refuses the
// password: it tries again for ever, and nobody would know otherwise. What it says
// holds no secrets.
type clientLog struct {
	log *slog.Logger

	mu   sync.Mutex
	last map[string]time.Time // guarded by mu; by text; there are few texts
}

// Level is the least that Log is called for.
func (*clientLog) Level() kgo.LogLevel { return kgo.LogLevelWarn }

// Log is called by the client.
func (l *clientLog) Log(_ kgo.LogLevel, msg string, keyvals ...any) {
	now := time.Now()
	l.mu.Lock()
	defer l.mu.Unlock()
	if last, said := l.last[msg]; said && now.Sub(last) < logEvery {
		return
	}
	l.last[msg] = now
	l.log.Warn("kafka: "+msg, keyvals...)
}
