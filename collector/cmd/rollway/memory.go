package main

import (
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"math"
	"os"
	"path"
	"runtime/debug"
	"runtime/metrics"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/rollway/rollway/collector/config"
)

// limitMemory has the garbage collector keep the process within nine tenths of
// what its control group allows, unless GOMEMLIMIT says something else: the rest
// is for what Go does not count. Without a limit there, or control groups, nothing
// is changed. root is the root of the file system.
func limitMemory(log *slog.Logger, root fs.FS) {
	if os.Getenv("GOMEMLIMIT") != "" {
		return // the runtime has read it
	}
	limit, err := cgroupMemory(root)
	switch {
	case err != nil:
		log.Warn("the memory limit of the cgroup is not known; GOMEMLIMIT can say it", "error", err)
	case limit > 0:
		limit -= limit / 10
		debug.SetMemoryLimit(limit)
		log.Info("memory limit taken from the cgroup", "bytes", limit)
	}
}

// warnMemory says so if the garbage collector is to keep to less than twice what
// requests in flight may take up, each of which leaves some of it behind.
func warnMemory(log *slog.Logger, inFlight config.Size) {
	if limit := debug.SetMemoryLimit(-1); limit < 2*int64(inFlight) {
		log.Warn("under load the process may be killed for its memory: limits.in_flight, which is at least twice limits.max_unpacked, should be half of the limit at the most",
			"limits.in_flight", int64(inFlight), "memory_limit", limit)
	}
}

// anyhow is what the process needs beside limits.in_flight: the program itself, what
// connections and readers keep, and tables of the journal.
const anyhow = 32 << 20

// A garbageBound has the garbage collector keep to in-flight bytes and a constant,
// where GOGC alone lets as much garbage lie as there is in use: under overload that
// is all of limits.in_flight again. It gives way to what is in use, so that the
// collector always has room to work in.
type garbageBound struct {
	most int64 // never more: GOMEMLIMIT, or what the control group allows
	plan int64 // never less, unless most is
	room int64 // for garbage
}

func newGarbageBound(inFlight, most int64) *garbageBound {
	room := max(inFlight/4, 32<<20)
	return &garbageBound{most: most, plan: inFlight + room + anyhow, room: room}
}

// limit is what the garbage collector is to keep to while used bytes are in use.
func (b *garbageBound) limit(used int64) int64 { return min(max(b.plan, used+b.room), b.most) }

// boundGarbage keeps the bound until stop is called. With GOMEMLIMIT in the
// environment, which says what its user wants, it does nothing.
func boundGarbage(inFlight config.Size) (stop func()) {
	if os.Getenv("GOMEMLIMIT") != "" {
		return func() {}
	}
	most := debug.SetMemoryLimit(-1)
	b := newGarbageBound(int64(inFlight), most)
	limit := b.limit(0)
	debug.SetMemoryLimit(limit)
	end, ended := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(ended)
		tick := time.NewTicker(time.Second)
		defer tick.Stop()
		for {
			select {
			case <-end:
				debug.SetMemoryLimit(most)
				return
			case <-tick.C:
			}
			next := b.limit(memoryUsed())
			if next > limit || next < limit-b.room/4 { // each change stops the world
				limit = next
				debug.SetMemoryLimit(limit)
			}
		}
	}()
	return func() {
		close(end)
		<-ended
	}
}

// memoryUsed is what a garbage collection at this moment would leave, in bytes, as
// far as the last one tells.
func memoryUsed() int64 {
	samples := []metrics.Sample{
		{Name: "/memory/classes/total:bytes"},
		{Name: "/memory/classes/heap/released:bytes"},
		{Name: "/memory/classes/heap/free:bytes"},
		{Name: "/memory/classes/heap/objects:bytes"},
		{Name: "/gc/heap/live:bytes"},
	}
	metrics.Read(samples)
	n := func(i int) int64 { return int64(samples[i].Value.Uint64()) }
	return n(0) - n(1) - n(2) - n(3) + n(4)
}

