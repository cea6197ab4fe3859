package probe

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"
)

func spaceOf(dir string) *Space {
	var st unix.Statfs_t
	if unix.Statfs(dir, &st) != nil {
		return nil
	}
	size := int64(st.Bsize)
	return &Space{Free: int64(st.Bavail) * size, Total: int64(st.Blocks) * size, FreeIDs: int64(st.Ffree), TotalIDs: int64(st.Files)}
}

func fileLimit() int64 {
	var l unix.Rlimit
	if unix.Getrlimit(unix.RLIMIT_FSIZE, &l) != nil || l.Cur >= 1<<62 {
		return 0
	}
	return int64(l.Cur)
}

func owners(info fs.FileInfo) (owner, user string) {
	if st, ok := info.Sys().(*syscall.Stat_t); ok {
		owner = fmt.Sprintf("%d:%d", st.Uid, st.Gid)
	}
	return owner, fmt.Sprintf("%d:%d", os.Geteuid(), os.Getegid())
}

// mountOf returns the mount that dir is in: the last one with the longest folder
// above dir.
func mountOf(dir string) Mount {
	path, err := filepath.Abs(dir)
	if err == nil {
		path, err = filepath.EvalSymlinks(path)
	}
	table, readErr := os.ReadFile("/proc/self/mountinfo")
	if err != nil || readErr != nil {
		return Mount{}
	}
	var found Mount
	for line := range strings.Lines(string(table)) {
		m, ok := parseMount(line)
		if ok && within(path, m.Point) && len(m.Point) >= len(found.Point) {
			found = m
		}
	}
	return found
}

func within(path, dir string) bool {
	return dir == "/" || path == dir || strings.HasPrefix(path, dir+"/")
}

// parseMount reads a line of /proc/self/mountinfo (proc_pid_mountinfo(5)).
func parseMount(line string) (Mount, bool) {
	before, after, ok := strings.Cut(line, " - ")
	left, right := strings.Fields(before), strings.Fields(after)
	if !ok || len(left) < 6 || len(right) < 3 {
		return Mount{}, false
	}
	m := Mount{Type: right[0], Source: unescape(right[1]), Point: unescape(left[4]), Options: left[5]}
	m.ReadOnly = hasOption(m.Options, "ro") || hasOption(right[2], "ro")
	return m, true
}

func hasOption(options, name string) bool {
	return slices.Contains(strings.Split(options, ","), name)
}

// unescape decodes the octal escapes that the kernel writes.
func unescape(s string) string {
	return strings.NewReplacer(`\040`, " ", `\011`, "\t", `\012`, "\n", `\043`, "#", `\134`, `\`).Replace(s)
}
