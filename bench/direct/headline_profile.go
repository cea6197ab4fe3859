package direct

import (
	"io"
	"strings"

	"github.com/google/pprof/profile"
)

// split shares the cores that the process used among its parts, by a CPU
// profile of the same time.
func split(r io.Reader, cores float64) (CPU, error) {
	p, err := profile.Parse(r)
	if err != nil {
		return CPU{}, err
	}
	var payload, logger, flusher, gc, all int64
	for _, s := range p.Sample {
		n := s.Value[0]
		all += n
		switch {
		case within(s, "/bench/direct.fillRecord"):
			payload += n
		case within(s, "/slab.(*Writer).run") || within(s, "/bench/direct.(*casLogger).run"):
			flusher += n
		case within(s, "/bench/direct.(*own).LogBytes") || within(s, "/bench/direct.(*casLogger).LogBytes"):
			logger += n
		case within(s, "runtime.gcBgMarkWorker"):
			gc += n
		}
	}
	c := CPU{Total: cores, Samples: int(all)}
	if all > 0 {
		of := func(n int64) float64 { return cores * float64(n) / float64(all) }
		c.Payload, c.Logger, c.Flusher, c.GC = of(payload), of(logger), of(flusher), of(gc)
	}
	c.Handlers = max(0, cores-c.Payload-c.Logger-c.Flusher-c.GC)
	return c, nil
}

// within reports whether a function whose name ends so is on the stack.
func within(s *profile.Sample, function string) bool {
	for _, l := range s.Location {
		for _, line := range l.Line {
			if strings.HasSuffix(line.Function.Name, function) {
				return true
			}
		}
	}
	return false
}
