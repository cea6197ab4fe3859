package ingest

import (
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// missing says why this machine cannot put servers under load, or "".
const missing = ""

// cpuOf is the user and system time of a process that lives.
func cpuOf(pid int) (time.Duration, error) {
	const processClock = 2 // CPUCLOCK_SCHED of a whole process, clock_getcpuclockid(3)
	var t unix.Timespec
	if err := unix.ClockGettime(int32(^pid<<3|processClock), &t); err != nil {
		return 0, fmt.Errorf("read CPU clock of process %d: %w", pid, err)
	}
	return time.Duration(t.Nano()), nil
}

// residentOf is the resident memory of a process in bytes.
func residentOf(pid int) (int64, error) {
	data, err := os.ReadFile(fmt.Sprintf("/proc/%d/statm", pid))
	if err != nil {
		return 0, err
	}
	fields := strings.Fields(string(data))
	if len(fields) < 2 {
		return 0, fmt.Errorf("statm of process %d: %q", pid, data)
	}
	pages, err := strconv.ParseInt(fields[1], 10, 64)
	return pages * int64(os.Getpagesize()), err
}
