package probe

import (
	"context"
	"slices"
	"time"
)

// Writes is how long writes of one mode and size took.
type Writes struct {
	Mode        Mode
	Chunk       int // bytes
	Plain       Latency
	Synced      Latency // each with the fsync behind it
	BytesPerSec float64 // of the plain ones
	Err         error   // that ended the series; nil if none did
}

// Latency is how long calls took.
type Latency struct {
	Calls            int
	Median, P90, Max time.Duration
}

// Most calls of one series, and how many of them with a sync.
const (
	mostPlain  = 256
	mostSynced = 16
)

// measure writes chunks of each size by each mode that works. Every series has
// its share of the time and of the space, and goes over the same file.
func (r *Report) measure(ctx context.Context, f *scratch, o Options) {
	space := o.Space
	if r.Space.Known {
		space = min(space, r.Space.Free/4)
	}
	if r.Limit > 0 {
		space = min(space, r.Limit)
	}
	modes := []Mode{Buffered}
	if r.Uncached.OK {
		modes = slices.Insert(modes, 0, Uncached)
	}
	if r.Direct.OK {
		modes = slices.Insert(modes, 0, Direct)
	}
	begin := time.Now()
	left := len(modes) * len(o.Chunks)
	for _, m := range modes {
		for _, chunk := range o.Chunks {
			rest := o.Time - time.Since(begin)
			if ctx.Err() != nil || rest <= 0 || int64(chunk) > space {
				r.Cut = true
				left--
				continue
			}
			w := series(ctx, f, m, chunk, space, rest/time.Duration(left))
			r.Writes = append(r.Writes, w)
			left--
		}
	}
}

// series measures one mode and size for at most so long, over a file of at most
// space bytes.
func series(ctx context.Context, f *scratch, m Mode, chunk int, space int64, most time.Duration) (w Writes) {
	w = Writes{Mode: m, Chunk: chunk}
	fail := func(err error) bool {
		if err != nil && w.Err == nil {
			w.Err = err
		}
		return err != nil
	}
	b, free, err := alignedMemory(chunk)
	if fail(err) {
		return w
	}
	defer free()
	for i := range b {
		b[i] = byte(i*7 + i>>8) // not what a disk that packs would like best
	}
	if fail(f.Truncate(0)) {
		return w
	}
	defer func() { fail(f.Truncate(0)) }()
	_ = allocate(f.File, min(space, int64(chunk)*mostPlain)) // a writer does as well
	if m == Direct {
		if fail(setDirect(f.File, true)) {
			return w
		}
		defer func() { fail(setDirect(f.File, false)) }()
	}
	var plain, synced []time.Duration
	at, begin := int64(0), time.Now()
	next := func() int64 {
		if at+int64(chunk) > space {
			at = 0
		}
		at += int64(chunk)
		return at - int64(chunk)
	}
	sum := time.Duration(0)
	for len(plain) < mostPlain && (len(plain) == 0 || time.Since(begin) < most/2 && ctx.Err() == nil) {
		start := time.Now()
		if fail(write(f.File, b, next(), m)) {
			return w
		}
		took := time.Since(start)
		plain, sum = append(plain, took), sum+took
	}
	w.Plain = latency(plain)
	w.BytesPerSec = float64(chunk) * float64(len(plain)) / max(sum, 1).Seconds()
	if fail(f.Sync()) { // what the writes before have left is not the next one's
		return w
	}
	for begin = time.Now(); len(synced) < mostSynced && (len(synced) == 0 || time.Since(begin) < most/2 && ctx.Err() == nil); {
		start := time.Now()
		if fail(write(f.File, b, next(), m)) || fail(f.Sync()) {
			return w
		}
		synced = append(synced, time.Since(start))
	}
	w.Synced = latency(synced)
	return w
}

// latency sums up what took so long.
func latency(d []time.Duration) Latency {
	if len(d) == 0 {
		return Latency{}
	}
	slices.Sort(d)
	at := func(part int) time.Duration { return d[min(len(d)*part/100, len(d)-1)] }
	return Latency{Calls: len(d), Median: at(50), P90: at(90), Max: d[len(d)-1]}
}