// hierarchy is a tree of control groups that bounds memory, as it is mounted.
type hierarchy struct {
	root  string // group that the mount point shows
	mount string // where, without the leading slash
	file  string // the limit of a group in its folder
}

// cgroupMemory returns the least limit, in bytes, of the control group of this
// process and of those that it is nested in, as far as they are mounted; 0: none.
// Version 1 goes before version 2 where both are there, as only one of them has
// the controller of memory.
func cgroupMemory(root fs.FS) (int64, error) {
	text, err := fs.ReadFile(root, "proc/self/cgroup")
	if errors.Is(err, fs.ErrNotExist) {
		return 0, nil
	}
	if err != nil {
		return 0, err
	}
	group, version := "", 0
	for line := range strings.Lines(string(text)) {
		part := strings.SplitN(strings.TrimSuffix(line, "\n"), ":", 3) // number, controllers, group
		switch {
		case len(part) < 3:
		case slices.Contains(strings.Split(part[1], ","), "memory"):
			group, version = part[2], 1
		case part[0] == "0" && part[1] == "" && version == 0:
			group, version = part[2], 2
		}
	}
	if version == 0 {
		return 0, nil
	}
	h, err := findHierarchy(root, version)
	if err != nil || h.mount == "" {
		return 0, err
	}
	return h.limit(root, group)
}

// findHierarchy returns where memory is bounded by control groups of the version;
// the zero hierarchy: nowhere.
func findHierarchy(root fs.FS, version int) (h hierarchy, err error) {
	text, err := fs.ReadFile(root, "proc/self/mountinfo")
	if err != nil {
		return h, err
	}
	unescape := strings.NewReplacer(`\040`, " ", `\011`, "\t", `\012`, "\n", `\134`, `\`)
	for line := range strings.Lines(string(text)) {
		// number, parent, device, root, mount point, …, "-", type, source, options
		front, back, _ := strings.Cut(line, " - ")
		at, kind := strings.Fields(front), strings.Fields(back)
		if len(at) < 5 || len(kind) < 3 {
			continue
		}
		h = hierarchy{root: unescape.Replace(at[3]), mount: strings.TrimPrefix(unescape.Replace(at[4]), "/")}
		switch {
		case version == 2 && kind[0] == "cgroup2":
			h.file = "memory.max"
			return h, nil
		case version == 1 && kind[0] == "cgroup" && slices.Contains(strings.Split(kind[2], ","), "memory"):
			h.file = "memory.limit_in_bytes"
			return h, nil
		}
	}
	return hierarchy{}, nil
}

// limit returns the least limit of group and those above it; 0: none.
func (h hierarchy) limit(root fs.FS, group string) (int64, error) {
	below, inside := strings.CutPrefix(group, strings.TrimSuffix(h.root, "/")+"/")
	if !inside {
		below = "" // the mount point is the group itself, or all that is to be seen
	}
	least := int64(math.MaxInt64)
	for dir := path.Join(h.mount, path.Clean("/"+below)); ; dir = path.Dir(dir) {
		n, err := readLimit(root, path.Join(dir, h.file))
		if err != nil {
			return 0, err
		}
		least = min(least, n)
		if dir == h.mount || len(dir) <= len(h.mount) {
			break
		}
	}
	if least >= noLimit {
		return 0, nil
	}
	return least, nil
}

// noLimit is less than what version 1 writes where there is no limit: the largest
// multiple of a page.
const noLimit = 1 << 62

// readLimit reads a file with a limit; that of the root group is missing.
func readLimit(root fs.FS, name string) (int64, error) {
	b, err := fs.ReadFile(root, name)
	if errors.Is(err, fs.ErrNotExist) {
		return math.MaxInt64, nil
	}
	if err != nil {
		return 0, err
	}
	text := strings.TrimSpace(string(b))
	if text == "max" {
		return math.MaxInt64, nil
	}
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil || n <= 0 {
		return 0, fmt.Errorf("/%s holds %.40q, which is no limit", name, text)
	}
	return n, nil
}
