package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// monotonic returns the clock by which systemd orders a reload and its end.
func monotonic() time.Duration {
	var now unix.Timespec
	_ = unix.ClockGettime(unix.CLOCK_MONOTONIC, &now) // never fails
	return time.Duration(now.Nano())
}

// ownerOf returns the user that a file belongs to.
func ownerOf(path string) (uid uint32, known bool) {
	var st unix.Stat_t
	err := unix.Lstat(path, &st)
	return st.Uid, err == nil
}

// openFiles returns how many files a process may have open, or this one if pid is 0.
func openFiles(pid int) (n int, of string) {
	var l unix.Rlimit
	of = "the collector"
	if pid == 0 || unix.Prlimit(pid, unix.RLIMIT_NOFILE, nil, &l) != nil {
		of = "a process of this user"
		_ = unix.Getrlimit(unix.RLIMIT_NOFILE, &l) // 0 is unknown
	}
	return int(min(l.Cur, 1<<30)), of
}

// totalMemory returns the bytes of this machine's memory.
func totalMemory() int64 {
	var info syscall.Sysinfo_t
	_ = syscall.Sysinfo(&info) // 0 is unknown
	return int64(info.Totalram) * int64(info.Unit)
}

// timeService asks the kernel whether something keeps its clock right.
func (p *patient) timeService() []finding {
	var t unix.Timex
	switch state, err := unix.Adjtimex(&t); {
	case err != nil:
		return nil
	case state == unix.TIME_ERROR || t.Status&unix.STA_UNSYNC != 0:
		return warning("timedatectl set-ntp true, or install chrony; in a container, on its host", "nothing keeps this machine's clock right")
	}
	return ok("the clock is kept right, to %s at worst", shortTime(time.Duration(t.Maxerror)*time.Microsecond))
}

// listenerOf returns the process that listens at a port; 0: none, or one that this user
// cannot see.
func listenerOf(network string, port int) int {
	listening := map[string]string{"tcp": "0A", "udp": "07"}[network]
	sockets := map[string]bool{}
	for _, name := range []string{network, network + "6"} {
		table, _ := os.ReadFile("/proc/net/" + name) // without IPv6 there is one
		for line := range strings.Lines(string(table)) {
			const local, state, inode = 1, 3, 9 // columns
			f := strings.Fields(line)
			if len(f) > inode && f[state] == listening && strings.HasSuffix(f[local], fmt.Sprintf(":%04X", port)) {
				sockets["socket:["+f[inode]+"]"] = true
			}
		}
	}
	links, _ := filepath.Glob("/proc/[0-9]*/fd/*")
	for _, link := range links {
		if to, err := os.Readlink(link); err == nil && sockets[to] {
			pid, _ := strconv.Atoi(strings.Split(link, "/")[2])
			return pid
		}
	}
	return 0
}

// processName returns the name of a process's program.
func processName(pid int) string {
	text, _ := os.ReadFile(fmt.Sprintf("/proc/%d/comm", pid)) // it may have ended
	return strings.TrimSpace(string(text))
}
