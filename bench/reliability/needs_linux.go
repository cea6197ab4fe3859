package reliability

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
)

// Missing says what this machine lacks for the fault, or "".
func (f Fault) Missing() string {
	switch f.Needs {
	case needsStrace:
		if _, err := exec.LookPath("strace"); err != nil {
			return "strace(1)"
		}
		out, err := exec.Command("strace", "-qq", "-e", "trace=none", "true").CombinedOutput()
		if err != nil {
			return fmt.Sprintf("ptrace(2), for strace: %v %s", err, out)
		}
	case needsMount:
		cmd := exec.Command("true")
		cmd.SysProcAttr = namespace()
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
		return missingLoop()
	case needsCgroup:
		g, err := newCgroup()
		if err != nil {
			return fmt.Sprintf("a cgroup with a bound of memory, as root: %v", err)
		}
		g.remove()
	}
	return ""
}

func namespace() *syscall.SysProcAttr {
	attr := &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWNS}
	if os.Getuid() != 0 {
		attr.Cloneflags |= syscall.CLONE_NEWUSER
		attr.UidMappings = []syscall.SysProcIDMap{{HostID: os.Getuid(), Size: 1}}
		attr.GidMappings = []syscall.SysProcIDMap{{HostID: os.Getgid(), Size: 1}}
	}
	return attr
}

// missingLoop tries what an ext4 on a loop device needs.
func missingLoop() string {
	const what = "to mount an ext4 on a loop device, as root, with mkfs.ext4 and mount"
	dir, err := os.MkdirTemp("", "rollway-reliability-")
	if err != nil {
		return err.Error()
	}
	defer os.RemoveAll(dir)
	image := filepath.Join(dir, "image")
	if err := makeImage(image); err != nil {
		return what + ": " + err.Error()
	}
	cmd := exec.Command("mount", "-o", "loop", image, dir)
	cmd.SysProcAttr = &syscall.SysProcAttr{Unshareflags: syscall.CLONE_NEWNS} // the mount ends with it
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Sprintf("%s: %v %s", what, err, out)
	}
	return ""
}
