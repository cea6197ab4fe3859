package shard

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"time"

	"github.com/rollway/rollway/internal/direct"
	"github.com/rollway/rollway/internal/framed"
	"github.com/rollway/rollway/internal/segment"
)

// Mode is how bytes get to the disk. In any mode, where the disk has run full
// within a record, its beginning is cut off again; who reads just then can see
// bytes 0 in its place, until it reads again.
type Mode int

const (
	// Buffered leaves it to the system. It is the default.
	Buffered Mode = iota
	// Direct bypasses the page cache: O_DIRECT on Linux, where the last block
	// goes through it as long as it is not full, and a reader beside the Writer
	// can see bytes 0 behind what was the end of the file, for a moment, until
	// it reads again. On darwin it is F_NOCACHE, which compiles and was never
	// run.
	Direct
	// Uncached goes through the page cache and leaves nothing there:
	// RWF_DONTCACHE of Linux 6.14.
	Uncached
)

// String returns the name of the constant.
func (m Mode) String() string {
	switch m {
	case Buffered:
		return "Buffered"
	case Direct:
		return "Direct"
	case Uncached:
		return "Uncached"
	}
	return fmt.Sprintf("Mode(%d)", int(m))
}

var modes = map[Mode]direct.Mode{Buffered: direct.Buffered, Direct: direct.Direct, Uncached: direct.Uncached}

// SyncPolicy says when a Writer that Open gave calls fsync by itself.
type SyncPolicy int

const (
	// SyncNever leaves it to the system: what was written survives the process,
	// and a crash of the machine may take the last half minute. A file that is
	// done is forced out in the background. Writer.Sync still does it at once.
	SyncNever SyncPolicy = iota
	// SyncInterval calls it in the background every Options.SyncEvery. Writes do
	// not wait for it.
	SyncInterval
	// SyncEach calls it after each write to the file.
	SyncEach
)

// String returns the name of the constant.
func (p SyncPolicy) String() string {
	switch p {
	case SyncNever:
		return "SyncNever"
	case SyncInterval:
		return "SyncInterval"
	case SyncEach:
		return "SyncEach"
	}
	return fmt.Sprintf("SyncPolicy(%d)", int(p))
}

// FileOptions configures what Open writes to. The zero value is one file without
// bound, written Buffered.
type FileOptions struct {
	// Framed makes each record a unit with its length and a checksum of its own,
	// of any bytes, in files that "rollway verify" checks and "rollway cat"
	// prints: what a crash has torn is recognised. LogBytes takes one record; of
	// Write, each line is one, without its end. A file that holds something
	// already is renamed by Open. Default: lines.
	Framed bool
	// Mode is how bytes get to the disk. Where the file system refuses one, it
	// is Buffered, which OnError is told; where no file of the system can be
	// written that way, Open fails.
	Mode Mode
	// Perm is what a new file gets, before the umask. Default 0o640.
	Perm fs.FileMode
	// MaxSize is the size in bytes at which the file is renamed to
	// NAME-MOMENT-INODE.EXT and a new one begun: 0 (default) is never, else as
	// much as one buffer (BufferSize ÷ Shards) and 8 KiB, or more.
	MaxSize int64
	// Keep is how many files stay that are done; older ones are removed, or with
	// Framed written over, which is faster than a new one. 0 (default) is all.
	Keep int
	// Chunk is the most bytes of one system call, and of one write that
	// Stats.FlushMax and StallAfter look at unless one buffer is larger: 4 KiB
	// to 1 GiB, a multiple of 4 KiB, default 8 MiB.
	Chunk int
	// Sync is when fsync is called: SyncNever (default), SyncInterval or
	// SyncEach.
	Sync SyncPolicy
	// SyncEvery is the time between two calls under SyncInterval: default 1 s.
	SyncEvery time.Duration
	// CheckEvery is how often a write looks whether the path still names the
	// file, which it follows if that was moved or removed: default 1 s, a
	// negative value is never.
	CheckEvery time.Duration
	// Failover is a folder on another disk, to which the lines go while the
	// first one fails, from Open on: default "", none. It is tried again every
	// minute, and by Reopen.
	Failover string
}

// failoverRetry is how long the lines go to the failover before the first
// folder is tried again.
const failoverRetry = time.Minute

// slack is what a buffer may take in a file beyond its length, in bytes.
const slack = 2 * direct.Align

func (o Options) withFileDefaults() (Options, error) {
	bad := func(name string, value any, allowed string) (Options, error) {
		return Options{}, fmt.Errorf("shard: option %s is %v, allowed is %s", name, value, allowed)
	}
	f := &o.File
	if o.Direct {
		if f.Mode != Buffered && f.Mode != Direct {
			return bad("Direct", true, "with File.Mode Direct only")
		}
		f.Mode = Direct
	}
	f.Perm = cmp.Or(f.Perm, 0o640)
	f.Chunk = cmp.Or(f.Chunk, 8<<20)
	f.SyncEvery = cmp.Or(f.SyncEvery, time.Second)
	f.CheckEvery = cmp.Or(f.CheckEvery, time.Second)
	_, mode := modes[f.Mode]
	least := int64(o.BufferSize/o.Shards + slack)
	if f.Framed {
		least = max(least, 64<<10+slack) + framed.SegmentHeaderSize
	}
	switch {
	case !mode:
		return bad("File.Mode", f.Mode, "Buffered, Direct or Uncached")
	case f.Perm&^fs.ModePerm != 0:
		return bad("File.Perm", f.Perm, "permission bits only")
	case f.MaxSize != 0 && f.MaxSize < least:
		return bad("File.MaxSize", f.MaxSize, fmt.Sprintf("0 (no bound) or %d bytes (BufferSize ÷ Shards and a little) or more", least))
	case f.Keep < 0:
		return bad("File.Keep", f.Keep, "0 (all) or more")
	case f.Keep > 0 && f.MaxSize == 0:
		return bad("File.Keep", f.Keep, "0 without File.MaxSize")
	case f.Chunk < direct.Align || f.Chunk > 1<<30 || f.Chunk%direct.Align != 0:
		return bad("File.Chunk", f.Chunk, fmt.Sprintf("a multiple of %d up to %d", direct.Align, 1<<30))
	case f.Sync < SyncNever || f.Sync > SyncEach:
		return bad("File.Sync", f.Sync, "SyncNever, SyncInterval or SyncEach")
	case f.SyncEvery < 0:
		return bad("File.SyncEvery", f.SyncEvery, "more than 0")
	}
	return o, nil
}

