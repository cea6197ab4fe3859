package slab

import (
	"cmp"
	"fmt"
	"io"
	"log/slog"
	"time"
)

// Policy says what Write does when no slab is free. Lines that are already in a
// slab are never thrown away for new ones.
type Policy int

const (
	// Bounded makes a call wait for at most Options.MaxWait and then drops its
	// lines. After one wait without success no call waits until the destination, or the
	// failover, has taken something. It is the default.
	Bounded Policy = iota
	// Block makes a call wait, first come first served, until there is room.
	Block
	// Drop makes a call drop its lines at once.
	Drop
)

// String returns the name of the constant.
func (p Policy) String() string {
	if p < Bounded || p > Drop {
		return fmt.Sprintf("Policy(%d)", int(p))
	}
	return [...]string{"Bounded", "Block", "Drop"}[p]
}

// Options configures a Writer. The zero value is meant for production.
type Options struct {
	// Shards is the number of shards. Each goroutine belongs to one of them, and each
	// shard fills a slab of its own: 0 or 1 (default) keeps one order for all lines; 2
	// to 64 keep one order for the lines of each goroutine. With several, lines are
	// copied outside any lock: for many goroutines on many processors, or for large
	// lines. All shards share the SlabCount slabs.
	Shards int
	// Full is what happens when no slab is free: Bounded (default), Block or
	// Drop. Except under Block, some slabs are reserved for important lines, as
	// soon as a line comes with its level: of four slabs or more, one in eight,
	// at least one and of eight slabs at least two, is for slog.LevelWarn and
	// above. Of two or more reserved slabs half are for slog.LevelError and above.
	Full Policy
	// MaxWait is the longest wait of one call under Bounded. Under every policy it is
	// also the time within which the failover replaces a destination that hangs or
	// fails. 1 ms to 1 h, default 100 ms.
	MaxWait time.Duration
	// SlabSize is the size of one slab in bytes and the largest batch of lines
	// that one Write of the destination gets, longer lines aside: 64 to 1<<30,
	// default 64 KiB. A file.File gets several slabs in one call. For a file.File
	// with Mode Direct choose 1 MiB or more: such slabs are outside the heap, and
	// are written to the disk without another copy.
	SlabSize int
	// SlabCount is how many slabs are allocated: 2 to 65536, default 8, and at
	// least two for each of several shards. One is with the destination and one,
	// or one in each shard, is being filled: the others are sure to be free when
	// the destination stalls.
	SlabCount int
	// FlushInterval is the longest time that a line stays in a slab that is not full
	// before the slab is queued: 1 ms to 1 h, default 100 ms.
	FlushInterval time.Duration
	// MaxLine is the longest line in bytes, its newline included, that is taken:
	// SlabSize to 1<<30, default 1 MiB or SlabSize if that is larger; with several
	// shards it is SlabSize. A line longer than a slab gets memory of its own while
	// it is queued, and one slab stays unused meanwhile.
	MaxLine int
	// WriteThrough is the lowest level whose lines are written through: WriteLevel
	// returns when the destination has taken them and everything before them, or
	// after MaxWait, which under Bounded includes the wait for room. The lines
	// then stay queued, with no error. After one such wait without success no call waits
	// until the destination has taken something. Default nil: no level. New asks
	// for the level once.
	WriteThrough slog.Leveler
	// GiveUp is how long one slab is tried without progress before its lines are
	// dropped: 0 (default) is for ever, and with a failover it is more than
	// MaxWait. A line that a destination has taken in part is not dropped; its rest is
	// written first. With a failover both must have failed, and no call that has not
	// returned may be writing the slab.
	GiveUp time.Duration
	// Failover, if set, is where the lines go while the destination hangs or
	// fails, or, under Bounded, is so slow that a call has waited for room for
	// half of MaxWait. Within MaxWait the failover is in use, so if it works no
	// line is dropped and no call waits longer than MaxWait. A destination that
	// failed is tried again every 10 s, one that hung when its call returns. Once
	// Close or Shutdown was called it is left at the first failure.
	//
	// Both may get some lines: those of the call that did not return, and one that was
	// torn. Each gets whole lines in order; one that has a part of a line gets the rest
	// first when it is used again. The two must not write to the same file.
	Failover io.Writer
	// Persist is the path of a file in which the slabs are kept, "" (default) for
	// none. Lines that were accepted and not written yet when the process ends,
	// by SIGKILL, by the OOM killer, by a panic or by os.Exit, are in it; the
	// next New with the same Persist writes them before all others, and so does
	// `rollway recover`. They do not outlive the machine. The file is locked:
	// one Writer at a time.
	//
	// A destination that has the methods Prepare and Holds, as file.File, gets
	// each line once. Any other may get those twice that were inside a Write
	// when the process ended, and with Failover so may both. A line that it
	// had taken in part is written whole. Not kept are oversized lines that the
	// file has no room for (see Stats.Unkept).
	//
	// Put it on a tmpfs such as /dev/shm: on a disk a Write may wait for the kernel
	// some milliseconds; OnError says so. The slabs exist twice, on the heap and in
	// the file: SlabSize × SlabCount each, and on a tmpfs both count as memory. Where
	// lines of an earlier process are in slabs of another size, that size stays in
	// use until the next start. Linux and darwin.
	//
	// When something else cuts, deletes or replaces the file, the Writer goes on
	// without it, says so to OnError and in Stats.PersistError, and makes a new
	// one within seconds. No line is lost by that unless the process is killed
	// before. A file that New finds damaged, as a power cut may leave it on a disk,
	// is kept as Persist.bad (Stats.SetAside); what is sound in it is delivered,
	// and the rest counted as Drops.Damaged. Among the rest are lines with zero
	// bytes in the slab that was being filled: a lost page reads as zeros.
	Persist string
	// CloseTimeout bounds Close and Sync, which take no context: more than 0,
	// default 5 s.
	CloseTimeout time.Duration
	// KeepOpen leaves the destination and the failover open. Otherwise Close and
	// Shutdown close those that are an io.Closer, after the last write. The
	// standard streams, os.Stdin, os.Stdout and os.Stderr, are never closed.
	KeepOpen bool
	// NoNotice leaves out the line that announces dropped lines in the stream.
	// Set it when the lines are not text or not JSON.
	NoNotice bool
	// OnError gets losses, errors of each destination, and calls that hang: those
	// that have lasted for MaxWait and for four times the mean. Each of these is
	// told at once and then at most once a minute, and so is a takeover by the
	// failover. Close tells the losses that are left. One goroutine calls it; only
	// Close and Shutdown wait for it, 20 ms at most. If it is nil a line is written to
	// os.Stderr, unless that is a destination. Stats.Failing tells when it is over.
	OnError func(error)
}

