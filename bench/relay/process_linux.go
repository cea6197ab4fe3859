package relay

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// missing says why this machine cannot measure at all, or "".
const missing = ""

// family is the process and everything that came from it, itself first.
func family(pid int) ([]int, error) {
	all := []int{pid}
	for i := 0; i < len(all); i++ {
		tasks, err := os.ReadDir(fmt.Sprintf("/proc/%d/task", all[i]))
		if errors.Is(err, fs.ErrNotExist) {
			continue // it has ended
		} else if err != nil {
			return all, err
		}
		for _, task := range tasks {
			list, err := os.ReadFile(fmt.Sprintf("/proc/%d/task/%s/children", all[i], task.Name()))
			if err != nil && !errors.Is(err, fs.ErrNotExist) {
				return all, err
			}
			for _, child := range strings.Fields(string(list)) {
				n, err := strconv.Atoi(child)
				if err != nil {
					return all, err
				}
				if !slices.Contains(all, n) {
					all = append(all, n)
				}
			}
		}
	}
	return all, nil
}

// cpu is the user and system time of the process and its children that live.
func (p *process) cpu() (time.Duration, error) {
	all, err := family(p.cmd.Process.Pid)
	if err != nil {
		return 0, err
	}
	var sum time.Duration
	for i, pid := range all {
		const processClock = 2 // CPUCLOCK_SCHED of a whole process, clock_getcpuclockid(3)
		var t unix.Timespec
		if err := unix.ClockGettime(int32(^pid<<3|processClock), &t); err != nil && i == 0 {
			return 0, fmt.Errorf("read CPU clock of process %d: %w", pid, err)
		}
		sum += time.Duration(t.Nano())
	}
	return sum, nil
}

// readCalls counts the calls of read(2) and its like by the process; recv(2)
// and splice(2) are not among them.
func (p *process) readCalls() (float64, error) {
	return procField(p.cmd.Process.Pid, "io", "syscr:")
}

// space is the memory in bytes, shared pages split among those who share them,
// and the open descriptors, of the process and its children.
func (p *process) space() (bytes float64, descriptors int, err error) {
	all, err := family(p.cmd.Process.Pid)
	if err != nil {
		return 0, 0, err
	}
	for i, pid := range all {
		pss, err := procField(pid, "smaps_rollup", "Pss:")
		entries, err2 := os.ReadDir(fmt.Sprintf("/proc/%d/fd", pid))
		if err := errors.Join(err, err2); err != nil {
			if i > 0 && (errors.Is(err, fs.ErrNotExist) || errors.Is(err, unix.ESRCH)) {
				continue // a child that has ended meanwhile
			}
			return 0, 0, err
		}
		bytes += 1024 * pss
		descriptors += len(entries)
	}
	return bytes, descriptors, nil
}

func procField(pid int, file, name string) (float64, error) {
	path := fmt.Sprintf("/proc/%d/%s", pid, file)
	data, err := os.ReadFile(path)
	if err != nil {
		return 0, err
	}
	for line := range strings.Lines(string(data)) {
		if f := strings.Fields(line); len(f) > 1 && f[0] == name {
			return strconv.ParseFloat(f[1], 64)
		}
	}
	return 0, fmt.Errorf("%s has no field %s", path, name)
}