// Open starts a Writer that appends to the file at path by itself, and creates
// it if need be, but not its folder. A torn last line, as a crash leaves it, is
// cut, which OnError is told. Close closes the file. The error names the option
// that is out of range, or says why path cannot be written: another Writer has
// it open, it is no regular file.
//
// The file holds the records and nothing else at all times, but for white space:
// with Direct large buffers are filled up to whole blocks by spaces before a
// line end or by a blank line, less than a thousandth of the file and never its end.
//
//   - A disk that is full keeps the buffers; they are written when there is room.
//   - A file whose write or fsync fails for good is left for a new one, in
//     the failover folder where the first one gives nothing but errors.
//   - A record of which only a part could be written is taken back and written
//     whole.
//   - A file that was moved is left for a new one at the path; one that was cut,
//     as logrotate's copytruncate does it, is written on from its new end, and
//     OnError is told: what was written between copy and cut is lost by then.
func Open(path string, o Options) (*Writer, error) {
	o, err := o.withDefaults()
	if err == nil {
		o, err = o.withFileDefaults()
	}
	if err != nil {
		return nil, err
	}
	o.CloseDestination = true
	w := build(nil, o)
	if o.File.Framed {
		w.framed, w.base = true, framed.BatchHeaderSize
	}
	w.chunk = o.File.Chunk
	if err := w.mapTerms(); err != nil {
		return nil, fmt.Errorf("shard: open %s: %w", path, errors.Join(err, w.unmapTerms()))
	}
	f := o.File
	log, err := segment.Open(path, segment.Options{
		Framed:     f.Framed,
		Mode:       modes[f.Mode],
		Chunk:      f.Chunk,
		Perm:       f.Perm,
		Longest:    int64(w.termSize),
		MaxSize:    f.MaxSize,
		Keep:       f.Keep,
		Sync:       segment.SyncPolicy(f.Sync),
		SyncEvery:  f.SyncEvery,
		StallAfter: o.StallAfter,
		CheckEvery: f.CheckEvery,
		Failover:   f.Failover,
		HomeAfter:  failoverRetry,
		Notice:     func(err error) { w.onError(fmt.Errorf("shard: %w", err)) },
	})
	if err != nil {
		return nil, fmt.Errorf("shard: open: %w", errors.Join(err, w.unmapTerms()))
	}
	w.dst, w.file = log, log
	w.memorySize += log.Memory()
	w.start()
	return w, nil
}

// mapTerms makes the terms, in memory for direct I/O.
func (w *Writer) mapTerms() error {
	n := w.opts.Shards * w.opts.TermsPerShard
	m, err := direct.NewMemorySet(n, w.termSize)
	if err != nil {
		return err
	}
	w.memory, w.memorySize = m, m.Footprint()
	for i := range n {
		w.terms = append(w.terms, sealedTerm(m.Bytes(i)))
	}
	return nil
}

// unmapTerms gives the memory of the terms back. Nobody writes to one any more.
func (w *Writer) unmapTerms() error {
	m := w.memory
	if m == nil {
		return nil
	}
	w.memory = nil
	return m.Free()
}

// FileStats is what a Writer that Open gave knows of its file. Files are counted
// from Open on.
type FileStats struct {
	Path        string // of the file in use
	Mode        Mode   // how bytes get to the disk
	Padded      int64  // bytes of white space in files that are done, to fill blocks
	Rotations   uint64 // files that were full and renamed
	Removed     uint64 // old files removed
	Recycled    uint64 // old files written over
	Sealed      uint64 // files that were left because they failed
	Failovers   uint64 // moves to the failover folder
	Reopens     uint64 // times the path was opened anew, by Reopen or as the file was moved
	Truncations uint64 // times the file was found shorter than it was left
	Syncs       uint64 // calls of fsync
	SyncErrors  uint64 // of these, failed ones
}

// fileStats returns the zero value for a Writer that New gave.
func (w *Writer) fileStats() FileStats {
	if w.file == nil {
		return FileStats{}
	}
	s := w.file.Stats()
	f := FileStats{
		Path:        s.Path,
		Padded:      s.Padded,
		Rotations:   s.Rotations,
		Removed:     s.Removed,
		Recycled:    s.Recycled,
		Sealed:      s.Sealed,
		Failovers:   s.Failovers,
		Reopens:     s.Reopens,
		Truncations: s.Truncations,
		Syncs:       s.Syncs,
		SyncErrors:  s.SyncErrors,
	}
	for mode, m := range modes {
		if m == s.Mode {
			f.Mode = mode
		}
	}
	return f
}
