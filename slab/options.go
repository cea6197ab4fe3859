package slab

import (
	"fmt"
	"time"
)

// Policy says what Write does when every slab is taken.
type Policy int

const (
	// Block makes Write wait, first come first served, until the destination
	// has taken a slab. It is the default.
	Block Policy = iota
	// Drop makes Write return at once. The new lines are counted as dropped;
	// what is already in a slab is never thrown away.
	Drop
)

// String returns the name of the constant.
func (p Policy) String() string {
	switch p {
	case Block:
		return "Block"
	case Drop:
		return "Drop"
	}
	return fmt.Sprintf("Policy(%d)", int(p))
}

// Options configures a Writer. The zero value is meant for production.
type Options struct {
	// SlabSize is the size of one slab in bytes and the most that one Write of
	// the destination gets, oversized lines aside: 64 to 1<<30, default 64 KiB.
	SlabSize int
	// SlabCount is how many slabs are allocated: 2 to 65536, default 8. One is
	// with the destination and one is being filled, so a stall is sure to find
	// room for SlabCount-2 slabs.
	//
	// Under Drop one slab in eight, and at least one when there are four or
	// more, is kept for lines at slog.LevelWarn and above from the first
	// WriteLevel that needs a new slab. With fewer than four nothing is kept.
	SlabCount int
	// FlushInterval bounds how long a line stays in a slab that is not full
	// before the slab is queued for the destination: 1 ms to 1 h, default
	// 100 ms.
	FlushInterval time.Duration
	// Full is what happens when no slab is free: Block (default) or Drop.
	Full Policy
	// OversizeLimit is the longest line in bytes, its newline included, that is
	// taken: SlabSize to 1<<30, default 1 MiB or SlabSize if that is larger. A
	// line longer than a slab gets memory of its own for as long as it is
	// queued, and uses up one slab's place.
	OversizeLimit int
	// Retry is what happens when the destination fails.
	Retry Retry
	// CloseTimeout bounds Close and Sync, which take no context: more than 0,
	// default 5 s.
	CloseTimeout time.Duration
	// OnError, if set, gets the destination's errors: the first of an episode
	// at once, then no more than one a second until a write succeeds, and the
	// first loss of an episode. The end of an episode is not reported; see
	// Stats.LastError. It is called by the goroutine that writes, which waits
	// for it, so it must be quick and must not use this Writer. If it panics,
	// the panic is dropped.
	OnError func(error)
	// NoLossNotice leaves out the line that announces dropped lines in the
	// stream. Set it when the lines are not text or not JSON.
	NoLossNotice bool
	// CloseDestination makes Close and Shutdown close the destination, if it is
	// an io.Closer, after the last write.
	CloseDestination bool
}

// Retry says how a failed write is repeated: after Min, then after twice the
// wait before, up to Max, each shortened at random by up to a half. A write
// that made progress is repeated at once and starts the waits anew. An error
// that implements RetryAfter() time.Duration is waited for at least that long.
type Retry struct {
	Min time.Duration // more than 0, default 10 ms
	Max time.Duration // Min or more, default 5 s or Min if that is longer
	// GiveUp is how long one slab is tried without progress before its lines
	// are dropped and the next slab has its turn: 0 (default) is for ever. A
	// line of which the destination has taken a part is never dropped: its rest
	// is kept and goes first.
	GiveUp time.Duration
}

// withDefaults returns o with its zero fields set, or an error that names the
// first field out of range.
func (o Options) withDefaults() (Options, error) {
	o.SlabSize = orDefault(o.SlabSize, 64<<10)
	o.SlabCount = orDefault(o.SlabCount, 8)
	o.OversizeLimit = orDefault(o.OversizeLimit, max(1<<20, o.SlabSize))
	o.FlushInterval = orDefault(o.FlushInterval, 100*time.Millisecond)
	o.CloseTimeout = orDefault(o.CloseTimeout, 5*time.Second)
	o.Retry.Min = orDefault(o.Retry.Min, 10*time.Millisecond)
	o.Retry.Max = orDefault(o.Retry.Max, max(5*time.Second, o.Retry.Min))

	const maxBytes = 1 << 30
	bad := func(name string, value any, allowed string) (Options, error) {
		return Options{}, fmt.Errorf("slab: option %s is %v, allowed is %s", name, value, allowed)
	}
	switch {
	case o.SlabSize < 64 || o.SlabSize > maxBytes:
		return bad("SlabSize", o.SlabSize, "64 to 1073741824 bytes")
	case o.SlabCount < 2 || o.SlabCount > 1<<16:
		return bad("SlabCount", o.SlabCount, "2 to 65536")
	case int64(o.SlabSize)*int64(o.SlabCount) > maxTotal:
		return bad("SlabSize × SlabCount", int64(o.SlabSize)*int64(o.SlabCount), fmt.Sprintf("up to %d bytes", int64(maxTotal)))
	case o.FlushInterval < time.Millisecond || o.FlushInterval > time.Hour:
		return bad("FlushInterval", o.FlushInterval, "1ms to 1h")
	case o.Full != Block && o.Full != Drop:
		return bad("Full", o.Full, "Block or Drop")
	case o.OversizeLimit < o.SlabSize || o.OversizeLimit > maxBytes:
		return bad("OversizeLimit", o.OversizeLimit, fmt.Sprintf("%d (SlabSize) to 1073741824 bytes", o.SlabSize))
	case o.CloseTimeout < 0:
		return bad("CloseTimeout", o.CloseTimeout, "more than 0")
	case o.Retry.Min < 0:
		return bad("Retry.Min", o.Retry.Min, "more than 0")
	case o.Retry.Max < o.Retry.Min:
		return bad("Retry.Max", o.Retry.Max, fmt.Sprintf("%v (Retry.Min) or more", o.Retry.Min))
	case o.Retry.GiveUp < 0:
		return bad("Retry.GiveUp", o.Retry.GiveUp, "0 (never) or more")
	}
	return o, nil
}

// maxTotal is the most memory that slabs may take together: 16 GiB, or 1 GiB
// where an int has 32 bits.
const maxTotal = 1 << (30 + 4*(^uint(0)>>63))

func orDefault[T int | time.Duration](v, def T) T {
	if v == 0 {
		return def
	}
	return v
}

// reserved is how many slabs are kept for important lines under Drop.
func (o *Options) reserved() int {
	if o.Full != Drop || o.SlabCount < 4 {
		return 0
	}
	return max(1, o.SlabCount/8)
}
