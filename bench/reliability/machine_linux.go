package reliability

import (
	"cmp"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"syscall"

	"github.com/rollway/rollway/bench/internal/child"
	"github.com/rollway/rollway/bench/internal/rivals"
	"golang.org/x/sys/unix"
)

// limitFile lets no file of this process grow over 200,001 bytes, until end is
// called.
func limitFile() (end func() error, err error) {
	signal.Ignore(syscall.SIGXFSZ)
	var limit syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_FSIZE, &limit); err != nil {
		return nil, err
	}
	before := limit
	limit.Cur = 200_001
	return func() error { return syscall.Setrlimit(syscall.RLIMIT_FSIZE, &before) }, syscall.Setrlimit(syscall.RLIMIT_FSIZE, &limit)
}

// mountSmall puts a file system with room for 200 KB on j.Mount, for this
// process alone. grow makes more room.
func (j *job) mountSmall() (grow func() error, err error) {
	if j.Image == "" {
		return child.MountSmall(j.Mount)
	}
	if err := child.PrivateMounts(); err != nil {
		return nil, err
	}
	return mountImage(j.Image, j.Mount)
}

// makeImage makes a file with an ext4 of 8 MiB in it.
func makeImage(path string) error {
	if err := os.WriteFile(path, nil, 0o600); err != nil {
		return err
	}
	if err := os.Truncate(path, 8<<20); err != nil {
		return err
	}
	// Root may use reserved blocks, so with them the disk would never be full.
	out, err := exec.Command("mkfs.ext4", "-q", "-F", "-m", "0", path).CombinedOutput()
	if err != nil {
		return fmt.Errorf("mkfs.ext4: %w %s", err, out)
	}
	return nil
}

// mountImage mounts the ext4 of makeImage, with a file in it that leaves room
// for 200 KB until grow removes it.
func mountImage(image, dir string) (grow func() error, err error) {
	if out, err := exec.Command("mount", "-o", "loop", image, dir).CombinedOutput(); err != nil {
		return nil, fmt.Errorf("mount: %w %s", err, out)
	}
	ballast := filepath.Join(dir, "ballast")
	f, err := os.Create(ballast)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	var st syscall.Statfs_t
	if err := syscall.Fstatfs(int(f.Fd()), &st); err != nil {
		return nil, err
	}
	if err := syscall.Fallocate(int(f.Fd()), 0, 0, int64(st.Bavail)*st.Bsize-200_000); err != nil {
		return nil, fmt.Errorf("fill the disk: %w", err)
	}
	return func() error { return os.Remove(ballast) }, nil
}

// FileSystems names the types of those of the log files, dir or "" for the
// default, and of mapped slabs.
func FileSystems(dir string) (disk, slabs string) {
	if dir == "" {
		dir = os.TempDir()
	}
	shared := rivals.PersistDir()
	if shared == "" {
		shared = os.TempDir()
	}
	return fileSystem(dir), fileSystem(shared)
}

// fileSystem returns the type of the one that has path.
func fileSystem(path string) string {
	var st syscall.Statfs_t
	if err := syscall.Statfs(path, &st); err != nil {
		return "unknown"
	}
	names := map[int64]string{unix.EXT4_SUPER_MAGIC: "ext4", unix.TMPFS_MAGIC: "tmpfs", unix.XFS_SUPER_MAGIC: "xfs", unix.BTRFS_SUPER_MAGIC: "btrfs", unix.OVERLAYFS_SUPER_MAGIC: "overlay"}
	return cmp.Or(names[int64(st.Type)], fmt.Sprintf("type %#x", st.Type))
}

// Missing says what the fault needs and this machine does not have, or "".
func (f Fault) Missing() string {
	switch f.Needs {
	case needsStrace:
		if out, err := exec.Command("strace", "-qq", "-e", "trace=none", "true").CombinedOutput(); err != nil {
			return fmt.Sprintf("strace(1), and leave to trace: %v %s", err, out)
		}
	case needsMount:
		cmd := exec.Command("true")
		cmd.SysProcAttr = child.Namespace()
		if err := cmd.Run(); err != nil {
			return fmt.Sprintf("to mount a tmpfs in a namespace of its own, as root or where users may: %v", err)
		}
	case needsUserfaultfd:
		fd, err := openTrap()
		if err != nil {
			return err.Error()
		}
		syscall.Close(fd)
	case needsLoop:
		if err := tryLoop(); err != nil {
			return "to mount an ext4 on a loop device, as root, with mkfs.ext4 and mount: " + err.Error()
		}
	case needsCgroup:
		g, err := newCgroup()
		if err != nil {
			return fmt.Sprintf("a cgroup with a bound of memory, as root: %v", err)
		}
		g.remove()
	}
	return ""
}

// tryLoop mounts an ext4 on a loop device.
func tryLoop() error {
	dir, err := os.MkdirTemp("", "rollway-reliability-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	image := filepath.Join(dir, "image")
	if err := makeImage(image); err != nil {
		return err
	}
	cmd := exec.Command("mount", "-o", "loop", image, dir)
	cmd.SysProcAttr = &syscall.SysProcAttr{Unshareflags: syscall.CLONE_NEWNS} // the mount ends with it
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("%w %s", err, out)
	}
	return nil
}
