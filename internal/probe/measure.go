package probe

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"slices"
	"time"

	"github.com/rollway/rollway/internal/direct"
)

// Writes says how long writes of one mode and size took.
type Writes struct {
	Mode        Mode    `json:"mode"`
	Chunk       int     `json:"chunk_bytes"`
	BytesPerSec float64 `json:"bytes_per_second"` // of the plain ones
	Plain       Latency `json:"write"`
	Synced      Latency `json:"write_and_fsync"`
	Err         string  `json:"error,omitempty"` // that ended the series
}

// Latency says how long calls took.
type Latency struct {
	Calls  int           `json:"calls"`
	Median time.Duration `json:"median_ns"`
	P90    time.Duration `json:"p90_ns"`
	Max    time.Duration `json:"max_ns"`
}

// Calls of one series at most, plain and with an fsync each.
const (
	mostPlain  = 256
	mostSynced = 16
)

// measure writes chunks of each size in each mode that works. All series write the
// same file; each has its share of the time.
func (r *Report) measure(ctx context.Context, f *scratch, o Options) {
	space := o.Space
	if r.Space != nil {
		space = min(space, r.Space.Free/4)
	}
	if r.Limit > 0 {
		space = min(space, r.Limit)
	}
	var modes []Mode
	if r.Direct.OK {
		modes = append(modes, Direct)
	}
	if r.Uncached.OK {
		modes = append(modes, Uncached)
	}
	modes = append(modes, Buffered)
	begin := time.Now()
	left := len(modes) * len(o.chunks)
	for _, m := range modes {
		for _, chunk := range o.chunks {
			rest := o.Time - time.Since(begin)
			if ctx.Err() == nil && rest > 0 && int64(chunk) <= space {
				w := Writes{Mode: m, Chunk: chunk}
				if err := w.series(ctx, f.File, space, rest/time.Duration(left)); err != nil {
					w.Err = err.Error()
				}
				r.Writes = append(r.Writes, w)
			} else {
				r.Cut = true
			}
			left--
		}
	}
}

// series measures one mode and size, for at most the time most, in a file of at most
// space bytes.
func (w *Writes) series(ctx context.Context, f *os.File, space int64, most time.Duration) (err error) {
	memory, err := direct.NewMemorySet(1, w.Chunk)
	if err != nil {
		return err
	}
	defer memory.Free()
	b := memory.Bytes(0)
	for i := range b {
		b[i] = byte(i*7 + i>>8) // incompressible enough for disks that compress
	}
	if err := f.Truncate(0); err != nil {
		return err
	}
	defer func() { err = cmp.Or(err, f.Truncate(0)) }()
	_ = direct.Allocate(f, 0, min(space, int64(w.Chunk)*mostPlain)) // as file.File does
	if w.Mode == Direct {
		if err := direct.Bypass(f, true); err != nil {
			return err
		}
		defer func() { err = cmp.Or(err, direct.Bypass(f, false)) }()
	}
	at := int64(0)
	write := func() error {
		if at+int64(w.Chunk) > space {
			at = 0
		}
		at += int64(w.Chunk)
		return direct.WriteAt(f, b, at-int64(w.Chunk), systemMode[w.Mode])
	}
	plain, err := times(ctx, mostPlain, most/2, write)
	if err != nil {
		return err
	}
	sum := time.Duration(0)
	for _, took := range plain {
		sum += took
	}
	w.Plain = latency(plain)
	w.BytesPerSec = float64(w.Chunk) * float64(len(plain)) / max(sum, 1).Seconds()
	if err := f.Sync(); err != nil { // do not charge the plain writes to the first synced one
		return err
	}
	synced, err := times(ctx, mostSynced, most/2, func() error {
		if err := write(); err != nil {
			return err
		}
		return f.Sync()
	})
	if err == nil {
		w.Synced = latency(synced)
	}
	return err
}

// times calls call at least once, at most count times, and begins no call after the
// time most. It returns how long each took.
func times(ctx context.Context, count int, most time.Duration, call func() error) (took []time.Duration, err error) {
	begin := time.Now()
	for len(took) < count && (len(took) == 0 || time.Since(begin) < most && ctx.Err() == nil) {
		start := time.Now()
		if err := call(); err != nil {
			return nil, err
		}
		took = append(took, time.Since(start))
	}
	return took, nil
}

