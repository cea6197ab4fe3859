package main

import (
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path"
	"runtime"
	"runtime/debug"
	"runtime/metrics"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/rollway/rollway/collector/config"
)

// limitMemory returns an error if what the collector will use does not fit the process's
// cgroup. It sets the runtime's memory limit to nine tenths of the cgroup's,
// unless GOMEMLIMIT is set; the rest is for memory that the runtime does not count. root
// is the root of the file system.
func limitMemory(log *slog.Logger, root fs.FS, inFlight config.Size) error {
	limit, err := cgroupMemory(root)
	if err != nil {
		log.Warn("cannot read the memory limit of the cgroup; set GOMEMLIMIT instead", "error", err)
	}
	need := plannedMemory(int64(inFlight))
	if limit > 0 && need > limit {
		return fmt.Errorf("limits.in_flight of %d MiB needs up to %d MiB of memory, and the limit of the process's cgroup is %d MiB; %s",
			inFlight>>20, need>>20, limit>>20, fittingAdvice(limit))
	}
	if limit > 0 && os.Getenv("GOMEMLIMIT") == "" { // else the runtime has read it
		debug.SetMemoryLimit(limit - limit/10)
	}
	if limit := debug.SetMemoryLimit(-1); limit < int64(inFlight)+baseMemory {
		log.Warn("GOMEMLIMIT is less than limits.in_flight and what the program needs: under load the garbage collector never rests", "GOMEMLIMIT", limit)
	}
	return nil
}

// plannedMemory is what docs/INGEST.md has one plan for requests and the program.
func plannedMemory(inFlight int64) int64 { return inFlight + garbageRoom(inFlight) + 110<<20 }

// fittingAdvice tells what would fit a limit.
func fittingAdvice(limit int64) string {
	const least = 16 << 20
	fits := min(limit-plannedMemory(0), (limit-plannedMemory(0)+garbageRoom(0))*4/5) &^ (1<<20 - 1)
	if fits < least {
		return fmt.Sprintf("raise the limit to %d MiB or more", plannedMemory(least)>>20)
	}
	return fmt.Sprintf("set limits.in_flight to %dMiB or less, or raise the limit", fits>>20)
}

// baseMemory is what the process needs besides limits.in_flight: the program, buffers of
// connections and readers, and the journal's tables.
const baseMemory = 32 << 20

// garbageLimit returns the memory limit of the runtime while used bytes are in use, at
// most upper. GOGC alone allows as much garbage as there is live memory: under overload
// that is limits.in_flight once more. The limit rises with the memory in use, so that
// there is always room for garbage.
func garbageLimit(inFlight, upper, used int64) int64 {
	planned := inFlight + baseMemory
	room := garbageRoom(inFlight) + max(used-planned, 0)/4
	return min(max(planned, used)+room, upper)
}

func garbageRoom(inFlight int64) int64 { return max(inFlight/4, 32<<20) }

// boundGarbage adjusts the memory limit after each garbage collection until stop is
// called. It does nothing with GOMEMLIMIT set.
func boundGarbage(inFlight config.Size) (stop func()) {
	if os.Getenv("GOMEMLIMIT") != "" {
		return func() {}
	}
	original := debug.SetMemoryLimit(-1)
	limit := garbageLimit(int64(inFlight), original, 0)
	debug.SetMemoryLimit(limit)
	var mu sync.Mutex // guards limit and ended
	var ended bool
	afterGC(func() bool {
		mu.Lock()
		defer mu.Unlock()
		next := garbageLimit(int64(inFlight), original, memoryUsed())
		if !ended && (next > limit || next < limit-garbageRoom(int64(inFlight))/4) { // each change stops the world
			limit = next
			debug.SetMemoryLimit(limit)
		}
		return !ended
	})
	return func() {
		mu.Lock()
		defer mu.Unlock()
		ended = true
		debug.SetMemoryLimit(original)
	}
}

// afterGC calls f after each garbage collection, until it returns false.
func afterGC(f func() bool) {
	runtime.AddCleanup(new(*int), func(struct{}) {
		if f() {
			afterGC(f)
		}
	}, struct{}{})
}

// background runs f until stop is called, which closes end and waits for f.
func background(f func(end <-chan struct{})) (stop func()) {
	end, ended := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(ended)
		f(end)
	}()
	return func() {
		close(end)
		<-ended
	}
}

// memoryUsed estimates the bytes that a garbage collection would leave now, from the
// result of the last one.
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

// cgroupMemory returns the lowest memory limit, in bytes, of this process's cgroup and
// its parents, as far as they are mounted; 0: none. Version 1 has precedence: only one
// of the two versions can have the memory controller.
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
	text, err = fs.ReadFile(root, "proc/self/mountinfo")
	if err != nil {
		return 0, err
	}
	unescape := strings.NewReplacer(`\040`, " ", `\011`, "\t", `\012`, "\n", `\134`, `\`)
	for line := range strings.Lines(string(text)) {
		// number, parent, device, group at the mount point, mount point, …, "-", type, source, options
		front, back, _ := strings.Cut(line, " - ")
		at, kind := strings.Fields(front), strings.Fields(back)
		if len(at) < 5 || len(kind) < 3 {
			continue
		}
		shown, mount := unescape.Replace(at[3]), strings.TrimPrefix(unescape.Replace(at[4]), "/")
		switch {
		case version == 2 && kind[0] == "cgroup2":
			return lowestLimit(root, mount, shown, group, "memory.max")
		case version == 1 && kind[0] == "cgroup" && slices.Contains(strings.Split(kind[2], ","), "memory"):
			return lowestLimit(root, mount, shown, group, "memory.limit_in_bytes")
		}
	}
	return 0, nil
}

// lowestLimit returns the lowest limit of group and its parents; 0: none. The mount point
// shows the group shown, and name is the file with a group's limit.
func lowestLimit(root fs.FS, mount, shown, group, name string) (int64, error) {
	below, inside := strings.CutPrefix(group, strings.TrimSuffix(shown, "/")+"/")
	if !inside {
		below = "" // the mount point shows the group itself, or no more is visible
	}
	lowest := int64(noLimit)
	for dir := path.Join(mount, path.Clean("/"+below)); len(dir) >= len(mount); dir = path.Dir(dir) {
		text, err := fs.ReadFile(root, path.Join(dir, name))
		if err != nil && !errors.Is(err, fs.ErrNotExist) { // the root group has none
			return 0, err
		}
		if limit := strings.TrimSpace(string(text)); limit != "" && limit != "max" {
			n, err := strconv.ParseInt(limit, 10, 64)
			if err != nil || n <= 0 {
				return 0, fmt.Errorf("/%s contains %.40q, which is not a limit", path.Join(dir, name), limit)
			}
			lowest = min(lowest, n)
		}
		if dir == "." {
			break
		}
	}
	if lowest == noLimit {
		return 0, nil
	}
	return lowest, nil
}

// noLimit is below what version 1 writes for no limit: the largest multiple of a page.
const noLimit = 1 << 62
