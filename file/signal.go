package file

import (
	"errors"
	"os"
	"os/signal"
	"sync"
)

// ReopenOn calls Reopen when the process gets one of the signals, for logrotate's
// postrotate script: f.ReopenOn(syscall.SIGHUP). It ends with Close or with stop, which
// does not wait and may be called again. Errors go to Options.OnError. Windows has no
// SIGHUP; there a File notices at its next check that it was moved.
func (f *File) ReopenOn(signals ...os.Signal) (stop func()) {
	got := make(chan os.Signal, 1)
	stopped := make(chan struct{})
	stop = sync.OnceFunc(func() {
		signal.Stop(got)
		close(stopped)
	})
	if len(signals) == 0 || !f.maintenance.watch() {
		return stop
	}
	signal.Notify(got, signals...)
	go func() {
		defer f.maintenance.running.Done()
		defer stop()
		for {
			select {
			case <-got:
				if err := f.Reopen(); err != nil && !errors.Is(err, os.ErrClosed) { // a signal that came with Close
					f.teller.Tell(int(reopening), err) // which is counted
				}
			case <-stopped:
				return
			case <-f.maintenance.stop:
				return
			}
		}
	}()
	return stop
}
