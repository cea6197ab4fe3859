package measure

import (
	"fmt"
	"os"
	"strconv"

	"golang.org/x/sys/unix"
)

// Realtime runs the threads of this process, and the threads and processes that
// they start, before all others (SCHED_FIFO), so that neither other programs nor
// kernel threads delay the subjects. It takes root or CAP_SYS_NICE.
func Realtime() error {
	return schedule(unix.SchedAttr{Size: unix.SizeofSchedAttr, Policy: unix.SCHED_FIFO, Priority: 1})
}

// Timeshared takes back what Realtime did.
func Timeshared() error {
	return schedule(unix.SchedAttr{Size: unix.SizeofSchedAttr, Policy: unix.SCHED_NORMAL})
}

func schedule(attr unix.SchedAttr) error {
	done := map[int]bool{}
	for again := true; again; { // one that is started meanwhile may be of a thread that was not done yet
		again = false
		tasks, err := os.ReadDir("/proc/self/task")
		if err != nil {
			return err
		}
		for _, task := range tasks {
			id, err := strconv.Atoi(task.Name())
			if err != nil || done[id] {
				continue
			}
			if err := unix.SchedSetAttr(id, &attr, 0); err != nil && err != unix.ESRCH {
				return fmt.Errorf("set how thread %d is scheduled: %w", id, err)
			}
			done[id], again = true, true
		}
	}
	return nil
}
