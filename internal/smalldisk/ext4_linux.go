package smalldisk

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"
	"unsafe"

	"github.com/rollway/rollway/internal/testkit"
)

// Ext4 runs the test in a child with an ext4 of 64 MiB. It returns the folder in the child,
// and "" in the parent, whose test is then over. Without root, mkfs.ext4 or mount the test
// is skipped, or fails with REQUIRE=all.
func Ext4(t testing.TB) (dir string) {
	t.Helper()
	return Ext4Of(t, 64<<20)
}

// Ext4Of is Ext4 with a size in bytes.
func Ext4Of(t testing.TB, size int64) (dir string) {
	t.Helper()
	if Dir() == "" {
		if os.Getuid() != 0 {
			testkit.Missing(t, "root, to mount a file system")
		}
		testkit.Program(t, "mkfs.ext4")
		testkit.Program(t, "mount")
	}
	base := namespace(t, &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWNS})
	if base == "" {
		return ""
	}
	image, disk := filepath.Join(base, "image"), filepath.Join(base, "disk")
	if err := errors.Join(os.WriteFile(image, nil, 0o600), os.Truncate(image, size), os.Mkdir(disk, 0o700)); err != nil {
		t.Fatal(err)
	}
	if out, err := exec.Command("mkfs.ext4", "-q", "-F", image).CombinedOutput(); err != nil {
		t.Fatalf("mkfs.ext4: %v %s", err, out)
	}
	mountExt4(disk)
	t.Cleanup(func() { syscall.Unmount(disk, syscall.MNT_DETACH) })
	return disk
}

func mountExt4(disk string) {
	image := filepath.Join(filepath.Dir(disk), "image")
	if out, err := exec.Command("mount", "-o", "loop", image, disk).CombinedOutput(); err != nil {
		cannotMount(err, string(out))
	}
}

// CutPower makes the file system of Ext4 lose what is not on the disk, and fail then.
func CutPower(t testing.TB, disk string) {
	t.Helper()
	const shutdown, noLogFlush = 0x8004587D, 2 // EXT4_IOC_SHUTDOWN, EXT4_GOING_FLAGS_NOLOGFLUSH
	control(t, disk, shutdown, noLogFlush)
}

// Freeze makes writes to the file system of Ext4 hang until thaw is called.
func Freeze(t testing.TB, disk string) (thaw func()) {
	t.Helper()
	const freeze, release = 0xC0045877, 0xC0045878 // FIFREEZE, FITHAW
	control(t, disk, freeze, 0)
	return func() { control(t, disk, release, 0) }
}

// control has the file system of Ext4 do something.
func control(t testing.TB, disk string, request uintptr, flags uint32) {
	t.Helper()
	f, err := os.Open(disk)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if _, _, errno := syscall.Syscall(syscall.SYS_IOCTL, f.Fd(), request, uintptr(unsafe.Pointer(&flags))); errno != 0 {
		t.Fatalf("ioctl %#x of the file system: %v", request, errno)
	}
}

// RestorePower mounts the file system again.
func RestorePower(t testing.TB, disk string) {
	t.Helper()
	if err := syscall.Unmount(disk, syscall.MNT_DETACH); err != nil {
		t.Fatal(err)
	}
	mountExt4(disk)
}
