package slab

import (
	"cmp"
	"fmt"
	"io"
	"log/slog"
	"time"
)

// Policy says what Write does when every slab is taken.
type Policy int

const (
	// Block makes Write wait, first come first served, until the destination
	// has taken a slab, or until Options.BlockTimeout. It is the default.
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
	SlabCount int
	// FlushInterval bounds how long a line stays in a slab that is not full
	// before the slab is queued for the destination: 1 ms to 1 h, default
	// 100 ms.
	FlushInterval time.Duration
	// Full is what happens when no slab is free: Block (default) or Drop.
	Full Policy
	// BlockTimeout is how long one call waits under Block before the lines that
	// have no place are dropped and counted as Drops.Timeout: 0 (default) is for
	// ever. It cannot be set with Drop.
	BlockTimeout time.Duration
	// Levels are the rules for lines that come with their level, through
	// WriteLevel. They decide who loses when lines are dropped, so all but
	// WriteThrough have no effect under Block without a BlockTimeout.
	Levels Levels
	// OversizeLimit is the longest line in bytes, its newline included, that is
	// taken: SlabSize to 1<<30, default 1 MiB or SlabSize if that is larger. A
	// line longer than a slab gets memory of its own for as long as it is
	// queued, and uses up one slab's place.
	OversizeLimit int
	// Retry is what happens when the destination fails.
	Retry Retry
	// Failover, if set, is where the lines go while the destination fails. The
	// two may hold some lines twice: those that the destination was inside of,
	// or in the middle of, when it was left. Each gets whole lines in order;
	// one that was left in the middle of a line gets the rest of it first when
	// it is used again. The two must not share what they write to.
	Failover io.Writer
	// FailoverAfter is how long the destination, or a call of it, may fail or
	// stall before it is left: more than 0 and less than Retry.GiveUp if that is
	// set, default 10 s or half of Retry.GiveUp if that is shorter. Once Close or
	// Shutdown was called it is left at the first failure, or when a call takes
	// longer than a fifth of CloseTimeout.
	FailoverAfter time.Duration
	// FailoverProbe is how long a destination that was left is spared before it
	// gets the next slab as a trial, for which it has a tenth of FailoverAfter:
	// more than 0, default 10 s. When it takes any of it, it is in use again.
	FailoverProbe time.Duration
	// Persist is the path of a file in which the slabs are kept, "" (default) for
	// none. Lines that were accepted and not written yet when the process ends,
	// by SIGKILL, by the OOM killer, by a panic or by os.Exit, are in it; the
	// next New with the same Persist writes them before all others, and so does
	// `rollway recover`. They do not outlive the machine. The file is locked:
	// one Writer at a time.
	//
	// A destination that has the methods Prepare and Holds, as file.File, gets
	// each line once. Any other may get those twice that were inside a Write
	// when the process ended, and with Failover so may both. A line of which it
	// had taken a part is written whole. Not kept are oversized lines that the
	// file has no room for (see Stats.Unkept).
	//
	// Put it on a tmpfs such as /dev/shm, of which it takes SlabSize × SlabCount:
	// on a disk a Write may wait for the kernel some milliseconds; OnError says
	// so. Where lines of an earlier process are in slabs of another size, that
	// size stays in use until the next start. A damaged file, as a power cut may
	// leave it on a disk, is kept as Persist.bad, with what is sound in it
	// delivered: see Stats.SetAside. Linux and darwin.
	Persist string
	// CloseTimeout bounds Close and Sync, which take no context: more than 0,
	// default 5 s.
	CloseTimeout time.Duration
	// OnError, if set, gets the errors of the destination and of the failover:
	// the first of an episode at once, then no more than one a second until a
	// write succeeds, the first loss of an episode, and when the failover takes
	// over. The end of an episode is not reported; see Stats.LastError. Writing
	// waits for it, so it must be quick and must not use this Writer. If it
	// panics, the panic is dropped.
	OnError func(error)
	// NoLossNotice leaves out the line that announces dropped lines in the
	// stream. Set it when the lines are not text or not JSON.
	NoLossNotice bool
	// CloseDestination makes Close and Shutdown close the destination and the
	// failover, those that are an io.Closer, after the last write.
	CloseDestination bool
}

// Levels says which lines matter more than others. Each level is asked for once,
// by New.
type Levels struct {
	// Keep is the lowest level whose lines may use the last slabs, which lower
	// levels and Write leave alone: default slog.LevelWarn.
	Keep slog.Leveler
	// Reserve is how many slabs these are: default one in eight, at least one,
	// of four slabs or more, and none of fewer; negative is none; up to
	// SlabCount-2. They are kept from the first WriteLevel that needs a new
	// slab: where nobody tells levels all slabs are for all.
	Reserve int
	// ErrorWait is how long a call with lines at slog.LevelError and above waits
	// for room, under Drop or if it is longer than BlockTimeout: default 0. Then
	// they are dropped and counted as Drops.Timeout.
	ErrorWait time.Duration
	// WriteThrough is the lowest level whose lines are written through at once:
	// WriteLevel returns when the destination has taken them and everything
	// before them. Default nil: no level.
	WriteThrough slog.Leveler
	// WriteThroughTimeout bounds that wait: more than 0, default 1 s. The lines
	// then stay queued, with no error. Until the destination takes something
	// again, further calls do not wait.
	WriteThroughTimeout time.Duration
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
	// is kept and goes first. With a failover both must have failed, and no call
	// that has not returned may be inside of the slab.
	GiveUp time.Duration
}

