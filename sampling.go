package rollway

import (
	"cmp"
	"context"
	"fmt"
	"hash/maphash"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/rollway/rollway/internal/encode"
)

// Sampling limits how often the same message is written: in each Period the first
// First records of a message and level, and then every Then-th. Once a period it
// reports the records that it left out, by a line for each message at the message's
// level:
//
//	{"time":"…","level":"INFO","msg":"rollway: 812 lines left out by sampling","attrs":{"of":"cache miss","left_out":812}}
//
// The line is written by the first call after the period that logs anything below
// Always, or by Flush, Shutdown, Fatal or Panic.
type Sampling struct {
	Period time.Duration // default: 1 s
	First  int           // at least 1
	Then   int           // 0 leaves out the rest

	// Always is the level from which every record is written. Default: ERROR.
	Always slog.Leveler

	// Key, if set, returns the text that is counted in place of the message, for
	// instance a tenant that the context carries. It must not log.
	Key func(ctx context.Context, level slog.Level, msg string) string

	// Attrs are keys of attributes. Records whose calls have different values for one
	// of them are counted separately. For the lines of httplog: route and status.
	Attrs []string
}

// sampler is a checked Sampling. It is safe for concurrent use.
type sampler struct {
	Sampling
	seed   maphash.Seed
	now    func() int64
	redact *encode.Redactor
	sweep  atomic.Int64 // unix ns at which expired messages are looked for
	shards [16]sampleShard
}

type sampleShard struct {
	mu   sync.Mutex
	keys map[uint64]*sampled // guarded by mu
	_    [40]byte            // keeps shards on cache lines of their own
}

// sampled is one message at one level in one period.
type sampled struct {
	until   int64 // unix ns at which the period ends
	seen    int
	leftOut uint64
	level   slog.Level
	text    string
}

// maxSampled bounds the messages that one shard counts at a time. Further messages
// are not sampled.
const maxSampled = 1024

func newSampler(s *Sampling, now func() int64) (*sampler, error) {
	if s == nil {
		return nil, nil
	}
	sp := &sampler{Sampling: *s, seed: maphash.MakeSeed(), now: now}
	sp.Period = cmp.Or(sp.Period, time.Second)
	sp.Always = cmp.Or[slog.Leveler](sp.Always, slog.LevelError)
	switch {
	case sp.Period < time.Millisecond:
		return nil, fmt.Errorf("rollway.New: Options.Sampling.Period is %v: give 1 ms or more, or 0 for 1 s", sp.Period)
	case sp.First < 1:
		return nil, fmt.Errorf("rollway.New: Options.Sampling.First is %d: give 1 or more", sp.First)
	case sp.Then < 0:
		return nil, fmt.Errorf("rollway.New: Options.Sampling.Then is %d: give 0 or more", sp.Then)
	}
	for i := range sp.shards {
		sp.shards[i].keys = make(map[uint64]*sampled)
	}
	sp.sweep.Store(now() + int64(sp.Period))
	return sp, nil
}

// takes reports whether a record is to be written. due are the reports to write
// before it, usually none.
func (s *sampler) takes(ctx context.Context, level slog.Level, msg string, groups []string, attrs []slog.Attr) (ok bool, due []sampled) {
	if level >= s.Always.Level() {
		return true, nil
	}
	now := s.now()
	if sweep := s.sweep.Load(); s.over(sweep, now) && s.sweep.CompareAndSwap(sweep, now+int64(s.Period)) {
		due = s.leftOut(now, false)
	}
	key := msg
	if s.Key != nil {
		key = s.keyOf(ctx, level, msg)
	}
	h := maphash.String(s.seed, key) + uint64(level)
	if len(s.Attrs) > 0 {
		sc := scratchPool.Get().(*scratch)
		sc.Buf = s.appendValues(sc.Buf[:0], nil, groups, attrs)
		h ^= maphash.Bytes(s.seed, sc.Buf)
		sc.free()
	}
	shard := &s.shards[h%uint64(len(s.shards))]
	shard.mu.Lock()
	if e := shard.keys[h]; e == nil && len(shard.keys) < maxSampled {
		shard.mu.Unlock()
		text := s.shown(key, groups, attrs) // calls the user's code
		shard.mu.Lock()
		if shard.keys[h] == nil {
			shard.keys[h] = &sampled{until: now + int64(s.Period), level: level, text: text}
		}
	}
	defer shard.mu.Unlock()
	e := shard.keys[h]
	if e == nil {
		return true, due
	}
	if s.over(e.until, now) {
		if e.leftOut > 0 {
			due = append(due, *e)
		}
		e.until, e.seen, e.leftOut = now+int64(s.Period), 0, 0
	}
	e.seen++
	if e.seen <= s.First || s.Then > 0 && (e.seen-s.First)%s.Then == 0 {
		return true, due
	}
	e.leftOut++
	return false, due
}

