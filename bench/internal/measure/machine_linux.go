package measure

import (
	"os"
	"strconv"
	"strings"
	"time"
)

// machineCPU is the busy time of all cores, from /proc/stat in ticks of 10 ms,
// or 0 if it cannot be read.
func machineCPU() time.Duration {
	stat, err := os.ReadFile("/proc/stat")
	if err != nil {
		return 0
	}
	line, _, _ := strings.Cut(string(stat), "\n")
	fields := strings.Fields(line)
	var ticks int64
	for i, field := range fields {
		switch i {
		case 1, 2, 3, 6, 7, 8: // user, nice, system, irq, softirq, steal
			n, err := strconv.ParseInt(field, 10, 64)
			if err != nil {
				return 0
			}
			ticks += n
		}
	}
	return time.Duration(ticks) * 10 * time.Millisecond
}

// cpuName is the model as the kernel names it.
func cpuName() string {
	info, err := os.ReadFile("/proc/cpuinfo")
	if err != nil {
		return "unknown"
	}
	for line := range strings.Lines(string(info)) {
		if key, value, ok := strings.Cut(line, ":"); ok && strings.TrimSpace(key) == "model name" {
			return strings.TrimSpace(value)
		}
	}
	return "unknown"
}

func kernel() string {
	release, err := os.ReadFile("/proc/sys/kernel/osrelease")
	if err != nil {
		return "linux"
	}
	return "linux " + strings.TrimSpace(string(release))
}