// withDefaults returns o with its zero fields set, or an error that names the
// first field out of range.
func (o Options) withDefaults() (Options, error) {
	o.SlabSize = cmp.Or(o.SlabSize, 64<<10)
	o.SlabCount = cmp.Or(o.SlabCount, 8)
	o.OversizeLimit = cmp.Or(o.OversizeLimit, max(1<<20, o.SlabSize))
	o.FlushInterval = cmp.Or(o.FlushInterval, 100*time.Millisecond)
	o.CloseTimeout = cmp.Or(o.CloseTimeout, 5*time.Second)
	o.FailoverAfter = cmp.Or(o.FailoverAfter, failoverAfter(o.Retry.GiveUp))
	o.FailoverProbe = cmp.Or(o.FailoverProbe, 10*time.Second)
	o.Levels.WriteThroughTimeout = cmp.Or(o.Levels.WriteThroughTimeout, time.Second)
	o.Retry.Min = cmp.Or(o.Retry.Min, 10*time.Millisecond)
	o.Retry.Max = cmp.Or(o.Retry.Max, max(5*time.Second, o.Retry.Min))

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
	case o.BlockTimeout < 0 || o.BlockTimeout > 0 && o.Full == Drop:
		return bad("BlockTimeout", o.BlockTimeout, "0 (for ever) or more, and 0 with Drop")
	case o.Levels.Reserve > o.SlabCount-2:
		return bad("Levels.Reserve", o.Levels.Reserve, fmt.Sprintf("up to %d (SlabCount-2)", o.SlabCount-2))
	case o.Levels.ErrorWait < 0:
		return bad("Levels.ErrorWait", o.Levels.ErrorWait, "0 (not at all) or more")
	case o.Levels.WriteThroughTimeout < 0:
		return bad("Levels.WriteThroughTimeout", o.Levels.WriteThroughTimeout, "more than 0")
	case o.OversizeLimit < o.SlabSize || o.OversizeLimit > maxBytes:
		return bad("OversizeLimit", o.OversizeLimit, fmt.Sprintf("%d (SlabSize) to 1073741824 bytes", o.SlabSize))
	case o.CloseTimeout < 0:
		return bad("CloseTimeout", o.CloseTimeout, "more than 0")
	case o.FailoverAfter < 0 || o.Failover != nil && o.Retry.GiveUp > 0 && o.FailoverAfter >= o.Retry.GiveUp:
		return bad("FailoverAfter", o.FailoverAfter, "more than 0, and less than Retry.GiveUp if that is set")
	case o.FailoverProbe < 0:
		return bad("FailoverProbe", o.FailoverProbe, "more than 0")
	case o.Retry.Min < 0:
		return bad("Retry.Min", o.Retry.Min, "more than 0")
	case o.Retry.Max < o.Retry.Min:
		return bad("Retry.Max", o.Retry.Max, fmt.Sprintf("%v (Retry.Min) or more", o.Retry.Min))
	case o.Retry.GiveUp < 0:
		return bad("Retry.GiveUp", o.Retry.GiveUp, "0 (never) or more")
	}
	return o, nil
}

// failoverAfter is the default of Options.FailoverAfter.
func failoverAfter(giveUp time.Duration) time.Duration {
	const def = 10 * time.Second
	if giveUp > 0 {
		return min(def, max(giveUp/2, 1))
	}
	return def
}

// maxTotal is the most memory that slabs may take together: 16 GiB, or 1 GiB
// where an int has 32 bits.
const maxTotal = 1 << (30 + 4*(^uint(0)>>63))

// reserved is how many slabs are kept for important lines.
func (o *Options) reserved() int {
	switch {
	case o.Full == Block && o.BlockTimeout == 0 || o.Levels.Reserve < 0:
		return 0
	case o.Levels.Reserve > 0:
		return o.Levels.Reserve
	case o.SlabCount < 4:
		return 0
	}
	return max(1, o.SlabCount/8)
}

// forever as a patience is without bound.
const forever time.Duration = -1

// patience is how long lines of class c wait for room.
func (o *Options) patience(c class) time.Duration {
	d := o.BlockTimeout
	if o.Full == Block && d == 0 {
		return forever
	}
	if c == failure {
		d = max(d, o.Levels.ErrorWait)
	}
	return d
}
