package main

import (
	"fmt"
	"io/fs"
	"log/slog"
	"math"
	"os"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"strings"
	"testing"

	"github.com/rollway/rollway/collector/config"
	"github.com/rollway/rollway/internal/testkit"
)

// Lines of /proc/self/mountinfo and /proc/self/cgroup as systems have them.
const (
	mountsV2 = `24 30 0:22 / /proc rw,nosuid,nodev,noexec,relatime shared:12 - proc proc rw
30 1 254:1 / / rw,relatime shared:1 - ext4 /dev/vda1 rw
34 25 0:29 / /sys/fs/cgroup rw,nosuid,nodev,noexec,relatime shared:9 - cgroup2 cgroup2 rw,nsdelegate,memory_recursiveprot
`
	// Docker without a namespace of control groups: the mount shows one group.
	mountsV1 = `706 705 0:28 /docker/0a1b /sys/fs/cgroup/cpu,cpuacct ro,nosuid,nodev,noexec,relatime master:12 - cgroup cgroup rw,cpu,cpuacct
712 705 0:34 /docker/0a1b /sys/fs/cgroup/memory ro,nosuid,nodev,noexec,relatime master:18 - cgroup cgroup rw,memory
`
	groupsV1 = `12:pids:/docker/0a1b
9:memory:/docker/0a1b
4:cpu,cpuacct:/docker/0a1b
1:name=systemd:/docker/0a1b
0::/system.slice/containerd.service
`
	mountsHybrid = `34 25 0:29 / /sys/fs/cgroup/unified rw,nosuid - cgroup2 cgroup2 rw
36 25 0:31 / /sys/fs/cgroup/memory rw,nosuid - cgroup cgroup rw,memory
`
	unlimitedV1 = "9223372036854771712\n"
)

func TestCgroupMemory(t *testing.T) {
	for name, tc := range map[string]struct {
		files map[string]string
		want  int64
		wrong string // in the error
	}{
		"no control groups": {files: map[string]string{"etc/hostname": "x\n"}},
		"version 2, a service": {files: map[string]string{
			"proc/self/cgroup": "0::/system.slice/rollway.service\n", "proc/self/mountinfo": mountsV2,
			"sys/fs/cgroup/system.slice/memory.max":                 "max\n",
			"sys/fs/cgroup/system.slice/rollway.service/memory.max": "1073741824\n",
		}, want: 1 << 30},
		"version 2, no limit": {files: map[string]string{
			"proc/self/cgroup": "0::/system.slice/rollway.service\n", "proc/self/mountinfo": mountsV2,
			"sys/fs/cgroup/system.slice/memory.max":                 "max\n",
			"sys/fs/cgroup/system.slice/rollway.service/memory.max": "max\n",
		}},
		"version 2, the group around has less": {files: map[string]string{
			"proc/self/cgroup": "0::/kubepods.slice/pod1.slice/c.scope\n", "proc/self/mountinfo": mountsV2,
			"sys/fs/cgroup/kubepods.slice/memory.max":                    "8589934592\n",
			"sys/fs/cgroup/kubepods.slice/pod1.slice/memory.max":         "268435456\n",
			"sys/fs/cgroup/kubepods.slice/pod1.slice/c.scope/memory.max": "536870912\n",
		}, want: 256 << 20},
		"version 2, in a container": {files: map[string]string{
			"proc/self/cgroup": "0::/\n", "proc/self/mountinfo": mountsV2,
			"sys/fs/cgroup/memory.max": "134217728\n",
		}, want: 128 << 20},
		"version 2, in a namespace that shows a group elsewhere": {files: map[string]string{
			"proc/self/cgroup": "0::/../../other\n", "proc/self/mountinfo": mountsV2,
			"sys/fs/cgroup/memory.max": "134217728\n",
		}, want: 128 << 20},
		"version 2, root group": {files: map[string]string{
			"proc/self/cgroup": "0::/\n", "proc/self/mountinfo": mountsV2, "sys/fs/cgroup/cgroup.controllers": "memory\n",
		}},
		"version 2, not mounted": {files: map[string]string{
			"proc/self/cgroup": "0::/x\n", "proc/self/mountinfo": "30 1 254:1 / / rw - ext4 /dev/vda1 rw\n",
		}},
		"version 1, in a container": {files: map[string]string{
			"proc/self/cgroup": groupsV1, "proc/self/mountinfo": mountsV1,
			"sys/fs/cgroup/memory/memory.limit_in_bytes": "536870912\n",
		}, want: 512 << 20},
		"version 1, no limit": {files: map[string]string{
			"proc/self/cgroup": groupsV1, "proc/self/mountinfo": mountsV1,
			"sys/fs/cgroup/memory/memory.limit_in_bytes": unlimitedV1,
		}},
		"version 1 beside version 2, nested": {files: map[string]string{
			"proc/self/cgroup": "5:memory:/user.slice/a\n0::/user.slice/a\n", "proc/self/mountinfo": mountsHybrid,
			"sys/fs/cgroup/memory/memory.limit_in_bytes":              unlimitedV1,
			"sys/fs/cgroup/memory/user.slice/memory.limit_in_bytes":   "100000000\n",
			"sys/fs/cgroup/memory/user.slice/a/memory.limit_in_bytes": unlimitedV1,
			"sys/fs/cgroup/unified/user.slice/a/memory.max":           "1\n",
		}, want: 100_000_000},
		"not a limit": {files: map[string]string{
			"proc/self/cgroup": "0::/a\n", "proc/self/mountinfo": mountsV2, "sys/fs/cgroup/a/memory.max": "lots\n",
		}, wrong: `/sys/fs/cgroup/a/memory.max contains "lots"`},
		"a limit that cannot be read": {files: map[string]string{
			"proc/self/cgroup": "0::/a\n", "proc/self/mountinfo": mountsV2, "sys/fs/cgroup/a/memory.max/x": "a folder\n",
		}, wrong: "memory.max"},
		"no mounts": {files: map[string]string{"proc/self/cgroup": "0::/a\n"}, wrong: "mountinfo"},
	} {
		limit, err := cgroupMemory(filesOf(t, tc.files))
		if limit != tc.want || (err == nil) != (tc.wrong == "") || err != nil && !strings.Contains(err.Error(), tc.wrong) {
			t.Errorf("%s: %d, %v; want %d and %q", name, limit, err, tc.want, tc.wrong)
		}
	}
}

