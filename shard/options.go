package shard

import (
	"cmp"
	"fmt"
	"math"
	"runtime"
	"time"
)

// Policy says what happens to a record when every buffer is taken.
type Policy int

const (
	// Drop refuses the record at once and counts it. It is the default.
	Drop Policy = iota
	// Block waits until the destination has taken a buffer, or for
	// Options.BlockTimeout.
	Block
)

// String returns the name of the constant.
func (p Policy) String() string {
	switch p {
	case Drop:
		return "Drop"
	case Block:
		return "Block"
	}
	return fmt.Sprintf("Policy(%d)", int(p))
}

// Options configures a Writer. The zero value is meant for production.
type Options struct {
	// BufferSize is the size in bytes of one set of buffers, one for each
	// shard: 64 KiB to 512 MiB, default 64 MiB. Memory is TermsPerShard times
	// that.
	BufferSize int
	// Shards is how many goroutine-hashed parts there are: 1 to 32, default
	// Count(25 × GOMAXPROCS) and at least 2. One shard keeps one order for all.
	Shards int
	// TermsPerShard is how many buffers there are for each shard: 2 to 16,
	// default 2. Free ones serve any shard.
	TermsPerShard int
	// FlushInterval bounds how long a record stays in a buffer that is not
	// full: 1 ms to 60 s, default 1 s.
	FlushInterval time.Duration
	// Full is what happens when no buffer is free: Drop (default) or Block.
	Full Policy
	// BlockTimeout bounds the wait of one call under Block; then the record is
	// dropped and counted. 0 (default) is no bound.
	BlockTimeout time.Duration
	// Retry is what happens when the destination fails.
	Retry Retry
	// StallAfter is how long a call of the destination may take before it is
	// reported to OnError and in Stats.Stalled: default 100 ms. A background
	// fsync of SyncInterval that takes longer holds up no write; it is reported
	// to OnError alone, and once until one is quicker again.
	StallAfter time.Duration
	// CloseTimeout bounds Close and Sync, which take no context: default 5 s.
	CloseTimeout time.Duration
	// OnError, if set, gets the destination's errors and stalls: the first of
	// an episode at once, then no more than one a second; and what Open and its
	// Writer have to say of the file. It is called from several goroutines, must
	// be quick and must not use this Writer. If it panics, the panic is dropped.
	OnError func(error)
	// NoLossNotice leaves out the line that announces dropped records in the
	// stream. Set it when the records are not JSON lines.
	NoLossNotice bool
	// Direct is short for File.Mode: Direct. It and File are for Open only.
	Direct bool
	// File says how Open writes to its file.
	File FileOptions
	// CloseDestination makes Close and Shutdown close the destination, if it is
	// an io.Closer, after the last write. A file of Open is always closed.
	CloseDestination bool
}

// Retry says how a failed write is repeated: after Min, then after twice the
// wait before, up to Max, each shortened at random by up to a half. A write
// that made progress is repeated at once.
type Retry struct {
	Min time.Duration // default 10 ms
	Max time.Duration // default 5 s, or Min if that is longer
	// GiveUp is how long one buffer is tried without progress before its
	// records are dropped: 0 (default) is for ever.
	GiveUp time.Duration
}

// Count returns how many shards the published rule gives for that many threads
// that log at the same time: threads/12.5, as the nearest power of two from 1
// to 32.
func Count(threads int) int {
	if threads <= 12 {
		return 1
	}
	return min(1<<int(math.Round(math.Log2(float64(threads)/12.5))), 32)
}

// Profile returns the published options for that many threads that log at the
// same time, for Open: 64 MiB, Count(threads) shards, 10 s, direct I/O.
func Profile(threads int) Options {
	return Options{BufferSize: 64 << 20, Shards: Count(threads), FlushInterval: 10 * time.Second, Direct: true}
}

// SmallProfile is the publication's for 50 threads: Profile with 4 shards.
func SmallProfile() Options { return Profile(50) }

// MediumProfile is the publication's for 100 threads: Profile with 8 shards.
func MediumProfile() Options { return Profile(100) }

// LargeProfile is the publication's for 200 threads: Profile with 16 shards.
func LargeProfile() Options { return Profile(200) }

// minTerm is the least size of one buffer in bytes.
const minTerm = 4096

func (o Options) withDefaults() (Options, error) {
	o.BufferSize = cmp.Or(o.BufferSize, 64<<20)
	o.Shards = cmp.Or(o.Shards, max(2, Count(25*runtime.GOMAXPROCS(0))))
	o.TermsPerShard = cmp.Or(o.TermsPerShard, 2)
	o.FlushInterval = cmp.Or(o.FlushInterval, time.Second)
	o.Retry.Min = cmp.Or(o.Retry.Min, 10*time.Millisecond)
	o.Retry.Max = cmp.Or(o.Retry.Max, max(5*time.Second, o.Retry.Min))
	o.StallAfter = cmp.Or(o.StallAfter, 100*time.Millisecond)
	o.CloseTimeout = cmp.Or(o.CloseTimeout, 5*time.Second)

	bad := func(name string, value any, allowed string) (Options, error) {
		return Options{}, fmt.Errorf("shard: option %s is %v, allowed is %s", name, value, allowed)
	}
	switch {
	case o.BufferSize < 64<<10 || o.BufferSize > 512<<20:
		return bad("BufferSize", o.BufferSize, "65536 to 536870912 bytes")
	case o.Shards < 1 || o.Shards > 32:
		return bad("Shards", o.Shards, "1 to 32")
	case o.BufferSize/o.Shards < minTerm:
		return bad("BufferSize ÷ Shards", o.BufferSize/o.Shards, fmt.Sprintf("%d bytes or more", minTerm))
	case o.TermsPerShard < 2 || o.TermsPerShard > 16:
		return bad("TermsPerShard", o.TermsPerShard, "2 to 16")
	case o.FlushInterval < time.Millisecond || o.FlushInterval > time.Minute:
		return bad("FlushInterval", o.FlushInterval, "1ms to 1m")
	case o.Full != Drop && o.Full != Block:
		return bad("Full", o.Full, "Drop or Block")
	case o.BlockTimeout < 0:
		return bad("BlockTimeout", o.BlockTimeout, "0 (no bound) or more")
	case o.BlockTimeout > 0 && o.Full != Block:
		return bad("BlockTimeout", o.BlockTimeout, "for Full: Block only")
	case o.Retry.Min < 0:
		return bad("Retry.Min", o.Retry.Min, "more than 0")
	case o.Retry.Max < o.Retry.Min:
		return bad("Retry.Max", o.Retry.Max, fmt.Sprintf("%v (Retry.Min) or more", o.Retry.Min))
	case o.Retry.GiveUp < 0:
		return bad("Retry.GiveUp", o.Retry.GiveUp, "0 (never) or more")
	case o.StallAfter < 0:
		return bad("StallAfter", o.StallAfter, "more than 0")
	case o.CloseTimeout < 0:
		return bad("CloseTimeout", o.CloseTimeout, "more than 0")
	}
	return o, nil
}