// latency summarizes d.
func latency(d []time.Duration) Latency {
	if len(d) == 0 {
		return Latency{}
	}
	slices.Sort(d)
	at := func(part int) time.Duration { return d[min(len(d)*part/100, len(d)-1)] }
	return Latency{Calls: len(d), Median: at(50), P90: at(90), Max: d[len(d)-1]}
}

// Advice is what a report means for a writer of logs.
type Advice struct {
	Mode  Mode   `json:"mode,omitempty"`        // to choose; empty: none, see Notes
	Chunk int    `json:"chunk_bytes,omitempty"` // of one write; 0: nothing was measured
	Notes []Note `json:"notes"`                 // the important ones first
}

// A Note is something about the folder that a writer of logs should know.
type Note struct {
	Found string `json:"found"`
	Next  string `json:"next"` // what to do
}

// remoteFS are file systems on another machine's disk, or a program's.
var remoteFS = []string{"nfs", "nfs4", "cifs", "smb3", "smbfs", "9p", "ceph", "glusterfs", "afs", "lustre"}

// advise sets r.Advice.
func (r *Report) advise() {
	a := &r.Advice
	a.Notes = []Note{}
	note := func(applies bool, next, format string, args ...any) {
		if applies {
			a.Notes = append(a.Notes, Note{fmt.Sprintf(format, args...), next})
		}
	}
	if !r.Files.OK {
		note(r.Mount.ReadOnly, "mount it for writing", "the file system is mounted read-only")
		note(true, "give the folder to the user who writes there, or ask as that user", "no file can be written here: %v", r.Files.Why)
		return
	}
	memory := r.Mount.Type == "tmpfs" || r.Mount.Type == "ramfs"
	far := slices.Contains(remoteFS, r.Mount.Type)
	a.Mode = Buffered
	switch {
	case memory || far:
	case r.Direct.OK:
		a.Mode = Direct
	case r.Uncached.OK:
		a.Mode = Uncached
	}
	best := r.bestChunk(a.Mode)
	if best != nil {
		a.Chunk = best.Chunk
		note(best.Synced.Median > 20*time.Millisecond, "have it by an interval and not by each flush, or choose a faster disk", "an fsync takes %v", best.Synced.Median.Round(time.Millisecond))
	}
	note(memory, "choose a folder on a disk", "%s is memory: files do not survive a reboot, and they compete with programs for memory", r.Mount.Type)
	note(far, "choose a folder on a disk of this machine", "%s is another machine's disk: writes stall when the network does, and direct writes gain nothing", r.Mount.Type)
	note(!memory && !far && r.Align.Offset > blockSize, "write through the page cache", "direct writes would be in blocks of %d bytes, more than the %d that a writer uses", r.Align.Offset, blockSize)
	note(a.Mode == Direct && !r.Allocate.OK, "expect longer writes, or choose another file system", "blocks cannot be allocated ahead: direct writes take longer where the file grows")
	if s := r.Space; s != nil {
		note(s.Total > 0 && s.Free < s.Total/20, "make room, or choose a larger disk", "the disk is nearly full")
		note(s.TotalIDs > 0 && s.FreeIDs < s.TotalIDs/20, "remove files", "there is room for %d more files only", s.FreeIDs)
	}
	note(r.Limit > 0, "rotate before, or raise ulimit -f", "this process may write files up to %d bytes (ulimit -f)", r.Limit)
	for _, w := range r.Writes {
		note(w.Err != "", "look at the kernel's log", "%s writes of %d bytes failed: %v", w.Mode, w.Chunk, w.Err)
	}
}

// bestChunk returns the series with the smallest chunk that reaches nine tenths of
// the best rate of mode m: larger chunks only take longer. It compares medians, so
// that one stall of the disk does not decide.
func (r *Report) bestChunk(m Mode) *Writes {
	rate := func(w Writes) float64 {
		if w.Mode != m || w.Err != "" {
			return -1
		}
		return float64(w.Chunk) / max(w.Plain.Median, 1).Seconds()
	}
	best := 0.0
	for _, w := range r.Writes {
		best = max(best, rate(w))
	}
	for i, w := range r.Writes {
		if rate(w) > 0 && rate(w) >= 0.9*best {
			return &r.Writes[i]
		}
	}
	return nil
}