// filesOf makes a folder of the files, and returns it as a file system's root.
func filesOf(t *testing.T, files map[string]string) fs.FS {
	t.Helper()
	dir := t.TempDir()
	for name, text := range files {
		name = filepath.Join(dir, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
			t.Fatal(err)
		}
		writeFile(t, name, text)
	}
	return os.DirFS(dir)
}

// Nine tenths of the control group's limit are the garbage collector's, unless
// GOMEMLIMIT says something, whatever that is. What is planned is said, and what does not
// fit is refused, with what would.
func TestLimitMemory(t *testing.T) {
	group := func(limit string) fs.FS {
		return filesOf(t, map[string]string{"proc/self/cgroup": "0::/a\n", "proc/self/mountinfo": mountsV2, "sys/fs/cgroup/a/memory.max": limit})
	}
	before := debug.SetMemoryLimit(-1)
	defer debug.SetMemoryLimit(before)
	const none, MiB = int64(math.MaxInt64), int64(1 << 20)
	for _, tc := range []struct {
		env, limit string
		inFlight   int64
		want       int64
		said       string
		refused    string
	}{
		{"", "1000000000\n", 256 * MiB, 900_000_000, "", ""},
		{"", "max\n", 64 * MiB, none, "", ""},
		{"2GiB", "1000000000\n", 256 * MiB, none, "", ""},
		{"off", "1000000000\n", 256 * MiB, none, "", ""},
		{"", "?", 256 * MiB, none, "set GOMEMLIMIT instead", ""},
		{"", "450887680", 256 * MiB, 450887680 - 45088768, "", ""},
		{"", "450887679", 256 * MiB, none, "", "limits.in_flight of 256 MiB needs up to 430 MiB of memory, and the limit of the process's cgroup is 429 MiB; set limits.in_flight to 255MiB or less, or raise the limit"},
		{"off", "220200960", 256 * MiB, none, "", "set limits.in_flight to 68MiB or less, or raise the limit"},
		{"", "134217728", 64 * MiB, none, "", "raise the limit to 158 MiB or more"},
	} {
		t.Setenv("GOMEMLIMIT", tc.env)
		debug.SetMemoryLimit(none)
		var said testkit.Buffer
		err := limitMemory(slog.New(slog.NewTextHandler(&said, nil)), group(tc.limit), config.Size(tc.inFlight))
		if got := debug.SetMemoryLimit(-1); got != tc.want || !strings.Contains(said.String(), tc.said) {
			t.Errorf("GOMEMLIMIT=%q, limit %q: %d, want %d; said %q", tc.env, tc.limit, got, tc.want, said.String())
		}
		if refused := err != nil; refused != (tc.refused != "") || refused && !strings.Contains(err.Error(), tc.refused) {
			t.Errorf("limit %q: %v, want %q", tc.limit, err, tc.refused)
		}
	}
	for fit := int64(16); fit <= 4096; fit++ { // what is advised fits, and no more does
		limit := plannedMemory(fit * MiB)
		if got, want := fittingAdvice(limit), fmt.Sprintf("%dMiB or less", fit); !strings.Contains(got, want) {
			t.Fatalf("in %d bytes: %q, want %s", limit, got, want)
		}
	}
	debug.SetMemoryLimit(256 * MiB)
	var said testkit.Buffer
	t.Setenv("GOMEMLIMIT", "256MiB")
	if err := limitMemory(slog.New(slog.NewTextHandler(&said, nil)), group("max"), config.Size(256*MiB)); err != nil || !strings.Contains(said.String(), "level=WARN msg=\"GOMEMLIMIT is less") {
		t.Errorf("%v, said %q", err, said.String())
	}
}

