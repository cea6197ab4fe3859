package probe

import (
	"cmp"
	"context"
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