// over reports whether a period that ends at until is over at now, also if the clock
// was set back by a second or more; otherwise the period would last until the clock
// is there again. A goroutine that was stopped after it read the clock is not such a
// case.
func (s *sampler) over(until, now int64) bool {
	return now >= until || until-now > int64(s.Period)+int64(time.Second)
}

// keyOf calls Key. If that panics, everything has one key.
func (s *sampler) keyOf(ctx context.Context, level slog.Level, msg string) (key string) {
	defer func() {
		if recover() != nil {
			key = "!PANIC"
		}
	}()
	return s.Key(ctx, level, msg)
}

// appendValues appends the values of the attributes that tell records apart, redacted
// by rd if that is not nil.
func (s *sampler) appendValues(dst []byte, rd *encode.Redactor, groups []string, attrs []slog.Attr) []byte {
	for _, key := range s.Attrs {
		for i := len(attrs) - 1; i >= 0; i-- {
			if attrs[i].Key != key {
				continue
			}
			v := attrs[i].Value
			if rd != nil {
				v = rd.Value(groups, attrs[i])
			}
			dst = append(append(append(dst, ' '), key...), '=')
			dst = AppendJSON(dst, v)
			break
		}
	}
	return dst
}

// shown returns the text for a report.
func (s *sampler) shown(key string, groups []string, attrs []slog.Attr) string {
	if s.redact != nil {
		key = s.redact.Text(key)
	}
	return encode.Shorten(string(s.appendValues([]byte(key), s.redact, groups, attrs)), 256)
}

// leftOut returns the messages with records left out: those whose period is over at now,
// which it forgets, or all.
func (s *sampler) leftOut(now int64, all bool) (due []sampled) {
	for i := range s.shards {
		shard := &s.shards[i]
		shard.mu.Lock()
		for h, e := range shard.keys {
			over := s.over(e.until, now)
			if (over || all) && e.leftOut > 0 {
				due = append(due, *e)
				e.leftOut = 0
			}
			if over {
				delete(shard.keys, h)
			}
		}
		shard.mu.Unlock()
	}
	return due
}

// sample reports whether a record is to be written, after writing the reports that
// are due.
func (c *core) sample(ctx context.Context, level slog.Level, msg string, groups []string, attrs []slog.Attr) bool {
	ok, due := c.sampler.takes(ctx, level, msg, groups, attrs)
	c.describe(due, func(r *encode.Record, attrs []slog.Attr) {
		s := scratchPool.Get().(*scratch)
		c.emit(s, c.bare, nil, r, attrs)
		s.free()
	})
	return ok
}

// leftOutLines returns the lines that report all sampled messages so far. It takes at
// most half of the time until ctx ends, and half of Options.CloseTimeout, but at
// least lastWords.
func (c *core) leftOutLines(ctx context.Context) (lines []*encodedLine) {
	if c.sampler == nil {
		return nil
	}
	c.describe(c.sampler.leftOut(c.clock.now(), true), func(r *encode.Record, attrs []slog.Attr) {
		lines = append(lines, &encodedLine{level: r.Level, r: r, scopes: c.bare, attrs: attrs})
	})
	limit := min(untilDeadline(ctx), c.closeTimeout) / 2
	if limit < lastWords || ctx.Err() != nil {
		ctx, limit = context.WithoutCancel(ctx), lastWords
	}
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	c.encodeLines(ctx, lines...)
	return lines
}

// describe calls report with a record for each of due.
func (c *core) describe(due []sampled, report func(*encode.Record, []slog.Attr)) {
	for _, d := range due {
		if !c.admits(d.level) {
			continue
		}
		r := encode.Record{Level: d.level, Message: "rollway: " + linesOf(d.leftOut) + " left out by sampling"}
		r.SetUnix(c.clock.now())
		c.rewriteFields(&r)
		report(&r, []slog.Attr{slog.String("of", d.text), slog.Uint64("left_out", d.leftOut)})
		c.leftOut.Add(d.leftOut)
	}
}