// withDefaults returns o with its zero fields set, or an error that names the
// first field out of range.
func (o Options) withDefaults() (Options, error) {
	o.MaxWait = cmp.Or(o.MaxWait, 100*time.Millisecond)
	o.SlabSize = cmp.Or(o.SlabSize, 64<<10)
	o.SlabCount = cmp.Or(o.SlabCount, max(8, 2*o.Shards))
	if o.Shards > 1 {
		o.MaxLine = cmp.Or(o.MaxLine, o.SlabSize)
	}
	o.FlushInterval = cmp.Or(o.FlushInterval, 100*time.Millisecond)
	o.MaxLine = cmp.Or(o.MaxLine, max(1<<20, o.SlabSize))
	o.CloseTimeout = cmp.Or(o.CloseTimeout, 5*time.Second)

	const maxBytes = 1 << 30
	total := int64(o.SlabSize) * int64(o.SlabCount)
	for _, field := range []struct {
		bad     bool
		name    string
		value   any
		allowed string
	}{
		{o.Shards < 0 || o.Shards > 64, "Shards", o.Shards, "0 to 64"},
		{o.Shards > 1 && o.SlabCount < 2*o.Shards, "SlabCount", o.SlabCount, fmt.Sprintf("%d (two for each shard) or more", 2*o.Shards)},
		{o.Shards > 1 && o.Persist != "", "Persist", o.Persist, `"" with several shards`},
		{o.Shards > 1 && o.MaxLine != o.SlabSize, "MaxLine", o.MaxLine, fmt.Sprintf("%d (SlabSize) with several shards", o.SlabSize)},
		{o.Full < Bounded || o.Full > Drop, "Full", o.Full, "Bounded, Block or Drop"},
		{o.MaxWait < time.Millisecond || o.MaxWait > time.Hour, "MaxWait", o.MaxWait, "1ms to 1h"},
		{o.SlabSize < 64 || o.SlabSize > maxBytes, "SlabSize", o.SlabSize, "64 to 1073741824 bytes"},
		{o.SlabCount < 2 || o.SlabCount > 1<<16, "SlabCount", o.SlabCount, "2 to 65536"},
		{total > maxTotal, "SlabSize × SlabCount", total, fmt.Sprintf("up to %d bytes", int64(maxTotal))},
		{o.FlushInterval < time.Millisecond || o.FlushInterval > time.Hour, "FlushInterval", o.FlushInterval, "1ms to 1h"},
		{o.MaxLine < o.SlabSize || o.MaxLine > maxBytes, "MaxLine", o.MaxLine, fmt.Sprintf("%d (SlabSize) to 1073741824 bytes", o.SlabSize)},
		{o.GiveUp < 0 || o.Failover != nil && o.GiveUp > 0 && o.GiveUp <= o.MaxWait, "GiveUp", o.GiveUp, "0 (never) or more, and with a failover more than MaxWait"},
		{o.CloseTimeout < 0, "CloseTimeout", o.CloseTimeout, "more than 0"},
	} {
		if field.bad {
			return Options{}, fmt.Errorf("slab: option %s is %v, allowed is %s", field.name, field.value, field.allowed)
		}
	}
	return o, nil
}

// maxTotal is the most memory that slabs may take together: 16 GiB, or 1 GiB
// where an int has 32 bits.
const maxTotal = 1 << (30 + 4*(^uint(0)>>63))

// reserve returns how many slabs a line of each rank leaves free.
func (o *Options) reserve() (keep [ranks]int) {
	n := o.SlabCount / 8
	switch {
	case o.Full == Block || o.SlabCount < 4:
		n = 0
	case o.SlabCount < 8:
		n = 1
	default:
		n = max(n, 2)
	}
	return [ranks]int{ordinary: n, urgent: n / 2}
}

// forever is the timeout of a wait without bound.
const forever time.Duration = -1
