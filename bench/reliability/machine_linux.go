package reliability

import (
	"fmt"
	"os"
	"os/signal"
	"syscall"
)

// The faults that are the machine's: limits of the child's own process and
// namespace.

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

// mountSmall puts a tmpfs of 200 KB on dir, for this process alone.
func mountSmall(dir string) error {
	err := syscall.Mount("", "/", "", syscall.MS_REC|syscall.MS_PRIVATE, "")
	if err == nil {
		err = syscall.Mount("tmpfs", dir, "tmpfs", 0, "size=200k")
	}
	if err != nil {
		return fmt.Errorf("mount: %w", err)
	}
	return nil
}

func growSmall(dir string) error {
	return syscall.Mount("tmpfs", dir, "tmpfs", syscall.MS_REMOUNT, "size=64m")
}

func copyFile(dst, src string) error {
	content, err := os.ReadFile(src)
	if err != nil {
		return err
	}
	return os.WriteFile(dst, content, 0o600)
}
