package probe

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"
)

const renameNeedsClosed = false

// alignOf asks what direct I/O on f needs (Linux 6.1).
func alignOf(f *os.File) Align {
	var st unix.Statx_t
	err := unix.Statx(int(f.Fd()), "", unix.AT_EMPTY_PATH, unix.STATX_DIOALIGN, &st)
	if err != nil || st.Mask&unix.STATX_DIOALIGN == 0 {
		return Align{}
	}
	return Align{Told: true, Memory: int(st.Dio_mem_align), Offset: int(st.Dio_offset_align)}
}

func setDirect(f *os.File, on bool) error {
	flags, err := unix.FcntlInt(f.Fd(), unix.F_GETFL, 0)
	if err != nil {
		return os.NewSyscallError("fcntl", err)
	}
	flags &^= unix.O_DIRECT
	if on {
		flags |= unix.O_DIRECT
	}
	_, err = unix.FcntlInt(f.Fd(), unix.F_SETFL, flags)
	return os.NewSyscallError("fcntl", err)
}

// write writes all of b at offset by one call, as m says; f was set up for
// Direct.
func write(f *os.File, b []byte, offset int64, m Mode) error {
	flags := 0
	if m == Uncached {
		flags = unix.RWF_DONTCACHE
	}
	for len(b) > 0 {
		n, err := unix.Pwritev2(int(f.Fd()), [][]byte{b}, offset, flags)
		if errors.Is(err, unix.EINTR) {
			continue
		}
		if err == nil && n <= 0 {
			err = io.ErrShortWrite
		}
		if err != nil {
			return os.NewSyscallError("pwritev2", err)
		}
		b, offset = b[n:], offset+int64(n)
	}
	return nil
}

func allocate(f *os.File, size int64) error {
	return os.NewSyscallError("fallocate", unix.Fallocate(int(f.Fd()), unix.FALLOC_FL_KEEP_SIZE, 0, size))
}

// alignedMemory returns n bytes that begin at a page.
func alignedMemory(n int) (b []byte, free func(), err error) {
	b, err = unix.Mmap(-1, 0, n, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE|unix.MAP_ANON)
	if err != nil {
		return nil, nil, fmt.Errorf("map %d bytes: %w", n, err)
	}
	return b, func() { _ = unix.Munmap(b) }, nil
}

func spaceOf(dir string) Space {
	var st unix.Statfs_t
	if unix.Statfs(dir, &st) != nil {
		return Space{}
	}
	size := int64(st.Bsize)
	return Space{Known: true, Free: int64(st.Bavail) * size, Total: int64(st.Blocks) * size, FreeIDs: int64(st.Ffree), TotalIDs: int64(st.Files)}
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

// mountOf finds the mount that dir is in: the last one of those whose folder is
// the longest above it.
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
	for o := range strings.SplitSeq(options, ",") {
		if o == name {
			return true
		}
	}
	return false
}

// unescape resolves \040 and its like.
func unescape(s string) string {
	var b strings.Builder
	for i := 0; i < len(s); i++ {
		var c byte
		if s[i] == '\\' && i+3 < len(s) {
			if n, err := fmt.Sscanf(s[i+1:i+4], "%o", &c); n == 1 && err == nil {
				b.WriteByte(c)
				i += 3
				continue
			}
		}
		b.WriteByte(s[i])
	}
	return b.String()
}
