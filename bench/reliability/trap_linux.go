package reliability

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"runtime/debug"
	"syscall"
	"time"
	"unsafe"

	"github.com/rollway/rollway/bench/internal/lines"
	"golang.org/x/sys/unix"
)

// A page that never comes: with userfaultfd(2) a thread that touches the page
// waits until another thread fills it, and none does. So a copy of the pages
// around it stops in the middle.

const (
	// From <linux/userfaultfd.h>.
	uffdAPI          = 0xaa
	uffdioAPI        = 0xc018aa3f // _IOWR(0xaa, 0x3f, 24 bytes)
	uffdioRegister   = 0xc020aa00 // _IOWR(0xaa, 0x00, 32 bytes)
	uffdModeMissing  = 1
	uffdDevNewHandle = 0xaa00 // _IO(0xaa, 0x00), of /dev/userfaultfd
)

type uffdAPIArg struct{ api, features, ioctls uint64 }

type uffdRegisterArg struct{ start, length, mode, ioctls uint64 }

// errNoTrap says that this machine does not let the process have one.
var errNoTrap = errors.New("userfaultfd(2) for faults within the kernel, as root or with vm.unprivileged_userfaultfd=1")

// openTrap returns the descriptor.
func openTrap() (int, error) {
	fd, _, errno := unix.Syscall(unix.SYS_USERFAULTFD, unix.O_CLOEXEC, 0, 0)
	if errno == 0 {
		return int(fd), nil
	}
	dev, err := os.OpenFile("/dev/userfaultfd", os.O_RDWR, 0)
	if err != nil {
		return 0, fmt.Errorf("%w: %w, %w", errNoTrap, errno, err)
	}
	defer dev.Close()
	fd, _, errno2 := unix.Syscall(unix.SYS_IOCTL, dev.Fd(), uffdDevNewHandle, unix.O_CLOEXEC)
	if errno2 != 0 {
		return 0, fmt.Errorf("%w: %w", errNoTrap, errno2)
	}
	return int(fd), nil
}

// trapLine returns a line of three pages whose middle one never comes.
func trapLine() ([]byte, error) {
	fd, err := openTrap()
	if err != nil {
		return nil, err
	}
	api := uffdAPIArg{api: uffdAPI}
	if err := ioctl(fd, uffdioAPI, unsafe.Pointer(&api)); err != nil {
		return nil, fmt.Errorf("userfaultfd API: %w", err)
	}
	mem, err := unix.Mmap(-1, 0, 3*trapPage, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE|unix.MAP_ANONYMOUS)
	if err != nil {
		return nil, err
	}
	copy(mem[:trapPage], lines.Append(nil, trapPage, trapProducer, 0))
	mem[trapPage-1] = 'x'
	last := mem[2*trapPage:]
	for i := range last {
		last[i] = 'x'
	}
	last[trapPage-1] = '\n'
	reg := uffdRegisterArg{start: uint64(uintptr(unsafe.Pointer(&mem[trapPage]))), length: uint64(trapPage), mode: uffdModeMissing}
	if err := ioctl(fd, uffdioRegister, unsafe.Pointer(&reg)); err != nil {
		return nil, fmt.Errorf("userfaultfd register: %w", err)
	}
	return mem, nil
}

// trapLater starts one more producer, which writes a line that cannot be copied
// to its end.
func (w *worker) trapLater() error {
	debug.SetGCPercent(-1) // a collection would wait for the copy
	trap, err := trapLine()
	if err != nil {
		return err
	}
	after := time.Duration(5+rand.New(rand.NewPCG(w.Seed, 3)).IntN(60)) * time.Millisecond
	go func() {
		time.Sleep(after)
		w.board.flag(flagTrap).Store(inTrap)
		_, _ = w.Writer.Write(trap)
		w.board.flag(flagTrap).Store(outTrap)
	}()
	return nil
}

func ioctl(fd int, request uintptr, arg unsafe.Pointer) error {
	if _, _, errno := syscall.Syscall(syscall.SYS_IOCTL, uintptr(fd), request, uintptr(arg)); errno != 0 {
		return errno
	}
	return nil
}
