package file

import (
	"errors"
	"os"

	"github.com/rollway/rollway/internal/onsignal"
)

// ReopenOn calls Reopen whenever the process gets one of the signals, as after
// logrotate's postrotate script: f.ReopenOn(syscall.SIGHUP). Without a call of
// it the File leaves all signals alone. It ends with stop, which does not wait
// and may be called again, or with Close. The errors of Reopen go to
// Options.OnError. Windows has no SIGHUP; there a File only notices by itself
// that it was moved.
func (f *File) ReopenOn(signals ...os.Signal) (stop func()) {
	if len(signals) == 0 || !f.maintenance.watch() {
		return func() {}
	}
	return onsignal.Call(func() {
		if err := f.Reopen(); err != nil && !errors.Is(err, os.ErrClosed) { // a signal that came with Close
			f.teller.Tell(int(reopening), err) // which is counted
		}
	}, f.maintenance.stop, f.maintenance.running.Done, signals...)
}
