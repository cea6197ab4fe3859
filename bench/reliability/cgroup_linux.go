package reliability

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// cgroupBytes is how much memory a process may have before the kernel kills it.
const cgroupBytes = 256 << 20

// A cgroup is one for a single process, with a bound of memory.
type cgroup struct {
	dir    string
	events string // file in dir that tells of OOM kills
}

// newCgroup makes one below the root of the hierarchy that has the memory
// controller, be it of version 1 or 2. Only root may, and in many containers
// not even root.
func newCgroup() (*cgroup, error) {
	mounts, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil {
		return nil, err
	}
	err = errors.New("no memory controller is mounted")
	for line := range strings.Lines(string(mounts)) {
		left, right, _ := strings.Cut(line, " - ")
		at, kind := strings.Fields(left), strings.Fields(right) // kind: type, source, options
		if len(at) < 5 || len(kind) < 3 {
			continue
		}
		v1 := kind[0] == "cgroup" && slices.Contains(strings.Split(kind[2], ","), "memory")
		if !v1 && kind[0] != "cgroup2" {
			continue
		}
		g, e := makeCgroup(at[4], v1)
		if e == nil {
			return g, nil
		}
		err = e
	}
	return nil, err
}

func makeCgroup(root string, v1 bool) (*cgroup, error) {
	dir, err := os.MkdirTemp(root, "rollway-reliability-")
	if err != nil {
		return nil, err
	}
	g := &cgroup{dir, "memory.events"}
	limit, swap, noSwap := "memory.max", "memory.swap.max", "0"
	if v1 {
		g.events = "memory.oom_control"
		limit, swap, noSwap = "memory.limit_in_bytes", "memory.memsw.limit_in_bytes", strconv.Itoa(cgroupBytes)
	}
	err = os.WriteFile(filepath.Join(dir, limit), []byte(strconv.Itoa(cgroupBytes)), 0)
	if err == nil {
		// Without swap it ends sooner. Kernels without swap have no such file, and a
		// write to it reports no error.
		if _, e := os.Stat(filepath.Join(dir, swap)); e == nil {
			err = os.WriteFile(filepath.Join(dir, swap), []byte(noSwap), 0)
		}
	}
	if err != nil {
		g.remove()
		return nil, err
	}
	return g, nil
}

func (g *cgroup) remove() { _ = os.Remove(g.dir) }

// struck makes sure that the kernel has killed the process because memory ran out.
func (g *cgroup) struck() error {
	text, err := os.ReadFile(filepath.Join(g.dir, g.events))
	if err != nil {
		return err
	}
	for line := range strings.Lines(string(text)) {
		if n, ok := strings.CutPrefix(strings.TrimSpace(line), "oom_kill "); ok && n != "0" {
			return nil
		}
	}
	return fmt.Errorf("it was not killed because memory ran out: %s", text)
}

// eatMemory starts at a random moment to take memory, until the kernel kills the process.
func (w *worker) eatMemory() {
	for w.board.progress().Load() == 0 {
		time.Sleep(time.Millisecond)
	}
	time.Sleep(time.Duration(rand.New(rand.NewPCG(w.Seed, 5)).Int64N(int64(100 * time.Millisecond))))
	const piece = 4 << 20
	for {
		mem, err := unix.Mmap(-1, 0, piece, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE|unix.MAP_ANONYMOUS)
		if err != nil {
			return // then it is not killed, and child reports that
		}
		for i := 0; i < piece; i += os.Getpagesize() {
			mem[i] = 1
		}
	}
}
