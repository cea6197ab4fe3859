package child

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// Missing says why this machine cannot measure other processes, or "".
const Missing = ""

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
			if err != nil && !errors.Is(err, fs.ErrNotExist) && !errors.Is(err, unix.ESRCH) {
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

// CPU is the user and system time of the process and its children that live.
func (p *Process) CPU() (time.Duration, error) {
	all, err := family(p.Pid())
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

// Reads counts the calls of read(2) and its like by the process; recv(2) and
// splice(2) are not among them.
func (p *Process) Reads() (float64, error) { return procField(p.Pid(), "io", "syscr:") }

// Resident is the resident memory of a process in bytes.
func Resident(pid int) (int64, error) {
	kib, err := procField(pid, "status", "VmRSS:")
	return int64(kib * 1024), err
}

// Peak is the most resident memory that a process has had, in bytes.
func Peak(pid int) (int64, error) {
	kib, err := procField(pid, "status", "VmHWM:")
	return int64(kib * 1024), err
}

// ResetPeak has Peak begin anew.
func ResetPeak(pid int) error {
	return os.WriteFile(fmt.Sprintf("/proc/%d/clear_refs", pid), []byte("5"), 0)
}

// Space is the memory in bytes, shared pages split among those that share them,
// and the open descriptors, of the process and its children.
func (p *Process) Space() (bytes float64, descriptors int, err error) {
	all, err := family(p.Pid())
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

// Namespace gives a child a mount namespace of its own, as root or as a user
// where users may.
func Namespace() *syscall.SysProcAttr {
	attr := &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWNS}
	if os.Getuid() != 0 {
		attr.Cloneflags |= syscall.CLONE_NEWUSER
		attr.UidMappings = []syscall.SysProcIDMap{{HostID: os.Getuid(), Size: 1}}
		attr.GidMappings = []syscall.SysProcIDMap{{HostID: os.Getgid(), Size: 1}}
	}
	return attr
}

// MountSmall mounts a tmpfs with room for 200 KB, for a process that was started
// in a Namespace. grow makes more room.
func MountSmall(dir string) (grow func() error, err error) {
	if err := PrivateMounts(); err != nil {
		return nil, err
	}
	if err := syscall.Mount("tmpfs", dir, "tmpfs", 0, "size=200k"); err != nil {
		return nil, fmt.Errorf("mount: %w", err)
	}
	return func() error { return syscall.Mount("tmpfs", dir, "tmpfs", syscall.MS_REMOUNT, "size=64m") }, nil
}

// PrivateMounts keeps this namespace's mounts from all others.
func PrivateMounts() error {
	if err := syscall.Mount("", "/", "", syscall.MS_REC|syscall.MS_PRIVATE, ""); err != nil {
		return fmt.Errorf("mount: %w", err)
	}
	return nil
}
