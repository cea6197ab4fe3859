package reliability

import (
	"fmt"
	"os"
	"runtime"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/rollway/rollway/file"
)

// faulty is a file that fails when strikeAt bytes have been written.
type faulty struct {
	fault    string
	strikeAt int64
	board    *board

	mu      sync.Mutex
	f       *os.File
	written int64     // guarded by mu
	struck  time.Time // guarded by mu; zero before
}

const faultLasts = 300 * time.Millisecond

func (d *faulty) Write(p []byte) (int, error) {
	d.mu.Lock()
	defer d.mu.Unlock() // also when the goroutine ends here
	first := d.struck.IsZero() && d.written >= d.strikeAt && d.fault != closeBlocks
	if first {
		d.struck = time.Now()
		d.board.flag(flagStruck).Store(1)
	}
	switch {
	case d.fault == errorsForEver && !d.struck.IsZero():
		return 0, syscall.EIO
	case d.fault == errorsAWhile && !d.struck.IsZero() && time.Since(d.struck) < faultLasts:
		return 0, syscall.ENOSPC
	case !first:
	case d.fault == stallOnce:
		time.Sleep(faultLasts)
	case d.fault == errorOnce:
		return 0, syscall.ENOSPC
	case d.fault == shortSilent:
		return d.write(p[:len(p)/2+1])
	case d.fault == shortError:
		n, err := d.write(p[:len(p)/2+1])
		if err == nil {
			err = syscall.ENOSPC
		}
		return n, err
	case d.fault == takesNothing:
		return 0, nil
	case d.fault == panics:
		panic("the destination panics")
	case d.fault == goexits:
		runtime.Goexit()
	}
	return d.write(p)
}

func (d *faulty) write(p []byte) (int, error) {
	n, err := d.f.Write(p)
	d.written += int64(n)
	return n, err
}

func (d *faulty) Sync() error { return d.f.Sync() }

func (d *faulty) Close() error {
	if d.fault == closeBlocks {
		d.board.flag(flagStruck).Store(1)
		select {}
	}
	return d.f.Close()
}

// killing kills the process in a Write: after a part of the bytes is in the file,
// or all of them, before the writer knows.
type killing struct {
	destination
	raw     *os.File // of the same path, to write what is no whole line
	board   *board
	within  bool
	left    atomic.Int64 // bytes until it strikes
	partial func(n int) int
	mu      sync.RWMutex // locked for good by the Write that strikes: others would write after a part of a line
}

func (k *killing) Write(p []byte) (int, error) {
	k.mu.RLock()
	if k.left.Add(-int64(len(p))) > 0 {
		defer k.mu.RUnlock()
		return k.destination.Write(p)
	}
	k.mu.RUnlock()
	k.mu.Lock()
	q := p
	if k.within {
		q = p[:k.partial(len(p))]
	}
	if _, err := k.raw.Write(q); err != nil {
		return 0, err
	}
	k.board.flag(flagStruck).Store(1)
	kill()
	return 0, fmt.Errorf("still alive")
}

func kill() {
	_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
	time.Sleep(time.Hour) // it takes a moment
}

// killingFile is killing over a file.File, whose positions slab.Writer asks
// for.
type killingFile struct {
	killing
	file *file.File
}

func (k *killingFile) Prepare(n int) (volume, inode uint64, offset int64, err error) {
	return k.file.Prepare(n)
}

func (k *killingFile) Holds(volume, inode uint64, offset int64, p []byte) (int, error) {
	return k.file.Holds(volume, inode, offset, p)
}
