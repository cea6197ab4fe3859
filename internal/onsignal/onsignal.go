// Package onsignal has functions called by the signals that a process gets.
package onsignal

import (
	"os"
	"os/signal"
	"sync"
)

// Call calls f, one call at a time, whenever the process gets one of the
// signals. It ends when stop is called or closed is closed, and then calls ended
// if that is not nil. Stop does not wait, and may be called again. Without
// signals nothing is begun, and ended not called.
func Call(f func(), closed <-chan struct{}, ended func(), signals ...os.Signal) (stop func()) {
	if len(signals) == 0 {
		return func() {} // Notify would take it for all there are
	}
	got := make(chan os.Signal, 1)
	stopped := make(chan struct{})
	stop = sync.OnceFunc(func() {
		signal.Stop(got)
		close(stopped)
	})
	signal.Notify(got, signals...)
	go func() {
		if ended != nil {
			defer ended()
		}
		for {
			select {
			case <-got:
				f()
			case <-stopped:
				return
			case <-closed:
				stop()
				return
			}
		}
	}()
	return stop
}
