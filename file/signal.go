package file

import (
	"os"
	"os/signal"
	"sync"
)

// ReopenOn calls Reopen whenever the process gets one of the signals, as after
// logrotate's postrotate script: f.ReopenOn(syscall.SIGHUP). Without a call of
// it the File leaves all signals alone. It ends with stop, which does not wait
// and may be called again, or with Close. The errors of Reopen go to
// Options.OnError. Windows has no SIGHUP: there a File can only see by itself
// that it was moved.
func (f *File) ReopenOn(signals ...os.Signal) (stop func()) {
	if len(signals) == 0 {
		return func() {} // Notify would take it for all there are
	}
	got := make(chan os.Signal, 1)
	ended := make(chan struct{})
	stop = sync.OnceFunc(func() {
		signal.Stop(got)
		close(ended)
	})
	if !f.watch() {
		return stop
	}
	signal.Notify(got, signals...)
	go func() {
		defer f.watchers.Done()
		for {
			select {
			case <-got:
				if err := f.Reopen(); err != nil && f.opt.OnError != nil {
					f.guard("OnError", func() { f.opt.OnError(err) })
				}
			case <-ended:
				return
			case <-f.shut:
				stop()
				return
			}
		}
	}()
	return stop
}
