package direct

import (
	"bytes"
	"cmp"
	"io"
	"runtime/pprof"
	"slices"
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

// sites returns the bytes that this process has allocated up to its last
// collection, by the function that did, as the heap profile's samples have it.
func sites() (map[string]int64, error) {
	var b bytes.Buffer
	if err := pprof.Lookup("allocs").WriteTo(&b, 0); err != nil {
		return nil, err
	}
	p, err := profile.Parse(&b)
	if err != nil {
		return nil, err
	}
	all := map[string]int64{}
	for _, s := range p.Sample {
		all[site(s)] += s.Value[1] // alloc_space
	}
	return all, nil
}

// site is the function that allocates, with what is in the logger marked so.
func site(s *profile.Sample) string {
	if within(s, "/slab.(*Writer).run") || within(s, "/bench/direct.(*own).LogBytes") {
		return siteLogger
	}
	for _, l := range s.Location {
		for _, line := range l.Line {
			if name := line.Function.Name; !strings.HasPrefix(name, "runtime.") {
				return name
			}
		}
	}
	return "the runtime"
}

const siteLogger = "the logger"

// allocators are the sites that allocated most between before and now.
func allocators(before, now map[string]int64, seconds float64) []Allocator {
	var all []Allocator
	for name, n := range now {
		if n -= before[name]; n > 0 && name != siteLogger {
			all = append(all, Allocator{name, float64(n) / 1e6 / seconds})
		}
	}
	slices.SortFunc(all, func(a, b Allocator) int {
		return cmp.Or(cmp.Compare(b.MBs, a.MBs), strings.Compare(a.Function, b.Function))
	})
	logger := Allocator{siteLogger, float64(now[siteLogger]-before[siteLogger]) / 1e6 / seconds}
	return append([]Allocator{logger}, all[:min(len(all), 3)]...)
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
