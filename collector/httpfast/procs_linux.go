package httpfast

import (
	"os"
	"runtime"
	"sync"
)

// procs are the runtime's processors. A goroutine that waits in a system call
// keeps the one it had until somebody takes it away, up to 10 ms later; workers
// wait in system calls. So there are as many processors more as workers of one
// Server, and what the journal or net/http wakes up finds one at once. The
// runtime does not follow a changed quota of processors while that is so.
var procs struct {
	sync.Mutex
	servers  int // guarded by the mutex
	own, set int // guarded by it; GOMAXPROCS without and with workers
}

// takeProcs returns how many workers a Server is to have. giveProcs is to follow.
func takeProcs() int {
	procs.Lock()
	defer procs.Unlock()
	if procs.servers++; procs.servers == 1 {
		procs.own = runtime.GOMAXPROCS(0)
		procs.set = procs.own
		if os.Getenv("GOMAXPROCS") == "" { // else somebody has decided
			procs.set *= 2
			runtime.GOMAXPROCS(procs.set)
		}
	}
	return procs.own
}

// giveProcs leaves GOMAXPROCS as it was, if no Server is left and nobody else
// has changed it.
func giveProcs() {
	procs.Lock()
	defer procs.Unlock()
	if procs.servers--; procs.servers > 0 || procs.set == procs.own || runtime.GOMAXPROCS(0) != procs.set {
		return
	}
	if runtime.SetDefaultGOMAXPROCS(); runtime.GOMAXPROCS(0) != procs.own {
		runtime.GOMAXPROCS(procs.own)
	}
}
