package probe

import (
	"fmt"
	"slices"
	"time"
)

// Advice is what a report means for a writer of logs.
type Advice struct {
	Mode  Mode     `json:"mode,omitempty"`        // to choose; empty: none, see Notes
	Chunk int      `json:"chunk_bytes,omitempty"` // of one write; 0: nothing was measured
	Notes []string `json:"notes"`                 // the important ones first
}

// remoteFS are file systems on another machine's disk, or a program's.
var remoteFS = []string{"nfs", "nfs4", "cifs", "smb3", "smbfs", "9p", "ceph", "glusterfs", "afs", "lustre"}

// advise sets r.Advice.
func (r *Report) advise() {
	a := &r.Advice
	a.Notes = []string{}
	note := func(applies bool, format string, args ...any) {
		if applies {
			a.Notes = append(a.Notes, fmt.Sprintf(format, args...))
		}
	}
	if !r.Files.OK {
		note(r.Mount.ReadOnly, "the file system is mounted read-only")
		note(true, "no file can be written here: %v", r.Files.Why)
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
		note(best.Synced.Median > 20*time.Millisecond, "an fsync takes %v: have it by an interval, not by each flush", best.Synced.Median.Round(time.Millisecond))
	}
	note(memory, "%s is memory: files do not survive a reboot, and they compete with programs for memory", r.Mount.Type)
	note(far, "%s is another machine's disk: writes stall when the network does, and direct writes gain nothing", r.Mount.Type)
	note(!memory && !far && r.Align.Offset > blockSize, "direct writes would be in blocks of %d bytes, more than the %d that a writer uses", r.Align.Offset, blockSize)
	note(a.Mode == Direct && !r.Allocate.OK, "blocks cannot be allocated ahead: direct writes take longer where the file grows")
	if s := r.Space; s != nil {
		note(s.Total > 0 && s.Free < s.Total/20, "the disk is nearly full")
		note(s.TotalIDs > 0 && s.FreeIDs < s.TotalIDs/20, "there is room for %d more files only", s.FreeIDs)
	}
	note(r.Limit > 0, "this process may write files up to %d bytes (ulimit -f): rotate before", r.Limit)
	for _, w := range r.Writes {
		note(w.Err != "", "%s writes of %d bytes failed: %v", w.Mode, w.Chunk, w.Err)
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