// The garbage collector keeps to what is in flight and a constant, gives way to what
// is in use, and never goes over what the control group allows.
func TestGarbageBound(t *testing.T) {
	const none, MiB = int64(math.MaxInt64), int64(1 << 20)
	for _, tc := range []struct{ inFlight, most, used, want int64 }{
		{64 * MiB, none, 0, 128 * MiB},
		{256 * MiB, none, 100 * MiB, 352 * MiB},
		{256 * MiB, none, 500 * MiB, 617 * MiB},
		{256 * MiB, 300 * MiB, 100 * MiB, 300 * MiB},
		{256 * MiB, 300 * MiB, 500 * MiB, 300 * MiB},
	} {
		if got := garbageLimit(tc.inFlight, tc.most, tc.used); got != tc.want {
			t.Errorf("%+v: %d", tc, got)
		}
	}
	before := debug.SetMemoryLimit(-1)
	defer debug.SetMemoryLimit(before)
	for _, tc := range []struct {
		env         string
		limit, want int64
	}{{"", none, 4<<30 + 1<<30 + baseMemory}, {"", 3 << 30, 3 << 30}, {"off", none, none}, {"5GiB", 5 << 30, 5 << 30}} {
		t.Setenv("GOMEMLIMIT", tc.env)
		debug.SetMemoryLimit(tc.limit)
		stop := boundGarbage(4 << 30)
		if got := debug.SetMemoryLimit(-1); got != tc.want {
			t.Errorf("GOMEMLIMIT=%q, limit %d: %d, want %d", tc.env, tc.limit, got, tc.want)
		}
		stop()
		if got := debug.SetMemoryLimit(-1); got != tc.limit {
			t.Errorf("afterwards %d, want %d", got, tc.limit)
		}
	}
}

// The limit rises with what a collection has left, before the next one.
func TestGarbageBoundFollows(t *testing.T) {
	before := debug.SetMemoryLimit(-1)
	defer debug.SetMemoryLimit(before)
	t.Setenv("GOMEMLIMIT", "")
	debug.SetMemoryLimit(math.MaxInt64)
	defer boundGarbage(16 << 20)()
	const held = 200 << 20
	memory := make([]byte, held)
	runtime.GC()
	waitFor(t, "the limit leaves room for garbage", func() bool { return debug.SetMemoryLimit(-1) > held+garbageRoom(16<<20) })
	runtime.KeepAlive(memory)
}

// What is in use is seen, and what was is seen no more.
func TestMemoryUsed(t *testing.T) {
	runtime.GC()
	runtime.GC() // what earlier tests left in pools goes with the second
	before := memoryUsed()
	held := make([]byte, 64<<20)
	runtime.GC()
	with := memoryUsed()
	runtime.KeepAlive(held)
	runtime.GC()
	after := memoryUsed()
	if with-before < 48<<20 || with-after < 48<<20 {
		t.Errorf("%d bytes before, %d with 64 MiB more, %d after", before, with, after)
	}
}
