package pace

import (
	"fmt"
	"os"
	"time"

	"golang.org/x/sys/unix"
)

// An Alarm wakes one goroutine, which waits in the runtime's poller for a timer of
// the kernel, as a goroutine waits for a request. A goroutine that slept in a system
// call would keep one of the runtime's processors for up to 10 ms; the runtime's own
// timers round up to milliseconds when nothing else runs.
type Alarm struct {
	file *os.File
	fd   int
}

// NewAlarm returns an Alarm, to be closed after use.
func NewAlarm() (*Alarm, error) {
	fd, err := unix.TimerfdCreate(unix.CLOCK_MONOTONIC, unix.TFD_NONBLOCK|unix.TFD_CLOEXEC)
	if err != nil {
		return nil, fmt.Errorf("a timer of the kernel: %w", err)
	}
	return &Alarm{file: os.NewFile(uintptr(fd), "timer"), fd: fd}, nil
}

// Close closes the timer.
func (a *Alarm) Close() error { return a.file.Close() }

// sleep may end early; its callers look at the clock.
func (a *Alarm) sleep(d time.Duration) {
	spec := unix.ItimerSpec{Value: unix.NsecToTimespec(int64(max(d, 1)))}
	if unix.TimerfdSettime(a.fd, 0, &spec, nil) != nil {
		return
	}
	var times [8]byte
	_, _ = a.file.Read(times[:])
}
